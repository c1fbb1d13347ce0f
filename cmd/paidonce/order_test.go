package main

import (
	"github.com/spf13/cobra"

	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// runOrders runs a command line of one of the package's commands.
func runOrders(t *testing.T, on target, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return run(t, []*cobra.Command{orderCommand(finds(on)), refundCommand(finds(on), realWorld())}, args...)
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
	api := newStubAPI(t, map[string]answer{
		"GET /orders/rich-1/timeline": {200, richTimeline(t)},
		"GET /orders/held/timeline": {200, asJSON(t, apigw.Timeline{
			Order: testOrder(is(payment.Paid, payment.Paid, 49900), held(payment.HoldDispute, "disp_1", false), held(payment.HoldPaidAfterClose, "", true), held(payment.HoldCurrency, "pay_2", false), func(o *apigw.Order) {
				o.ClosedAt = &orderTime
				o.Payments = []apigw.Payment{{ID: "pay_1", Status: payment.PaymentCaptured, Amount: 49900, Captured: true}, {ID: "pay_2", Status: payment.PaymentCaptured, Amount: 700, Captured: true}}
			}),
			Entries: []apigw.Entry{
				{At: orderTime, Source: "api", What: "order created: 499.00 INR by razorpay"},
				{At: orderTime.Add(9 * time.Hour), Source: "api", What: "closed by the shop: red \x1b[31m and\nnext line"},
			},
		})},
	})
	for _, id := range []string{"rich-1", "held"} {
		t.Run(id, func(t *testing.T) {
			out, _, err := runOrders(t, api.target(), "order", "explain", id)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, id+".txt", out)
		})
	}
	t.Run("for programs", func(t *testing.T) {
		out, _, err := runOrders(t, api.target(), "order", "explain", "rich-1", "--json")
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
		{testOrder(), "o1: PENDING, NOT FULFILLED: nothing has been captured yet"},
		{testOrder(func(o *apigw.Order) { o.GatewayOrderID = nil }), "o1: PENDING, NOT FULFILLED: the gateway does not have it yet, the shop has to send POST /orders again"},
		{testOrder(is(payment.Pending, payment.Pending, 100)), "o1: PENDING, NOT FULFILLED: the captured money does not cover it"},
		{testOrder(is(payment.Failed, payment.Failed, 0)), "o1: FAILED, NOT FULFILLED: an attempt to pay failed, and no other has succeeded so far"},
		{testOrder(is(payment.Paid, payment.Paid, 49900), held(payment.HoldDispute, "disp_1", false), held(payment.HoldLate, "", false)), "o1: PAID, NOT FULFILLED: held by dispute disp_1, late"},
		{testOrder(is(payment.Paid, payment.Pending, 0), held(payment.HoldStatusBehind, "", false)), "o1: PAID, NOT FULFILLED: it was paid, but the facts now say pending"},
		{testOrder(is(payment.Paid, payment.Paid, 49900), held(payment.HoldLate, "", true)), "o1: PAID, NOT FULFILLED: nothing blocks it any more, its next event fulfils it"},
		{testOrder(is(payment.PartiallyRefunded, payment.PartiallyRefunded, 49900)), "o1: PARTIALLY REFUNDED, NOT FULFILLED: money went back first"},
		{testOrder(is(payment.Refunded, payment.Refunded, 49900), func(o *apigw.Order) { o.FulfilledAt = &orderTime }), "o1: REFUNDED, FULFILLED on 2026-11-30 10:00:00 UTC"},
	} {
		t.Run(c.want, func(t *testing.T) {
			api := newStubAPI(t, map[string]answer{"GET /orders/o1": {200, asJSON(t, c.order)}})
			out, _, err := runOrders(t, api.target(), "order", "get", "o1")
			if got, _, _ := strings.Cut(out, "\n"); got != c.want || err != nil {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestEveryHoldHasItsMeaning(t *testing.T) {
	source, err := os.ReadFile("../../shared/payment/derive.go")
	if err != nil {
		t.Fatal(err)
	}
	count := strings.Count(string(source), " HoldReason = \"")
	if count == 0 || count != len(meanings) {
		t.Errorf("payment has %d hold reasons, and %d have a meaning", count, len(meanings))
	}
}

func TestCloseAndAcknowledgeSendWhatWasSaid(t *testing.T) {
	fulfilled := asJSON(t, testOrder(is(payment.Paid, payment.Paid, 49900), func(o *apigw.Order) { o.FulfilledAt = &orderTime }))
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
			api := newStubAPI(t, map[string]answer{c.call: {200, fulfilled}})
			out, _, err := runOrders(t, api.target(), append([]string{"order"}, c.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			if api.bodies[c.call] != c.body {
				t.Errorf("sent %s, want %s", api.bodies[c.call], c.body)
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
		answers map[string]answer
		want    string
	}{
		{"unknown order", []string{"get", "o1"}, nil, "the test's stack has no order o1: check the id, and the stack"},
		{"unknown order explained", []string{"explain", "o1"}, nil, "the test's stack has no order o1: check the id, and the stack"},
		{"unknown order acknowledged", acknowledge, nil, "the test's stack has no order o1: check the id, and the stack"},
		{"no such hold", acknowledge, map[string]answer{get: {200, asJSON(t, testOrder(held(payment.HoldLate, "", false), held(payment.HoldOver, "", false)))}},
			"order o1 has no hold dispute now: it has late, over"},
		{"no hold at all", acknowledge, map[string]answer{get: {200, asJSON(t, testOrder())}}, "order o1 has no hold dispute now: it has none"},
		{"id of a wrong form", []string{"get", "../o1"}, nil, `"../o1" is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit`},
		{"reason of a wrong form", []string{"acknowledge", "o1", "a/b", "--by", "ann", "--why", "x"}, nil, `"a/b" is not the reason of a hold: it is a word such as dispute or paid_after_close`},
		{"fulfilled already", []string{"close", "o1", "--reason", "x"}, map[string]answer{"POST /orders/o1/close": {409, `{"error":"fulfilled"}`}},
			"order o1 cannot be closed, it was fulfilled already: if the goods do not go out, refund it"},
		{"field at fault", acknowledge, map[string]answer{hold: {400, `{"error":"why is too long","field":"why"}`}}, "the test's stack refuses that: why is too long"},
		{"no permission", []string{"get", "o1"}, map[string]answer{get: {403, `{"message":"Forbidden: ` + secretKey + `"}`}},
			"the test's stack does not let you in (403): the AWS credentials have expired, or lack execute-api:Invoke on it"},
		{"older release", []string{"get", "o1"}, map[string]answer{get: {404, `{"message":"Not Found"}`}}, "the test's stack does not know this call: it is of an older release, deploy this one"},
		{"broken", []string{"get", "o1"}, map[string]answer{get: {500, `{"error":"internal error"}`}},
			"the test's stack answered 500: try again; if it stays, its log group of the orders function says why"},
		{"not JSON", []string{"get", "o1"}, map[string]answer{get: {http.StatusTeapot, "<html>\n"}}, "the test's stack answered 418 "},
		{"no id", []string{"get"}, nil, "0 arguments given, 1 needed: paidonce order get ID [flags]"},
		{"no reason given", []string{"close", "o1"}, nil, `required flag(s) "reason" not set`},
		{"unknown command", []string{"frobnicate"}, nil, `unknown command "frobnicate" for "paidonce order"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := newStubAPI(t, c.answers)
			out, _, err := runOrders(t, api.target(), append([]string{"order"}, c.args...)...)
			if err == nil || err.Error() != c.want || out != "" {
				t.Errorf("got %v, want %s; printed %q", err, c.want, out)
			}
		})
	}
}

func TestStackThatIsGone(t *testing.T) {
	api := newStubAPI(t, nil)
	api.Close()
	_, _, err := runOrders(t, api.target(), "order", "get", "o1")
	if err == nil || err.Error() != "the test's stack did not answer: check that it is still there, and the network" {
		t.Errorf("got %v", err)
	}
}
