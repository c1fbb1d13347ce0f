package order

import (
	"bytes"
	"context"
	"fmt"
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
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

const refunds = "POST /orders/o1/refunds"

func refundBench(t *testing.T, a stacktest.Answer) *stacktest.API {
	t.Helper()
	return stacktest.NewAPI(t, map[string]stacktest.Answer{
		"GET /orders/o1": {Status: 200, Body: stacktest.AsJSON(t, stacktest.Order(stacktest.Is(payment.Paid, payment.Paid, 49900), stacktest.Held(payment.HoldDispute, "disp_1", false), func(o *apigw.Order) {
			o.AmountRefunded = 5000
			o.Payments = []apigw.Payment{{ID: "pay_1", Status: payment.PaymentCaptured, Amount: 49900, Captured: true}, {ID: "pay_2", Status: "failed", Amount: 49900}}
			o.Refunds = []apigw.Refund{{ID: "rfnd_0", Status: payment.RefundProcessed, Amount: 5000, PaymentID: "pay_1"}}
		}))},
		refunds: a,
	})
}

func refundAnswer(status int, state string) stacktest.Answer {
	id := `"rfnd_1"`
	if state == "unknown" {
		id = "null"
	}
	return stacktest.Answer{Status: status, Body: fmt.Sprintf(`{"id":"r1","order":"o1","status":%q,"refund_id":%s,"payment_id":"pay_1","amount":10000,"currency":"INR","receipt":"po_1","created_at":"2026-11-30T10:00:00Z"}`, state, id)}
}

func TestRefund(t *testing.T) {
	api := refundBench(t, refundAnswer(201, "processed"))
	out, _, err := run(t, api.Target(), "refund", "o1", "--id", "r1", "--amount", "10000", "--payment", "pay_1", "--reason", "one item", "--force", "--yes")
	if err != nil {
		t.Fatal(err)
	}
	terminaltest.Golden(t, "refund.txt", out)
	want := `{"id":"r1","amount":10000,"payment_id":"pay_1","reason":"one item","force":true}`
	if diff := cmp.Diff(want, api.Bodies[refunds]); diff != "" {
		t.Errorf("asked for (-want +got)\n%s", diff)
	}
	out, _, err = run(t, api.Target(), "refund", "o1", "--id", "r1", "--amount", "10000", "--yes", "--json")
	if want := `{"result":"made","refund":` + refundAnswer(201, "processed").Body + `}`; err != nil || terminaltest.Compacted(t, out) != want {
		t.Errorf("%v\n%s", err, out)
	}
	if want := `{"id":"r1","amount":10000}`; api.Bodies[refunds] != want {
		t.Errorf("asked for %s, want %s", api.Bodies[refunds], want)
	}
}

func TestWhatARefundsAnswerMeans(t *testing.T) {
	refused := func(status int, reason string) stacktest.Answer {
		return stacktest.Answer{Status: status, Body: `{"error":"the gateway refused","reason":"` + reason + `"}`}
	}
	unknown := "whether the money went back is not known (%d): the same command again finds out, and makes no second refund"
	for _, c := range []struct {
		name   string
		answer stacktest.Answer
		said   string // on success
		err    string
	}{
		{"made", refundAnswer(201, "pending"), "Made: refund rfnd_1 of 100.00 INR, of payment pay_1: pending.", ""},
		{"before", refundAnswer(200, "processed"), "Made before under this id: refund rfnd_1 of 100.00 INR, of payment pay_1: processed. Nothing was refunded again.", ""},
		{"failed later", refundAnswer(200, "failed"), "", "the refund failed: the customer does not have the money, and another try needs another --id"},
		{"not known yet", refundAnswer(202, "unknown"), "Asked for: 100.00 INR, and the gateway's word is not known yet. reconcile finds out; the same command again does too, and makes no second refund.", ""},
		{"another refund", stacktest.Answer{Status: 409, Body: `{"error":"the id belongs to another refund request"}`}, "", "nothing was refunded (409): the id r1 belongs to a refund of another amount or payment: ask under another --id, or with the first amount"},
		{"disputed", stacktest.Answer{Status: 409, Body: `{"error":"disputed"}`}, "", "nothing was refunded (409): the payment is disputed, and the bank may take the money back as well: wait for the outcome, or use --force"},
		{"too much", stacktest.Answer{Status: 422, Body: `{"error":"more than is refundable"}`}, "", "nothing was refunded (422): it is more than is left of what was captured, with the refunds that are on their way"},
		{"which payment", stacktest.Answer{Status: 422, Body: `{"error":"payment_id needed: the order has several captured payments"}`}, "", "nothing was refunded (422): the order has several captured payments: name one with --payment"},
		{"too much for the gateway", refused(422, "amount_exceeded"), "", "nothing was refunded (422): more than the gateway has left of the payment: `paidonce reconcile o1 --stack test` reads what was refunded there"},
		{"no balance", refused(502, "insufficient_balance"), "", "nothing was refunded (502): the gateway account's balance does not cover it: top it up, then ask under another --id"},
		{"a reason of a later release", refused(502, "new\x1b[31m"), "", "nothing was refunded (502): the gateway refused: new\ufffd[31m"},
		{"crashed behind the API", stacktest.Answer{Status: 502, Body: `{"message":"Internal Server Error"}`}, "", fmt.Sprintf(unknown, 502)},
		{"crashed", stacktest.Answer{Status: 500, Body: `{"error":"internal error"}`}, "", fmt.Sprintf(unknown, 500)},
		{"too busy", stacktest.Answer{Status: 503, Body: `{"error":"order was changed by somebody else"}`}, "", fmt.Sprintf(unknown, 503)},
		{"a field", stacktest.Answer{Status: 400, Body: `{"error":"reason must be shorter","field":"reason"}`}, "", "the test's stack refuses that: reason must be shorter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.answer.Body = strings.ReplaceAll(c.answer.Body, "\x1b", `\u001b`)
			out, _, err := run(t, refundBench(t, c.answer).Target(), "refund", "o1", "--id", "r1", "--amount", "10000", "--yes")
			if c.err == "" && (err != nil || !strings.HasSuffix(out, "\n\n"+c.said+"\n")) {
				t.Errorf("%v\n%s", err, out)
			}
			if c.err != "" && (err == nil || err.Error() != c.err) {
				t.Errorf("got  %v\nwant %s", err, c.err)
			}
		})
	}
}

func TestEveryRefusalHasItsCure(t *testing.T) {
	source, err := os.ReadFile("../../../shared/payment/refund.go")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.SplitSeq(string(source), "\n") {
		name, value, found := strings.Cut(line, "= \"")
		if !found || !strings.HasPrefix(strings.TrimSpace(name), "Refused") {
			continue
		}
		named++
		reason, _, _ := strings.Cut(value, `"`)
		if refusals[payment.RefusalReason(reason)] == "" {
			t.Errorf("nothing is said of %s", reason)
		}
	}
	if named == 0 || named != len(refusals) {
		t.Errorf("payment has %d reasons, and %d have a cure", named, len(refusals))
	}
}

func TestNoMoneyMovesUnasked(t *testing.T) {
	for _, c := range []struct {
		name, args, types, said, err string
		asks, asked                  bool
	}{
		{"yes", "o1 --id r1 --amount 10000", "y\n", "Made: refund rfnd_1", "", true, true},
		{"no", "o1 --id r1 --amount 10000", "n\n", "Nothing was refunded.", "", true, false},
		{"nothing typed", "o1 --id r1 --amount 10000", "", "Nothing was refunded.", "", true, false},
		{"no terminal", "o1 --id r1 --amount 10000", "", "To be given back", "nothing was refunded: there is no terminal to ask on, so give --yes", false, false},
		{"a program", "o1 --id r1 --amount 10000 --json", "", "", "--json is for programs, which cannot be asked: give --yes", false, false},
		{"an odd id", "o1 --id r/1 --amount 10000 --yes", "", "", `--id "r/1": the id of a refund must be 1 to 40 letters, digits, _ . or -, and begin with a letter or digit`, false, false},
		{"an odd payment", "o1 --id r1 --payment a/b --amount 10000 --yes", "", "", `--payment "a/b" is not the id of a payment: it looks like pay_Q2bFhX1yZ0aBcD`, false, false},
		{"an odd order", "o/1 --id r1 --amount 10000 --yes", "", "", `"o/1" is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit`, false, false},
		{"no such order", "o2 --id r1 --amount 10000 --yes", "", "", "the test's stack has no order o2: check the id, and the stack", false, false},
		{"rupees", "o1 --id r1 --amount 100.00 --yes", "", "", `invalid argument "100.00" for "--amount" flag: it is a whole number above 0 of minor units: 49900 is 499.00 INR`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := refundBench(t, refundAnswer(201, "processed"))
			w := terminal.Surroundings{Now: time.Now, Asks: func(*cobra.Command) bool { return c.asks }}
			cmd := RefundCommand(func(context.Context, stack.Options) (stack.Target, error) { return api.Target(), nil }, w)
			var out bytes.Buffer
			cmd.SetArgs(strings.Fields(c.args))
			cmd.SetIn(strings.NewReader(c.types))
			cmd.SetOut(&out)
			cmd.SetErr(&bytes.Buffer{})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			err := cmd.ExecuteContext(t.Context())
			if got := fmt.Sprint(err); c.err != "" && got != c.err || c.err == "" && err != nil {
				t.Errorf("got  %v\nwant %s", err, c.err)
			}
			if !strings.Contains(out.String(), c.said) || c.said == "" && out.Len() > 0 {
				t.Errorf("said %q", out.String())
			}
			if asked := api.Bodies[refunds] != ""; asked != c.asked {
				t.Errorf("asked the API: %v, want %v", asked, c.asked)
			}
		})
	}
}

func TestAnUnansweredRefundIsNotSaidToBeNone(t *testing.T) {
	on := refundBench(t, stacktest.Answer{}).Target()
	on.API.URL = "http://127.0.0.1:1" // nobody listens there
	o := refundOptions{ask: stack.RefundAsk{ID: "r1", Amount: 1}}
	_, _, err := on.API.Refund(t.Context(), "o1", o.ask)
	want := "the test's stack did not answer: check that it is still there, and the network; whether the money went back is not known: the same command again finds out, and makes no second refund"
	if got := o.cure(on, "o1", err); got == nil || got.Error() != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}
