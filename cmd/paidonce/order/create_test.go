package order

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/cmd/paidonce/terminal/terminaltest"
)

// createdBody is what POST /orders answers.
func createdBody(t *testing.T) string {
	t.Helper()
	o := stack.CreatedOrder{Order: stacktest.Order()}
	o.Checkout.KeyID, o.Checkout.GatewayOrderID, o.Checkout.Amount, o.Checkout.Currency = "rzp_test_1", "order_1", 49900, "INR"
	return stacktest.AsJSON(t, o)
}

func TestOrderCreate(t *testing.T) {
	api := stacktest.NewAPI(t, map[string]stacktest.Answer{"POST /orders": {Status: 201, Body: createdBody(t)}})
	out, _, err := run(t, api.Target(), "order", "create", "o1", "--amount", "49900", "--currency", "inr")
	if err != nil {
		t.Fatal(err)
	}
	terminaltest.Golden(t, "order-create.txt", out)
	want := `{"id":"o1","amount":49900,"currency":"INR","gateway":"razorpay"}`
	if diff := cmp.Diff(want, api.Bodies["POST /orders"]); diff != "" {
		t.Errorf("asked for (-want +got)\n%s", diff)
	}
	api.Answers["POST /orders"] = stacktest.Answer{Status: 200, Body: createdBody(t)}
	out, _, err = run(t, api.Target(), "order", "create", "o1", "--amount", "49900", "--currency", "INR")
	if err != nil || !strings.HasPrefix(out, "Order o1 of 499.00 INR was there already: nothing was made.\n") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = run(t, api.Target(), "order", "create", "o1", "--amount", "49900", "--currency", "INR", "--json")
	if err != nil || terminaltest.Compacted(t, out) != createdBody(t) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOrderCreateSaysWhyNot(t *testing.T) {
	for _, c := range []struct {
		name, args string
		answer     stacktest.Answer
		want       string
	}{
		{"rupees", "--amount 499.00 --currency INR", stacktest.Answer{}, `invalid argument "499.00" for "--amount" flag: it is a whole number above 0 of minor units: 49900 is 499.00 INR`},
		{"nothing", "--amount 0 --currency INR", stacktest.Answer{}, `invalid argument "0" for "--amount" flag: it is a whole number above 0 of minor units: 49900 is 499.00 INR`},
		{"no amount", "--currency INR", stacktest.Answer{}, `required flag(s) "amount" not set`},
		{"no currency", "--amount 1 --currency rupees", stacktest.Answer{}, `--currency "RUPEES" is none: it is three letters, as INR`},
		{"another order", "--amount 1 --currency INR", stacktest.Answer{Status: 409, Body: `{"error":"the id belongs to another order"}`},
			"order o1 is there already, of another amount, currency or gateway: take another id, or look: paidonce order get o1 --stack test"},
		{"closed", "--amount 1 --currency INR", stacktest.Answer{Status: 409, Body: `{"error":"closed"}`}, "order o1 is there already, and closed: take another id"},
		{"refused", "--amount 1 --currency INR", stacktest.Answer{Status: 502, Body: `{"error":"the gateway refused","reason":"other"}`},
			"order o1 was not made, the gateway refused it (other), and the id is free: `paidonce doctor --stack test` checks the API key"},
		{"unknown", "--amount 1 --currency INR", stacktest.Answer{Status: 503, Body: `{"error":"outcome unknown"}`},
			"whether order o1 was made is not known (503): the same command again finds out, and makes no second one"},
		{"crashed", "--amount 1 --currency INR", stacktest.Answer{Status: 502, Body: `{"message":"Internal Server Error"}`},
			"whether order o1 was made is not known (502): the same command again finds out, and makes no second one"},
		{"no such gateway", "--amount 1 --currency INR", stacktest.Answer{Status: 400, Body: `{"error":"gateway is not one that this deployment has","field":"gateway"}`},
			"the test's stack refuses that: gateway is not one that this deployment has"},
		{"expired", "--amount 1 --currency INR", stacktest.Answer{Status: 403, Body: `{"message":"Forbidden"}`},
			"the test's stack does not let you in (403): the AWS credentials have expired, or lack execute-api:Invoke on it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := stacktest.NewAPI(t, map[string]stacktest.Answer{"POST /orders": c.answer})
			out, _, err := run(t, api.Target(), append([]string{"order", "create", "o1"}, strings.Fields(c.args)...)...)
			if err == nil || err.Error() != c.want || out != "" {
				t.Errorf("got %v\nwant %s\n%s", err, c.want, out)
			}
			if asked := api.Bodies["POST /orders"] != ""; asked != (c.answer != stacktest.Answer{}) {
				t.Errorf("asked the API: %v", asked)
			}
		})
	}
}
