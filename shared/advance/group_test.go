package advance_test

import (
	"fmt"
	"testing"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

// together applies the steps in one call and checks the invariants.
func (b *bench) together(t *testing.T, steps ...advance.Step) ([]advance.Result, error) {
	t.Helper()
	results, err := b.advancer().ApplyAll(t.Context(), orderID, steps)
	b.checker.Check(t, orderID)
	return results, err
}

func TestEventsOfOneOrderAreOneWrite(t *testing.T) {
	b := newBench(t)
	steps := []advance.Step{
		b.delivery(t, "evt_failed", failed("pay_1")),
		b.delivery(t, "evt_captured", captured("pay_1")),
		b.delivery(t, "evt_paid", captured("pay_1"), payment.OrderFact{GatewayOrderID: gatewayOrderID, Paid: true, Amount: inr(100)}),
		b.delivery(t, "evt_again", captured("pay_1")),
	}
	other := b.delivery(t, "evt_other", captured("pay_2"))
	other.Account = "acc_other"
	if _, err := b.together(t, append(steps, other)...); err != nil {
		t.Fatal(err)
	}
	b.wantCalls(t, "SettleEvent", "Commit", "SettleEvent") // the other account's, the three that taught something, the one that did not
	b.wantOrder(t, 3, payment.Paid, 1)
	b.wantEvent(t, steps[0], payment.EventApplied, "payment pay_1 failed")
	b.wantEvent(t, steps[1], payment.EventApplied, "payment pay_1 captured 1.00 INR")
	b.wantEvent(t, steps[2], payment.EventApplied, "gateway order order_1 paid; order pending → paid; fulfilled")
	b.wantEvent(t, steps[3], payment.EventApplied, "nothing new")
	b.wantEvent(t, other, payment.EventIgnored, "the event is of another merchant account")
}

func TestAGroupWithAnAppliedEventAppliesTheRest(t *testing.T) {
	b := newBench(t)
	first, second := b.delivery(t, "evt_1", failed("pay_1")), b.delivery(t, "evt_2", captured("pay_2"))
	b.before = func(method string, earlier int) { // a rival applies the first meanwhile
		if method == "Commit" && earlier == 0 {
			b.apply(t, first, nil)
		}
	}
	results, err := b.together(t, first, second)
	if err != nil || !results[0].Done || results[1].Done {
		t.Fatalf("results %+v, %v; want the first done before", results, err)
	}
	b.wantOrder(t, 4, payment.Paid, 1)
	b.wantEvent(t, second, payment.EventApplied, "payment pay_2 captured 1.00 INR; order failed → paid; fulfilled")
}

// TestWhatIsKnownTogetherIsDecidedTogether: what one event of a group would let out, another may hold back.
func TestWhatIsKnownTogetherIsDecidedTogether(t *testing.T) {
	refunded := payment.RefundFact{ID: "rfnd_1", PaymentID: "pay_1", Status: payment.RefundProcessed, Amount: inr(100)}
	disputed := payment.DisputeFact{ID: "disp_1", PaymentID: "pay_1", Status: payment.DisputeOpen, Phase: payment.PhaseChargeback, Amount: inr(100)}
	for name, c := range map[string]struct {
		fact   payment.Fact
		status payment.Status
	}{"a refund": {refunded, payment.Refunded}, "a dispute": {disputed, payment.Paid}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if _, err := b.together(t, b.delivery(t, "evt_1", captured("pay_1")), b.delivery(t, "evt_2", c.fact)); err != nil {
				t.Fatal(err)
			}
			b.wantCalls(t, "Commit")
			b.wantOrder(t, 3, c.status, 0)
		})
	}
}

func TestATransactionHasRoomForItsEvents(t *testing.T) {
	b := newBench(t)
	var steps []advance.Step
	for i := range 25 {
		steps = append(steps, b.delivery(t, fmt.Sprint("evt_", i), captured(fmt.Sprint("pay_", i))))
	}
	if _, err := b.together(t, steps...); err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if e, err := b.Event(t.Context(), s.Event.Key); err != nil || e.Status != payment.EventApplied {
			t.Errorf("event %s is %s (%v), want APPLIED", s.Event.Key, e.Status, err)
		}
	}
	if n := b.count(t, "ledger"); n != 25 {
		t.Errorf("%d ledger entries, want 25", n)
	}
}

// TestAGroupSurvivesEveryCrash breaks each write of a group, not done or done without an answer, and applies it again.
func TestAGroupSurvivesEveryCrash(t *testing.T) {
	for broken := range 12 {
		for name, fault := range map[string]storetest.Fault{"not done": storetest.NotDone, "done, answer lost": storetest.DoneUnsaid} {
			t.Run(fmt.Sprintf("write %d %s", broken, name), func(t *testing.T) {
				b := newBench(t)
				var steps []advance.Step
				for i := range 5 { // 30 attempts each: more than one transaction carries
					steps = append(steps, b.delivery(t, fmt.Sprint("evt_", i), failures(i*30, 30)...))
				}
				steps = append(steps, b.delivery(t, "evt_same", failures(0, 30)...), b.delivery(t, "evt_paid", captured("pay_paid")))
				writes := 0
				b.Faults = func(method string) storetest.Fault {
					if method != "Commit" && method != "SettleEvent" {
						return storetest.None
					}
					writes++
					if writes-1 == broken {
						return fault
					}
					return storetest.None
				}
				if _, err := b.together(t, steps...); err != nil {
					if _, err := b.together(t, steps...); err != nil {
						t.Fatal(err)
					}
				}
				o := b.order(t, orderID)
				if o.FailedAttempts() != 150 || b.count(t, "attempt") != 130 || b.count(t, "fulfilment") != 1 {
					t.Errorf("%d failed attempts, %d of them counted, %d fulfilments; want 150, 130, 1",
						o.FailedAttempts(), b.count(t, "attempt"), b.count(t, "fulfilment"))
				}
				for _, s := range steps {
					if e, err := b.Event(t.Context(), s.Event.Key); err != nil || e.Status != payment.EventApplied {
						t.Errorf("event %s is %s (%v), want APPLIED", s.Event.Key, e.Status, err)
					}
				}
			})
		}
	}
}
