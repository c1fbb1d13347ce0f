package razorpaytest_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

const day = 24 * 60 * 60

// patientOrder makes an order for 700 whose payments may be captured for 5 days.
func patientOrder(t *testing.T, client *razorpay.Client) (id string) {
	t.Helper()
	order, err := client.CreateOrder(t.Context(), razorpay.OrderRequest{
		Amount: payment.Money{Amount: 700, Currency: "INR"}, Receipt: "shop-1", AutomaticExpiry: 12, ManualExpiry: 7200,
		RefundSpeed: "normal",
	})
	if err != nil {
		t.Fatal(err)
	}
	return order.ID
}

// TestUncapturedPaymentsAreRefunded lets three of them wait for different times, and advances the clock at once.
func TestUncapturedPaymentsAreRefunded(t *testing.T) {
	gateway, url, client := newGateway(t, nil)
	newReceiver(t, gateway)
	five := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: patientOrder(t, client), Status: "authorized"})
	three := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: addOrder(t, gateway, 300), Status: "authorized"})
	gateway.Advance(time.Hour)
	later := pay(t, gateway, razorpaytest.PaymentRequest{Amount: 310, Status: "authorized"})
	kept := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: addOrder(t, gateway, 500), Status: "authorized"})
	if r := capturePayment(t, url, kept, `{"amount":500,"currency":"INR"}`); r.status != 200 {
		t.Fatal(r.raw)
	}
	gateway.Advance(3*day*time.Second - time.Hour - time.Second)
	if events := refundEvents(t, gateway); len(events) != 0 {
		t.Fatalf("a second too early: %+v", events)
	}
	gateway.Advance(30 * day * time.Second)
	for id, want := range map[string]string{five: "refunded", three: "refunded", later: "refunded", kept: "captured"} {
		p := read(t, url, "/v1/payments/"+id)
		if p.Status != want || p.Captured != (want == "captured") {
			t.Errorf("payment %s, want %s", p.raw, want)
		}
	}
	auto := func(event string, amount, at int64) told {
		return told{event, "processed", "refunded", amount, "full", false, at}
	}
	want := []told{
		auto("refund.created", 300, 3*day), auto("refund.processed", 300, 3*day),
		auto("refund.created", 310, 3*day+3600), auto("refund.processed", 310, 3*day+3600),
		auto("refund.created", 700, 5*day), auto("refund.processed", 700, 5*day),
	}
	got := refundEvents(t, gateway)
	// Those of different orders are sent side by side.
	slices.SortStableFunc(got, func(a, b told) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	var made []int64 // newest first
	for _, id := range ids(t, url+"/v1/refunds") {
		made = append(made, read(t, url, "/v1/refunds/"+id).Amount)
	}
	if diff := gocmp.Diff([]int64{700, 310, 300}, made); diff != "" {
		t.Errorf("refunds in the order of their making (-want +got):\n%s", diff)
	}
	if r := capturePayment(t, url, five, `{"amount":700,"currency":"INR"}`); r.Error.Description != "Payment is not in authorized state." {
		t.Errorf("captured after all: %s", r.raw)
	}
	if r := refund(t, url, five, "", `{}`); r.Error.Description != "The payment has been fully refunded already." {
		t.Errorf("refunded again: %s", r.raw)
	}
}

// TestLateAuthorization: the time to capture counts from the payment's creation, so that a late one has less of it.
func TestLateAuthorization(t *testing.T) {
	gateway, url, _ := newGateway(t, func(c *razorpaytest.Config) { c.ManualExpiry = 48 * time.Hour })
	newReceiver(t, gateway)
	late := func(after time.Duration, status string) string {
		t.Helper()
		id := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: addOrder(t, gateway, 100), Status: "failed"})
		gateway.Advance(after)
		if err := gateway.Move(id, razorpaytest.Move{Status: status}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	inTime := late(47*time.Hour, "authorized")
	if p := read(t, url, "/v1/payments/"+inTime); p.Status != "authorized" {
		t.Errorf("after 47 hours: %s", p.raw)
	}
	gateway.Advance(time.Hour)
	if p := read(t, url, "/v1/payments/"+inTime); p.Status != "refunded" {
		t.Errorf("an hour later: %s", p.raw)
	}
	if p := read(t, url, "/v1/payments/"+late(60*time.Hour, "authorized")); p.Status != "refunded" {
		t.Errorf("authorized too late: %s", p.raw)
	}
	atOnce := func(e told) bool { return e.Event == "refund.created" && e.CreatedAt == (48+60)*60*60 }
	if events := refundEvents(t, gateway); !slices.ContainsFunc(events, atOnce) {
		t.Errorf("not refunded when it was authorized: %+v", events)
	}
	if p := read(t, url, "/v1/payments/"+late(96*time.Hour, "captured")); p.Status != "captured" {
		t.Errorf("captured at once: %s", p.raw)
	}
}

func TestSurplusIsRefunded(t *testing.T) {
	for _, status := range []string{"authorized", "captured"} {
		gateway, url, client := newGateway(t, nil)
		receiver := newReceiver(t, gateway)
		order := addOrder(t, gateway, 100)
		pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: "captured"})
		settings(t, gateway, razorpaytest.SettingsChange{AutoRefundSurplus: new(true)})
		second := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: status})
		if p := read(t, url, "/v1/payments/"+second); p.Status != "refunded" || p.Captured || p.AmountRefunded != 100 {
			t.Errorf("%s: the surplus payment is %s", status, p.raw)
		}
		if got, err := client.Order(t.Context(), order); err != nil || got.Status != "paid" || got.AmountPaid != 100 {
			t.Errorf("%s: order %+v, %v", status, got, err)
		}
		want := []string{"payment.authorized", "payment.captured", "order.paid", "payment.authorized", "refund.created", "refund.processed"}
		if diff := gocmp.Diff(want, receiver.names(t, gateway)); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", status, diff)
		}
		if p := read(t, url, "/v1/payments/"+pay(t, gateway, razorpaytest.PaymentRequest{OrderID: addOrder(t, gateway, 100), Status: "captured"})); p.Status != "captured" {
			t.Errorf("%s: the first payment of an order is %s", status, p.raw)
		}
	}
}

// TestPass lets three days pass, with a receiver that fails at first, and something else due still later.
func TestPass(t *testing.T) {
	gateway, _, client := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	pay(t, gateway, razorpaytest.PaymentRequest{Amount: 100, Status: "authorized", Deliver: new(false)})
	pay(t, gateway, razorpaytest.PaymentRequest{OrderID: patientOrder(t, client), Status: "authorized", Deliver: new(false)})
	pass := func(d time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := gateway.Pass(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	change(t, gateway, razorpaytest.DeliveryChange{DelayMS: new(int64(1500))})
	receiver.answer(http.StatusServiceUnavailable)
	pass(72*time.Hour + 2*time.Minute)
	receiver.answer(http.StatusOK)
	pass(24 * time.Hour)
	want := []string{
		"1 503 72h0m1.5s", "2 503 72h1m1.5s", "3 200 72h3m1.5s", // refund.created
		"1 503 72h0m1.5s", "2 503 72h1m1.5s", "3 200 72h3m1.5s", // refund.processed
	}
	got := map[string][]string{}
	for i, line := range log(t, gateway) {
		event := gateway.Deliveries()[i].Event
		got[event] = append(got[event], line)
	}
	if diff := gocmp.Diff(want, append(got["refund.created"], got["refund.processed"]...)); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	if now := gateway.Now(); !now.Equal(start.Add(96*time.Hour + 2*time.Minute)) {
		t.Errorf("it is %v", now)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gateway.SetWebhookURL(hanging(t, t.Context().Done()))
	change(t, gateway, razorpaytest.DeliveryChange{DelayMS: new(int64(0))})
	one(t, gateway)
	if err := gateway.Pass(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("Pass = %v, want Canceled", err)
	}
}

// TestRealTimePasses: what falls due happens without anybody touching the clock.
func TestRealTimePasses(t *testing.T) {
	gateway, _, _ := newGateway(t, func(c *razorpaytest.Config) { c.Now, c.ManualExpiry = nil, time.Second })
	receiver := newReceiver(t, gateway)
	pay(t, gateway, razorpaytest.PaymentRequest{Amount: 100, Status: "authorized"})
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(receiver.deliveries()) < 3 {
		select {
		case <-deadline:
			t.Fatal("it was never refunded")
		case <-tick.C:
		}
	}
}
