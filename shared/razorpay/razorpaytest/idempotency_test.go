package razorpaytest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/razorpay/razorpaytest"
)

const (
	key       = "po_0123456789abcdef"
	inUse     = "Different request with the same idempotency key has already been processed."
	underWay  = "Another request with the same idempotency key is still in progress."
	otherWork = "Request failed because another payment operation is in progress."
)

func TestSameKeySameRefund(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	id := capturedPayment(t, gateway, 1000)
	const body = `{"amount":1000,"receipt":"r-1"}`
	first := refund(t, url, id, key, body)
	if err := gateway.MoveRefund(first.ID, razorpaytest.Move{Status: "failed"}); err != nil {
		t.Fatal(err)
	}
	again := refund(t, url, id, key, body)
	if first.status != 200 || again.status != 200 || again.raw != first.raw {
		t.Errorf("first %s\nagain %s", first.raw, again.raw)
	}
	if made := ids(t, url+"/v1/refunds"); len(made) != 1 {
		t.Errorf("%d refunds, want 1", len(made))
	}
	want := []string{"payment.authorized", "payment.captured", "order.paid", "refund.created", "refund.processed", "refund.failed"}
	if diff := cmp.Diff(want, receiver.names(t, gateway)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestSameKeyOtherRequest(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	id, other := capturedPayment(t, gateway, 1000), capturedPayment(t, gateway, 1000)
	if r := refund(t, url, id, key, `{"amount":100}`); r.status != 200 {
		t.Fatal(r.raw)
	}
	for _, status := range []int{400, 409} {
		settings(t, gateway, razorpaytest.SettingsChange{KeyConflict: &status})
		for name, r := range map[string]reply{
			"amount":        refund(t, url, id, key, `{"amount":200}`),
			"other bytes":   refund(t, url, id, key, `{"amount": 100}`),
			"payment":       refund(t, url, other, key, `{"amount":100}`),
			"unknown one":   refund(t, url, "pay_Nope", key, `{"amount":100}`),
			"not even JSON": refund(t, url, id, key, `?`),
		} {
			if r.status != status || r.Error.Description != inUse {
				t.Errorf("%s: %d %s, want %d", name, r.status, r.raw, status)
			}
		}
	}
	if r := refund(t, url, id, key, `{"amount":100}`); r.status != 200 {
		t.Errorf("the first request again: %s", r.raw)
	}
	if diff := cmp.Diff([]string{key}, gateway.ReusedKeys()); diff != "" {
		t.Errorf("reused keys (-want +got):\n%s", diff)
	}
}

func TestKeysThatCannotBe(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	id := capturedPayment(t, gateway, 10_000)
	for k, says := range map[string]string{
		"123456789":          "The idempotency key must be at least 10 characters long.",
		"12345 67890":        "The idempotency key must only contain alphanumeric characters, underscores, and hyphens",
		"1234567890:":        "The idempotency key must only contain alphanumeric characters, underscores, and hyphens",
		"1234567890":         "",
		"ABCxyz_-0123":       "",
		strings.ToUpper(key): "",
	} {
		r := refund(t, url, id, k, `{"amount":100}`)
		if r.Error.Description != says || (r.status == 200) != (says == "") {
			t.Errorf("%q: %d %s, want %q", k, r.status, r.raw, says)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/payments/"+id+"/refund", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(keyID, keySecret)
	request.Header["X-Refund-Idempotency"] = []string{""}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 400 {
		t.Errorf("an empty key: %d, want 400", response.StatusCode)
	}
}

// TestRefusalLeavesTheKeyFree: only requests that were accepted use a key up.
func TestRefusalLeavesTheKeyFree(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	id := capturedPayment(t, gateway, 1000)
	if r := refund(t, url, id, key, `{"amount":1001}`); r.status != 400 {
		t.Fatal(r.raw)
	}
	if r := refund(t, url, id, key, `{"amount":1000}`); r.status != 200 {
		t.Errorf("after a refusal: %s", r.raw)
	}
}

// TestRefundInProgress lets a caller give up on a refund that takes effect later.
func TestRefundInProgress(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	settings(t, gateway, razorpaytest.SettingsChange{RefundTakes: new(int64(120))})
	id := capturedPayment(t, gateway, 1000)
	const body = `{"amount":400}`
	begin(t, url, id, key, body)

	if made := ids(t, url+"/v1/payments/"+id+"/refunds"); len(made) != 0 {
		t.Errorf("the refund is there already: %v", made)
	}
	for name, r := range map[string]reply{
		"same request": refund(t, url, id, key, body), "other request": refund(t, url, id, key, `{"amount":500}`),
	} {
		if r.status != 409 || r.Error.Description != underWay {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
	if r := refund(t, url, id, "", body); r.status != 400 || r.Error.Description != otherWork {
		t.Errorf("without the key: %d %s", r.status, r.raw)
	}
	if _, err := gateway.Refund(razorpaytest.RefundRequest{PaymentID: id}); err == nil {
		t.Error("the dashboard refunded it meanwhile")
	}
	gateway.Advance(119 * time.Second)
	if r := refund(t, url, id, key, body); r.status != 409 {
		t.Errorf("a second too early: %d %s", r.status, r.raw)
	}
	gateway.Advance(time.Second)
	done := refund(t, url, id, key, body)
	if made := ids(t, url+"/v1/payments/"+id+"/refunds"); len(made) != 1 || made[0] != done.ID || done.Amount != 400 {
		t.Errorf("refunds %v, answered %s", made, done.raw)
	}
	want := []string{"payment.authorized", "payment.captured", "order.paid", "refund.created", "refund.processed"}
	if diff := cmp.Diff(want, receiver.names(t, gateway)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestRefundIsAwaited lets a caller wait for a refund that takes its time.
func TestRefundIsAwaited(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	settings(t, gateway, razorpaytest.SettingsChange{RefundTakes: new(int64(5))})
	id := capturedPayment(t, gateway, 1000)
	var answer reply
	waiter := make(chan struct{})
	go func() {
		defer close(waiter)
		answer = refund(t, url, id, key, `{}`)
	}()
	awaitBusy(t, url, id)
	gateway.Advance(5 * time.Second)
	<-waiter
	if answer.status != 200 || answer.Amount != 1000 {
		t.Errorf("%d %s", answer.status, answer.raw)
	}
}

// TestRefundThatCannotBeAnyMore: the merchant's money goes while the refund is in progress.
func TestRefundThatCannotBeAnyMore(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	settings(t, gateway, razorpaytest.SettingsChange{RefundTakes: new(int64(5))})
	id := capturedPayment(t, gateway, 1000)
	begin(t, url, id, key, `{"amount":400}`)
	settings(t, gateway, razorpaytest.SettingsChange{RefundTakes: new(int64(0)), Balance: new(int64(399))})
	gateway.Advance(5 * time.Second)
	if made := ids(t, url+"/v1/refunds"); len(made) != 0 {
		t.Errorf("refunds %v, want none", made)
	}
	if r := refund(t, url, id, key, `{"amount":399}`); r.status != 200 {
		t.Errorf("the key is not free: %s", r.raw)
	}
}

// begin sends a refund and gives up on it once the gateway is at it.
func begin(t *testing.T, url, id, key, body string) {
	t.Helper()
	ctx, giveUp := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/payments/"+id+"/refund", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(keyID, keySecret)
	request.Header.Set("X-Refund-Idempotency", key)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			t.Errorf("answered %d while in progress", response.StatusCode)
		}
	}()
	awaitBusy(t, url, id)
	giveUp()
	<-ended
}

// awaitBusy polls until the gateway is at a refund of a captured payment.
func awaitBusy(t *testing.T, url, id string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if _, answer := call(t, http.MethodPost, url+"/v1/payments/"+id+"/capture", `{"amount":1,"currency":"INR"}`); strings.Contains(string(answer), otherWork) {
			return
		}
		select {
		case <-deadline:
			t.Fatal("the refund never began")
		case <-tick.C:
		}
	}
}
