package reconcile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/reconcile"
)

// TestWhatAComparisonFinds brings about each finding, and looks again: whatever was new is known then.
func TestWhatAComparisonFinds(t *testing.T) {
	for _, c := range []struct {
		name    string
		happens func(w *world, o payment.Order)
		age     time.Duration // of the payment when it is compared
		want    reconcile.Findings
		again   reconcile.Findings
		status  payment.Status
		fulfils bool
	}{
		{"a payment whose webhook came", func(w *world, o payment.Order) {
			w.told(o, captured(w.paid(o)))
		}, time.Hour, reconcile.Findings{Matched: 1}, reconcile.Findings{Matched: 1}, payment.Paid, true},
		{"a payment without a webhook", func(w *world, o payment.Order) {
			w.paid(o)
		}, time.Hour, reconcile.Findings{MissingWebhook: 1}, reconcile.Findings{Matched: 1}, payment.Paid, true},
		{"a payment known as authorized only", func(w *world, o payment.Order) {
			w.told(o, payment.PaymentFact{ID: w.paid(o), Status: payment.PaymentAuthorized, Amount: rupees})
		}, time.Hour, reconcile.Findings{MissingWebhook: 1}, reconcile.Findings{Matched: 1}, payment.Paid, true},
		{"one that failed", func(w *world, o payment.Order) {
			w.pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Status: "failed"})
		}, time.Hour, reconcile.Findings{}, reconcile.Findings{}, payment.Failed, false},
		{"one that is authorized", func(w *world, o payment.Order) {
			w.pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Status: "authorized"})
		}, time.Hour, reconcile.Findings{}, reconcile.Findings{}, payment.Pending, false},
		{"a payment of less", func(w *world, o payment.Order) {
			w.pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Amount: 100})
		}, time.Hour, reconcile.Findings{AmountMismatch: 1, Stuck: 1}, reconcile.Findings{AmountMismatch: 1, Stuck: 1}, payment.Pending, false},
		{"a payment of less, a short while ago", func(w *world, o payment.Order) {
			w.pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Amount: 100})
		}, 14 * time.Minute, reconcile.Findings{AmountMismatch: 1}, reconcile.Findings{AmountMismatch: 1}, payment.Pending, false},
		{"a payment of less that was given back", func(w *world, o payment.Order) {
			w.refund(w.pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Amount: 100}), 100)
		}, time.Hour, reconcile.Findings{AmountMismatch: 1, RefundUnknown: 1}, reconcile.Findings{AmountMismatch: 1}, payment.Pending, false},
		{"a payment in another currency", func(w *world, o payment.Order) {
			w.pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Amount: rupees.Amount, Currency: "USD"})
		}, time.Hour, reconcile.Findings{AmountMismatch: 1, Stuck: 1}, reconcile.Findings{AmountMismatch: 1, Stuck: 1}, payment.Pending, false},
		{"another amount than a webhook said", func(w *world, o payment.Order) {
			w.told(o, payment.PaymentFact{ID: w.paid(o), Status: payment.PaymentCaptured, Amount: payment.Money{Amount: 100, Currency: "INR"}})
		}, time.Hour, reconcile.Findings{AmountMismatch: 1, Stuck: 1}, reconcile.Findings{AmountMismatch: 1, Stuck: 1}, payment.Paid, false},
		{"a surplus payment", func(w *world, o payment.Order) {
			w.told(o, captured(w.paid(o)))
			w.paid(o)
		}, time.Hour, reconcile.Findings{Matched: 1, MissingWebhook: 1}, reconcile.Findings{Matched: 2}, payment.Paid, true},
		{"a refund in the dashboard whose webhook was lost", func(w *world, o payment.Order) {
			id := w.paid(o)
			w.told(o, captured(id))
			w.refund(id, 10000)
		}, time.Hour, reconcile.Findings{Matched: 1, RefundUnknown: 1}, reconcile.Findings{Matched: 1}, payment.PartiallyRefunded, true},
		{"payment and refund, and no webhook of either", func(w *world, o payment.Order) {
			w.refund(w.paid(o), 10000)
		}, time.Hour, reconcile.Findings{MissingWebhook: 1, RefundUnknown: 1, Stuck: 1}, reconcile.Findings{Matched: 1, Stuck: 1}, payment.PartiallyRefunded, false},
		{"a payment that was refunded whole, and no webhook of either", func(w *world, o payment.Order) {
			w.refund(w.paid(o), rupees.Amount)
		}, time.Hour, reconcile.Findings{MissingWebhook: 1, RefundUnknown: 1}, reconcile.Findings{Matched: 1}, payment.Refunded, false},
		{"a payment of an order that is closed", func(w *world, o payment.Order) {
			w.told(o, payment.ClosedFact{Reason: "out of stock", At: w.now()})
			w.paid(o)
		}, time.Hour, reconcile.Findings{MissingWebhook: 1, Stuck: 1}, reconcile.Findings{Matched: 1, Stuck: 1}, payment.Paid, false},
		{"a payment of an order that nobody knows", func(w *world, _ payment.Order) {
			w.paid(payment.Order{GatewayOrderID: w.foreign(nil)})
		}, time.Hour, reconcile.Findings{UnknownOrder: 1}, reconcile.Findings{UnknownOrder: 1}, payment.Pending, false},
		{"a failed attempt at such an order", func(w *world, _ payment.Order) {
			w.pay(razorpaytest.PaymentRequest{OrderID: w.foreign(nil), Status: "failed"})
		}, time.Hour, reconcile.Findings{}, reconcile.Findings{}, payment.Pending, false},
		{"a payment without an order", func(w *world, _ payment.Order) {
			w.pay(razorpaytest.PaymentRequest{Amount: 100})
		}, time.Hour, reconcile.Findings{UnknownOrder: 1}, reconcile.Findings{UnknownOrder: 1}, payment.Pending, false},
		{"a refund of a payment that nobody knows", func(w *world, _ payment.Order) {
			w.refund(w.pay(razorpaytest.PaymentRequest{Amount: 1000}), 500)
		}, time.Hour, reconcile.Findings{UnknownOrder: 1}, reconcile.Findings{UnknownOrder: 1}, payment.Pending, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, payment.Rules{})
			c.happens(w, w.open("o1"))
			w.at(c.age)
			w.compare(c.want)
			w.expect("o1", c.status, c.fulfils)
			w.writes()
			w.compare(c.again)
			w.expect("o1", c.status, c.fulfils)
			if writes := w.writes(); len(writes) > 0 {
				t.Errorf("the second comparison writes %v", writes)
			}
		})
	}
}

// refund refunds a payment in the gateway's dashboard, without a webhook.
func (w *world) refund(paymentID string, amount int64) string {
	w.Helper()
	id, err := w.sim.Refund(razorpaytest.RefundRequest{PaymentID: paymentID, Amount: amount, Deliver: new(false)})
	if err != nil {
		w.Fatal(err)
	}
	return id
}

// foreign is a gateway order that was not made by us.
func (w *world) foreign(notes map[string]string) string {
	w.Helper()
	id, err := w.sim.AddOrder(razorpaytest.OrderRequest{Amount: rupees.Amount, Currency: "INR", Notes: notes})
	if err != nil {
		w.Fatal(err)
	}
	return id
}

// TestADisputeIsNotTouched: only webhooks tell of disputes, so that nothing of a list may change one.
func TestADisputeIsNotTouched(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	o := w.open("o1")
	id := w.paid(o)
	w.told(o, captured(id), payment.DisputeFact{
		ID: "disp_1", PaymentID: id, Status: payment.DisputeLost, Phase: payment.PhaseChargeback, Amount: rupees, Deducted: rupees.Amount,
	})
	before := w.order("o1")
	w.at(time.Hour)
	w.compare(reconcile.Findings{Matched: 1, Stuck: 1})
	if after := w.order("o1"); !cmp.Equal(before.Disputes, after.Disputes) || after.Version != before.Version+1 { // the payment's time is new
		t.Errorf("the order went from version %d to %d, its disputes are %v", before.Version, after.Version, after.Disputes)
	}
	w.writes()
	w.compare(reconcile.Findings{Matched: 1, Stuck: 1})
	if writes := w.writes(); len(writes) > 0 {
		t.Errorf("the second comparison writes %v", writes)
	}
}

func TestADryComparisonWritesNothing(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	w.rec.Adopts = true
	w.refund(w.paid(w.open("o1")), 100)
	w.paid(payment.Order{GatewayOrderID: w.foreign(nil)})
	w.at(time.Hour)
	w.writes()
	got, err := w.rec.Compare(t.Context(), "razorpay", begins, w.now(), true)
	if err != nil {
		t.Fatal(err)
	}
	w.found(reconcile.Findings{MissingWebhook: 1, RefundUnknown: 1, Stuck: 1, UnknownOrder: 1}, got)
	if writes := w.writes(); len(writes) > 0 {
		t.Errorf("it writes %v", writes)
	}
	w.expect("o1", payment.Pending, false)
}

// TestConfirmationsAreReadAlong: a scan reads from the gateway, so that what it shows is confirmed; where nobody wants that it
// is not worth a write of every order.
func TestConfirmationsAreReadAlong(t *testing.T) {
	for rule, want := range map[string]struct{ commits int }{"never": {0}, "always": {1}, "above:49900": {0}, "above:49899": {1}} {
		t.Run(rule, func(t *testing.T) {
			var rules payment.Rules
			if err := rules.Confirm.UnmarshalText([]byte(rule)); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, rules)
			o := w.open("o1")
			fact := captured(w.paid(o))
			fact.CreatedAt = begins
			w.told(o, fact)
			w.expect("o1", payment.Paid, want.commits == 0)
			w.at(10 * time.Minute)
			w.writes()
			w.compare(reconcile.Findings{Matched: 1})
			w.expect("o1", payment.Paid, true)
			if n := w.writes()["Commit"]; n != want.commits {
				t.Errorf("%d commits, want %d", n, want.commits)
			}
		})
	}
}

func TestUnknownOrdersAreAdopted(t *testing.T) {
	t.Run("and paid", func(t *testing.T) {
		w := newWorld(t, payment.Rules{})
		w.rec.Adopts, w.rec.Account = true, "acc_1"
		id := w.foreign(nil)
		w.paid(payment.Order{GatewayOrderID: id})
		w.at(time.Hour)
		w.orders = append(w.orders, "razorpay."+id)
		w.compare(reconcile.Findings{MissingWebhook: 1})
		w.expect("razorpay."+id, payment.Paid, true)
		if o := w.order("razorpay." + id); o.Account != "acc_1" || o.GatewayOrderID != id {
			t.Errorf("adopted as %+v", o)
		}
		w.compare(reconcile.Findings{Matched: 1})
	})
	t.Run("unless they are ours and unfinished, or odd", func(t *testing.T) {
		w := newWorld(t, payment.Rules{})
		w.rec.Adopts = true
		w.paid(payment.Order{GatewayOrderID: w.foreign(map[string]string{"paidonce": "shop/o7"})})
		w.pay(razorpaytest.PaymentRequest{Amount: 100}) // without an order
		odd := w.foreign(nil)
		w.paid(payment.Order{GatewayOrderID: odd})
		w.paid(w.open("o1"))
		w.spoilOrder(odd)
		w.at(time.Hour)
		w.compare(reconcile.Findings{UnknownOrder: 3, MissingWebhook: 1})
		w.expect("o1", payment.Paid, true)
		if !strings.Contains(w.logged.String(), "it was made for order o7") {
			t.Errorf("nobody is told why: %s", w.logged.String())
		}
	})
}

// TestBadOrdersDoNotKeepTheOthers: what the gateway shows of an order that cannot be is reported, and the rest is applied.
func TestBadOrdersDoNotKeepTheOthers(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(w *world, o payment.Order) payment.Order
		says  string
	}{
		{"of another mode", func(_ *world, o payment.Order) payment.Order { o.Mode = payment.Live; return o }, "a test event, and the order is a live one"},
		{"of another account", func(_ *world, o payment.Order) payment.Order { o.Account = "acc_2"; return o }, "another merchant account"},
	} {
		for _, alone := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, alone %t", c.name, alone), func(t *testing.T) {
				w := newWorld(t, payment.Rules{})
				w.at(3 * time.Minute) // not where a slice ends: that second is read twice
				w.rec.Account = "acc_1"
				bad := w.foreign(nil)
				w.store(c.spoil(w, payment.NewOrder("bad", rupees, "razorpay", payment.Test, begins)), bad)
				w.paid(payment.Order{GatewayOrderID: bad})
				if alone {
					w.at(13 * time.Minute)
				}
				w.paid(w.open("good"))
				w.at(30 * time.Minute)
				found, err := w.scan(payment.HourlyScan, -1)
				if err != nil {
					t.Error(err)
				}
				w.found(reconcile.Findings{MissingWebhook: 1, Failed: 1}, found)
				w.expect("good", payment.Paid, true)
				w.expect("bad", payment.Pending, false)
				if !strings.Contains(w.logged.String(), c.says) {
					t.Errorf("nobody is told %q: %s", c.says, w.logged.String())
				}
			})
		}
	}
}

// TestUnreadableEntitiesDoNotHideTheOthers: the gateway shows something that we have never seen.
func TestUnreadableEntitiesDoNotHideTheOthers(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	id := w.paid(w.open("o1"))
	w.refund(id, 100)
	w.between("/v1/payments", func(_ map[string][]string, items []json.RawMessage) []json.RawMessage {
		return append(items, json.RawMessage(`{"id":"pay_x","status":"quantum"}`), json.RawMessage(`null`), json.RawMessage(`"payment"`))
	})
	w.at(time.Hour)
	w.compare(reconcile.Findings{MissingWebhook: 1, RefundUnknown: 1, Stuck: 1, Unreadable: 3})
	w.expect("o1", payment.PartiallyRefunded, false)
	w.between("/v1/refunds", func(_ map[string][]string, items []json.RawMessage) []json.RawMessage {
		return append(items, json.RawMessage(`{"id":"rfnd_x","amount":"much"}`))
	})
	w.compare(reconcile.Findings{Matched: 1, Stuck: 1, Unreadable: 1})
}

// TestAFactIsAppliedOnce: whatever else brings the same payment at the same time.
func TestAFactIsAppliedOnce(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	o := w.open("o1")
	id := w.paid(o)
	w.at(time.Hour)
	w.compare(reconcile.Findings{MissingWebhook: 1})
	w.told(o, captured(id)) // late
	w.compare(reconcile.Findings{Matched: 1})
	if _, err := w.rec.Advancer.Apply(t.Context(), "o1", advance.Step{Source: payment.SourceCallback, Facts: []payment.Fact{captured(id)}}); err != nil {
		t.Fatal(err)
	}
	effects, err := w.memory.Effects(t.Context(), "o1")
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, e := range effects {
		n[strings.TrimPrefix(fmt.Sprintf("%T", e), "payment.")]++
	}
	if n["Fulfilment"] != 1 || n["LedgerEntry"] != 1 {
		t.Errorf("effects %v, want one fulfilment and one ledger entry", n)
	}
}

// An order that may be paid in parts waits for the rest: nobody is called for that, until it is covered.
func TestAPartPaymentIsNotStuck(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	partial := payment.NewOrder("o1", rupees, "razorpay", payment.Test, w.now())
	partial.Partial = true
	o := w.store(partial, w.foreign(nil))
	part := rupees.Amount / 2
	w.pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Amount: part})
	w.at(time.Hour)
	w.compare(reconcile.Findings{MissingWebhook: 1})
	w.compare(reconcile.Findings{Matched: 1})
	w.told(o, payment.ClosedFact{Reason: "out of stock", At: w.now()})
	w.pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Amount: rupees.Amount - part})
	w.at(2 * time.Hour)
	w.compare(reconcile.Findings{Matched: 1, MissingWebhook: 1, Stuck: 2})
}
