package refund_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

// via puts a machine between us and the gateway that changes answers.
func (w *world) via(change func(r *http.Response, body []byte) []byte, before func(r *http.Request)) {
	target, err := url.Parse(w.url)
	w.must(err)
	p := httputil.NewSingleHostReverseProxy(target)
	p.ModifyResponse = func(r *http.Response) error {
		body, _ := io.ReadAll(r.Body)
		body = change(r, body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(r)
		}
		p.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(s.Close)
	w.calls.Client, err = razorpay.New(s.URL, keyID, keySecret, razorpay.WithSleep(func(ctx context.Context, _ time.Duration) error { return ctx.Err() }))
	w.must(err)
}

var receiptField = regexp.MustCompile(`"receipt":\s*"po_[^"]*"`)

// The gateway makes the refund and does not show its receipt: the note tells that it is ours.
func TestHostileReceiptNotShown(t *testing.T) {
	w := newWorld(t, "no receipt")
	defer w.close()
	w.via(func(_ *http.Response, b []byte) []byte { return receiptField.ReplaceAll(b, []byte(`"receipt":null`)) }, nil)
	w.ask.Amount = 40_00
	w.must(w.gateway.SetFaults(razorpaytest.Fault{Method: "POST", Path: "/v1/payments/*/refund", Kind: razorpaytest.ResetAfter}))
	if r := w.shop(); r.words() != "unknown" {
		t.Errorf("the lost answer came to %s", r.words())
	}
	w.shop().want(t, payment.RefundProcessed)
	w.pass(26 * time.Hour)
	if n := len(w.atGateway("")); n != 1 {
		t.Errorf("%d refunds at the gateway", n)
	}
}

// The first call came through and its answer was lost; then the key is one of another account of the same mode, which shows neither
// the payment nor its order.
func TestHostileKeyOfAnotherAccount(t *testing.T) {
	for _, wait := range []time.Duration{6 * time.Minute, 25*time.Hour + time.Minute} {
		t.Run(wait.String(), func(t *testing.T) {
			w := newWorld(t, "other account")
			defer w.close()
			other := razorpaytest.New(razorpaytest.Config{KeyID: "rzp_test_other", KeySecret: "other-secret", Now: w.gateway.Now})
			defer other.Close()
			u, err := other.Start(0)
			w.must(err)
			theirs, err := razorpay.New(u, "rzp_test_other", "other-secret", razorpay.WithSleep(func(ctx context.Context, _ time.Duration) error { return ctx.Err() }))
			w.must(err)
			fault(razorpaytest.ResetAfter, 1)(w)
			w.shop()
			ours := w.calls.Client
			w.calls.Client = theirs
			w.gateway.Advance(wait)
			if r := w.shop(); r.words() != "unknown" {
				t.Errorf("with another account's key it is %s", r.words())
			}
			w.calls.Client = ours
			w.shop().want(t, payment.RefundProcessed)
			if n := len(w.atGateway("")); n != 1 {
				t.Errorf("%d refunds at the gateway", n)
			}
		})
	}
}

// The payment comes to be disputed after the refund was asked for and before the gateway has it: it would go back twice.
func TestHostileDisputeBeforeItIsSentAgain(t *testing.T) {
	for _, status := range []payment.DisputeStatus{payment.DisputeOpen, payment.DisputeLost} {
		t.Run(string(status), func(t *testing.T) {
			w := newWorld(t, "disputed")
			defer w.close()
			fault(razorpaytest.Reset, 1)(w)
			w.shop()
			w.learn(payment.DisputeFact{ID: "disp_1", PaymentID: w.paymentID, Status: status, Phase: payment.PhaseChargeback, Amount: rupees(captured)})
			w.pass(26 * time.Hour)
			if n := len(w.atGateway("")); n > 0 {
				t.Errorf("%d refunds at the gateway", n)
			}
			if r := w.shop(); r.words() != "failed: disputed" {
				t.Errorf("in the end it is %s", r.words())
			}
		})
	}
}

// A shop that was told to wait hears of the end.
func TestHostileSilentFailure(t *testing.T) {
	w := newWorld(t, "silent")
	defer w.close()
	fault(razorpaytest.ServerError, 1)(w)
	w.shop()
	poor(w)
	w.pass(30 * time.Hour)
	if r, _ := w.request(); r.Status != payment.RequestFailed {
		t.Fatalf("the request is %s", r.Status)
	}
	var told []string
	w.must(w.memory.DueAnnouncements(t.Context(), w.gateway.Now().Add(time.Hour), func(k payment.OutboxKey) bool {
		told = append(told, k.Name)
		return true
	}))
	if !slices.Contains(told, "OUTBOX#refund_request#"+requestID+"#failed") {
		t.Errorf("subscribers are told of %q only", told)
	}
}

// The call came through, its answer was a page of a machine in between, and the list lags for two minutes.
func TestHostileLaggingList(t *testing.T) {
	w := newWorld(t, "lag")
	defer w.close()
	var done time.Time
	w.via(func(r *http.Response, b []byte) []byte {
		switch {
		case r.Request.Method == "POST" && done.IsZero():
			done = w.gateway.Now()
			r.StatusCode = http.StatusBadGateway
			return []byte("<html>")
		case strings.HasSuffix(r.Request.URL.Path, "/refunds") && w.gateway.Now().Sub(done) < 2*time.Minute:
			return []byte(`{"entity":"collection","count":0,"items":[]}`)
		}
		return b
	}, nil)
	w.shop()
	w.gateway.Advance(20 * time.Second)
	w.shop()
	w.pass(time.Hour)
	w.shop().want(t, payment.RefundProcessed)
	if n := len(w.atGateway("")); n != 1 {
		t.Errorf("%d refunds at the gateway", n)
	}
}
