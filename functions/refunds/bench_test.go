package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/advance"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/refund"
	"paidonce/shared/storetest"
)

const (
	orderID          = "sample-1"
	paid             = 49900 // minor units, captured for the order in one payment
	keyID, keySecret = "rzp_test_key", "secret-of-the-key"
)

// bench is the function with a table in memory and a simulated gateway.
type bench struct {
	*handler
	gateway  *razorpaytest.Gateway
	memory   *storetest.Memory
	advancer advance.Advancer
	order    payment.Order
	payment  string
	log      *bytes.Buffer
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{memory: storetest.NewMemory(), log: &bytes.Buffer{}}
	start := time.Date(2026, 11, 30, 10, 0, 5, 0, time.UTC)
	b.gateway = razorpaytest.New(razorpaytest.Config{KeyID: keyID, KeySecret: keySecret, Now: func() time.Time { return start }})
	t.Cleanup(b.gateway.Close)
	url, err := b.gateway.Start(0)
	b.must(t, err)
	client, err := razorpay.ParseClient(url)([]byte(`{"key_id":"` + keyID + `","key_secret":"` + keySecret + `"}`))
	b.must(t, err)
	b.advancer = advance.Advancer{Store: b.memory, Now: b.gateway.Now}
	b.handler = &handler{
		refunder: refund.Refunder{
			Gateways: map[string]func(context.Context) refund.Gateway{"razorpay": func(context.Context) refund.Gateway { return client }},
			Store:    b.memory, Advancer: b.advancer, Stack: "shop", Now: b.gateway.Now,
		},
		log: logs.New(b.log, slog.LevelInfo.String()), now: b.gateway.Now,
	}
	gatewayID, err := b.gateway.AddOrder(razorpaytest.OrderRequest{Amount: paid, Currency: "INR"})
	b.must(t, err)
	order, err := b.memory.CreateOrder(t.Context(), payment.NewOrder(orderID, rupees(paid), "razorpay", payment.Test, start))
	b.must(t, err)
	b.order = order.Opened(gatewayID, payment.Rules{}, start)
	b.must(t, b.memory.Commit(t.Context(), payment.Commit{Order: b.order, Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: gatewayID}}}))
	b.payment = b.pay(t)
	return b
}

func (b *bench) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func rupees(amount int64) payment.Money { return payment.Money{Amount: amount, Currency: "INR"} }

// pay captures a payment of the order and returns its id.
func (b *bench) pay(t *testing.T) string {
	t.Helper()
	id, err := b.gateway.Pay(razorpaytest.PaymentRequest{OrderID: b.order.GatewayOrderID, Amount: paid, Status: "captured"})
	b.must(t, err)
	b.gatewaySays(t, payment.PaymentFact{ID: id, Status: payment.PaymentCaptured, Amount: rupees(paid)})
	return id
}

// gatewaySays takes facts into the order, as the worker does.
func (b *bench) gatewaySays(t *testing.T, facts ...payment.Fact) {
	t.Helper()
	_, err := b.advancer.Apply(t.Context(), orderID, advance.Step{Source: payment.SourceWebhook, Facts: facts})
	b.must(t, err)
}

// fail makes calls for a refund fail, count times.
func (b *bench) fail(t *testing.T, kind razorpaytest.FaultKind, count int) {
	t.Helper()
	b.must(t, b.gateway.SetFaults(razorpaytest.Fault{Method: "POST", Path: "/v1/payments/*/refund", Kind: kind, Count: count}))
}

// reply is an answer and the line that was logged with it.
type reply struct {
	status int
	body   map[string]any
	text   string
	log    map[string]any
}

func (b *bench) call(t *testing.T, order, body string) reply {
	t.Helper()
	return b.handle(t, events.APIGatewayV2HTTPRequest{
		RouteKey: "POST /orders/{id}/refunds", PathParameters: map[string]string{"id": order}, Body: body,
		RequestContext: events.APIGatewayV2HTTPRequestContext{RequestID: "req-1"},
	})
}

func (b *bench) handle(t *testing.T, r events.APIGatewayV2HTTPRequest) reply {
	t.Helper()
	b.log.Reset()
	response, err := b.Handle(t.Context(), r)
	b.must(t, err)
	answer := reply{status: response.StatusCode, text: response.Body}
	if err := json.Unmarshal([]byte(response.Body), &answer.body); err != nil {
		t.Fatalf("answer %s: %v", response.Body, err)
	}
	if err := json.Unmarshal(b.log.Bytes(), &answer.log); err != nil {
		t.Fatalf("log %s: %v", b.log, err)
	}
	if got := answer.log["status"]; got != float64(response.StatusCode) {
		t.Errorf("logged status %v, answered %d", got, response.StatusCode)
	}
	// Neither is to hold a secret, a person, or a word of the gateway's.
	for _, word := range []string{keySecret, "buyer@", "+91", "REDACTED", "Razorpay dashboard", "refund amount", "idempotency key", "months old", "Please try"} {
		if strings.Contains(response.Body, word) || strings.Contains(b.log.String(), word) {
			t.Errorf("%q in answer %s or log %s", word, response.Body, b.log)
		}
	}
	return answer
}

// want asserts the status and some fields of the answer.
func (r reply) want(t *testing.T, status int, fields map[string]any) reply {
	t.Helper()
	if r.status != status {
		t.Errorf("answered %d %s, want %d", r.status, r.text, status)
	}
	for name, value := range fields {
		if r.body[name] != value {
			t.Errorf("answered %s, want %s = %v", r.text, name, value)
		}
	}
	return r
}
