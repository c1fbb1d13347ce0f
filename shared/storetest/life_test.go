package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

var interleavings atomic.Int64

func TestMain(m *testing.M) {
	code := m.Run()
	if n := interleavings.Load(); n > 0 {
		fmt.Printf("an event's life: %d interleavings\n", n)
	}
	os.Exit(code)
}

var (
	received = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	price    = payment.Money{Amount: 49900, Currency: "INR"}
	eventKey = payment.EventKey{Gateway: "razorpay", ID: "evt_1"}
	paid     = payment.PaymentFact{ID: "pay_1", GatewayOrderID: "order_1", Status: payment.PaymentCaptured, Captured: true, Amount: price}
)

// life is one event from its delivery on: its row, its order, and where its messages are.
type life struct {
	t       *testing.T
	store   *storetest.Memory
	checker storetest.Checker
	last    payment.Event
	version int64 // of the order, when it was last looked at
	free    string
	sent    int // messages put on the queue by others than the two copies, still to be received
	dead    int // messages in the dead letter queue
}

func newLife(t *testing.T, orderKnown bool) *life {
	store := storetest.NewMemory()
	l := &life{t: t, store: store, checker: storetest.Checker{Store: store}}
	if orderKnown {
		l.free = "OrderID" // the pointer is there, and nobody moves it
		l.must(l.createOrder(store))
	}
	_, err := store.PutEvent(context.Background(), l.delivery())
	l.must(err)
	return l
}

func (l *life) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) delivery() payment.Event {
	return payment.Event{
		Key: eventKey, Status: payment.EventReceived, Verdict: "waiting", VerifiedBy: "test_current", Mode: payment.Test, ReceivedAt: received,
	}
}

// createOrder is the shop's: order and pointer.
func (l *life) createOrder(s interface {
	Commit(context.Context, payment.Commit) error
}) error {
	o := payment.NewOrder("o1", price, "razorpay", payment.Test, received)
	o.GatewayOrderID = "order_1"
	return s.Commit(context.Background(), payment.Commit{Order: o, Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: "order_1"}}})
}

// redeliver is the webhook when the gateway sends the event once more: it sends the message again unless it is settled.
func (l *life) redeliver(s *turns) {
	stored, err := s.PutEvent(context.Background(), l.delivery())
	if !errors.Is(err, payment.ErrEventExists) || stored.Status == payment.EventReceived {
		l.sent++
	}
}

// receive is the worker on one receive of the message. An error leaves the message where it is.
func receive(s *turns, ignores, lastReceive bool) (err error) {
	ctx := context.Background()
	e := payment.Event{Key: eventKey, ReceivedAt: received}
	settle := func(st payment.Settlement) error {
		if err := s.SettleEvent(ctx, st); !errors.Is(err, payment.ErrEventApplied) {
			return err
		}
		return nil
	}
	defer func() {
		if err != nil && lastReceive {
			err = errors.Join(err, settle(e.Settle(payment.EventFailed, "", "", "gave up: "+err.Error())))
		}
	}()
	if e, err = s.Event(ctx, eventKey); err != nil {
		e = payment.Event{Key: eventKey, ReceivedAt: received}
		return err
	}
	if e.Status == payment.EventApplied {
		return nil
	}
	if ignores {
		return settle(e.Settle(payment.EventIgnored, "payment.captured", "", "an older release does not know it"))
	}
	orderID, err := s.OrderID(ctx, "razorpay", paid.Ref())
	if errors.Is(err, payment.ErrNotFound) {
		return settle(payment.Pace(time.Minute).Park(e, "payment.captured", "no order of ours", received))
	}
	if err != nil {
		return err
	}
	a := advance.Advancer{Store: s, Now: func() time.Time { return received }}
	_, err = a.Apply(ctx, orderID, advance.Step{
		Source: payment.SourceWebhook, Facts: []payment.Fact{paid}, Event: &e, Kind: "payment.captured",
	})
	return err
}

// course is what happens to one copy of the message.
type course struct {
	name     string
	receives int  // until SQS moves it to the dead letter queue
	lost     bool // the webhook died before it sent it
	redriven bool
	twice    bool // it takes the whole way twice
	ignores  bool
	faults   []fault
}

var courses = []course{
	{name: "succeeds", receives: 2},
	{name: "was never sent", lost: true},
	{name: "fails, then succeeds", receives: 2, twice: true, faults: []fault{{"Commit", 1, storetest.NotDone}}},
	{name: "is done without an answer, then comes again", receives: 2, faults: []fault{{"Commit", 1, storetest.DoneUnsaid}}},
	{name: "fails for good", receives: 1, faults: []fault{{"Commit", 1, storetest.NotDone}}},
	{name: "is done without an answer at its last receive", receives: 1, faults: []fault{{"Commit", 1, storetest.DoneUnsaid}}},
	{name: "fails for good, and so does the mark", receives: 1, faults: []fault{{"Commit", 1, storetest.NotDone}, {"SettleEvent", 1, storetest.NotDone}}},
	{name: "fails for good, the mark's answer lost", receives: 1, faults: []fault{{"Commit", 1, storetest.NotDone}, {"SettleEvent", 1, storetest.DoneUnsaid}}},
	{name: "cannot be read", receives: 1, faults: []fault{{"Event", 1, storetest.NotDone}}},
	{name: "fails for good, is redriven", receives: 1, redriven: true, twice: true, faults: []fault{{"Commit", 1, storetest.NotDone}}},
	{name: "is ignored", receives: 1, ignores: true},
	{name: "is ignored without an answer, then again", receives: 2, ignores: true, faults: []fault{{"SettleEvent", 1, storetest.DoneUnsaid}}},
}

// actor follows the copy until it is deleted or dead.
func (c course) actor(l *life) actor {
	return actor{faults: c.faults, free: l.free, run: func(s *turns) {
		for n := 1; n <= c.receives; n++ {
			if receive(s, c.ignores, n == c.receives) == nil {
				return
			}
		}
		if c.redriven && receive(s, c.ignores, true) == nil {
			return
		}
		if !c.lost {
			l.dead++
		}
	}}
}

// look asserts after each call that an applied event does not change and that the order keeps its invariants.
func (l *life) look() {
	l.t.Helper()
	now, err := l.store.Event(context.Background(), eventKey)
	l.must(err)
	if l.last.Status == payment.EventApplied && !cmp.Equal(l.last, now) {
		l.t.Fatalf("the applied event changed\n%s", cmp.Diff(l.last, now))
	}
	l.last = now
	if o, err := l.store.Order(context.Background(), "o1"); err == nil && o.Version != l.version {
		l.version = o.Version
		l.checker.Check(l.t, "o1")
	}
}

// ends redrives and replays what is left, and asserts that the event paid its order once.
func (l *life) ends() {
	l.t.Helper()
	if l.last.Status == payment.EventReceived && l.sent+l.dead == 0 {
		l.t.Fatalf("the event is RECEIVED and no message is left for it")
	}
	if l.last.Status != payment.EventApplied { // an operator's redrive or replay, or a sweep
		var straight path
		straight.walk(l.store, []actor{courses[0].actor(l)}, l.look)
	}
	o, err := l.store.Order(context.Background(), "o1")
	l.must(err)
	effects, err := l.store.Effects(context.Background(), "o1")
	l.must(err)
	if l.last.Status != payment.EventApplied || o.Status != payment.Paid || o.Version != 2 || len(effects) != 2 {
		l.t.Fatalf("event %s, order %s at version %d with effects %v; want it applied, paid in one write, fulfilled and booked once",
			l.last.Status, o.Status, o.Version, effects)
	}
}

// TestAnEventsLife plays all interleavings of two copies of one message with each other and with whoever else acts.
func TestAnEventsLife(t *testing.T) {
	few := slices.DeleteFunc(slices.Clone(courses), func(c course) bool { return c.receives > 1 && len(c.faults) > 0 || c.redriven || c.lost })
	for _, world := range []struct {
		name       string
		orderKnown bool
		courses    []course
		other      func(*life) actor
	}{
		{"the gateway delivers again", true, courses, func(l *life) actor { return actor{run: l.redeliver} }},
		{"the shop creates the order", false, few, func(l *life) actor {
			return actor{run: func(s *turns) { l.must(l.createOrder(s)) }}
		}},
	} {
		for i, first := range world.courses {
			for _, second := range world.courses[i:] {
				t.Run(fmt.Sprintf("%s; one copy %s, the other %s", world.name, first.name, second.name), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { // waiting after a lost race takes no time
						var p path
						for more := true; more; more = p.next() {
							l := newLife(t, world.orderKnown)
							actors := []actor{first.actor(l), second.actor(l)}
							if !(first.twice && second.twice) { // there it would take minutes
								actors = append(actors, world.other(l))
							}
							p.walk(l.store, actors, l.look)
							l.ends()
							interleavings.Add(1)
							if t.Failed() {
								t.Fatalf("turns %v", p)
							}
						}
					})
				})
			}
		}
	}
}
