package refund_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

// down makes the first call for the refund fail in one way, and everything after it in another.
func (w *world) down(first, then razorpaytest.FaultKind) {
	w.t.Helper()
	w.calls.hangs = first == razorpaytest.TimeoutBefore || first == razorpaytest.TimeoutAfter // any other answers, in its own time
	w.must(w.gateway.SetFaults(
		razorpaytest.Fault{Method: "POST", Path: "/v1/payments/*/refund", Kind: first, Count: 1},
		razorpaytest.Fault{Path: "/v1/payments/*/refund", Kind: then, Count: 1e6},
		razorpaytest.Fault{Path: "/v1/payments/*/refunds", Kind: then, Count: 1e6},
	))
}

// TestOutage: what cannot be read back stays unknown, however long that takes.
func TestOutage(t *testing.T) {
	for _, test := range []struct {
		name  string
		first razorpaytest.FaultKind
		down  time.Duration
		end   string
	}{
		{"done, an hour", razorpaytest.TimeoutAfter, time.Hour, "accepted"},
		{"done, three days", razorpaytest.TimeoutAfter, 3 * 24 * time.Hour, "accepted"},
		{"done, a month", razorpaytest.ResetAfter, 30 * 24 * time.Hour, "accepted"},
		{"not done, an hour", razorpaytest.TimeoutBefore, time.Hour, "accepted"},
		{"not done, three days", razorpaytest.TimeoutBefore, 3 * 24 * time.Hour, "failed: never_reached_gateway"},
		{"not done, a month", razorpaytest.Reset, 30 * 24 * time.Hour, "failed: never_reached_gateway"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.name)
			defer w.close()
			w.down(test.first, razorpaytest.BadGateway)
			if r := w.shop(); r.words() != "unknown" {
				t.Errorf("answered %s", r.words())
			}
			for end := w.gateway.Now().Add(test.down); w.gateway.Now().Before(end); w.pass(test.down / 10) {
				if r := w.shop(); r.words() != "unknown" {
					t.Fatalf("%s later answered %s", w.gateway.Now().Sub(start), r.words())
				}
			}
			w.must(w.gateway.SetFaults())
			w.pass(8 * 24 * time.Hour)
			end := w.shop()
			if end.words() != test.end {
				t.Errorf("ended as %s, want %s", end.words(), test.end)
			}
			w.verify(answer{then: payment.RefundProcessed}, end)
			for _, c := range w.gateway.Calls() {
				if isOurs(c) && c.At.Sub(start) >= 24*time.Hour {
					t.Errorf("sent again %s after it was made", c.At.Sub(start))
				}
			}
		})
	}
}

// TestWrongKey: an API key that the gateway does not accept says nothing about the refund.
func TestWrongKey(t *testing.T) {
	w := newWorld(t, "wrong key")
	defer w.close()
	right := w.calls.Client
	wrong, err := razorpay.New(w.url, keyID, "not-the-secret")
	w.must(err)
	w.calls.Client = wrong
	w.shop()
	w.pass(3 * 24 * time.Hour)
	if r := w.shop(); r.words() != "unknown" {
		t.Errorf("answered %s, want unknown", r.words())
	}
	w.calls.Client = right
	if r := w.shop(); r.words() != "failed: never_reached_gateway" {
		t.Errorf("answered %s", r.words())
	}
	if r, _ := w.request(); !strings.Contains(r.Steps[1].What, "HTTP 401") {
		t.Errorf("the first call is told of as %q", r.Steps[1].What)
	}
}

// TestKeyOfAnotherMode: a test key is told that a live payment does not exist, which says nothing of the refund.
func TestKeyOfAnotherMode(t *testing.T) {
	w := newWorld(t, "mode")
	defer w.close()
	w.calls.mode = payment.Live
	if r := w.shop(); r.err == nil {
		t.Errorf("answered %s", r.words())
	}
	w.wantNothingBegun()
	w.calls.mode = ""
	w.store.arm(point{beforeSend: true})
	w.shop()
	w.calls.mode = payment.Live
	if r := w.shop(); !errors.Is(r.err, payment.ErrOutcomeUnknown) {
		t.Errorf("answered %s", r.words())
	}
	w.pass(30 * time.Minute)
	w.calls.mode = ""
	if w.sent() > 0 {
		t.Errorf("sent %d times with the wrong key", w.sent())
	}
	w.pass(time.Hour)
	w.shop().want(t, payment.RefundProcessed)
}

// TestShopThatKeepsAsking: a refusal counts once the call before it is over, however often the shop calls.
func TestShopThatKeepsAsking(t *testing.T) {
	w := newWorld(t, "impatient")
	defer w.close()
	poor(w)
	w.must(w.gateway.SetFaults(razorpaytest.Fault{Method: "POST", Path: "/v1/payments/*/refund", Kind: razorpaytest.ServerError}))
	for w.gateway.Now().Sub(start) < 15*time.Minute {
		if r := w.shop(); r.words() != "unknown" {
			t.Fatalf("%s later answered %s", w.gateway.Now().Sub(start), r.words())
		}
		w.gateway.Advance(20 * time.Second)
	}
	if r := w.shop(); r.words() != "failed: insufficient_balance" {
		t.Errorf("answered %s", r.words())
	}
}

// TestWritesInTime: a gateway that does not answer leaves a function the time to write that down.
func TestWritesInTime(t *testing.T) {
	w := newWorld(t, "no answer")
	defer w.close()
	w.must(w.gateway.SetFaults(razorpaytest.Fault{Path: "/v1/payments/*/refund", Kind: razorpaytest.TimeoutBefore, Count: 1e6}))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second+10*impatience)
	defer cancel()
	answer, err := w.refunder.Request(ctx, orderID, w.ask)
	if err != nil || answer.Request.Status != payment.RequestOpen || !answer.New {
		t.Errorf("answered %+v, %v", answer, err)
	}
	if r, _ := w.request(); len(r.Steps) != 2 || !strings.HasPrefix(r.Steps[1].What, "no answer: ") {
		t.Errorf("steps %v", r.Steps)
	}

	// The same where the payment has to be read before anything is begun.
	failing := newWorld(t, "unread")
	defer failing.close()
	setting(razorpaytest.SettingsChange{RefundStatus: new("failed")})(failing)
	failing.shop().want(t, payment.RefundFailed)
	failing.must(failing.gateway.SetFaults(razorpaytest.Fault{Path: "/v1/payments/*", Kind: razorpaytest.TimeoutBefore, Count: 1e6}))
	ctx, cancel = context.WithTimeout(t.Context(), 4*time.Second+10*impatience)
	defer cancel()
	if _, err := failing.refunder.Request(ctx, orderID, of(asked, "again")); !errors.Is(err, payment.ErrOutcomeUnknown) || ctx.Err() != nil {
		t.Errorf("answered %v, the time is up: %v", err, ctx.Err())
	}
}
