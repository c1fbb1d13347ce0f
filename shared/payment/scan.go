package payment

import (
	"slices"
	"time"
)

// Scan is one way of going through everything that the gateway has, again and again: what no webhook ever told us turns up.
// Times are minutes.
type Scan struct {
	Name    string
	every   int  // from the beginning of a pass to the beginning of the next
	back    int  // how far before its beginning a pass begins; 0: where the pass before ended, less the overlap
	overlap int  // with the pass before
	Listens bool // it also looks whether webhooks came
}

// The scans there are. A payment may succeed days after it was created, and the gateway lists by creation.
var (
	HourlyScan = Scan{Name: "hourly", every: 60, overlap: 2 * 60, Listens: true}
	DailyScan  = Scan{Name: "daily", every: 24 * 60, back: 6 * 24 * 60}
)

const (
	// sliceMinutes is the longest part that is read in one go. The gateway has no cursor, only offsets, which shift when something
	// is added; a closed slice of the past does not change.
	sliceMinutes = 10
	// settlingMinutes is how long ago a slice must have ended: the gateway's list may lag.
	settlingMinutes = 1
	// expectedMinutes is how old a payment is when its webhook should have come and been applied.
	expectedMinutes = 15
	// stuckMinutes is how long a pass that cannot get past a slice tries, several runs.
	stuckMinutes = 30
	// maxSilent is how many payments without a webhook are remembered: more say nothing new.
	maxSilent = 100
)

// Cursor is how far a scan has come. The zero value is a scan that never ran.
type Cursor struct {
	Next    time.Time // beginning of the next slice; Until, if no pass is under way
	Until   time.Time // end of the pass under way, or of the last one
	BeganAt time.Time // when that pass began
	Silent  []Unheard // captured payments of which no webhook came, the latest in a row
	Version int64     // grows by one with every write; 0: not stored yet
}

// Unheard is a captured payment of which no webhook came.
type Unheard struct {
	OrderID   string
	PaymentID string
	CreatedAt time.Time
}

// Resume returns the cursor of the pass under way, or of a new one if it is time for that. Nothing is to be done if it is not
// [Cursor.Underway]. A pass that began later than now, because a clock was ahead, may have read what was not there yet: a new
// one takes its place.
func (s Scan) Resume(c Cursor, p Pace, at time.Time) Cursor {
	ahead := at.Before(c.BeganAt)
	if !ahead && (c.Underway() || at.Sub(c.BeganAt) < p.minutes(s.every)) {
		return c
	}
	from := at.Add(-p.minutes(s.back))
	if s.back == 0 {
		from = c.Next.Add(-p.minutes(s.overlap))
		if first := at.Add(-p.minutes(s.every + s.overlap)); c.Until.IsZero() || ahead && first.Before(from) {
			from = first // what is older is the daily scan's
		}
	}
	c.Next, c.Until, c.BeganAt = from.Truncate(time.Second), at.Add(-p.minutes(settlingMinutes)).Truncate(time.Second), at
	return c
}

// Underway reports whether a pass has a slice left.
func (c Cursor) Underway() bool { return c.Next.Before(c.Until) }

// Slice is the next part of the pass under way, both ends included, to the second.
func (c Cursor) Slice(p Pace) (from, to time.Time) {
	to = c.Next.Add(p.minutes(sliceMinutes))
	if to.After(c.Until) {
		to = c.Until
	}
	return c.Next, to
}

// Stuck reports whether the pass has been under way for so long that what fails in it may fail for good.
func (c Cursor) Stuck(p Pace, at time.Time) bool { return at.Sub(c.BeganAt) >= p.minutes(stuckMinutes) }

// Finished is the cursor once that part is done. The second in which it ends is read twice, rather than not at all.
func (c Cursor) Finished(p Pace) Cursor {
	_, c.Next = c.Slice(p)
	return c
}

// Expected reports whether the webhooks of a payment that was created then should have come and been applied.
func (p Pace) Expected(created, at time.Time) bool {
	return at.Sub(created) >= p.minutes(expectedMinutes)
}

// Hear takes a captured payment into account: one of which a webhook came ends the silence before it, another adds to it. One
// that is too young changes nothing. Payments must come in the order of their creation, as a pass brings them; between two
// passes Silent is what it should be.
func (c Cursor) Hear(u Unheard, heard bool, p Pace, at time.Time) Cursor {
	same := func(s Unheard) bool { return s.PaymentID == u.PaymentID }
	switch {
	case !p.Expected(u.CreatedAt, at):
	case heard:
		c = c.Heard(u.CreatedAt)
	case slices.ContainsFunc(c.Silent, same):
	default:
		c.Silent = append(slices.Clone(c.Silent), u)
		c.Silent = c.Silent[max(0, len(c.Silent)-maxSilent):]
	}
	return c
}

// Heard ends the silence of the payments that were created until then: the webhook was switched on.
func (c Cursor) Heard(until time.Time) Cursor {
	c.Silent = slices.DeleteFunc(slices.Clone(c.Silent), func(s Unheard) bool { return !s.CreatedAt.After(until) })
	return c
}
