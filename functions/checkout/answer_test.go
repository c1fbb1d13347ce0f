package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

func TestTheReturnURLKeepsItsOwnQuery(t *testing.T) {
	for page, want := range map[string]string{
		"https://shop.example":                            "https://shop.example?order=o1&status=paid",
		"https://shop.example/a%2Fb":                      "https://shop.example/a%2Fb?order=o1&status=paid",
		"https://shop.example/?":                          "https://shop.example/?order=o1&status=paid",
		"https://shop.example/?z=1&a=b%20c+d&&z=2&order2": "https://shop.example/?z=1&a=b%20c+d&&z=2&order2&order=o1&status=paid",
		"http://127.0.0.1:8080/done":                      "http://127.0.0.1:8080/done?order=o1&status=paid",
		"HTTP://localhost:8080/done":                      "http://localhost:8080/done?order=o1&status=paid",
	} {
		t.Run(page, func(t *testing.T) {
			b := setup(t)
			b.returnsTo(t, page)
			for range 2 { // the first must leave nothing behind
				b.expect(t, form("o1", fields("order_1", "pay_1")), 303, want)
			}
		})
	}
}

func TestReturnURLsThatWillNotDo(t *testing.T) {
	for _, page := range []string{
		"http://shop.example/", "http://127.0.0.2/", "http://localhost.example/", "ftp://shop.example/", "javascript:alert(1)",
		"//shop.example/", "/thanks", "thanks", "https:", "https:shop.example", "https:///thanks", "https://:443/",
		"https://user:secret@shop.example/", "https://shop.example/#done", "https://shop.example/#",
		"https://shop.example/?order=1", "https://shop.example/?a=1&status", "https://shop.example/?a=%zz", "https://shop.example/?a;b",
		"https://shop.example/?a=b c", "https://shop.example/?a=ü", "https://shop.example/\r\nx: y", " https://shop.example/", "https://shop.example:port/",
	} {
		var u returnURL
		err := u.UnmarshalText([]byte(page))
		if err == nil || u.set() {
			t.Errorf("%q was taken", page)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error shows it: %v", page, err)
		}
	}
}

func TestWithoutAReturnURLFormsAreAnsweredLikeScripts(t *testing.T) {
	b := setup(t)
	b.returnsTo(t, "")
	b.expect(t, form("o1", url.Values{}), 401, unsigned)
	b.expect(t, request("o1", "application/x-www-form-urlencoded", "%zz"), 400, `{"error":"body must be the fields of a form","field":"body"}`)
	b.expect(t, form("o1", fields("order_1", "pay_1")), 200, `{"order":"o1","status":"paid","amount":49900}`)
}

// TestOrderIDs has ids that no URL, key or log may hold as they are.
func TestOrderIDs(t *testing.T) {
	for name, c := range map[string]struct{ id, shown string }{
		"none":                      {"", ""},
		"a path":                    {"../o1", ""},
		"another field":             {"o1&status=paid", ""},
		"a line":                    {"o1\r\nset-cookie: a=b", ""},
		"a line at the end":         {"o1\n", ""},
		"not ASCII":                 {"ö1", ""},
		"a space":                   {"o 1", ""},
		"too long":                  {strings.Repeat("x", 201), ""},
		"as long as may be":         {strings.Repeat("x", 200), strings.Repeat("x", 200)},
		"an adopted order, unknown": {"razorpay.order_9-A", "razorpay.order_9-A"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.expect(t, form(c.id, fields("order_1", "pay_1")), 303, shopPage+"?order="+c.shown+"&status=unknown")
			b.expect(t, script(c.id, fields("order_1", "pay_1")), 401, unsigned)
			if c.shown == "" && c.id != "" && bytes.Contains(b.log.Bytes(), []byte(c.id)) {
				t.Errorf("logged %s", b.log)
			}
		})
	}
}

func TestAnAdoptedOrder(t *testing.T) {
	b := setup(t)
	b.order(t, "razorpay.order_3", "order_3", nil)
	b.gateway.has(captured("pay_3", "order_3"))
	b.expect(t, form("razorpay.order_3", fields("order_3", "pay_3")), 303, shopPage+"?order=razorpay.order_3&status=paid")
}

func TestOddRequests(t *testing.T) {
	good := fields("order_1", "pay_1")
	at := func(gateway string, r events.APIGatewayV2HTTPRequest) events.APIGatewayV2HTTPRequest {
		r.PathParameters["gateway"] = gateway
		return r
	}
	notBase64 := form("o1", good)
	notBase64.IsBase64Encoded = true
	unknown := shopPage + "?order=o1&status=unknown"
	for _, c := range []struct {
		name    string
		request events.APIGatewayV2HTTPRequest
		status  int
		said    string
	}{
		{"a form at an unknown gateway", at("paypal", form("o1", good)), 303, unknown},
		{"a script at an unknown gateway", at("paypal", script("o1", good)), 404, `{"error":"unknown gateway"}`},
		{"a form that is none", request("o1", "application/x-www-form-urlencoded", "%zz"), 303, unknown},
		{"a form that is no base64", notBase64, 303, unknown},
		{"an empty form", form("o1", nil), 303, unknown},
		{"a form that is too large", form("o1", url.Values{"error": {strings.Repeat("x", maxBody)}}), 303, unknown},
		{"JSON that is none", request("o1", "application/json", "{"), 400, `{"error":"body must be a JSON object","field":"body"}`},
		{"no body", request("o1", "", ""), 400, `{"error":"body must be a JSON object","field":"body"}`},
		{"JSON that is too large", request("o1", "", `{"error":"`+strings.Repeat("x", maxBody)+`"}`), 413, `{"error":"body too large"}`},
		{"a form that says it is JSON", request("o1", "application/json", good.Encode()), 400, `{"error":"body must be a JSON object","field":"body"}`},
		{"JSON that says it is a form", request("o1", "application/x-www-form-urlencoded", script("o1", good).Body), 303, unknown},
		{"no type", request("o1", "", script("o1", good).Body), 200, `{"order":"o1","status":"paid","amount":49900}`},
	} {
		t.Run(c.name, func(t *testing.T) { setup(t).expect(t, c.request, c.status, c.said) })
	}
}

func TestTheLogLineTellsWhatHappened(t *testing.T) {
	const route = "POST /checkout/{gateway}/{order}"
	for _, c := range []struct {
		name    string
		request events.APIGatewayV2HTTPRequest
		want    map[string]any
	}{
		{"settled", form("o1", fields("order_1", "pay_1")), map[string]any{
			"level": "INFO", "status": 303.0, "order": "o1", "payment": "pay_1",
			"outcome": "payment pay_1 captured 499.00 INR; order pending → paid; fulfilled",
		}},
		{"unknown order", script("o9", fields("order_1", "pay_1")), map[string]any{
			"level": "WARN", "status": 401.0, "order": "o9", "payment": "pay_1", "outcome": "refused",
			"error": "bad signature: no such order at this gateway",
		}},
		{"an odd payment id", script("o1", fields("order_1", "pay_1; buyer@example.com")), map[string]any{
			"level": "WARN", "status": 401.0, "order": "o1", "outcome": "refused",
			"error": "bad signature: none, or not of this payment and order",
		}},
		{"failed", form("o1", url.Values{"error[code]": {"E"}, "error[description]": {"buyer@example.com"}}), map[string]any{
			"level": "INFO", "status": 303.0, "order": "o1", "outcome": "payment failed, says the browser",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t)
			c.request.RequestContext.RequestID = "req-1"
			b.send(t, c.request)
			var line map[string]any
			d := json.NewDecoder(b.log)
			if err := d.Decode(&line); err != nil || d.More() {
				t.Fatalf("more or less than one line: %v", err)
			}
			delete(line, slog.TimeKey)
			c.want["msg"], c.want["route"], c.want["request_id"], c.want["took_ms"] = "checkout", route, "req-1", 0.0
			if diff := cmp.Diff(c.want, line); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestNothingPersonalOrSecretIsLogged(t *testing.T) {
	b := setup(t)
	good := fields("order_1", "pay_1")
	personal := url.Values{"error[description]": {"buyer@example.com"}, "error[metadata]": {"+910000000001"}, "email": {"buyer@example.com"}}
	for _, f := range []url.Values{good, personal, fields("order_2", "pay_1"), fields("order_1", "buyer@example.com")} {
		for name := range personal {
			if f.Has("razorpay_signature") && !strings.HasPrefix(name, "error") {
				f.Set(name, personal.Get(name))
			}
		}
		b.send(t, form("o1", f))
		b.send(t, script("o1", f))
		b.send(t, request("o1", "application/json", f.Encode()))
		for _, secret := range []string{"buyer", "0000000001", keySecret, f.Get("razorpay_signature")} {
			if secret != "" && strings.Contains(b.log.String(), secret) {
				t.Errorf("the log holds %q: %s", secret, b.log)
			}
		}
	}
	if b.stored(t, "o1").Status != payment.Paid {
		t.Error("the signed one was not taken")
	}
}
