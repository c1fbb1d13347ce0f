// Package functions_test proves the functions together: deployed from the real template to the local stack, paid
// through the simulated gateway, with real processes, queues and conditions in between.
package functions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/shared/apigw"
	"paidonce/shared/dynamo"
	"paidonce/shared/localaws"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/storetest"
)

const (
	price       = 49900
	accountID   = "acc_ProofGateway1"
	maxReceives = 3
)

// The world that all tests of the package share. Each test uses orders of its own.
var (
	stack   *localaws.Stack
	gateway *razorpaytest.Gateway
	table   *dynamo.Store
	queues  *sqs.Client
)

func TestMain(m *testing.M) {
	code, err := inWorld(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func inWorld(run func() int) (int, error) {
	gateway = razorpaytest.New(razorpaytest.Config{
		KeyID: localaws.SampleSecrets.KeyID, KeySecret: localaws.SampleSecrets.KeySecret,
		WebhookSecret: localaws.SampleSecrets.Webhook, AccountID: accountID,
	})
	defer gateway.Close()
	url, err := gateway.Start(0)
	if err != nil {
		return 1, err
	}
	stack, err = localaws.Start(context.Background(), localaws.Options{
		StackName: "paidonce-proof", AlarmMinute: time.Second,
		Parameters: map[string]string{
			"RazorpayApiUrl": url, "RazorpayAccountId": accountID, "AttemptTimeoutMilliseconds": "1100",
			"WorkerTimeoutSeconds": "10", "VisibilityTimeoutSeconds": "2", "MaxReceiveCount": fmt.Sprint(maxReceives),
			"UnknownOrders": "adopt", "RetryMinuteSeconds": "1", "SweepRate": "rate(1 hour)",
			"ConfirmCapture": fmt.Sprint("above:", confirmAbove), "CheckoutReturnUrl": shopPage,
			"SampleSubscriber": "on", "GatewayCallsPerSecond": "100",
		},
	})
	if err != nil {
		return 1, err
	}
	defer stack.Close()
	gateway.SetWebhookURL(stack.APIURL + "/webhooks/razorpay")
	table = dynamo.New(dynamodb.NewFromConfig(stack.Config()), stack.Table)
	queues = sqs.NewFromConfig(stack.Config())
	return run(), nil
}

// eventually polls until ok, and fails the test if that does not happen within a minute.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("never %s", what)
		case <-t.Context().Done():
			t.Fatalf("ended before %s", what)
		case <-tick.C:
		}
	}
}

var orderNumber atomic.Int64

// newOrder creates an order through the API.
func newOrder(t *testing.T) apigw.Order {
	t.Helper()
	body := fmt.Sprintf(`{"id":"proof-%d","amount":%d,"currency":"INR","gateway":"razorpay"}`, orderNumber.Add(1), price)
	status, answer := call(t, http.MethodPost, "/orders", []byte(body), nil)
	var o apigw.Order
	if err := json.Unmarshal(answer, &o); status != http.StatusCreated || err != nil {
		t.Fatalf("POST /orders answered %d %s", status, answer)
	}
	return o
}

// client does not follow redirects: they lead to the shop.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func call(t *testing.T, method, path string, body []byte, header http.Header) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, stack.APIURL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[name] = values
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

// body is the webhook's body that says the order was paid.
func body(o apigw.Order, paymentID string) []byte {
	return fmt.Appendf(nil, `{"entity":"event","account_id":%q,"event":"payment.captured","contains":["payment"],"payload":{"payment":`+
		`{"entity":{"id":%q,"entity":"payment","amount":%d,"currency":"INR","status":"captured","order_id":%q,"captured":true,"notes":[]}}}}`,
		accountID, paymentID, price, *o.GatewayOrderID)
}

// deliver sends a webhook and returns the answer.
func deliver(t *testing.T, eventID string, body []byte, secret string) (int, string) {
	t.Helper()
	status, answer := call(t, http.MethodPost, "/webhooks/razorpay", body, http.Header{
		razorpay.HeaderSignature: {razorpay.Sign(body, secret)}, razorpay.HeaderEventID: {eventID},
	})
	return status, string(answer)
}

func key(eventID string) payment.EventKey { return payment.EventKey{Gateway: "razorpay", ID: eventID} }

func event(t *testing.T, eventID string) payment.Event {
	t.Helper()
	e, err := table.Event(t.Context(), key(eventID))
	if err != nil && !errors.Is(err, payment.ErrNotFound) {
		t.Fatal(err)
	}
	return e
}

// becomes waits until the event has the status.
func becomes(t *testing.T, eventID string, status payment.EventStatus) payment.Event {
	t.Helper()
	var e payment.Event
	eventually(t, fmt.Sprintf("event %s %s", eventID, status), func() bool {
		e = event(t, eventID)
		return e.Status == status
	})
	return e
}

// paidOnce asserts that the order is paid and fulfilled once, and all invariants.
func paidOnce(t *testing.T, id string) payment.Order {
	t.Helper()
	o, err := table.Order(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if o.Status != payment.Paid || o.FulfilledAt.IsZero() {
		t.Errorf("order %s is %s, fulfilled at %s; want paid and fulfilled", id, o.Status, o.FulfilledAt)
	}
	(&storetest.Checker{Store: table}).Check(t, id)
	return o
}

// settled waits until the event is APPLIED and says what it did.
func settled(t *testing.T, eventID string) string {
	t.Helper()
	return becomes(t, eventID, payment.EventApplied).Verdict
}

func uniqueEvent() string { return fmt.Sprint("evt_proof_", orderNumber.Add(1)) }

// reached waits until the fault has had its first effect.
func reached(t *testing.T, fault *localaws.Injection) {
	t.Helper()
	select {
	case <-fault.Reached():
	case <-time.After(30 * time.Second):
		t.Error("the fault was never reached")
	}
}
