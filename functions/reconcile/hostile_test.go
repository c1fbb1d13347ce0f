package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/reconcile"
)

func alwaysConfirm(t *testing.T) payment.Confirm {
	var c payment.Confirm
	if err := c.UnmarshalText([]byte("always")); err != nil {
		t.Fatal(err)
	}
	return c
}

// worker is the worker's advancer: it confirms by reading the order's payments.
func (s *sweeping) worker() advance.Advancer {
	a := s.advancer
	a.Confirm = func(ctx context.Context, o payment.Order) ([]payment.Fact, error) {
		payments, err := s.client.OrderPayments(ctx, o.GatewayOrderID)
		var facts []payment.Fact
		for _, p := range payments {
			facts = append(facts, p)
		}
		return facts, err
	}
	return a
}

func (s *sweeping) forged(o payment.Order, facts ...payment.Fact) {
	s.t.Helper()
	if _, err := s.worker().Apply(s.t.Context(), o.ID, advance.Step{Source: payment.SourceWebhook, Facts: facts}); err != nil {
		s.t.Fatal(err)
	}
}

// a stolen webhook secret: "payment.authorized" of somebody else's payment for the thief's order. reconcile captures it and
// takes the answer for a confirmed payment of the order.
func TestHostileCaptureOfAForeignPayment(t *testing.T) {
	s := newSweeping(t, payment.Rules{Confirm: alwaysConfirm(t)})
	thief := s.open("thief")
	// another shop's customer on the same account: authorized, to be captured by hand or to be let go
	stranger, err := s.sim.AddOrder(razorpaytest.OrderRequest{Amount: rupees.Amount, Currency: "INR"})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.sim.Pay(razorpaytest.PaymentRequest{OrderID: stranger, Status: "authorized", Deliver: new(false)})
	if err != nil {
		t.Fatal(err)
	}
	s.forged(thief, payment.PaymentFact{ID: id, GatewayOrderID: thief.GatewayOrderID, Status: payment.PaymentAuthorized, Amount: rupees})
	_ = s.sweep(16 * time.Minute)
	o := s.order("thief")
	if len(s.calls("POST capture")) > 0 {
		t.Errorf("captured the stranger's payment %s (of gateway order %s); thief's order %s fulfilled %t confirmed %t", id, stranger, o.Status, !o.FulfilledAt.IsZero(), o.Payments[id].Confirmed)
	}
}

// a forged payment.captured that names a real payment which has no gateway order (a payment link, a payment page, a QR code).
func TestHostileScanConfirmsAPaymentWithoutOrder(t *testing.T) {
	s := newSweeping(t, payment.Rules{Confirm: alwaysConfirm(t)})
	s.gateways = []string{"razorpay"}
	thief := s.open("thief")
	id, err := s.sim.Pay(razorpaytest.PaymentRequest{Amount: rupees.Amount, Status: "captured", Deliver: new(false)}) // somebody's, for something else
	if err != nil {
		t.Fatal(err)
	}
	s.forged(thief, payment.PaymentFact{ID: id, GatewayOrderID: thief.GatewayOrderID, Status: payment.PaymentCaptured, Amount: rupees})
	s.expect("thief", payment.Paid, false)
	t.Log("held:", s.order("thief").Derive(s.advancer.Rules).Holds)
	for after := 10 * time.Minute; after < 3*time.Hour; after += 5 * time.Minute {
		if err := s.sweep(after); err != nil {
			t.Log(err)
		}
	}
	if o := s.order("thief"); !o.FulfilledAt.IsZero() {
		t.Errorf("fulfilled without money of its own: payment %s confirmed by the scan", id)
	}
}

// one order that cannot be written, alone in its ten minutes.
type poisoned struct {
	reconcile.Store
	id string
}

func (p poisoned) Order(ctx context.Context, id string) (payment.Order, error) {
	if id == p.id {
		return payment.Order{}, payment.ErrNewerVersion
	}
	return p.Store.Order(ctx, id)
}

// findsByScan lets ten days pass, in which the order's own questions are not asked: only a scan can find its payment.
func (s *sweeping) findsByScan(id string) {
	s.t.Helper()
	if err := s.memory.PostponeOrder(s.t.Context(), s.order(id), time.Time{}); err != nil {
		s.t.Fatal(err)
	}
	var last error
	for after := time.Hour; after < 10*24*time.Hour; after += 30 * time.Minute {
		s.to(received.Add(after))
		last = s.Handle(s.t.Context())
	}
	if o := s.order(id); o.FulfilledAt.IsZero() {
		c, _ := s.memory.Cursor(s.t.Context(), "razorpay", "hourly")
		s.t.Errorf("ten days later order %s is %s; hourly cursor stands at +%s; %v", id, o.Status, c.Next.Sub(received), last)
	}
}

func TestHostilePoisonOrderStopsScans(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	s.gateways = []string{"razorpay"}
	bad := s.open("bad")
	s.pay(bad, "captured")
	s.asks.Store = poisoned{s.memory, "bad"}
	s.reconciler = s.asks
	s.to(received.Add(30 * time.Minute))
	good := s.open("good")
	s.pay(good, "captured")
	s.findsByScan("good")
}

// a stray payment whose gateway order cannot be read.
type oddOrder struct {
	gateway
	id string
}

func (g oddOrder) GatewayOrder(ctx context.Context, id string) (payment.GatewayOrder, error) {
	if id == g.id {
		return payment.GatewayOrder{}, fmt.Errorf("%w: order %s has the unknown status expired", payment.ErrOutcomeUnknown, id)
	}
	return g.gateway.GatewayOrder(ctx, id)
}

func TestHostileStrayOrderStopsScans(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	s.gateways = []string{"razorpay"}
	stray, err := s.sim.AddOrder(razorpaytest.OrderRequest{Amount: 100_00, Currency: "INR"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.sim.Pay(razorpaytest.PaymentRequest{OrderID: stray, Status: "captured", Deliver: new(false)}); err != nil {
		t.Fatal(err)
	}
	s.through(oddOrder{s.client, stray})
	s.asks.Adopts = true
	s.reconciler = s.asks
	good := s.open("good") // in the very same slice
	s.pay(good, "captured")
	s.findsByScan("good")
}

// card testing: more than 10,000 attempts within ten minutes.
type flooded struct {
	gateway
	flood *razorpay.Client
	at    time.Time
}

func (g flooded) Payments(ctx context.Context, from, to time.Time) ([]payment.PaymentFact, error) {
	if !g.at.Before(from) && g.at.Before(to) {
		return g.flood.Payments(ctx, from, to)
	}
	return g.gateway.Payments(ctx, from, to)
}

func TestHostileFloodStopsScans(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	s.gateways = []string{"razorpay"}
	item := `{"id":"pay_%d","status":"failed","amount":100,"currency":"INR"}`
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var items []string
		for range 100 {
			n++
			items = append(items, fmt.Sprintf(item, n))
		}
		fmt.Fprintf(w, `{"count":100,"items":[%s]}`, strings.Join(items, ","))
	}))
	defer server.Close()
	flood, err := razorpay.New(server.URL, "rzp_test_key", "x")
	if err != nil {
		t.Fatal(err)
	}
	s.through(flooded{s.client, flood, received.Add(5 * time.Minute)})
	s.to(received.Add(40 * time.Minute))
	good := s.open("good")
	s.pay(good, "captured")
	if err := s.memory.PostponeOrder(t.Context(), s.order("good"), time.Time{}); err != nil {
		t.Fatal(err)
	}
	var last error
	for after := time.Hour; after < 9*24*time.Hour; after += 12 * time.Hour {
		s.to(received.Add(after))
		last = s.Handle(t.Context())
	}
	if o := s.order("good"); o.FulfilledAt.IsZero() {
		c, _ := s.memory.Cursor(t.Context(), "razorpay", "hourly")
		t.Errorf("nine days later the good order is %s; hourly cursor stands at +%s; %v", o.Status, c.Next.Sub(received), last)
	}
}

// captured although the goods will not go: the order is late by the shop's own rule.
func TestHostileCaptureOfALateOrder(t *testing.T) {
	s := newSweeping(t, payment.Rules{FulfilWithin: time.Hour})
	o := s.open("o1")
	s.to(received.Add(20 * time.Hour))
	id := s.pay(o, "authorized")
	s.webhook(o, payment.PaymentFact{ID: id, GatewayOrderID: o.GatewayOrderID, Status: payment.PaymentAuthorized, Amount: rupees})
	_ = s.sweep(24 * time.Hour)
	got := s.order("o1")
	if len(s.calls("POST capture")) > 0 && got.FulfilledAt.IsZero() {
		t.Errorf("money was captured for an order that is held: %v", got.Derive(s.advancer.Rules).Holds)
	}
}

// an authorized payment of another amount than the order's.
func TestHostileCaptureOfAnotherAmount(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	o := s.open("o1")
	if _, err := s.sim.Pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Amount: 100, Status: "authorized", Deliver: new(false)}); err != nil {
		t.Fatal(err)
	}
	_ = s.sweep(16 * time.Minute)
	got := s.order("o1")
	t.Log(s.calls("POST capture"), got.Status, got.Derive(s.advancer.Rules).Holds)
	if len(s.calls("POST capture")) > 0 {
		t.Errorf("captured 1.00 of an order of 499.00 that does not take part payments")
	}
}

// order's list of payments larger than 1 MiB.
func TestHostileLargeOrder(t *testing.T) {
	var items []string
	for i := range 1200 {
		items = append(items, fmt.Sprintf(`{"id":"pay_%d","entity":"payment","status":"failed","amount":49900,"currency":"INR","description":%q}`, i, strings.Repeat("x", 800)))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"count":%d,"items":[%s]}`, len(items), strings.Join(items, ","))
	}))
	defer server.Close()
	c, err := razorpay.New(server.URL, "rzp_test_key", "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.OrderPayments(t.Context(), "order_1"); err != nil {
		t.Errorf("an order of %d attempts cannot be read: %v", len(items), err)
	}
}

// the capture's answer is of our payment but another order, and the key's mode etc. are right; and an order.paid by webhook alone.
func TestHostileOfferByWebhookAlone(t *testing.T) {
	s := newSweeping(t, payment.Rules{Confirm: alwaysConfirm(t), AcceptOffers: true})
	o := s.open("o1")
	id, err := s.sim.Pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Amount: 100, Status: "captured", Deliver: new(false)})
	if err != nil {
		t.Fatal(err)
	}
	s.forged(o, payment.PaymentFact{ID: id, GatewayOrderID: o.GatewayOrderID, Status: payment.PaymentCaptured, Amount: payment.Money{Amount: 100, Currency: "INR"}})
	s.forged(o, payment.OrderFact{GatewayOrderID: o.GatewayOrderID, Paid: true, Amount: rupees})
	if o := s.order("o1"); !o.FulfilledAt.IsZero() {
		t.Errorf("499.00 fulfilled for 1.00: order.paid was never read from the gateway")
	}
}
