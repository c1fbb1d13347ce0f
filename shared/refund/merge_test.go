package refund_test

import (
	"errors"
	"testing"
	"time"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/refund"
)

// ledger is the sum of the order's ledger entries of a type, corrections included, in minor units of the currency.
func (w *world) ledger(entryType payment.LedgerType, currency string) (sum int64) {
	w.t.Helper()
	effects, err := w.memory.Effects(w.t.Context(), orderID)
	w.must(err)
	for _, e := range effects {
		if entry, ok := e.(payment.LedgerEntry); ok && entry.Type.Corrects() == entryType && entry.Amount.Currency == currency {
			sum += entry.Amount.Amount
		}
	}
	return sum
}

// wantRefunded asserts how much of the order went back, there and here, in how many refunds.
func (w *world) wantRefunded(status payment.Status, amount int64, refunds int) {
	w.t.Helper()
	o := w.order(orderID)
	if booked := w.ledger(payment.LedgerRefunded, "INR"); o.Status != status || booked != amount || len(o.Refunds) != refunds || len(o.Reserved) > 0 {
		w.broken("the order is %s with %d booked as refunded, refunds %v, reserved %v; want %s, %d in %d refunds",
			o.Status, booked, o.Refunds, o.Reserved, status, amount, refunds)
	}
}

// want asserts that the gateway has the refund.
func (r result) want(t *testing.T, status payment.RefundStatus) result {
	t.Helper()
	if r.err != nil || r.Refund.ID == "" || r.Refund.Status() != status {
		t.Errorf("answered %s %s, want %s", r.words(), r.Refund.Status(), status)
	}
	return r
}

// wantError asserts that nothing was begun, for this reason.
func (r result) wantError(t *testing.T, want error) {
	t.Helper()
	if !errors.Is(r.err, want) {
		t.Errorf("answered %s, want error %v", r.words(), want)
	}
}

func of(amount int64, id string) refund.Ask { return refund.Ask{ID: id, Amount: amount} }

func TestOwnWebhookMerges(t *testing.T) {
	for name, run := range map[string]func(w *world){
		"after the answer":  func(w *world) { w.shop().want(t, payment.RefundProcessed); w.webhooks() },
		"before the answer": func(w *world) { w.calls.after = w.webhooks; w.shop().want(t, payment.RefundProcessed) },
		"first, and the answer is lost": func(w *world) {
			w.store.arm(point{afterSend: true})
			w.shop()
			w.webhooks()
		},
		"twice": func(w *world) {
			w.shop()
			w.webhooks()
			w.heard = 0
			w.webhooks()
		},
		"backwards": func(w *world) {
			w.store.arm(point{afterSend: true})
			w.shop()
			all := w.gateway.Deliveries()
			for i := range all {
				w.webhook(all[len(all)-1-i])
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, name)
			defer w.close()
			run(w)
			w.wantRefunded(payment.PartiallyRefunded, asked, 1)
			r := w.shop().want(t, payment.RefundProcessed)
			if r.New || r.Refund.Receipt != receipt() {
				t.Errorf("answered %+v", r.Answer)
			}
			w.wantRefunded(payment.PartiallyRefunded, asked, 1)
			if sent := w.sent(); sent != 1 {
				t.Errorf("sent %d times, want once", sent)
			}
		})
	}
}

// sent counts the calls of the gateway that ask for our refund.
func (w *world) sent() (n int) {
	for _, c := range w.gateway.Calls() {
		if isOurs(c) {
			n++
		}
	}
	return n
}

func TestPartialRefunds(t *testing.T) {
	w := newWorld(t, "partial")
	defer w.close()
	w.shopAsks(of(40_00, "a")).want(t, payment.RefundProcessed)
	w.wantRefunded(payment.PartiallyRefunded, 40_00, 1)
	w.shopAsks(of(60_01, "b")).wantError(t, payment.ErrBeyondRefundable)
	w.shopAsks(of(60_00, "c")).want(t, payment.RefundProcessed)
	w.shopAsks(of(1, "d")).wantError(t, payment.ErrBeyondRefundable)
	w.shopAsks(of(41_00, "a")).wantError(t, payment.ErrDifferentRefund)
	w.shopAsks(refund.Ask{ID: "a", Amount: 40_00, PaymentID: "pay_other"}).wantError(t, payment.ErrDifferentRefund)
	w.shopAsks(refund.Ask{ID: "a", Amount: 40_00, PaymentID: w.paymentID}).want(t, payment.RefundProcessed)
	w.webhooks()
	w.wantRefunded(payment.Refunded, captured, 2)
}

func TestDashboardRefundIsSubtracted(t *testing.T) {
	for name, tell := range map[string]func(w *world){
		"its webhook came": func(w *world) { w.heard = 0; w.webhooks() },
		// A payment that claims more than the refunds we know is read before anything is said.
		"only the payment speaks of it": func(w *world) {
			w.learn(payment.PaymentFact{ID: w.paymentID, Status: payment.PaymentCaptured, Amount: rupees(captured), AmountRefunded: 50_00})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, name)
			defer w.close()
			w.dashboard(razorpaytest.RefundRequest{PaymentID: w.paymentID, Amount: 50_00})
			tell(w)
			w.shopAsks(of(60_00, "a")).wantError(t, payment.ErrBeyondRefundable)
			w.shopAsks(of(50_00, "b")).want(t, payment.RefundProcessed)
			w.wantRefunded(payment.Refunded, captured, 2)
		})
	}
}

// TestUnknownDashboardRefund: the gateway refuses because of a refund that we don't know of. Reading back makes it known.
func TestUnknownDashboardRefund(t *testing.T) {
	w := newWorld(t, "unknown")
	defer w.close()
	w.dashboard(razorpaytest.RefundRequest{PaymentID: w.paymentID, Amount: 50_00})
	for range 2 {
		if r := w.shop(); r.words() != "failed: amount_exceeded" {
			t.Errorf("answered %s", r.words())
		}
	}
	w.wantRefunded(payment.PartiallyRefunded, 50_00, 1)
	w.shopAsks(of(50_00, "b")).want(t, payment.RefundProcessed)
	w.wantRefunded(payment.Refunded, captured, 2)
}

// TestFailedRefundFreesItsMoney: only once the gateway itself shows it as free.
func TestFailedRefundFreesItsMoney(t *testing.T) {
	for _, first := range []string{"pending", "processed"} {
		for _, keep := range []bool{false, true} {
			t.Run(first+map[bool]string{true: ", kept by the gateway"}[keep], func(t *testing.T) {
				w := newWorld(t, first)
				defer w.close()
				setting(razorpaytest.SettingsChange{RefundStatus: &first, KeepFailed: &keep})(w)
				r := w.shop().want(t, payment.RefundStatus(first))
				w.must(w.gateway.MoveRefund(r.Refund.ID, razorpaytest.Move{Status: "failed"}))
				w.webhooks()
				w.shop().want(t, payment.RefundFailed)

				reads := w.reads()
				again := w.shopAsks(of(asked, "again"))
				if w.reads() == reads {
					t.Error("the payment was not read")
				}
				if keep {
					again.wantError(t, payment.ErrBeyondRefundable)
					if !w.order(orderID).Refunds[r.Refund.ID].Seen.Failed || len(w.order(orderID).Reserved) > 0 {
						t.Errorf("order %+v", w.order(orderID))
					}
					return
				}
				again.want(t, payment.RefundStatus(first))
				if again.Refund.ID == r.Refund.ID || again.Refund.Receipt == r.Refund.Receipt {
					t.Errorf("refunds %+v and %+v are the same", r.Refund, again.Refund)
				}
				w.shopAsks(of(asked, "third")).wantError(t, payment.ErrBeyondRefundable)
			})
		}
	}
}

// reads counts how often a payment was read.
func (w *world) reads() (n int) {
	for _, c := range w.gateway.Calls() {
		if c.Method == "GET" && c.Path == "/v1/payments/"+w.paymentID {
			n++
		}
	}
	return n
}

// TestFailedRefundUnreadable: while the payment cannot be read, nobody knows whether its money is free.
func TestFailedRefundUnreadable(t *testing.T) {
	for name, kind := range map[string]struct {
		fault string
		want  error
	}{
		"the payment": {"/v1/payments/*", payment.ErrOutcomeUnknown},
		"its refunds": {"/v1/payments/*/refunds", payment.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, name)
			defer w.close()
			setting(razorpaytest.SettingsChange{RefundStatus: new("failed")})(w)
			w.shop().want(t, payment.RefundFailed)
			w.must(w.gateway.SetFaults(razorpaytest.Fault{Method: "GET", Path: kind.fault, Kind: razorpaytest.ServerError, Count: 3}))
			w.shopAsks(of(asked, "again")).wantError(t, kind.want)
			if o := w.order(orderID); len(o.Reserved) > 0 {
				t.Errorf("reserved %v", o.Reserved)
			}
			w.shopAsks(of(asked, "again")).want(t, payment.RefundFailed)
		})
	}
}

// TestSettledByReconcile: no webhook ever tells what became of a pending refund.
func TestSettledByReconcile(t *testing.T) {
	for _, status := range []payment.RefundStatus{payment.RefundProcessed, payment.RefundFailed} {
		w := newWorld(t, string(status))
		setting(razorpaytest.SettingsChange{RefundStatus: new("pending")})(w)
		r := w.shop().want(t, payment.RefundPending)
		w.pass(4 * time.Hour)
		w.must(w.gateway.MoveRefund(r.Refund.ID, razorpaytest.Move{Status: string(status)}))
		w.pass(24 * time.Hour)
		if known := w.order(orderID).Refunds[r.Refund.ID]; known.Status() != status {
			t.Errorf("the order has it as %s, want %s", known.Status(), status)
		}
		if stored, _ := w.request(); !stored.NextAt.IsZero() {
			t.Errorf("looked at again %s", stored.NextAt)
		}
		w.close()
	}
}
