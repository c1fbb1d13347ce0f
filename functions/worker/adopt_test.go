package main

import (
	"context"
	"strings"
	"testing"

	"paidonce/shared/payment"
)

// fakeGateway has one order.
type fakeGateway struct {
	mode     payment.Mode
	order    payment.GatewayOrder
	payments []payment.PaymentFact
	err      error
	asked    int
}

func (g *fakeGateway) Mode() payment.Mode { return g.mode }

func (g *fakeGateway) GatewayOrder(context.Context, string) (payment.GatewayOrder, error) {
	g.asked++
	return g.order, g.err
}

func (g *fakeGateway) OrderPayments(context.Context, string) ([]payment.PaymentFact, error) {
	g.asked++
	return g.payments, g.err
}

func (b *bundle) adopting(g *fakeGateway) {
	b.stack, b.adopts = "shop", true
	b.gateways = map[string]func(context.Context) gateway{"razorpay": func(context.Context) gateway { return g }}
}

func theirs(amount int64, note string) *fakeGateway {
	return &fakeGateway{mode: payment.Test, order: payment.GatewayOrder{
		ID: "order_9", Amount: payment.Money{Amount: amount, Currency: "INR"}, Note: note,
	}}
}

func TestAnUnknownOrderIsAdopted(t *testing.T) {
	b := setup(t)
	g := theirs(49900, "")
	b.adopting(g)
	b.receive(t, "captured", body("payment.captured", "9", "captured"))
	b.receive(t, "authorized", body("payment.authorized", "9", "authorized"))
	b.expectFailed(t, b.work(t, t.Context(), message("captured", 1), message("authorized", 1)))
	b.expectOrder(t, "razorpay.order_9", payment.Paid, true)
	b.checker.Check(t, "razorpay.order_9")
	for _, id := range []string{"captured", "authorized"} {
		e, err := b.memory.Event(t.Context(), payment.EventKey{Gateway: "razorpay", ID: id})
		if err != nil || e.Status != payment.EventApplied || e.OrderID != "razorpay.order_9" {
			t.Errorf("event %s is %s of order %q (%v)", id, e.Status, e.OrderID, err)
		}
	}
	o, err := b.memory.Order(t.Context(), "razorpay.order_9")
	if err != nil || o.Account != "acc_1" || o.Amount.Amount != 49900 {
		t.Errorf("adopted %+v, %v", o, err)
	}
}

func TestWhatIsNotAdoptedIsParked(t *testing.T) {
	for _, c := range []struct {
		name string
		g    *fakeGateway
		says string
	}{
		{"an order without an amount", theirs(0, ""), "its amount is zero"},
		{"one of our own that was not finished", theirs(49900, "shop/o7"), "it was made for order o7, which has not got it yet"},
		{"a test event with a live key", &fakeGateway{mode: payment.Live}, "a test event, and the API key is a live one"},
		{"one the gateway does not have", &fakeGateway{mode: payment.Test, err: payment.ErrNotFound}, "the gateway does not show it to us"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t)
			b.adopting(c.g)
			b.receive(t, "e", body("payment.captured", "9", "captured"))
			b.expectFailed(t, b.work(t, t.Context(), message("e", 1)))
			b.expectEvent(t, "e", payment.EventParked, "no order of ours is known for gateway order order_9: "+c.says)
		})
	}
}

func TestAGatewayThatCannotBeAskedFailsTheMessage(t *testing.T) {
	b := setup(t)
	g := &fakeGateway{mode: payment.Test, err: payment.ErrOutcomeUnknown}
	b.adopting(g)
	b.receive(t, "e", body("payment.captured", "9", "captured"))
	b.expectFailed(t, b.work(t, t.Context(), message("e", maxReceives)), "m-e")
	b.expectEvent(t, "e", payment.EventFailed, "gave up after 5 receives: adopt: outcome unknown")
	b.adopting(theirs(49900, ""))
	b.expectFailed(t, b.work(t, t.Context(), message("e", 1)))
	b.expectOrder(t, "razorpay.order_9", payment.Paid, true)
}

func TestAnotherStacksOrderIsAdopted(t *testing.T) {
	b := setup(t)
	b.adopting(theirs(49900, "othershop/o7"))
	b.receive(t, "e", body("payment.captured", "9", "captured"))
	b.expectFailed(t, b.work(t, t.Context(), message("e", 1)))
	b.expectOrder(t, "razorpay.order_9", payment.Paid, true)
}

func TestAnExistingOrderIsNeverBound(t *testing.T) {
	b := setup(t)
	taken := payment.NewOrder("razorpay.order_9", payment.Money{Amount: 1, Currency: "INR"}, "razorpay", payment.Test, now)
	if _, err := b.memory.CreateOrder(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	b.adopting(theirs(49900, ""))
	b.receive(t, "e", body("payment.captured", "9", "captured"))
	b.expectFailed(t, b.work(t, t.Context(), message("e", 1)))
	b.expectEvent(t, "e", payment.EventParked, "no order of ours is known for gateway order order_9: its id is taken by another order")
	b.expectOrder(t, "razorpay.order_9", payment.Pending, false)
}

func TestPaymentsWithoutAnOrderAreNotAskedFor(t *testing.T) {
	b := setup(t)
	g := theirs(49900, "")
	b.adopting(g)
	b.receive(t, "e", strings.Replace(body("payment.captured", "9", "captured"), `"order_id":"order_9"`, `"order_id":null`, 1))
	b.expectFailed(t, b.work(t, t.Context(), message("e", 1)))
	b.expectEvent(t, "e", payment.EventParked, "no order of ours is known for payment pay_9")
	if g.asked > 0 {
		t.Error("the gateway was asked")
	}
}
