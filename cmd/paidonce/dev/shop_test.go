package dev

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/cmd/paidonce/view"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

// shopBench is a shop on a stub of the application and a gateway of its own.
type shopBench struct {
	*shop
	application *stacktest.API
	order       apigw.Order // o1, as the application shows it
	page        string      // URL of the shop
	log         bytes.Buffer
}

const (
	benchKeySecret     = "key-secret-of-the-bench"
	benchWebhookSecret = "webhook-secret-of-the-bench"
)

// openShop opens a shop whose application answers as given, and else shows o1, changed.
func openShop(t *testing.T, answers map[string]stacktest.Answer, changes ...func(*apigw.Order)) *shopBench {
	t.Helper()
	gateway := razorpaytest.New(razorpaytest.Config{KeyID: "rzp_test_Bench", KeySecret: benchKeySecret, WebhookSecret: benchWebhookSecret})
	t.Cleanup(gateway.Close)
	gatewayID, err := gateway.AddOrder(razorpaytest.OrderRequest{Amount: 49900, Currency: "INR"})
	if err != nil {
		t.Fatal(err)
	}
	b := &shopBench{order: stacktest.Order(changes...)}
	if b.order.GatewayOrderID != nil {
		b.order.GatewayOrderID = &gatewayID
	}
	all := map[string]stacktest.Answer{
		"GET /orders/o1":          {Status: 200, Body: stacktest.AsJSON(t, b.order)},
		"GET /orders/o1/timeline": {Status: 200, Body: stacktest.AsJSON(t, apigw.Timeline{Order: b.order, Entries: []apigw.Entry{{At: stacktest.OrderTime, Source: "api", What: "created"}}})},
	}
	for call, a := range answers {
		all[call] = a
	}
	b.application = stacktest.NewAPI(t, all)
	b.shop = &shop{api: stack.Client{URL: b.application.URL, Config: stacktest.Config()}, gateway: gateway, log: &b.log}
	server := httptest.NewServer(b.handler())
	t.Cleanup(server.Close)
	b.page = server.URL
	return b
}

// call does what the page does, checks what every answer of the shop has and has not, and returns it.
func (b *shopBench) call(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.page+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := "default-src 'self'; form-action 'self' " + b.application.URL + "; base-uri 'none'; frame-ancestors 'none'"
	if got := response.Header.Get("Content-Security-Policy"); got != want {
		t.Errorf("%s %s: policy %q, want %q", method, path, got, want)
	}
	for name, secret := range map[string]string{
		"key secret": benchKeySecret, "webhook secret": benchWebhookSecret, "AWS secret key": stacktest.SecretKey, "AWS key id": "AKIASAMPLE",
	} {
		if strings.Contains(string(text), secret) || strings.Contains(b.log.String(), secret) {
			t.Errorf("%s %s: the %s gets out", method, path, name)
		}
	}
	return response.StatusCode, string(text)
}

func (b *shopBench) calls(t *testing.T, method, path, body string, into any) {
	t.Helper()
	status, text := b.call(t, method, path, body)
	if err := json.Unmarshal([]byte(text), into); status != http.StatusOK || err != nil {
		t.Fatalf("%s %s answered %d %s", method, path, status, text)
	}
}

func TestShopFiles(t *testing.T) {
	b := openShop(t, nil)
	for path, want := range map[string]string{
		"/":                           "<title>The demo shop",
		"/?order=o1&status=paid":      "<title>The demo shop",
		"/shop.js":                    "addEventListener",
		"/shop.css":                   "color-scheme",
		"/icon.svg":                   "<svg",
		"/?order=%3Cscript%3Ealert()": "<title>The demo shop",
	} {
		if status, text := b.call(t, http.MethodGet, path, ""); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("GET %s answered %d without %q", path, status, want)
		}
	}
	_, page := b.call(t, http.MethodGet, "/", "")
	for _, foreign := range []string{"http://", "https://", "style=", "<style", "onclick"} { // what the policy would not let pass
		if strings.Contains(page, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
	for name := range attempts {
		if !strings.Contains(page, `data-attempt="`+name+`"`) {
			t.Errorf("the page has no button for %s", name)
		}
	}
}

func TestShopCreatesOrders(t *testing.T) {
	b := openShop(t, map[string]stacktest.Answer{"POST /orders": {Status: http.StatusCreated, Body: stacktest.AsJSON(t, stacktest.Order())}})
	var got struct{ ID string }
	b.calls(t, http.MethodPost, "/orders", "{}", &got)
	var sent struct {
		ID, Currency, Gateway string
		Amount                int64
	}
	if err := json.Unmarshal([]byte(b.application.Bodies["POST /orders"]), &sent); err != nil {
		t.Fatal(err)
	}
	if got.ID != "o1" || !strings.HasPrefix(sent.ID, "shop-") || sent.Amount != 49900 || sent.Currency != "INR" || sent.Gateway != "razorpay" {
		t.Errorf("got %+v, sent %+v", got, sent)
	}
}

func captured(id string, amount int64) apigw.Payment {
	return apigw.Payment{ID: id, Status: payment.PaymentCaptured, Amount: amount, Captured: true}
}

func refundOf(id, paymentID string, amount int64, status payment.RefundStatus) apigw.Refund {
	return apigw.Refund{ID: id, Status: status, Amount: amount, PaymentID: paymentID}
}

// paidTwice is an order with a payment too many, of which some went back already.
func paidTwice(o *apigw.Order) {
	stacktest.Is(payment.Paid, payment.Paid, 99800)(o)
	stacktest.Held(payment.HoldSurplus, "pay_2", false)(o)
	o.FulfilledAt = &stacktest.OrderTime
	o.Payments = []apigw.Payment{captured("pay_1", 49900), captured("pay_2", 49900), {ID: "pay_3", Status: "failed", Amount: 49900}}
	o.Refunds = []apigw.Refund{refundOf("rfnd_1", "pay_2", 10000, payment.RefundProcessed), refundOf("rfnd_2", "pay_2", 20000, payment.RefundFailed)}
}

func TestShopShowsAnOrder(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*apigw.Order)
		notFulfilled string
		meanings     map[payment.HoldReason]string
		refundable   int64
	}{
		"new":        {func(*apigw.Order) {}, "nothing has been captured yet", map[payment.HoldReason]string{}, 0},
		"paid twice": {paidTwice, "", map[payment.HoldReason]string{payment.HoldSurplus: view.Meanings[payment.HoldSurplus]}, 49900 + 39900},
	} {
		t.Run(name, func(t *testing.T) {
			b := openShop(t, nil, c.change)
			var got shopView
			b.calls(t, http.MethodGet, "/orders/o1", "", &got)
			if got.Order.ID != "o1" || len(got.Entries) != 1 || got.NotFulfilled != c.notFulfilled || got.Refundable != c.refundable {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(c.meanings, got.Meanings); diff != "" {
				t.Errorf("meanings (-want +got)\n%s", diff)
			}
		})
	}
}

func TestShopAttempts(t *testing.T) {
	for name, want := range map[string]struct {
		events    []string // that the gateway sends, in any order
		signed    bool     // the browser comes back, with a signature
		failed    bool     // or with a failure
		mentioned int      // payments
	}{
		"pay":       {[]string{"payment.authorized", "payment.captured", "order.paid"}, true, false, 1},
		"fail":      {[]string{"payment.failed"}, false, true, 1},
		"authorize": {[]string{"payment.authorized"}, true, false, 1},
		"close-tab": {[]string{"payment.authorized", "payment.captured", "order.paid"}, false, false, 1},
		"pay-twice": {[]string{"payment.authorized", "payment.authorized", "payment.captured", "payment.captured", "order.paid"}, true, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := openShop(t, nil)
			var got attempted
			b.calls(t, http.MethodPost, "/orders/o1/attempts", `{"attempt":"`+name+`"}`, &got)
			if n := strings.Count(got.Said, "pay_"); n != want.mentioned {
				t.Errorf("it says %q, of %d payments; want %d", got.Said, n, want.mentioned)
			}
			if (got.Callback != nil) != (want.signed || want.failed) {
				t.Fatalf("callback %+v", got.Callback)
			}
			if got.Callback != nil {
				if got.Callback.Action != b.application.URL+"/checkout/razorpay/o1" {
					t.Errorf("it goes to %s", got.Callback.Action)
				}
				f := got.Callback.Fields
				signed := f["razorpay_signature"] != "" &&
					f["razorpay_signature"] == razorpay.SignCheckout(*b.order.GatewayOrderID, f["razorpay_payment_id"], benchKeySecret)
				if signed != want.signed || (f["error[code]"] != "") != want.failed {
					t.Errorf("fields %v", f)
				}
			}
			if err := b.gateway.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			events := map[string]int{}
			for _, d := range b.gateway.Deliveries() {
				events[d.Event]++
			}
			wanted := map[string]int{}
			for _, e := range want.events {
				wanted[e]++
			}
			if diff := cmp.Diff(wanted, events); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
		})
	}
	if len(attempts) != 5 {
		t.Errorf("the shop knows %d attempts", len(attempts))
	}
}

func TestShopRefunds(t *testing.T) {
	const route = "POST /orders/o1/refunds"
	made := func(status string, refundID *string) stacktest.Answer {
		return stacktest.Answer{Status: http.StatusCreated, Body: stacktest.AsJSON(t, apigw.RefundRequest{ID: "r", Order: "o1", Status: status, RefundID: refundID, PaymentID: "pay_9", Amount: 10000, Currency: "INR"})}
	}
	once := func(o *apigw.Order) {
		stacktest.Is(payment.Paid, payment.Paid, 49900)(o)
		o.Payments = []apigw.Payment{captured("pay_1", 49900)}
	}
	for name, c := range map[string]struct {
		order  func(*apigw.Order)
		body   string
		answer stacktest.Answer
		sent   string // the last request
		said   string
	}{
		"an amount": {once, `{"id":"r","amount":10000}`, made("processed", new("rfnd_9")),
			`{"id":"r","amount":10000,"payment_id":"pay_1"}`, "The shop asked for ₹100.00 of pay_9 back, and the gateway made rfnd_9: processed."},
		"outcome unknown": {once, `{"id":"r","amount":10000}`, made("unknown", nil),
			`{"id":"r","amount":10000,"payment_id":"pay_1"}`, "The shop asked for ₹100.00 of pay_9 back, and cannot know yet whether the gateway has it."},
		"of the payment too many": {paidTwice, `{"id":"r","amount":10000}`, made("processed", new("rfnd_9")),
			`{"id":"r","amount":10000,"payment_id":"pay_2"}`, ""},
		"of the one that has so much": {paidTwice, `{"id":"r","amount":45000}`, made("processed", new("rfnd_9")),
			`{"id":"r","amount":45000,"payment_id":"pay_1"}`, ""},
		"all that is left": {paidTwice, `{"id":"r"}`, made("processed", new("rfnd_9")), `{"id":"r-1","amount":39900,"payment_id":"pay_2"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := openShop(t, map[string]stacktest.Answer{route: c.answer}, c.order)
			var got struct{ Said string }
			b.calls(t, http.MethodPost, "/orders/o1/refunds", c.body, &got)
			if b.application.Bodies[route] != c.sent {
				t.Errorf("sent %s, want %s", b.application.Bodies[route], c.sent)
			}
			if got.Said == "" || c.said != "" && got.Said != c.said {
				t.Errorf("it says %q, want %q", got.Said, c.said)
			}
		})
	}
}

func TestShopRefuses(t *testing.T) {
	tooMuch := map[string]stacktest.Answer{"POST /orders/o1/refunds": {Status: http.StatusUnprocessableEntity, Body: `{"error":"more than is refundable"}`}}
	for name, c := range map[string]struct {
		answers            map[string]stacktest.Answer
		change             func(*apigw.Order)
		method, path, body string
		status             int
		want               string
	}{
		"unknown order":         {nil, nil, "GET", "/orders/nope", "", 404, "not found"},
		"id of a wrong form":    {nil, nil, "GET", "/orders/..%2Forders", "", 400, "that is no order id"},
		"id with a query":       {nil, nil, "GET", "/orders/o1%3Fx", "", 400, "that is no order id"},
		"id to attempt":         {nil, nil, "POST", "/orders/-/attempts", `{"attempt":"pay"}`, 400, "that is no order id"},
		"id to refund":          {nil, nil, "POST", "/orders/-/refunds", `{"id":"r"}`, 400, "that is no order id"},
		"not JSON":              {nil, nil, "POST", "/orders/o1/attempts", "attempt=pay", 400, "the body is not what the page sends"},
		"unknown field":         {nil, nil, "POST", "/orders", `{"amount":1}`, 400, "the body is not what the page sends"},
		"large body":            {nil, nil, "POST", "/orders", strings.Repeat(" ", 5000) + "{}", 400, "the body is not what the page sends"},
		"unknown attempt":       {nil, nil, "POST", "/orders/o1/attempts", `{"attempt":"steal"}`, 400, "an attempt is one of authorize, close-tab, fail, pay, pay-twice"},
		"not at the gateway":    {nil, func(o *apigw.Order) { o.GatewayOrderID = nil }, "POST", "/orders/o1/attempts", `{"attempt":"pay"}`, 400, "the gateway does not have the order yet"},
		"refund without an id":  {nil, paidTwice, "POST", "/orders/o1/refunds", `{"amount":10000}`, 400, "a refund needs an id"},
		"refund, id too long":   {nil, paidTwice, "POST", "/orders/o1/refunds", `{"id":"` + strings.Repeat("x", 37) + `"}`, 400, "a refund needs an id"},
		"refund of a fraction":  {nil, paidTwice, "POST", "/orders/o1/refunds", `{"id":"r","amount":1.5}`, 400, "the body is not what the page sends"},
		"nothing left":          {nil, nil, "POST", "/orders/o1/refunds", `{"id":"r"}`, 400, "nothing is left to refund"},
		"more than is left":     {tooMuch, nil, "POST", "/orders/o1/refunds", `{"id":"r","amount":10000}`, 422, "more than is refundable"},
		"application's failure": {map[string]stacktest.Answer{"POST /orders": {Status: 500, Body: `{"error":"internal error"}`}}, nil, "POST", "/orders", "{}", 500, "internal error"},
		"API Gateway's failure": {map[string]stacktest.Answer{"POST /orders": {Status: 403, Body: `{"message":"` + stacktest.SecretKey + `"}`}}, nil, "POST", "/orders", "{}", 403, "the API answered 403 Forbidden"},
		"unreadable answer":     {map[string]stacktest.Answer{"POST /orders": {Status: 200, Body: "<html>"}}, nil, "POST", "/orders", "{}", 502, "the terminal of the shop says why"},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*apigw.Order) {}
			}
			b := openShop(t, c.answers, change)
			status, text := b.call(t, c.method, c.path, c.body)
			var got struct{ Error string }
			if err := json.Unmarshal([]byte(text), &got); err != nil || status != c.status || !strings.Contains(got.Error, c.want) {
				t.Errorf("answered %d %s, want %d %s", status, text, c.status, c.want)
			}
			if said := b.log.Len() > 0; said != (c.status == http.StatusBadGateway) {
				t.Errorf("the terminal shows %q", b.log.String())
			}
			if calls := b.gateway.Deliveries(); len(calls) > 0 {
				t.Errorf("something happened at the gateway: %v", calls)
			}
		})
	}
}

// TestShopIsForItsOwnPage: another page in the same browser cannot press its buttons.
func TestShopIsForItsOwnPage(t *testing.T) {
	b := openShop(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.page+"/orders/o1/attempts", strings.NewReader(`{"attempt":"pay"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "https://elsewhere.example")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("answered %s", response.Status)
	}
}

func TestStorefront(t *testing.T) {
	f, err := rentStorefront(0)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(f.url)
	if err != nil || at.Hostname() != "127.0.0.1" {
		t.Errorf("it is at %s", f.url)
	}
	b := openShop(t, nil)
	f.open(b.shop)
	response, err := http.Get(f.url)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("answered %s", response.Status)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(f.url); err == nil {
		t.Error("still open")
	}
	unused, err := rentStorefront(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unused.close(); err != nil { // as when the stack does not start
		t.Error(err)
	}
}
