package payment

import (
	"cmp"
	"time"
)

// EventKey names one event of one gateway, across deliveries.
type EventKey struct {
	Gateway string
	ID      string // the gateway's event id, or "sha256:<hex of body>" where it sent none that is fit to use
}

// String is the key as operators write it: "razorpay/Q2bFh...".
func (k EventKey) String() string { return k.Gateway + "/" + k.ID }

// EventStatus says what became of a delivered event. Only APPLIED is final: everything else may still be applied by
// a redrive, a replay or reconcile.
type EventStatus string

// The event statuses.
const (
	EventReceived EventStatus = "RECEIVED" // stored, and handed to the queue or about to be
	EventParked   EventStatus = "PARKED"   // its order is unknown, or it cannot be decoded: tried again later
	EventFailed   EventStatus = "FAILED"   // gave up for now; its message is in the dead letter queue
	EventIgnored  EventStatus = "IGNORED"  // of no concern to any order of ours
	EventApplied  EventStatus = "APPLIED"  // merged into its order, even if it taught us nothing
)

// Event is one verified delivery as it is kept: the raw bytes and what became of them.
type Event struct {
	Key        EventKey
	Status     EventStatus
	Verdict    string // why the status is what it is, in one sentence for an operator
	Type       string // the gateway's name for it, such as "payment.captured"; empty until decoded
	OrderID    string // ours; empty until known
	Body       []byte // as received, byte for byte, unless Reduced
	Reduced    bool   // the body was too large for a row: Body holds only what decoding reads
	SHA256     string // hex digest of the body as received
	VerifiedBy string // label of the secret that verified it
	Mode       Mode
	Delivery   string // id of the invocation that stored it
	Attempts   int    // how often it was settled
	ReceivedAt time.Time
	NextAt     time.Time // when somebody should look again; zero if nobody need
	KeepUntil  time.Time // when the row may be dropped, if it is APPLIED or IGNORED by then
}

// Settlement is what processing made of an event. It is written only where the event is not APPLIED yet.
type Settlement struct {
	Key        EventKey
	Status     EventStatus
	Verdict    string
	Type       string
	OrderID    string
	ReceivedAt time.Time // of the event: an order's history sorts by it
	NextAt     time.Time
}

// Settle begins the settlement of e.
func (e Event) Settle(status EventStatus, kind, orderID, verdict string) Settlement {
	return Settlement{
		Key: e.Key, Status: status, Verdict: verdict, Type: kind, OrderID: orderID, ReceivedAt: e.ReceivedAt,
	}
}

// Pace is how long a minute of the schedules takes: a minute (as 0 is too), except where somebody watches a local stack.
type Pace time.Duration

// Both schedules count, in minutes, from when the event was received.
var (
	// parkedRetries are when an event without an order is tried again. After the last, 24 hours, it is IGNORED.
	parkedRetries = []int{1, 5, 30, 2 * 60, 6 * 60, 24 * 60}
	// handOffs are when an event that nobody settled is handed to the worker again; after the last, every 6 hours.
	handOffs = []int{10, 30, 2 * 60, 6 * 60}
)

// lastPause is how long, in minutes, reconcile waits between two looks after the schedules have ended.
const lastPause = 6 * 60

// FirstLook is when reconcile first asks what became of an event that was received at this time.
func (p Pace) FirstLook(received time.Time) time.Time { return received.Add(p.minutes(handOffs[0])) }

// Park settles an event whose order is not known (yet): PARKED until the next try, or IGNORED if it was PARKED before and
// the last try, after 24 hours, is over. It may be early, or belong to another shop on the same gateway account.
func (p Pace) Park(e Event, kind, why string, at time.Time) Settlement {
	s := e.Settle(EventParked, kind, "", why)
	age := at.Sub(e.ReceivedAt)
	wait, ok := p.after(parkedRetries, age)
	if !ok && e.Status == EventParked {
		s.Status, s.Verdict = EventIgnored, why+", and still so at the last try"
		return s
	}
	if !ok { // it comes to the worker late for the first time: what it waits for may be in the same batch
		wait = age + p.minutes(parkedRetries[0])
	}
	s.NextAt = e.ReceivedAt.Add(wait)
	return s
}

// SendAgain settles an event that is about to be handed to the worker again: nothing changes but when somebody should
// look next. It is written before the message is sent, so that one that always fails does not keep others waiting. It
// reports false for an event that is not due, or that nobody should send by himself.
func (p Pace) SendAgain(e Event, at time.Time) (Settlement, bool) {
	schedule := map[EventStatus][]int{EventReceived: handOffs, EventParked: parkedRetries}[e.Status]
	if schedule == nil || e.NextAt.IsZero() || at.Before(e.NextAt) {
		return Settlement{}, false
	}
	age := at.Sub(e.ReceivedAt)
	wait, ok := p.after(schedule, age)
	if !ok {
		wait = age + p.minutes(lastPause) // a parked one the worker will ignore, unless there is no worker
	}
	s := e.Settle(e.Status, e.Type, e.OrderID, e.Verdict)
	s.NextAt = e.ReceivedAt.Add(wait)
	return s, true
}

// after is the first of the schedule's times that lies after age.
func (p Pace) after(schedule []int, age time.Duration) (time.Duration, bool) {
	for _, n := range schedule {
		if wait := p.minutes(n); age < wait {
			return wait, true
		}
	}
	return 0, false
}

// Minutes is how long so many minutes of the schedules take.
func (p Pace) Minutes(n int) time.Duration { return p.minutes(n) }

func (p Pace) minutes(n int) time.Duration {
	return time.Duration(n) * cmp.Or(time.Duration(p), time.Minute)
}
