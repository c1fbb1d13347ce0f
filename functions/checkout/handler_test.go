package main

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
)

const unsigned = `{"error":"bad signature"}`

func TestACapturedPaymentPaysTheOrder(t *testing.T) {
	expectBoth(t, nil, fields("order_1", "pay_1"), payment.Paid, 1)
}

func TestOtherPaymentsAreTakenAsTheyAre(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*payment.PaymentFact)
		want   payment.Status
	}{
		{"authorized only", func(f *payment.PaymentFact) { f.Status = payment.PaymentAuthorized }, payment.Pending},
		{"failed", func(f *payment.PaymentFact) { f.Status, f.Failed = payment.PaymentCreated, true }, payment.Failed},
		{"too little", func(f *payment.PaymentFact) { f.Amount = inr(100) }, payment.Pending},
		{"another currency", func(f *payment.PaymentFact) { f.Amount.Currency = "USD" }, payment.Pending},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t)
			fact := captured("pay_1", "order_1")
			c.change(&fact)
			b.gateway.has(fact)
			b.expect(t, form("o1", fields("order_1", "pay_1")), 303, shopPage+"?order=o1&status="+string(c.want))
			o := b.stored(t, "o1")
			if _, known := o.Payments["pay_1"]; !known || !o.FulfilledAt.IsZero() {
				t.Errorf("payments %v, fulfilled at %v", o.Payments, o.FulfilledAt)
			}
			b.checker.Check(t, "o1")
		})
	}
}

func TestHowTheBodyArrives(t *testing.T) {
	text := fields("order_1", "pay_1").Encode()
	for name, change := range map[string]func(*events.APIGatewayV2HTTPRequest){
		"base64": func(r *events.APIGatewayV2HTTPRequest) {
			r.Body, r.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(text)), true
		},
		"header names in capitals": func(r *events.APIGatewayV2HTTPRequest) {
			r.Headers = map[string]string{"CONTENT-TYPE": r.Headers["content-type"]}
		},
		"media type in capitals, with a parameter": func(r *events.APIGatewayV2HTTPRequest) {
			r.Headers = map[string]string{"Content-Type": "Application/X-WWW-Form-Urlencoded; charset=UTF-8"}
		},
		"more fields": func(r *events.APIGatewayV2HTTPRequest) { r.Body += "&shop=1&shop=2" },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			r := request("o1", "application/x-www-form-urlencoded", text)
			change(&r)
			b.expect(t, r, 303, shopPage+"?order=o1&status=paid")
		})
	}
}

func TestWhatIsNotSignedForTheOrderHasNoEffect(t *testing.T) {
	sign := func(first, second, secret string) string { return razorpay.Sign([]byte(first+"|"+second), secret) }
	for name, change := range map[string]func(f url.Values){
		// The browser's own order id goes with its signature: only ours shows that it is another order's.
		"of another order of ours":      func(f url.Values) { copyOver(f, fields("order_2", "pay_2")) },
		"for the browser's order id":    func(f url.Values) { copyOver(f, fields("order_9", "pay_1")) },
		"payment id before order id":    func(f url.Values) { f.Set("razorpay_signature", sign("pay_1", "order_1", keySecret)) },
		"another payment":               func(f url.Values) { f.Set("razorpay_payment_id", "pay_2") },
		"another secret":                func(f url.Values) { f.Set("razorpay_signature", sign("order_1", "pay_1", "not-our-secret")) },
		"the empty secret":              func(f url.Values) { f.Set("razorpay_signature", sign("order_1", "pay_1", "")) },
		"empty signature":               func(f url.Values) { f.Set("razorpay_signature", "") },
		"no signature":                  func(f url.Values) { f.Del("razorpay_signature") },
		"no payment id":                 func(f url.Values) { f.Del("razorpay_payment_id") },
		"no fields of the gateway":      func(f url.Values) { clear(f) },
		"signature not in hex":          func(f url.Values) { f.Set("razorpay_signature", strings.Repeat("z", 64)) },
		"a payment id that is a path":   func(f url.Values) { copyOver(f, fields("order_1", "../orders/order_1")) },
		"a payment id that is too long": func(f url.Values) { copyOver(f, fields("order_1", strings.Repeat("x", 65))) },
		"a signature beside an error":   func(f url.Values) { f.Set("razorpay_signature", "00"); f.Set("error", "{}") },
	} {
		t.Run(name, func(t *testing.T) {
			f := fields("order_1", "pay_1")
			change(f)
			expectBoth(t, nil, f, statusUnknown, 0)
		})
	}
}

func copyOver(f, other url.Values) {
	for name, values := range other {
		f[name] = values
	}
}

func TestAFieldThatComesTwiceIsNone(t *testing.T) {
	b := setup(t)
	f := fields("order_1", "pay_1")
	for name := range f {
		if name == "razorpay_order_id" {
			continue // ours counts anyway
		}
		twice := f.Encode() + "&" + url.Values{name: {f.Get(name)}}.Encode()
		b.expect(t, request("o1", "application/x-www-form-urlencoded", twice), 303, shopPage+"?order=o1&status=unknown")
		object := strings.Replace(script("o1", f).Body, "{", fmt.Sprintf(`{%q:%q,`, name, f.Get(name)), 1)
		b.expect(t, request("o1", "application/json", object), 401, unsigned)
		failed := twice + "&error%5Bcode%5D=E"
		b.expect(t, request("o1", "application/x-www-form-urlencoded", failed), 303, shopPage+"?order=o1&status=unknown")
	}
	if b.gateway.reads != 0 {
		t.Errorf("the gateway was read %d times", b.gateway.reads)
	}
}

func TestOrdersThatTheCallbackCannotBeAbout(t *testing.T) {
	for name, change := range map[string]func(*payment.Order){
		"of another gateway":         func(o *payment.Order) { o.Gateway = "cashfree" },
		"without a gateway order":    func(o *payment.Order) { o.GatewayOrderID = "" },
		"of the other mode":          func(o *payment.Order) { o.Mode = payment.Live },
		"of another gateway's order": func(o *payment.Order) { o.GatewayOrderID = "order_8" },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.order(t, "o3", "order_3", change)
			b.gateway.has(captured("pay_3", "order_3"))
			b.expect(t, form("o3", fields("order_3", "pay_3")), 303, shopPage+"?order=o3&status=unknown")
			b.expect(t, script("o3", fields("order_3", "pay_3")), 401, unsigned)
			b.expect(t, script("o3", fields("", "pay_3")), 401, unsigned)
			if o := b.stored(t, "o3"); o.Gateway != "razorpay" || o.GatewayOrderID == "" {
				b.expect(t, request("o3", "application/json", `{"error":{}}`), 401, unsigned)
			}
			if b.gateway.reads != 0 || b.stored(t, "o3").Version != 1 {
				t.Errorf("read %d times, order at version %d", b.gateway.reads, b.stored(t, "o3").Version)
			}
		})
	}
}

func TestAFailureChangesNothing(t *testing.T) {
	f := url.Values{
		"error[code]": {"BAD_REQUEST_ERROR"}, "error[description]": {"Payment failed"},
		"error[metadata]": {`{"payment_id":"pay_1","order_id":"order_1"}`},
	}
	object := `{"error":{"code":"BAD_REQUEST_ERROR","metadata":{"payment_id":"pay_1","order_id":"order_1"}}}`
	b := setup(t)
	b.expect(t, form("o1", f), 303, shopPage+"?order=o1&status=pending")
	b.expect(t, request("o1", "application/json", object), 200, `{"order":"o1","status":"pending","amount":49900}`)
	b.expect(t, request("o1", "application/json", `{"error":null}`), 401, unsigned)
	b.expect(t, form("unheard-of", f), 303, shopPage+"?order=unheard-of&status=unknown")
	b.expect(t, request("unheard-of", "application/json", object), 401, unsigned)
	if b.gateway.reads != 0 || b.stored(t, "o1").Version != 1 {
		t.Errorf("read %d times, order at version %d", b.gateway.reads, b.stored(t, "o1").Version)
	}
	b.expect(t, form("o1", fields("order_1", "pay_1")), 303, shopPage+"?order=o1&status=paid")
	b.expect(t, form("o1", f), 303, shopPage+"?order=o1&status=paid")
}
