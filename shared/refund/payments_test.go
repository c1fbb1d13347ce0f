package refund_test

import (
	"testing"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/refund"
)

func TestSeveralPayments(t *testing.T) {
	w := newWorld(t, "surplus")
	defer w.close()
	surplus := w.pay(orderID, captured, "INR")
	w.shop().wantError(t, payment.ErrPaymentNeeded)
	if _, there := w.request(); there {
		t.Error("a request was stored")
	}
	w.shopAsks(refund.Ask{ID: "surplus", Amount: captured, PaymentID: surplus}).want(t, payment.RefundProcessed)
	w.webhooks()
	w.wantRefunded(payment.Paid, captured, 1)
	// Only one is left, so that no id is needed any more.
	r := w.shop().want(t, payment.RefundProcessed)
	if r.Request.PaymentID != w.paymentID {
		t.Errorf("refunded %s, want %s", r.Request.PaymentID, w.paymentID)
	}
	w.wantRefunded(payment.PartiallyRefunded, captured+asked, 2)
}

func TestPaymentInAnotherCurrency(t *testing.T) {
	w := newWorld(t, "dollars")
	defer w.close()
	dollars := w.pay(orderID, 70_00, "USD")
	w.shopAsks(refund.Ask{ID: "usd", Amount: 70_01, PaymentID: dollars}).wantError(t, payment.ErrBeyondRefundable)
	r := w.shopAsks(refund.Ask{ID: "usd", Amount: 30_00, PaymentID: dollars}).want(t, payment.RefundProcessed)
	want := payment.Money{Amount: 30_00, Currency: "USD"}
	if r.Refund.Amount != want || r.Request.Amount != want {
		t.Errorf("refunded %s as asked for %s, want %s", r.Refund.Amount, r.Request.Amount, want)
	}
	w.webhooks()
	w.wantRefunded(payment.Paid, 0, 1)
	if booked := w.ledger(payment.LedgerRefunded, "USD"); booked != 30_00 {
		t.Errorf("booked %d, want 3000", booked)
	}
	w.shopAsks(refund.Ask{ID: "usd2", Amount: 40_01, PaymentID: dollars}).wantError(t, payment.ErrBeyondRefundable)
	w.shopAsks(refund.Ask{ID: "usd3", Amount: 40_00, PaymentID: dollars}).want(t, payment.RefundProcessed)
	w.shopAsks(refund.Ask{ID: "inr", Amount: captured, PaymentID: w.paymentID}).want(t, payment.RefundProcessed)
}

func TestNothingToRefund(t *testing.T) {
	for name, set := range map[string]func(w *world){
		"a payment that nobody knows": func(w *world) { w.ask.PaymentID = "pay_nobody" },
		"another order's payment": func(w *world) {
			w.addOrder("o2", captured)
			w.ask.PaymentID = w.pay("o2", captured, "INR")
			w.learn(payment.PaymentFact{ID: w.ask.PaymentID, Status: payment.PaymentCaptured, Amount: rupees(captured)})
		},
		"an authorized payment": func(w *world) {
			id, err := w.gateway.Pay(razorpaytest.PaymentRequest{OrderID: w.order(orderID).GatewayOrderID, Amount: asked, Status: "authorized"})
			w.must(err)
			w.webhooks()
			w.ask.PaymentID = id
		},
		"more than the payment": func(w *world) { w.ask.Amount = captured + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, name)
			defer w.close()
			set(w)
			w.shop().wantError(t, payment.ErrBeyondRefundable)
			w.wantNothingBegun()
		})
	}
	w := newWorld(t, "unpaid")
	defer w.close()
	w.addOrder("unpaid", captured)
	if _, err := w.refunder.Request(t.Context(), "unpaid", w.ask); err == nil {
		t.Error("an order without a payment was refunded")
	}
	if _, err := w.refunder.Request(t.Context(), "nobody", w.ask); err == nil {
		t.Error("an order that is none was refunded")
	}
	w.wantNothingBegun()
}

// wantNothingBegun asserts that a request left no trace.
func (w *world) wantNothingBegun() {
	w.t.Helper()
	r, there := w.request()
	if o := w.order(orderID); there || len(o.Reserved) > 0 || w.sent() > 0 {
		w.broken("request %+v, reserved %v, sent %d times", r, o.Reserved, w.sent())
	}
}

func TestDisputed(t *testing.T) {
	for _, test := range []struct {
		status  payment.DisputeStatus
		refused bool
	}{
		{payment.DisputeOpen, true}, {payment.DisputeUnderReview, true}, {payment.DisputeLost, true},
		{payment.DisputeWon, false}, {payment.DisputeClosed, false},
	} {
		t.Run(string(test.status), func(t *testing.T) {
			w := newWorld(t, string(test.status))
			defer w.close()
			other := w.pay(orderID, captured, "INR")
			w.learn(payment.DisputeFact{ID: "disp_1", PaymentID: w.paymentID, Status: test.status, Phase: payment.PhaseChargeback, Amount: rupees(captured)})
			w.ask.PaymentID = w.paymentID
			if test.refused {
				w.shop().wantError(t, payment.ErrDisputed)
				w.wantNothingBegun()
				w.ask.Force = true
			}
			if r := w.shop().want(t, payment.RefundProcessed); r.Request.Forced != test.refused {
				t.Errorf("forced %t", r.Request.Forced)
			}
			w.shopAsks(refund.Ask{ID: "other", Amount: asked, PaymentID: other}).want(t, payment.RefundProcessed)
			// Force is against a dispute. It makes no money.
			w.shopAsks(refund.Ask{ID: "more", Amount: asked, PaymentID: w.paymentID, Force: true}).wantError(t, payment.ErrBeyondRefundable)
		})
	}
}
