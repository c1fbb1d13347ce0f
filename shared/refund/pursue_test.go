package refund_test

import (
	"net/http"
	"testing"
	"time"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

// TestLateCall: a call that was given up takes effect after a later one was refused. The refusal must not count.
func TestLateCall(t *testing.T) {
	w := newWorld(t, "late")
	defer w.close()
	w.calls.held = true
	w.shop()
	w.gateway.Advance(time.Minute)
	poor(w)
	if r := w.shop(); r.words() != "unknown" || w.sent() != 1 {
		t.Errorf("answered %s, sent %d times", r.words(), w.sent())
	}
	setting(razorpaytest.SettingsChange{Balance: new(int64(-1))})(w)
	r, _ := w.request()
	_, err := w.client.SendRefund(t.Context(), r.Call) // the first call arrives
	w.must(err)
	end := w.shop().want(t, payment.RefundProcessed)
	w.verify(answer{then: payment.RefundProcessed}, end)
}

// TestKeyUsedIsNotSentAgain: what the gateway calls another request's key is only read back, until it is given up.
func TestKeyUsedIsNotSentAgain(t *testing.T) {
	for name, set := range map[string]func(*world){"key": keyUsed(http.StatusConflict), "receipt": receiptUsed} {
		w := newWorld(t, name)
		set(w)
		for range 3 {
			if r := w.shop(); r.words() != "unknown" {
				w.broken("answered %s", r.words())
			}
			w.pass(8 * time.Hour)
		}
		if w.sent() != 1 {
			w.broken("sent %d times", w.sent())
		}
		w.pass(2 * time.Hour)
		if r := w.shop(); r.words() != "failed: never_reached_gateway" {
			w.broken("ended as %s", r.words())
		}
		w.close()
	}
}

// TestNotSentAfterADay: later the gateway may have forgotten the key.
func TestNotSentAfterADay(t *testing.T) {
	w := newWorld(t, "a day")
	defer w.close()
	fault(razorpaytest.ServerError, 1)(w)
	w.shop()
	w.gateway.Advance(24*time.Hour - time.Second)
	fault(razorpaytest.ServerError, 1)(w)
	w.shop()
	if w.sent() != 2 {
		t.Errorf("sent %d times within a day, want 2", w.sent())
	}
	w.gateway.Advance(30 * time.Minute)
	if r := w.shop(); r.words() != "unknown" || w.sent() != 2 {
		t.Errorf("answered %s, sent %d times", r.words(), w.sent())
	}
}

// TestOvertaken: of two who want to send again, the one who writes that down first does.
func TestOvertaken(t *testing.T) {
	w := newWorld(t, "overtaken")
	defer w.close()
	fault(razorpaytest.ServerError, 2)(w)
	w.shop()
	w.store.between = func() { w.otherAsks(w.ask) }
	w.store.arm(point{n: 4}) // after the request, the order, and the order once more with what was read back
	if r := w.shop(); r.words() != "unknown" || w.store.at != "PutRefundRequest" || w.sent() != 2 {
		t.Errorf("answered %s, sent %d times; overtaken at %q", r.words(), w.sent(), w.store.at)
	}
	w.shop().want(t, payment.RefundProcessed)
}

// TestPursueOnlyWhatIsDue: the index is a hint, and reconcile runs more often than anything is due.
func TestPursueOnlyWhatIsDue(t *testing.T) {
	w := newWorld(t, "due")
	defer w.close()
	fault(razorpaytest.ServerError, 1)(w)
	w.shop()
	calls := len(w.gateway.Calls())
	pursue := func(want bool) {
		t.Helper()
		if done, err := w.refunder.Pursue(t.Context(), orderID, requestID); done != want || err != nil {
			t.Errorf("%s later: did something %t, %v", w.gateway.Now().Sub(start), done, err)
		}
	}
	w.gateway.Advance(59 * time.Second)
	if pursue(false); len(w.gateway.Calls()) != calls {
		t.Error("the gateway was called before it was time")
	}
	w.gateway.Advance(time.Second)
	pursue(true)
	calls = len(w.gateway.Calls())
	w.gateway.Advance(30 * 24 * time.Hour)
	if pursue(false); len(w.gateway.Calls()) != calls {
		t.Error("the gateway was asked about a refund that is settled")
	}
	if _, err := w.refunder.Pursue(t.Context(), orderID, "nobody"); err == nil {
		t.Error("there is no such request, and no error")
	}
}
