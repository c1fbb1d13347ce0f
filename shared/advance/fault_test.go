package advance_test

import (
	"errors"
	"fmt"
	"testing"

	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

// manyRefunds are facts that owe more effects than one transaction carries.
func manyRefunds() []payment.Fact {
	all := facts(captured("pay_1"))
	for i := range 60 {
		all = append(all, payment.RefundFact{
			ID: fmt.Sprintf("rfnd_%02d", i), PaymentID: "pay_1", Status: payment.RefundProcessed, Amount: inr(1),
		})
	}
	return all
}

func TestManyEffects(t *testing.T) {
	const entries = 61 // one capture, 60 refunds
	for _, crash := range []struct {
		name  string
		fault storetest.Fault
	}{{"no crash", storetest.None}, {"not done", storetest.NotDone}, {"done, and the answer lost", storetest.DoneUnsaid}} {
		for n := range 4 {
			t.Run(fmt.Sprintf("%s, at commit %d", crash.name, n+1), func(t *testing.T) {
				b := newBench(t)
				a := b.advancer()
				step := b.delivery(t, "evt_1", manyRefunds()...)
				commits := 0
				b.Faults = func(method string) storetest.Fault {
					if method != "Commit" {
						return storetest.None
					}
					if commits++; commits == n+1 {
						return crash.fault
					}
					return storetest.None
				}
				_, err := a.Apply(t.Context(), orderID, step)
				wantErr := error(nil)
				if crash.fault != storetest.None {
					wantErr = storetest.ErrFault
				}
				if !errors.Is(err, wantErr) {
					t.Fatalf("got error %v, want %v", err, wantErr)
				}
				e, err := b.Event(t.Context(), step.Event.Key)
				if err != nil {
					t.Fatal(err)
				}
				whole := b.count(t, "ledger") == entries
				if applied := e.Status == payment.EventApplied; applied != whole || wantErr == nil && !whole {
					t.Fatalf("event is %s with %d of %d ledger entries", e.Status, b.count(t, "ledger"), entries)
				}

				b.Faults = nil // the message comes again
				if result := b.apply(t, step, nil); result.Done != whole {
					t.Errorf("done %t, want %t", result.Done, whole)
				}
				if got := b.count(t, "ledger"); got != entries {
					t.Errorf("%d ledger entries, want %d", got, entries)
				}
				if o := b.order(t, orderID); o.Status != payment.PartiallyRefunded || b.count(t, "fulfilment") != 0 {
					t.Errorf("order is %s with %d fulfilments, want it partially refunded and never fulfilled", o.Status, b.count(t, "fulfilment"))
				}
				if e, err = b.Event(t.Context(), step.Event.Key); err != nil || e.Status != payment.EventApplied {
					t.Errorf("event is %s (%v), want it applied", e.Status, err)
				}
			})
		}
	}
}

func TestLostAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		method string
		fault  storetest.Fault
		known  bool // the facts are known before the step
		done   bool // the second time nothing is left to do
	}{
		{"commit not done", "Commit", storetest.NotDone, false, false},
		{"commit done, its answer lost", "Commit", storetest.DoneUnsaid, false, true},
		{"settlement not done", "SettleEvent", storetest.NotDone, true, false},
		{"settlement done, its answer lost", "SettleEvent", storetest.DoneUnsaid, true, true},
		{"order not read", "Order", storetest.NotDone, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			if c.known {
				b.apply(t, b.delivery(t, "evt_0", captured("pay_1")), nil)
			}
			step := b.delivery(t, "evt_1", captured("pay_1"))
			b.Faults = func(method string) storetest.Fault {
				if method == c.method {
					b.Faults = nil // once
					return c.fault
				}
				return storetest.None
			}
			b.apply(t, step, storetest.ErrFault)
			if result := b.apply(t, step, nil); result.Done != c.done {
				t.Errorf("done %t, want %t", result.Done, c.done)
			}
			b.wantOrder(t, 3, payment.Paid, 1)
			if got := b.count(t, "ledger"); got != 1 {
				t.Errorf("%d ledger entries, want 1", got)
			}
			if e, err := b.Event(t.Context(), step.Event.Key); err != nil || e.Status != payment.EventApplied {
				t.Errorf("event is %s (%v), want it applied", e.Status, err)
			}
		})
	}
}
