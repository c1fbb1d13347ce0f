package apigw_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

var update = flag.Bool("update", false, "write the golden files of this test")

// at has more digits than a store keeps, and is not in UTC.
var at = time.Date(2026, 11, 30, 15, 30, 0, 123_456_789, time.FixedZone("IST", 5*3600+1800))

func inr(amount int64) payment.Money { return payment.Money{Amount: amount, Currency: "INR"} }

func newOrder() payment.Order {
	return payment.NewOrder("shop-1", inr(49900), "razorpay", payment.Test, at)
}

// wholeOrder has something of everything: a payment too many, attempts that failed, refunds, holds.
func wholeOrder() payment.Order {
	o := newOrder()
	o.GatewayOrderID, o.ClosedAt = "order_1", at.Add(2*time.Hour)
	paid := func(id string, minutes int, more func(*payment.PaymentFact)) payment.PaymentFact {
		f := payment.PaymentFact{
			ID: id, GatewayOrderID: "order_1", Status: payment.PaymentCaptured, Amount: inr(49900),
			CreatedAt: at.Add(time.Duration(minutes) * time.Minute),
		}
		if more != nil {
			more(&f)
		}
		return f
	}
	failed := func(f *payment.PaymentFact) { f.Status, f.Failed = payment.PaymentCreated, true }
	o = payment.Apply(o, []payment.Fact{
		paid("pay_z_first", 1, failed),
		paid("pay_y_captured_after_failing", 2, func(f *payment.PaymentFact) { f.Failed = true }),
		paid("pay_b_same_minute", 3, nil),
		paid("pay_a_same_minute", 3, func(f *payment.PaymentFact) { f.Status = payment.PaymentAuthorized }),
		paid("pay_voided", 4, func(f *payment.PaymentFact) { f.Status = payment.PaymentRefunded }),
		payment.ForeignPaymentFact{PaymentID: "pay_foreign", OrderID: "shop-2"},
		paid("pay_foreign", 5, nil),
		payment.RefundFact{ID: "rfnd_2", PaymentID: "pay_b_same_minute", Status: payment.RefundPending, Amount: inr(100)},
		payment.RefundFact{ID: "rfnd_1", PaymentID: "pay_b_same_minute", Status: payment.RefundProcessed, Amount: inr(900)},
	}, payment.Rules{}, at.Add(time.Minute)).Order
	closed := payment.HoldKey{Reason: payment.HoldPaidAfterClose}
	history := o.Holds[closed]
	history.Acknowledged = &payment.Acknowledgement{By: "meera", Why: "still in stock", At: at.Add(3 * time.Hour)}
	o.Holds[closed] = history
	o.FulfilledAt, o.Version, o.CountedAttempts = at.Add(3*time.Hour), 7, 3
	return o
}

func TestShowOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		order payment.Order
		rules payment.Rules
	}{
		{"new", newOrder(), payment.Rules{}},
		{"whole", wholeOrder(), payment.Rules{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got bytes.Buffer
			if err := json.Indent(&got, []byte(apigw.JSON(200, apigw.ShowOrder(c.order, c.rules)).Body), "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			golden := filepath.Join("testdata", "order-"+c.name+".json")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The rules of the shop decide what is shown: here, whether the gateway's own word covers an order paid with an offer.
func TestShowOrderUnderRules(t *testing.T) {
	o := newOrder()
	o.GatewayPaid = true
	o.Payments = map[string]payment.Payment{"pay_1": {ID: "pay_1", Status: payment.PaymentCaptured, Amount: inr(40000), Captured: inr(40000)}}
	for _, c := range []struct {
		rules payment.Rules
		want  payment.Status
		holds []apigw.Hold
	}{
		{payment.Rules{AcceptOffers: true}, payment.Paid, []apigw.Hold{}},
		{payment.Rules{}, payment.Pending, []apigw.Hold{{Reason: payment.HoldShort}}},
	} {
		got := apigw.ShowOrder(o, c.rules)
		if got.Derived != c.want {
			t.Errorf("%+v: derived %s, want %s", c.rules, got.Derived, c.want)
		}
		if diff := cmp.Diff(c.holds, got.Holds); diff != "" {
			t.Errorf("%+v: (-want +got)\n%s", c.rules, diff)
		}
	}
}
