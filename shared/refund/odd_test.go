package refund_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

// TestRequestThatTheTableLost: a restored table may have forgotten the request whose refund the gateway still shows. It is not
// made again, and whoever asks is told of it.
func TestRequestThatTheTableLost(t *testing.T) {
	for name, amount := range map[string]int64{"part of what is left": 40_00, "more than is left": 60_00, "all": captured} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, name)
			defer w.close()
			id := w.dashboard(razorpaytest.RefundRequest{PaymentID: w.paymentID, Amount: amount, Receipt: receipt()})
			w.heard = 0
			w.webhooks()
			w.ask.Amount = amount
			for range 2 {
				if r := w.shop().want(t, payment.RefundProcessed); r.New || r.Refund.ID != id {
					t.Errorf("answered %+v", r.Answer)
				}
			}
			if stored, there := w.request(); !there || stored.Status != payment.RequestAccepted || stored.RefundID != id || !stored.NextAt.IsZero() {
				t.Errorf("stored %+v", stored)
			}
			if w.sent() > 0 || len(w.atGateway("")) != 1 {
				t.Errorf("sent %d times, the gateway has %v", w.sent(), w.atGateway(""))
			}
		})
	}
}

// TestPaymentThatTheGatewayLost: a payment that has to be read first, and that the gateway does not show.
func TestPaymentThatTheGatewayLost(t *testing.T) {
	w := newWorld(t, "lost")
	defer w.close()
	unknownPayment(w)
	w.learn(payment.RefundFact{ID: "rfnd_gone", PaymentID: w.paymentID, Amount: rupees(captured), Status: payment.RefundFailed})
	r := w.shop()
	refusal := new(payment.Refusal)
	if !errors.As(r.err, &refusal) || refusal.Reason != payment.RefusedUnknownID || errors.Is(r.err, payment.ErrNotFound) {
		t.Errorf("answered %s", r.words())
	}
	w.wantNothingBegun()
}

// TestReservationWithManyEffects: what a reservation brings with it may take more than one transaction. The request is written
// once.
func TestReservationWithManyEffects(t *testing.T) {
	w := newWorld(t, "many")
	defer w.close()
	surplus := w.pay(orderID, captured, "INR")
	for i := range 45 {
		w.learn(payment.RefundFact{ID: fmt.Sprintf("rfnd_%d", i), PaymentID: surplus, Amount: rupees(1_00), Status: payment.RefundPending})
	}
	w.ask.PaymentID, w.ask.Amount = w.paymentID, captured
	if r := w.shop().want(t, payment.RefundProcessed); !r.New || r.Request.Attempts != 1 {
		t.Errorf("answered %+v", r.Answer)
	}
	if w.sent() != 1 {
		t.Errorf("sent %d times", w.sent())
	}
}

// TestReservationThatFails while something else about the order is written: there must be no request without its money.
func TestReservationThatFails(t *testing.T) {
	w := newWorld(t, "robbed")
	defer w.close()
	o := w.order(orderID)
	o.PaidAt = o.CreatedAt.Add(time.Hour)
	w.must(w.memory.Commit(t.Context(), payment.Commit{Order: o}))
	w.refunder.Advancer.Rules.FulfilWithin = time.Minute // a new rule: the order gets a hold at the next step
	setting(razorpaytest.SettingsChange{RefundStatus: new("pending")})(w)
	w.store.between = func() { w.otherAsks(w.rival(captured)).want(t, payment.RefundPending) }
	w.store.arm(point{n: 3})
	w.shop().wantError(t, payment.ErrBeyondRefundable)
	if _, held := w.order(orderID).Holds[payment.HoldKey{Reason: payment.HoldLate}]; !held {
		t.Errorf("nothing else was written: robbed at %q, holds %v", w.store.at, w.order(orderID).Holds)
	}
	w.wantNothingBegun()
}
