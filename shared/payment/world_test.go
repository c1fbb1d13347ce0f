package payment_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

// failer is what a world needs of a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is the order o1 in a store of its own, and another one that has payment "F".
type world struct {
	t       failer
	rules   payment.Rules
	store   *storetest.Memory
	checker storetest.Checker
	advance advance.Advancer
	events  []*payment.Event
}

// arrival is what arrives together: the bodies of one source, applied as one group.
type arrival struct {
	source payment.Source
	bodies []facts
}

func (a arrival) String() string { return fmt.Sprintf("%s%v", a.source, a.bodies) }

func newWorld(t failer, o payment.Order, r payment.Rules) *world {
	t.Helper()
	store := storetest.NewMemory()
	w := &world{
		t: t, rules: r, store: store, checker: storetest.Checker{Store: store, Rules: r},
		advance: advance.Advancer{Store: store, Rules: r, Now: fixed(day)},
	}
	other := payment.NewOrder("o2", inr(100), "razorpay", payment.Test, day)
	w.open(other, payment.PaymentPointer{PaymentID: "F"})
	gatewayOrder := o.GatewayOrderID
	w.open(o, payment.OrderPointer{GatewayOrderID: gatewayOrder})
	return w
}

func (w *world) open(o payment.Order, pointer payment.Effect) {
	w.t.Helper()
	if err := w.store.Commit(context.Background(), payment.Commit{Order: o, Effects: []payment.Effect{pointer}}); err != nil {
		w.t.Fatalf("%v", err)
	}
}

func (w *world) order() payment.Order {
	w.t.Helper()
	o, err := w.store.Order(context.Background(), "o1")
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return o
}

// arrive applies what arrived together and checks every invariant.
func (w *world) arrive(a arrival) {
	w.t.Helper()
	steps := make([]advance.Step, len(a.bodies))
	for i, body := range a.bodies {
		steps[i] = advance.Step{Source: a.source, Facts: body}
		if a.source == payment.SourceWebhook {
			e := &payment.Event{
				Key: payment.EventKey{Gateway: "razorpay", ID: fmt.Sprint("evt_", len(w.events))}, Status: payment.EventReceived,
				Mode: payment.Test, ReceivedAt: day,
			}
			if _, err := w.store.PutEvent(context.Background(), *e); err != nil {
				w.t.Fatalf("%v", err)
			}
			w.events, steps[i].Event = append(w.events, e), e
		}
	}
	if _, err := w.advance.ApplyAll(context.Background(), "o1", steps); err != nil {
		w.t.Fatalf("%v: %v", a, err)
	}
	if broken := w.checker.Broken(context.Background(), "o1"); len(broken) > 0 {
		w.t.Fatalf("after %v: %s", a, strings.Join(broken, "; "))
	}
}

// end is what must be the same at the end of every order of arrival.
type end struct {
	Derived  payment.Status
	Status   payment.Status // empty where it may be ahead of Derived
	Money    [2]int64       // captured, refunded
	Payments map[string]payment.Payment
	Refunds  map[string]payment.Refund
	Disputes map[string]payment.Dispute
	Failed   int // attempts
	Holds    string
	Ledger   map[string]int64 // by type and currency
}

func (w *world) end() end {
	w.t.Helper()
	o := w.order()
	d := o.Derive(w.rules)
	e := end{
		Derived: d.Status, Status: o.Status, Money: [2]int64{d.Captured, d.Refunded}, Payments: o.Payments,
		Refunds: o.Refunds, Disputes: o.Disputes, Failed: o.FailedAttempts(), Holds: holdList(d), Ledger: map[string]int64{},
	}
	effects, err := w.store.Effects(context.Background(), "o1")
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	for _, effect := range effects {
		if entry, ok := effect.(payment.LedgerEntry); ok {
			e.Ledger[fmt.Sprint(entry.Type.Corrects(), " ", entry.Amount.Currency)] += entry.Amount.Amount
		}
	}
	maps.DeleteFunc(e.Ledger, func(_ string, amount int64) bool { return amount == 0 })
	return e
}

// settled fails unless every event is applied and the same facts once more change nothing.
func (w *world) settled(l facts) {
	w.t.Helper()
	for _, e := range w.events {
		now, err := w.store.Event(context.Background(), e.Key)
		if err != nil || now.Status != payment.EventApplied {
			w.t.Fatalf("event %s is %s (%v), want APPLIED", e.Key, now.Status, err)
		}
	}
	before, endBefore := w.order(), unordered(w.end(), l, w.rules)
	w.arrive(arrival{payment.SourceSweep, []facts{slices.DeleteFunc(slices.Clone(l), fromAPerson)}})
	if diff := gocmp.Diff(endBefore, unordered(w.end(), l, w.rules)); diff != "" {
		w.t.Fatalf("the same facts again (-before +after)\n%s", diff)
	}
	if after := w.order(); after.Version != before.Version && attempts(l) < 20 {
		w.t.Fatalf("the same facts again changed the order from\n%+v to\n%+v", before, after)
	}
}

// fromAPerson: what the shop or an operator says depends on when it is said.
func fromAPerson(f payment.Fact) bool {
	switch f.(type) {
	case payment.ClosedFact, payment.AcknowledgedFact:
		return true
	}
	return false
}
