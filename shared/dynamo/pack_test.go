package dynamo

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

// grown is an order with 20 failed attempts kept and 60 part payments, each refunded in part.
func grown(t *testing.T) payment.Order {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	id := func(prefix string) string {
		const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		b := []byte(prefix)
		for range 14 {
			b = append(b, base62[random.IntN(len(base62))])
		}
		return string(b)
	}
	at := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	inr := func(n int64) payment.Money { return payment.Money{Amount: n, Currency: "INR"} }
	o := payment.NewOrder("grown", inr(600000), "razorpay", payment.Test, at)
	o.GatewayOrderID, o.Partial = id("order_"), true
	var facts []payment.Fact
	for range 20 {
		at = at.Add(time.Duration(random.IntN(3600)) * time.Second)
		facts = append(facts, payment.PaymentFact{ID: id("pay_"), GatewayOrderID: o.GatewayOrderID, Status: payment.PaymentCreated, Failed: true, Amount: inr(600000), CreatedAt: at})
	}
	for range 60 {
		at = at.Add(time.Duration(random.IntN(3600)) * time.Second)
		p := payment.PaymentFact{ID: id("pay_"), GatewayOrderID: o.GatewayOrderID, Status: payment.PaymentCaptured, Amount: inr(10000 + random.Int64N(500)), CreatedAt: at}
		facts = append(facts, p, payment.RefundFact{ID: id("rfnd_"), PaymentID: p.ID, GatewayOrderID: o.GatewayOrderID, Status: payment.RefundProcessed, Amount: inr(random.Int64N(5000) + 1)})
	}
	for {
		out := payment.Apply(o, facts, payment.Rules{}, at)
		o, facts = out.Order, nil
		if !out.More {
			return o
		}
	}
}

func TestAPackedOrderIsTheSameOrder(t *testing.T) {
	o := grown(t)
	odd := o.Payments["pay_odd"]
	odd.ID, odd.Status, odd.Amount = "pay_odd", payment.PaymentCreated, payment.Money{Amount: 1, Currency: "USD"}
	odd.CreatedAt = time.Date(2026, 11, 30, 10, 30, 0, 123_000_000, time.UTC) // not in whole seconds
	o.Payments["pay_odd"], o.Payments["pay_timeless"] = odd, payment.Payment{ID: "pay_timeless", Status: payment.PaymentCreated}
	row, err := newOrderRow(o, o.Version)
	if err != nil {
		t.Fatal(err)
	}
	if len(row.Packed) == 0 || len(row.Payments) > 0 {
		t.Fatal("the order was not packed")
	}
	if len(row.Packed) > 3<<10 {
		t.Errorf("packed into %d bytes, want at most 3 KiB", len(row.Packed))
	}
	i, err := marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	back, err := unmarshal[orderRow](i)
	if err != nil {
		t.Fatal(err)
	}
	got, err := back.order()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	t.Logf("%d payments and %d refunds in %d bytes", len(o.Payments), len(o.Refunds), len(row.Packed))
}
