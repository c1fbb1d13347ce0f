package refund_test

import (
	"io"
	"net/http"
	"strings"
	"time"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

// answer is what the gateway does with our first call for the refund.
type answer struct {
	name string
	set  func(w *world)
	end  string               // what the request has come to a week later, in the words of [result.words]
	then payment.RefundStatus // of an accepted one: what has become of the refund by then
}

// answers is the table. Whatever the answer, and wherever we crash, a request has one end.
var answers = []answer{
	// It goes well.
	{"processed", func(*world) {}, "accepted", payment.RefundProcessed},
	{"pending, processed after two days", pendingUntil("processed"), "accepted", payment.RefundProcessed},
	{"pending, failed after two days", pendingUntil("failed"), "accepted", payment.RefundFailed},
	{"pending for ever", setting(razorpaytest.SettingsChange{RefundStatus: new("pending")}), "accepted", payment.RefundPending},
	{"failed at once", setting(razorpaytest.SettingsChange{RefundStatus: new("failed")}), "accepted", payment.RefundFailed},

	// It is not done, and the answer does not say so, or leaves it open.
	{"timeout before", fault(razorpaytest.TimeoutBefore, 1), "accepted", payment.RefundProcessed},
	{"reset before", fault(razorpaytest.Reset, 1), "accepted", payment.RefundProcessed},
	{"429", fault(razorpaytest.Throttled, 3), "accepted", payment.RefundProcessed}, // as often as the client tries
	{"500", fault(razorpaytest.ServerError, 1), "accepted", payment.RefundProcessed},
	{"502 in HTML", fault(razorpaytest.BadGateway, 1), "accepted", payment.RefundProcessed},
	{"409 in progress", fault(razorpaytest.InProgress, 1), "accepted", payment.RefundProcessed},
	{"400 another operation in progress", fault(razorpaytest.PaymentBusy, 1), "accepted", payment.RefundProcessed},
	{"500 for ever", fault(razorpaytest.ServerError, 1e6), "failed: never_reached_gateway", ""},
	{"409 in progress for ever", fault(razorpaytest.InProgress, 1e6), "failed: never_reached_gateway", ""},

	// It is done, and the answer does not say so.
	{"timeout after", fault(razorpaytest.TimeoutAfter, 1), "accepted", payment.RefundProcessed},
	{"reset after", fault(razorpaytest.ResetAfter, 1), "accepted", payment.RefundProcessed},
	{"500 after", fault(razorpaytest.ServerErrorAfter, 1), "accepted", payment.RefundProcessed},
	{"HTML after", fault(razorpaytest.BadGatewayAfter, 1), "accepted", payment.RefundProcessed},
	{"timeout after, unreadable for an hour", unreadable(razorpaytest.TimeoutAfter, 3), "accepted", payment.RefundProcessed},
	{"takes four minutes", slow, "accepted", payment.RefundProcessed},
	{"takes four minutes, then refused", slowly(poor), "failed: insufficient_balance", ""},

	// The gateway says no.
	{"400 key used for another request", keyUsed(http.StatusBadRequest), "failed: never_reached_gateway", ""},
	{"409 key used for another request", keyUsed(http.StatusConflict), "failed: never_reached_gateway", ""},
	{"duplicate receipt, on another payment", receiptUsed, "failed: never_reached_gateway", ""},
	{"duplicate receipt, of another amount", amountUsed, "failed: receipt_used", ""},
	{"amount exceeded", byDashboard(captured - asked + 1_00), "failed: amount_exceeded", ""},
	{"already refunded", byDashboard(captured), "failed: already_refunded", ""},
	{"too old", func(w *world) { w.gateway.Advance(200 * 24 * time.Hour) }, "failed: payment_too_old", ""},
	{"insufficient balance", poor, "failed: insufficient_balance", ""},
	{"unknown payment", unknownPayment, "failed: unknown_payment", ""},
}

// fault makes calls for a refund fail.
func fault(kind razorpaytest.FaultKind, count int) func(*world) {
	return func(w *world) {
		w.calls.hangs = kind == razorpaytest.TimeoutBefore || kind == razorpaytest.TimeoutAfter
		w.must(w.gateway.SetFaults(razorpaytest.Fault{Method: "POST", Path: "/v1/payments/*/refund", Kind: kind, Count: count}))
	}
}

// unreadable makes the first call fail, and then so many attempts at reading back. A client's attempt is three calls.
func unreadable(kind razorpaytest.FaultKind, attempts int) func(*world) {
	return func(w *world) {
		w.calls.hangs = true
		w.must(w.gateway.SetFaults(
			razorpaytest.Fault{Method: "POST", Path: "/v1/payments/*/refund", Kind: kind, Count: 1},
			razorpaytest.Fault{Method: "GET", Path: "/v1/payments/*/refunds", Kind: razorpaytest.BadGateway, Count: 3 * attempts},
		))
	}
}

func setting(change razorpaytest.SettingsChange) func(*world) {
	return func(w *world) {
		_, err := w.gateway.ChangeSettings(change)
		w.must(err)
	}
}

func poor(w *world) { setting(razorpaytest.SettingsChange{Balance: new(int64(1_00))})(w) }

// pendingUntil has the gateway decide two days later. Nobody hears of that.
func pendingUntil(status string) func(*world) {
	return func(w *world) {
		setting(razorpaytest.SettingsChange{RefundStatus: new("pending")})(w)
		w.later = func(w *world) {
			for _, f := range w.atGateway(receipt()) {
				w.must(w.gateway.MoveRefund(f.ID, razorpaytest.Move{Status: status}))
			}
			setting(razorpaytest.SettingsChange{RefundStatus: new(status)})(w) // one that is made later
		}
	}
}

// slow has the gateway answer, and do it, long after the caller has gone.
func slow(w *world) {
	w.calls.hangs = true
	setting(razorpaytest.SettingsChange{RefundTakes: new(int64(240))})(w)
}

// slowly has things change meanwhile.
func slowly(change func(*world)) func(*world) {
	return func(w *world) {
		slow(w)
		w.calls.after = func() { change(w) }
	}
}

// keyUsed has somebody else send another request under our key.
func keyUsed(status int) func(*world) {
	return func(w *world) {
		setting(razorpaytest.SettingsChange{KeyConflict: &status})(w)
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/v1/payments/"+w.elsewhere()+"/refund", strings.NewReader(`{"amount":100}`))
		w.must(err)
		r.SetBasicAuth(keyID, keySecret)
		r.Header.Set("X-Refund-Idempotency", receipt())
		response, err := http.DefaultClient.Do(r)
		w.must(err)
		defer response.Body.Close()
		if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
			w.t.Fatalf("%s: %s", w.label, text)
		}
		w.heard = len(w.gateway.Deliveries())
	}
}

// elsewhere is a payment that is not of our order.
func (w *world) elsewhere() string {
	id, err := w.gateway.Pay(razorpaytest.PaymentRequest{Amount: captured, Status: "captured"})
	w.must(err)
	w.heard = len(w.gateway.Deliveries())
	return id
}

func receiptUsed(w *world) {
	w.dashboard(razorpaytest.RefundRequest{PaymentID: w.elsewhere(), Amount: asked, Receipt: receipt()})
}

func amountUsed(w *world) {
	w.dashboard(razorpaytest.RefundRequest{PaymentID: w.paymentID, Amount: 2_00, Receipt: receipt()})
}

func byDashboard(amount int64) func(*world) {
	return func(w *world) { w.dashboard(razorpaytest.RefundRequest{PaymentID: w.paymentID, Amount: amount}) }
}

// unknownPayment has us refund a payment that the gateway does not show, as after a change of accounts.
func unknownPayment(w *world) {
	w.paymentID = "pay_gone"
	w.ask.PaymentID = w.paymentID
	w.learn(payment.PaymentFact{ID: w.paymentID, Status: payment.PaymentCaptured, Amount: rupees(captured)})
}
