package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/storetest"
)

const (
	keySecret = "an-api-key-secret-of-ours"
	price     = 49900
	shopPage  = "https://shop.example/thanks"
)

var now = time.Date(2026, 11, 30, 10, 0, 5, 0, time.UTC)

func inr(amount int64) payment.Money { return payment.Money{Amount: amount, Currency: "INR"} }

// fakeGateway shows the payments that it has, and counts how often it is asked.
type fakeGateway struct {
	secret   string
	mode     payment.Mode
	mu       sync.Mutex
	payments map[string]payment.PaymentFact
	reads    int
	fail     func(ctx context.Context) error // nil: nothing fails
}

func (g *fakeGateway) Mode() payment.Mode { return g.mode }

func (g *fakeGateway) VerifyCheckout(gatewayOrderID, paymentID, signature string) bool {
	return razorpay.VerifyCheckout(gatewayOrderID, paymentID, signature, g.secret)
}

func (g *fakeGateway) Payment(ctx context.Context, id string) (payment.PaymentFact, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads++
	if g.fail != nil {
		return payment.PaymentFact{}, g.fail(ctx)
	}
	fact, ok := g.payments[id]
	if !ok {
		return payment.PaymentFact{}, fmt.Errorf("read payment: %w", payment.ErrGatewayRefused)
	}
	return fact, nil
}

func (g *fakeGateway) has(f payment.PaymentFact) { g.payments[f.ID] = f }

func captured(id, gatewayOrderID string) payment.PaymentFact {
	return payment.PaymentFact{ID: id, GatewayOrderID: gatewayOrderID, Status: payment.PaymentCaptured, Amount: inr(price), Confirmed: true}
}

type bundle struct {
	*handler
	memory  *storetest.Memory
	gateway *fakeGateway
	renewed *fakeGateway // what a refresh finds; nil: none may be made now
	checker *storetest.Checker
	log     *bytes.Buffer
}

// setup has order o1, gateway order order_1, that pay_1 was captured for; and o2 with order_2 and pay_2.
func setup(t testing.TB) *bundle {
	t.Helper()
	b := &bundle{memory: storetest.NewMemory(), log: &bytes.Buffer{}}
	b.gateway = newGateway(keySecret)
	b.checker = &storetest.Checker{Store: b.memory}
	b.handler = &handler{
		gateways: map[string]access{"razorpay": {
			current: func(context.Context) gateway { return b.gateway },
			refresh: func(context.Context) (gateway, bool) {
				if b.renewed == nil {
					return b.gateway, false
				}
				return b.renewed, true
			},
		}},
		store:    b.memory,
		advancer: advance.Advancer{Store: b.memory, Now: func() time.Time { return now }},
		// Not the function's own logger: what must not be logged must not be handed to it either.
		log: slog.New(slog.NewJSONHandler(b.log, nil)),
		now: func() time.Time { return now },
	}
	b.returnsTo(t, shopPage)
	for _, n := range []string{"1", "2"} {
		b.order(t, "o"+n, "order_"+n, nil)
		b.gateway.has(captured("pay_"+n, "order_"+n))
	}
	return b
}

func newGateway(secret string) *fakeGateway {
	return &fakeGateway{secret: secret, mode: payment.Test, payments: map[string]payment.PaymentFact{}}
}

func (b *bundle) returnsTo(t testing.TB, page string) {
	t.Helper()
	b.returnTo = returnURL{}
	if page == "" {
		return
	}
	if err := b.returnTo.UnmarshalText([]byte(page)); err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) order(t testing.TB, id, gatewayOrderID string, change func(*payment.Order)) {
	t.Helper()
	o := payment.NewOrder(id, inr(price), "razorpay", payment.Test, now)
	o.GatewayOrderID = gatewayOrderID
	if change != nil {
		change(&o)
	}
	c := payment.Commit{Order: o}
	if o.GatewayOrderID != "" {
		c.Effects = []payment.Effect{payment.OrderPointer{GatewayOrderID: o.GatewayOrderID}}
	}
	if err := b.memory.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) stored(t testing.TB, id string) payment.Order {
	t.Helper()
	o, err := b.memory.Order(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// callbacks are those of the order that were recorded.
func (b *bundle) callbacks(t testing.TB, id string) []payment.Callback {
	t.Helper()
	h, err := b.memory.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return h.Callbacks
}

// fields are those of a callback about a payment, signed for a gateway order.
func fields(gatewayOrderID, paymentID string) url.Values {
	return url.Values{
		"razorpay_payment_id": {paymentID},
		"razorpay_order_id":   {gatewayOrderID},
		"razorpay_signature":  {razorpay.SignCheckout(gatewayOrderID, paymentID, keySecret)},
	}
}

func request(orderID, contentType, body string) events.APIGatewayV2HTTPRequest {
	return events.APIGatewayV2HTTPRequest{
		RouteKey:       "POST /checkout/{gateway}/{order}",
		Headers:        map[string]string{"content-type": contentType},
		PathParameters: map[string]string{"gateway": "razorpay", "order": orderID},
		Body:           body,
	}
}

func form(orderID string, f url.Values) events.APIGatewayV2HTTPRequest {
	return request(orderID, "application/x-www-form-urlencoded", f.Encode())
}

// script is the same as a form, from the shop's own script.
func script(orderID string, f url.Values) events.APIGatewayV2HTTPRequest {
	object := map[string]string{}
	for name := range f {
		object[name] = f.Get(name)
	}
	body, err := json.Marshal(object)
	if err != nil {
		panic(err) // strings are always JSON
	}
	return request(orderID, "application/json", string(body))
}

func (b *bundle) send(t testing.TB, r events.APIGatewayV2HTTPRequest) (status int, said string) {
	t.Helper()
	response, err := b.Handle(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if location := response.Headers["location"]; location != "" {
		return response.StatusCode, location
	}
	return response.StatusCode, response.Body
}

func (b *bundle) expect(t testing.TB, r events.APIGatewayV2HTTPRequest, status int, said string) {
	t.Helper()
	if gotStatus, got := b.send(t, r); gotStatus != status || got != said {
		t.Errorf("answered %d %s, want %d %s", gotStatus, got, status, said)
	}
}

// expectBoth sends the callback about o1 as a form and as JSON, each to a world of its own, and expects the same of both.
func expectBoth(t *testing.T, prepare func(*testing.T, *bundle), f url.Values, status payment.Status, reads int) {
	t.Helper()
	for kind, make := range map[string]func(string, url.Values) events.APIGatewayV2HTTPRequest{"form": form, "script": script} {
		t.Run(kind, func(t *testing.T) {
			b := setup(t)
			if prepare != nil {
				prepare(t, b)
			}
			before, r := b.stored(t, "o1"), make("o1", f)
			switch {
			case kind == "form":
				b.expect(t, r, 303, shopPage+"?order=o1&status="+string(status))
			case status == statusUnknown:
				b.expect(t, r, 401, unsigned)
			default:
				b.expect(t, r, 200, `{"order":"o1","status":"`+string(status)+`","amount":49900}`)
			}
			if b.gateway.reads != reads {
				t.Errorf("the gateway was read %d times, want %d", b.gateway.reads, reads)
			}
			if n := len(b.callbacks(t, "o1")); n != reads {
				t.Errorf("%d callbacks recorded, want %d", n, reads)
			}
			if after := b.stored(t, "o1"); status != payment.Paid && after.Version != before.Version {
				t.Errorf("version %d became %d, though nothing was proved", before.Version, after.Version)
			}
			b.checker.Check(t, "o1", "o2")
		})
	}
}
