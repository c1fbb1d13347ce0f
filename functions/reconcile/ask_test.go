package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/refund"
)

// everyFiveMinutes sweeps as the schedule does, a second later, from one time since the beginning to another.
func (s *sweeping) everyFiveMinutes(from, to time.Duration) {
	s.t.Helper()
	for after := from; after < to; after += 5 * time.Minute {
		s.swept(after + time.Second)
	}
}

func TestTheGatewayIsAskedBySchedule(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	o := s.open("o1")
	s.everyFiveMinutes(0, 120*time.Hour)
	want := []string{"15m1s", "1h0m1s", "6h0m1s", "24h0m1s", "48h0m1s", "73h0m1s"}
	if diff := cmp.Diff(want, s.looks(o)); diff != "" {
		t.Errorf("the order is asked about (-want +got)\n%s", diff)
	}
	if o := s.order("o1"); !o.DueAt.IsZero() || o.Version != 2 {
		t.Errorf("the order is due at %s and at version %d; want it out of the index, and unchanged", o.DueAt, o.Version)
	}
}

func TestWhatIsLearnedBeginsTheScheduleAgain(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	o := s.open("o1")
	s.everyFiveMinutes(0, 2*time.Hour)
	id := s.pay(o, "failed")
	s.webhook(o, payment.PaymentFact{ID: id, Status: payment.PaymentCreated, Failed: true, Amount: rupees, CreatedAt: s.at.Truncate(time.Second)})
	s.everyFiveMinutes(2*time.Hour, 30*time.Hour)
	learned := s.order("o1").ActiveAt.Sub(received)
	if want := 2*time.Hour - 5*time.Minute + time.Second; learned != want {
		t.Errorf("something was last learned after %s, want %s: the sweeps found nothing new", learned, want)
	}
	want := []string{"15m1s", "1h0m1s", "2h15m1s", "3h0m1s", "8h0m1s", "26h0m1s"}
	if diff := cmp.Diff(want, s.looks(o)); diff != "" {
		t.Errorf("the order is asked about (-want +got)\n%s", diff)
	}
	if err := s.sim.Move(id, razorpaytest.Move{Status: "captured", Deliver: new(false)}); err != nil { // late, and no webhook
		t.Fatal(err)
	}
	s.everyFiveMinutes(30*time.Hour, 120*time.Hour)
	s.expect("o1", payment.Paid, true)
}

func TestAPaymentWithoutAnyWebhookIsFound(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	id := s.pay(s.open("o1"), "captured")
	s.swept(16 * time.Minute)
	s.expect("o1", payment.Paid, true)
	h, err := s.memory.History(t.Context(), "o1")
	if err != nil {
		t.Fatal(err)
	}
	want := []payment.Change{{
		Source: payment.SourceSweep, What: "payment " + id + " captured 499.00 INR; order pending → paid; fulfilled", At: s.at,
	}}
	if diff := cmp.Diff(want, h.Changes); diff != "" {
		t.Errorf("history (-want +got)\n%s", diff)
	}
	n := len(s.sim.Calls())
	s.everyFiveMinutes(20*time.Minute, 80*time.Hour)
	if more := len(s.sim.Calls()) - n; more > 0 {
		t.Errorf("%d more calls about an order that has no question left", more)
	}
}

func TestUnreadRefundsAreRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		webhook bool // of the payment, which speaks of the refund
		looks   time.Duration
	}{
		{"after a webhook that speaks of one, soon", true, time.Minute + time.Second},
		{"where the sweep itself finds one", false, 16 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSweeping(t, payment.Rules{})
			o := s.open("o1")
			id := s.pay(o, "captured")
			if _, err := s.sim.Refund(razorpaytest.RefundRequest{PaymentID: id, Amount: 10000, Deliver: new(false)}); err != nil {
				t.Fatal(err)
			}
			if c.webhook {
				s.webhook(o, payment.PaymentFact{ID: id, Status: payment.PaymentCaptured, Amount: rupees, AmountRefunded: 10000})
				s.expect("o1", payment.Paid, false)
			}
			s.swept(c.looks)
			s.expect("o1", payment.PartiallyRefunded, false)
			if d := s.order("o1").Derive(s.advancer.Rules); d.Refunded != 10000 || len(d.Holds) > 0 {
				t.Errorf("%d refunded with holds %v", d.Refunded, d.Holds)
			}
		})
	}
}

func TestAnOrderWithoutAGatewayOrder(t *testing.T) {
	t.Run("whose answer was lost is found by its note", func(t *testing.T) {
		s := newSweeping(t, payment.Rules{})
		o := s.create("o1")
		var made []string
		for _, note := range []string{"othershop/o1", "shop/o1", "shop/o1"} { // of two the first is taken
			id, err := s.client.OpenOrder(t.Context(), o, note)
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, id)
			s.to(s.at.Add(time.Second))
		}
		s.swept(16 * time.Minute)
		if got := s.order("o1").GatewayOrderID; got != made[1] {
			t.Errorf("the order has %q, want %q", got, made[1])
		}
		if owner, err := s.memory.OrderID(t.Context(), "razorpay", payment.Ref{GatewayOrderID: made[1]}); owner != "o1" || err != nil {
			t.Errorf("its pointer leads to %q (%v)", owner, err)
		}
		s.pay(s.order("o1"), "captured")
		s.everyFiveMinutes(20*time.Minute, 2*time.Hour)
		s.expect("o1", payment.Paid, true)
	})
	t.Run("that never reached the gateway stays, and none is made", func(t *testing.T) {
		s := newSweeping(t, payment.Rules{})
		s.create("o1")
		s.everyFiveMinutes(0, 120*time.Hour)
		if o := s.order("o1"); o.GatewayOrderID != "" || !o.DueAt.IsZero() {
			t.Errorf("the order has %q and is due at %s", o.GatewayOrderID, o.DueAt)
		}
		if made, looked := s.calls("POST orders"), s.calls("GET orders"); len(made) > 0 || len(looked) != 6 {
			t.Errorf("%d orders were made and %d look-ups, want none and 6", len(made), len(looked))
		}
	})
	t.Run("that the shop's own call opens meanwhile keeps that one", func(t *testing.T) {
		s := newSweeping(t, payment.Rules{})
		o := s.create("o1")
		if _, err := s.client.OpenOrder(t.Context(), o, "shop/o1"); err != nil {
			t.Fatal(err)
		}
		s.through(finding{s.client, func() {
			if err := s.memory.Commit(t.Context(), payment.Commit{
				Order: o.Opened("order_winner", s.advancer.Rules, s.at), Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: "order_winner"}},
			}); err != nil {
				t.Error(err)
			}
		}})
		s.swept(16 * time.Minute)
		if got := s.order("o1").GatewayOrderID; got != "order_winner" {
			t.Errorf("the order has %q", got)
		}
	})
}

// finding does something after the gateway's order was looked for.
type finding struct {
	gateway
	after func()
}

func (f finding) FindOrder(ctx context.Context, o payment.Order, note string) (string, error) {
	defer f.after()
	return f.gateway.FindOrder(ctx, o, note)
}

func TestBadOrdersAreReportedAndSkipped(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	for id, spoil := range map[string]func(*payment.Order){
		"a-unknown-gateway": func(o *payment.Order) { o.Gateway = "paypal" },
		"b-live":            func(o *payment.Order) { o.Mode = payment.Live },
		"c-gone-there":      func(o *payment.Order) { o.GatewayOrderID = "order_gone" },
	} {
		o := payment.NewOrder(id, rupees, "razorpay", payment.Test, s.at)
		o.GatewayOrderID, o.DueAt = "order_"+id[:1], received.Add(time.Minute) // before the others
		spoil(&o)
		if err := s.memory.Commit(t.Context(), payment.Commit{Order: o}); err != nil {
			t.Fatal(err)
		}
	}
	broken, fine := s.open("d-broken"), s.open("e-fine")
	s.fault("GET", "/v1/orders/"+broken.GatewayOrderID+"/payments", razorpaytest.ServerError, 3)
	s.pay(broken, "captured")
	s.pay(fine, "captured")
	s.to(received.Add(16 * time.Minute))
	if err := s.Handle(t.Context()); err != nil {
		t.Errorf("the run says %v, although one order could be done", err)
	}
	for _, said := range []string{
		"this deployment has no gateway paypal", "the API key is a test one, and the order a live one",
		"the gateway does not show the order", "read payments of order " + broken.GatewayOrderID,
	} {
		if !strings.Contains(s.logged.String(), said) {
			t.Errorf("nobody is told: %s", said)
		}
	}
	s.expect("e-fine", payment.Paid, true)
	s.expect("d-broken", payment.Pending, false)
	for _, id := range []string{"a-unknown-gateway", "b-live", "c-gone-there", "d-broken"} {
		if due := s.order(id).DueAt; !due.After(s.at) {
			t.Errorf("order %s comes first again in the next run, due at %s", id, due)
		}
	}
	for _, c := range s.sim.Calls() {
		if strings.Contains(c.Path, "/order_a/") || strings.Contains(c.Path, "/order_b/") {
			t.Errorf("asked for %s", c.Path)
		}
	}
	s.to(received.Add(time.Hour + time.Minute))
	if err := s.Handle(t.Context()); err != nil {
		t.Error(err)
	}
	s.expect("d-broken", payment.Paid, true)
}

func TestARunThatCouldDoNothingFails(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	s.open("o1")
	s.open("o2")
	s.fault("GET", "/v1/orders/*/payments", razorpaytest.ServerError, 6)
	if err := s.sweep(16 * time.Minute); err == nil || !strings.Contains(err.Error(), "none of 2 could be done") {
		t.Errorf("the run says %v", err)
	}
}

// TestAFailedLastLookIsMadeUpFor: whoever pays on the third day must not depend on one answer.
func TestAFailedLastLookIsMadeUpFor(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	o := s.open("o1")
	s.everyFiveMinutes(0, 73*time.Hour)
	s.pay(o, "captured")
	s.fault("GET", "/v1/orders/*/payments", razorpaytest.ServerError, 3)
	if err := s.sweep(73*time.Hour + time.Second); err == nil {
		t.Error("the failed look is not reported")
	}
	s.everyFiveMinutes(73*time.Hour+5*time.Minute, 75*time.Hour)
	s.expect("o1", payment.Paid, true)
}

func TestEveryFailureOfTheStoreIsReported(t *testing.T) {
	for _, method := range []string{"DueOrders", "Order", "PostponeOrder", "Commit", "DueRefunds"} {
		t.Run(method, func(t *testing.T) {
			s := newSweeping(t, payment.Rules{})
			s.pay(s.open("o1"), "captured")
			s.to(received.Add(16 * time.Minute))
			s.memory.Faults = failing(method)
			if err := s.Handle(t.Context()); err == nil {
				t.Error("the run says that all is well")
			}
			s.memory.Faults = nil
			s.swept(2 * time.Hour)
			s.expect("o1", payment.Paid, true)
		})
	}
}

func TestNoQuestionBeginsWithLittleTimeLeft(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	s.pay(s.open("o1"), "captured")
	s.to(received.Add(time.Hour))
	n := len(s.sim.Calls())
	ctx, cancel := context.WithTimeout(t.Context(), reserve-time.Second)
	defer cancel()
	if err := s.Handle(ctx); err != nil || len(s.sim.Calls()) > n {
		t.Errorf("%d calls were made, %v", len(s.sim.Calls())-n, err)
	}
	s.swept(time.Hour)
	s.expect("o1", payment.Paid, true)
}

// TestARefundOfUnknownOutcomeIsPursued: the answer to the shop's call was lost, and nobody calls again.
func TestARefundOfUnknownOutcomeIsPursued(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	o := s.open("o1")
	id := s.pay(o, "captured")
	s.swept(16 * time.Minute)
	s.fault("POST", "/v1/payments/*/refund", razorpaytest.ServerErrorAfter, 1)
	answer, err := s.refunder.Request(t.Context(), "o1", refund.Ask{ID: "r1", Amount: rupees.Amount})
	if err != nil && !errors.Is(err, payment.ErrOutcomeUnknown) || answer.Request.Status == payment.RequestAccepted {
		t.Fatalf("the call came to %+v, %v", answer, err)
	}
	s.swept(18 * time.Minute)
	s.expect("o1", payment.Refunded, true)
	r, err := s.memory.RefundRequest(t.Context(), "o1", "r1")
	if err != nil || r.Status != payment.RequestAccepted || r.RefundID == "" || !r.NextAt.IsZero() {
		t.Errorf("the request is %+v, %v", r, err)
	}
	if calls := s.calls("POST " + id + "/refund"); len(calls) != 1 || len(s.sim.ReusedKeys()) > 0 {
		t.Errorf("the refund was asked for %d times", len(calls))
	}
}
