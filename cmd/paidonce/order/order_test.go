package order

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/cmd/paidonce/terminal/terminaltest"
	"paidonce/cmd/paidonce/view"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// run runs a command line of one of the package's commands.
func run(t *testing.T, on stack.Target, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return terminaltest.Run(t, []*cobra.Command{Command(stacktest.Finds(on)), RefundCommand(stacktest.Finds(on), terminal.RealWorld())}, args...)
}

// richTimeline is what a stack answered about an order that had a failed attempt, a dispute that was acknowledged, a
// payment too many and a refund.
func richTimeline(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/rich-timeline.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestExplain(t *testing.T) {
	api := stacktest.NewAPI(t, map[string]stacktest.Answer{
		"GET /orders/rich-1/timeline": {Status: 200, Body: richTimeline(t)},
		"GET /orders/held/timeline": {Status: 200, Body: stacktest.AsJSON(t, apigw.Timeline{
			Order: stacktest.Order(stacktest.Is(payment.Paid, payment.Paid, 49900), stacktest.Held(payment.HoldDispute, "disp_1", false), stacktest.Held(payment.HoldPaidAfterClose, "", true), stacktest.Held(payment.HoldCurrency, "pay_2", false), func(o *apigw.Order) {
				o.ClosedAt = &stacktest.OrderTime
				o.Payments = []apigw.Payment{{ID: "pay_1", Status: payment.PaymentCaptured, Amount: 49900, Captured: true}, {ID: "pay_2", Status: payment.PaymentCaptured, Amount: 700, Captured: true}}
			}),
			Entries: []apigw.Entry{
				{At: stacktest.OrderTime, Source: "api", What: "order created: 499.00 INR by razorpay"},
				{At: stacktest.OrderTime.Add(9 * time.Hour), Source: "api", What: "closed by the shop: red \x1b[31m and\nnext line"},
			},
		})},
	})
	for _, id := range []string{"rich-1", "held"} {
		t.Run(id, func(t *testing.T) {
			out, _, err := run(t, api.Target(), "order", "explain", id)
			if err != nil {
				t.Fatal(err)
			}
			terminaltest.Golden(t, id+".txt", out)
		})
	}
	t.Run("for programs", func(t *testing.T) {
		out, _, err := run(t, api.Target(), "order", "explain", "rich-1", "--json")
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if json.Unmarshal([]byte(out), &got) != nil || json.Unmarshal([]byte(richTimeline(t)), &want) != nil {
			t.Fatal("not JSON")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the API's answer and what is printed differ (-want +got)\n%s", diff)
		}
	})
}

func TestWhyAnOrderIsNotFulfilled(t *testing.T) {
	for _, c := range []struct {
		order apigw.Order
		want  string
	}{
		{stacktest.Order(), "o1: PENDING, NOT FULFILLED: nothing has been captured yet"},
		{stacktest.Order(func(o *apigw.Order) { o.GatewayOrderID = nil }), "o1: PENDING, NOT FULFILLED: the gateway does not have it yet, the shop has to send POST /orders again"},
		{stacktest.Order(stacktest.Is(payment.Pending, payment.Pending, 100)), "o1: PENDING, NOT FULFILLED: the captured money does not cover it"},
		{stacktest.Order(stacktest.Is(payment.Failed, payment.Failed, 0)), "o1: FAILED, NOT FULFILLED: an attempt to pay failed, and no other has succeeded so far"},
		{stacktest.Order(stacktest.Is(payment.Paid, payment.Paid, 49900), stacktest.Held(payment.HoldDispute, "disp_1", false), stacktest.Held(payment.HoldLate, "", false)), "o1: PAID, NOT FULFILLED: held by dispute disp_1, late"},
		{stacktest.Order(stacktest.Is(payment.Paid, payment.Pending, 0), stacktest.Held(payment.HoldStatusBehind, "", false)), "o1: PAID, NOT FULFILLED: it was paid, but the facts now say pending"},
		{stacktest.Order(stacktest.Is(payment.Paid, payment.Paid, 49900), stacktest.Held(payment.HoldLate, "", true)), "o1: PAID, NOT FULFILLED: nothing blocks it any more, its next event fulfils it"},
		{stacktest.Order(stacktest.Is(payment.PartiallyRefunded, payment.PartiallyRefunded, 49900)), "o1: PARTIALLY REFUNDED, NOT FULFILLED: money went back first"},
		{stacktest.Order(stacktest.Is(payment.Refunded, payment.Refunded, 49900), func(o *apigw.Order) { o.FulfilledAt = &stacktest.OrderTime }), "o1: REFUNDED, FULFILLED on 2026-11-30 10:00:00 UTC"},
	} {
		t.Run(c.want, func(t *testing.T) {
			api := stacktest.NewAPI(t, map[string]stacktest.Answer{"GET /orders/o1": {Status: 200, Body: stacktest.AsJSON(t, c.order)}})
			out, _, err := run(t, api.Target(), "order", "get", "o1")
			if got, _, _ := strings.Cut(out, "\n"); got != c.want || err != nil {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestEveryHoldHasItsMeaning(t *testing.T) {
	source, err := os.ReadFile("../../../shared/payment/derive.go")
	if err != nil {
		t.Fatal(err)
	}
	count := strings.Count(string(source), " HoldReason = \"")
	if count == 0 || count != len(view.Meanings) {
		t.Errorf("payment has %d hold reasons, and %d have a meaning", count, len(view.Meanings))
	}
}

func TestCloseAndAcknowledgeSendWhatWasSaid(t *testing.T) {
	fulfilled := stacktest.AsJSON(t, stacktest.Order(stacktest.Is(payment.Paid, payment.Paid, 49900), func(o *apigw.Order) { o.FulfilledAt = &stacktest.OrderTime }))
	for _, c := range []struct {
		args             []string
		call, body, want string
	}{
		{[]string{"close", "o1", "--reason", "out of <stock>"}, "POST /orders/o1/close", `{"reason":"out of \u003cstock\u003e"}`, "Closed: "},
		{[]string{"acknowledge", "o1", "dispute", "--by", "ann", "--why", "spoke to the bank"},
			"POST /orders/o1/holds/dispute/acknowledge", `{"by":"ann","why":"spoke to the bank"}`, "Acknowledged: dispute.\n"},
		{[]string{"acknowledge", "o1", "dispute", "--by", "ann", "--why", "x", "--subject", "disp_1"},
			"POST /orders/o1/holds/dispute/acknowledge", `{"by":"ann","why":"x","subject":"disp_1"}`, "Acknowledged: dispute disp_1.\n"},
		{[]string{"acknowledge", "o1", "late", "--by", "ann", "--why", "x", "--subject", ""},
			"POST /orders/o1/holds/late/acknowledge", `{"by":"ann","why":"x","subject":""}`, "Acknowledged: late.\n"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			api := stacktest.NewAPI(t, map[string]stacktest.Answer{c.call: {Status: 200, Body: fulfilled}})
			out, _, err := run(t, api.Target(), append([]string{"order"}, c.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			if api.Bodies[c.call] != c.body {
				t.Errorf("sent %s, want %s", api.Bodies[c.call], c.body)
			}
			if !strings.HasPrefix(out, c.want) || !strings.Contains(out, "\no1: PAID, FULFILLED on 2026-11-30 10:00:00 UTC\n") {
				t.Errorf("printed\n%s", out)
			}
		})
	}
}

func TestOrderErrorsAreOneLineWithACure(t *testing.T) {
	acknowledge := []string{"acknowledge", "o1", "dispute", "--by", "ann", "--why", "x"}
	const get, hold = "GET /orders/o1", "POST /orders/o1/holds/dispute/acknowledge"
	for _, c := range []struct {
		name    string
		args    []string
		answers map[string]stacktest.Answer
		want    string
	}{
		{"unknown order", []string{"get", "o1"}, nil, "the test's stack has no order o1: check the id, and the stack"},
		{"unknown order explained", []string{"explain", "o1"}, nil, "the test's stack has no order o1: check the id, and the stack"},
		{"unknown order acknowledged", acknowledge, nil, "the test's stack has no order o1: check the id, and the stack"},
		{"no such hold", acknowledge, map[string]stacktest.Answer{get: {Status: 200, Body: stacktest.AsJSON(t, stacktest.Order(stacktest.Held(payment.HoldLate, "", false), stacktest.Held(payment.HoldOver, "", false)))}},
			"order o1 has no hold dispute now: it has late, over"},
		{"no hold at all", acknowledge, map[string]stacktest.Answer{get: {Status: 200, Body: stacktest.AsJSON(t, stacktest.Order())}}, "order o1 has no hold dispute now: it has none"},
		{"id of a wrong form", []string{"get", "../o1"}, nil, `"../o1" is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit`},
		{"reason of a wrong form", []string{"acknowledge", "o1", "a/b", "--by", "ann", "--why", "x"}, nil, `"a/b" is not the reason of a hold: it is a word such as dispute or paid_after_close`},
		{"fulfilled already", []string{"close", "o1", "--reason", "x"}, map[string]stacktest.Answer{"POST /orders/o1/close": {Status: 409, Body: `{"error":"fulfilled"}`}},
			"order o1 cannot be closed, it was fulfilled already: if the goods do not go out, refund it"},
		{"field at fault", acknowledge, map[string]stacktest.Answer{hold: {Status: 400, Body: `{"error":"why is too long","field":"why"}`}}, "the test's stack refuses that: why is too long"},
		{"no permission", []string{"get", "o1"}, map[string]stacktest.Answer{get: {Status: 403, Body: `{"message":"Forbidden: ` + stacktest.SecretKey + `"}`}},
			"the test's stack does not let you in (403): the AWS credentials have expired, or lack execute-api:Invoke on it"},
		{"older release", []string{"get", "o1"}, map[string]stacktest.Answer{get: {Status: 404, Body: `{"message":"Not Found"}`}}, "the test's stack does not know this call: it is of an older release, deploy this one"},
		{"broken", []string{"get", "o1"}, map[string]stacktest.Answer{get: {Status: 500, Body: `{"error":"internal error"}`}},
			"the test's stack answered 500: try again; if it stays, `paidonce logs --errors --stack test` says why"},
		{"not JSON", []string{"get", "o1"}, map[string]stacktest.Answer{get: {Status: http.StatusTeapot, Body: "<html>\n"}}, "the test's stack answered 418 "},
		{"no id", []string{"get"}, nil, "0 arguments given, 1 needed: paidonce order get ID [flags]"},
		{"no reason given", []string{"close", "o1"}, nil, `required flag(s) "reason" not set`},
		{"unknown command", []string{"frobnicate"}, nil, `unknown command "frobnicate" for "paidonce order"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := stacktest.NewAPI(t, c.answers)
			out, _, err := run(t, api.Target(), append([]string{"order"}, c.args...)...)
			if err == nil || err.Error() != c.want || out != "" {
				t.Errorf("got %v, want %s; printed %q", err, c.want, out)
			}
		})
	}
}

func TestStackThatIsGone(t *testing.T) {
	api := stacktest.NewAPI(t, nil)
	api.Close()
	_, _, err := run(t, api.Target(), "order", "get", "o1")
	if err == nil || err.Error() != "the test's stack did not answer: check that it is still there, and the network" {
		t.Errorf("got %v", err)
	}
}
