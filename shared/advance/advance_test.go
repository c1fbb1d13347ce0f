package advance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

func TestApply(t *testing.T) {
	b := newBench(t)
	paid := b.delivery(t, "evt_1", captured("pay_1"))
	result := b.apply(t, paid, nil)
	const verdict = "payment pay_1 captured 1.00 INR; order pending → paid; fulfilled"
	if result.Verdict != verdict || result.Done {
		t.Errorf("got %q, done %t", result.Verdict, result.Done)
	}
	b.wantCalls(t, "Commit")
	b.wantOrder(t, 3, payment.Paid, 1)
	b.wantEvent(t, paid, payment.EventApplied, verdict)

	// The event row names the order, and keeps what it was called.
	e, err := b.Event(t.Context(), paid.Event.Key)
	if err != nil || e.OrderID != orderID || e.Type != "payment.captured" {
		t.Errorf("event names order %q and type %q (%v)", e.OrderID, e.Type, err)
	}

	// Another delivery that says the same leaves the order alone.
	same := b.delivery(t, "evt_2", captured("pay_1"))
	if result := b.apply(t, same, nil); result.Verdict != "nothing new" || result.Done {
		t.Errorf("got %q, done %t", result.Verdict, result.Done)
	}
	b.wantCalls(t, "SettleEvent")
	b.wantOrder(t, 3, payment.Paid, 1)
	b.wantEvent(t, same, payment.EventApplied, "nothing new")

	// One that is applied already is done.
	for _, again := range []advance.Step{paid, same} {
		if result := b.apply(t, again, nil); !result.Done || result.Verdict != "already applied" {
			t.Errorf("got %q, done %t", result.Verdict, result.Done)
		}
	}
	b.wantOrder(t, 3, payment.Paid, 1)
	b.wantEvent(t, paid, payment.EventApplied, verdict)

	// Even if it would teach something: APPLIED is final, and nothing is written beside it.
	more := paid
	more.Facts = facts(captured("pay_2"))
	if result := b.apply(t, more, nil); !result.Done {
		t.Errorf("got %q, want it to be done", result.Verdict)
	}
	b.wantOrder(t, 3, payment.Paid, 1)
}

func TestApplyWithoutEvent(t *testing.T) {
	b := newBench(t)
	step := advance.Step{Source: payment.SourceAPI, Facts: facts(captured("pay_1"))}
	var changes []*payment.Change
	recorded := recorder{b, &changes}
	a := b.advancer()
	a.Store = recorded
	for range 2 { // the second time there is nothing to write
		if _, err := a.Apply(t.Context(), orderID, step); err != nil {
			t.Fatal(err)
		}
		b.checker.Check(t, orderID)
	}
	want := []*payment.Change{{
		Source: payment.SourceAPI, At: at.Add(time.Minute), What: "payment pay_1 captured 1.00 INR; order pending → paid; fulfilled",
	}}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	b.wantCalls(t, "Commit")
	b.wantOrder(t, 3, payment.Paid, 1)
}

// recorder keeps the history entries of commits.
type recorder struct {
	*bench
	changes *[]*payment.Change
}

func (r recorder) Commit(ctx context.Context, c payment.Commit) error {
	*r.changes = append(*r.changes, c.Change)
	return r.bench.Commit(ctx, c)
}

func TestApplyToNoOrder(t *testing.T) {
	b := newBench(t)
	step := b.delivery(t, "evt_1", captured("pay_1"))
	if _, err := b.advancer().Apply(t.Context(), "nobody", step); !errors.Is(err, payment.ErrNotFound) {
		t.Errorf("got error %v, want %v", err, payment.ErrNotFound)
	}
	b.wantCalls(t)
	b.wantEvent(t, step, payment.EventReceived, "")
}

func TestExcluded(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*advance.Step)
		verdict string // empty: it is applied
	}{
		{"live event, test order", func(s *advance.Step) { s.Event.Mode = payment.Live }, "a live event, and the order is a test one"},
		{"another account", func(s *advance.Step) { s.Account = "acc_2" }, "the event is of another merchant account"},
		{"another gateway", func(s *advance.Step) { s.Event.Key.Gateway = "stripe" }, "the order is paid through razorpay"},
		{"no account named", func(s *advance.Step) { s.Account = "" }, ""},
		{"ours", func(*advance.Step) {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			step := b.delivery(t, "evt_1", captured("pay_1"))
			c.change(&step)
			if _, err := b.PutEvent(t.Context(), *step.Event); err != nil && !errors.Is(err, payment.ErrEventExists) {
				t.Fatal(err)
			}
			result := b.apply(t, step, nil)
			if c.verdict == "" {
				b.wantOrder(t, 3, payment.Paid, 1)
				return
			}
			if result.Verdict != c.verdict || result.Done {
				t.Errorf("got %q, done %t, want %q", result.Verdict, result.Done, c.verdict)
			}
			b.wantCalls(t, "SettleEvent")
			b.wantOrder(t, 2, payment.Pending, 0)
			b.wantEvent(t, step, payment.EventIgnored, c.verdict)
		})
	}
}

func TestPaymentOfAnotherOrder(t *testing.T) {
	const other = "shop-0"
	b := newBench(t)
	b.create(t, other, "order_0")
	if _, err := b.advancer().Apply(t.Context(), other, b.delivery(t, "evt_0", captured("pay_1"))); err != nil {
		t.Fatal(err)
	}
	b.calls = nil

	step := b.delivery(t, "evt_1", captured("pay_1"))
	b.apply(t, step, nil)
	b.checker.Check(t, other)
	b.wantCalls(t, "Commit", "Commit")
	b.wantOrder(t, 3, payment.Pending, 0)
	b.wantHolds(t, payment.HoldConflict)
	b.wantEvent(t, step, payment.EventApplied, "payment pay_1 belongs to order shop-0; payment pay_1 captured 1.00 INR; held: conflict pay_1")
	if got := b.count(t, "ledger"); got != 0 {
		t.Errorf("%d ledger entries, want none", got)
	}
	if d := b.order(t, orderID).Derive(payment.Rules{}); d.Captured != 0 {
		t.Errorf("%d counted for the order, want nothing", d.Captured)
	}

	// A payment of its own pays the order; the hold keeps it from being fulfilled until a person has looked.
	b.apply(t, b.delivery(t, "evt_2", captured("pay_2")), nil)
	b.wantOrder(t, 4, payment.Paid, 0)
}

func TestAttemptCountedOnce(t *testing.T) {
	b := newBench(t)
	b.apply(t, b.delivery(t, "evt_0", failures(0, 20)...), nil) // those that the order keeps
	b.apply(t, b.delivery(t, "evt_1", failed("pay_900")), nil)
	b.wantOrder(t, 4, payment.Failed, 0)
	b.calls = nil

	again := b.delivery(t, "evt_2", failed("pay_900"))
	b.apply(t, again, nil)
	b.wantCalls(t, "Commit", "SettleEvent")
	b.wantOrder(t, 4, payment.Failed, 0)
	b.wantEvent(t, again, payment.EventApplied, "nothing new")

	both := b.delivery(t, "evt_3", failed("pay_900"), failed("pay_901"))
	b.apply(t, both, nil)
	b.wantEvent(t, both, payment.EventApplied, "payment pay_901 failed (counted)")
	if got := b.order(t, orderID).FailedAttempts(); got != 22 {
		t.Errorf("%d failed attempts, want 22", got)
	}
}

// A sweep reads all of an order's attempts each time, however many there are.
func TestManyAttemptsCountedOnce(t *testing.T) {
	b := newBench(t)
	sweep := advance.Step{Source: payment.SourceSweep, Facts: failures(0, 300)}
	for range 3 {
		b.apply(t, sweep, nil)
		if got := b.order(t, orderID).FailedAttempts(); got != 300 {
			t.Fatalf("%d failed attempts, want 300", got)
		}
		// 281 effects in commits of 40, and then as many that say that nothing is new.
		if got, most := len(b.calls), 8; got > most {
			t.Errorf("%d writes, want at most %d", got, most)
		}
		b.calls = nil
	}
	if got := b.count(t, "attempt"); got != 280 {
		t.Errorf("%d attempts counted beside those kept, want 280", got)
	}
}

// A store that corrects without end must not be asked without end.
func TestCorrectionsWithoutEnd(t *testing.T) {
	b := newBench(t)
	a := b.advancer()
	a.Store = contradicting{b}
	step := b.delivery(t, "evt_1", captured("pay_1"))
	correction := new(payment.CorrectionError)
	if _, err := a.Apply(t.Context(), orderID, step); !errors.As(err, &correction) || !strings.Contains(err.Error(), orderID) {
		t.Errorf("got error %v, want the last correction and the order", err)
	}
	b.wantEvent(t, step, payment.EventReceived, "")
}

type contradicting struct{ *bench }

func (contradicting) Commit(context.Context, payment.Commit) error {
	return &payment.CorrectionError{Facts: facts(payment.CountedAttemptFact{PaymentID: "pay_9"})}
}

// The step's own facts are the caller's: corrections go into a copy.
func TestFactsStayAsTheyAre(t *testing.T) {
	b := newBench(t)
	b.apply(t, b.delivery(t, "evt_0", failures(0, 21)...), nil)
	own := append(make([]payment.Fact, 0, 10), failed("pay_020"), failed("pay_021"))
	spare := slices.Clone(own[:cap(own)])
	b.apply(t, advance.Step{Source: payment.SourceSweep, Facts: own}, nil)
	if diff := cmp.Diff(spare, own[:cap(own)]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What was written is told once, with all its effects; what was not is not.
func TestCommittedChangesAreTold(t *testing.T) {
	b := newBench(t)
	a := b.advancer()
	fulfilled := 0
	a.Committed = func(_ context.Context, out payment.Outcome) {
		for _, e := range out.Effects {
			if _, ok := e.(payment.Fulfilment); ok {
				fulfilled++
			}
		}
	}
	step := b.delivery(t, "evt_1", captured("pay_1"))
	b.Faults = func(method string) storetest.Fault {
		if method == "Commit" {
			return storetest.NotDone
		}
		return storetest.None
	}
	if _, err := a.Apply(t.Context(), orderID, step); !errors.Is(err, storetest.ErrFault) || fulfilled != 0 {
		t.Fatalf("%v, and %d fulfilments told", err, fulfilled)
	}
	b.Faults = nil
	for range 2 {
		if _, err := a.Apply(t.Context(), orderID, step); err != nil {
			t.Fatal(err)
		}
	}
	if fulfilled != 1 {
		t.Errorf("%d fulfilments told", fulfilled)
	}
}
