package refund_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"paidonce/shared/payment"
	"paidonce/shared/refund"
)

// interruption is what somebody else does in the midst of a call.
type interruption struct {
	name  string
	run   func(w *world) result
	rival bool // it is another refund of the payment,
	rob   bool // and takes more than both can have
}

var interruptions = []interruption{
	{"the same call", func(w *world) result { return w.otherAsks(w.ask) }, false, false},
	{"its webhook", func(w *world) result { w.webhooks(); return result{} }, false, false},
	{"reconcile", func(w *world) result {
		w.gateway.Advance(time.Minute + time.Second)
		_ = w.memory.DueRefunds(w.t.Context(), w.gateway.Now(), func(orderID, id string) bool {
			_, _ = w.other().Pursue(w.t.Context(), orderID, id)
			return true
		})
		return result{}
	}, false, false},
	{"a refund of the rest", func(w *world) result { return w.otherAsks(w.rival(captured - asked)) }, true, false},
	{"a refund of all", func(w *world) result { return w.otherAsks(w.rival(captured)) }, true, true},
}

const rivalID = "r2"

func (w *world) rival(amount int64) refund.Ask {
	return refund.Ask{ID: rivalID, Amount: amount, PaymentID: w.ask.PaymentID}
}

// other is another process, with which nothing goes wrong.
func (w *world) other() refund.Refunder {
	r := w.refunder
	r.Store, r.Advancer = w.memory, w.advancer
	return r
}

func (w *world) otherAsks(a refund.Ask) (r result) {
	r.Answer, r.err = w.other().Request(w.t.Context(), orderID, a)
	w.check()
	if r.definite() && a.ID == requestID {
		w.said = append(w.said, r.words())
	}
	return r
}

// TestInterrupted has somebody else act at every point of a call, whatever the gateway answers.
func TestInterrupted(t *testing.T) {
	for _, a := range answers {
		t.Run(strings.ReplaceAll(a.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			for _, i := range interruptions {
				try := func(p point) bool {
					w := newWorld(t, fmt.Sprintf("%s; %s at %+v", a.name, i.name, p))
					defer w.close()
					a.set(w)
					var theirs result
					w.store.between = func() {
						w.calls.first = false
						theirs = i.run(w)
						w.calls.first = true
					}
					w.store.arm(p)
					w.calls.first = true
					first := w.shop()
					w.calls.first = false
					hit := w.store.at != ""
					w.store.disarm()
					beyond := i.rob || i.rival && a.end != "accepted"
					w.mayBe(first, beyond)
					w.mayBe(theirs, beyond || i.rival)
					w.pass(8 * 24 * time.Hour)
					w.afterwards(a, i)
					return hit
				}
				try(point{beforeSend: true})
				try(point{afterSend: true})
				for n := 1; try(point{n: n}); n++ {
				}
			}
		})
	}
}

// mayBe asserts that a caller was told something that is so, or to call again.
func (w *world) mayBe(r result, robbed bool) {
	w.t.Helper()
	switch {
	case r.err == nil, errors.Is(r.err, payment.ErrOutcomeUnknown), errors.Is(r.err, payment.ErrVersionConflict):
	case robbed && errors.Is(r.err, payment.ErrBeyondRefundable):
	default:
		w.broken("a caller was told: %v", r.err)
	}
}

func (w *world) afterwards(a answer, i interruption) {
	w.t.Helper()
	end := w.shop()
	if end.err == nil && !end.definite() { // what had kept it from beginning was gone
		w.pass(8 * 24 * time.Hour)
		end = w.shop()
	}
	switch {
	case errors.Is(end.err, payment.ErrBeyondRefundable) && (i.rob || i.rival && a.end != "accepted"):
	case i.rob && end.definite():
	case end.words() != a.end:
		w.broken("ended as %s, want %s", end.words(), a.end)
	default:
		w.verify(a, end)
	}
	w.must(w.gateway.SetFaults())
	var back int64
	receipts := map[string]bool{}
	for _, f := range w.atGateway("") {
		if f.Status != payment.RefundFailed {
			back += f.Amount.Amount
		}
		if f.Receipt != "" && receipts[f.Receipt] {
			w.broken("refunded twice: %s", f.Receipt)
		}
		receipts[f.Receipt] = true
	}
	if back > captured {
		w.broken("%d of %d went back", back, captured)
	}
	if reserved := w.order(orderID).Reserved; len(reserved) > 0 {
		w.broken("still reserved: %v", reserved)
	}
	w.oneKeyOneBody()
}
