package reconcile

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal/terminaltest"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

func TestReconcileAnOrderNow(t *testing.T) {
	b := newReconcileBench(t)
	o := b.open("o1", nil)
	b.at(time.Minute) // long before the schedule looks
	quiet, _, err := b.run("o1")
	if err != nil || !strings.HasPrefix(quiet, "The gateway has nothing new.\n\no1: PENDING, NOT FULFILLED: nothing has been captured yet\n") {
		t.Errorf("%v, printed\n%s", err, quiet)
	}
	if got := b.order("o1"); got.Version != o.Version || !got.DueAt.Equal(o.DueAt) {
		t.Errorf("nothing was learned, and the order went from %d, due %s, to %d, due %s", o.Version, o.DueAt, got.Version, got.DueAt)
	}

	id := b.pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID})
	out, errOut, err := b.run("o1")
	if err != nil || errOut != "" {
		t.Fatal(err, errOut)
	}
	terminaltest.Golden(t, "reconcile-order.txt", strings.ReplaceAll(strings.ReplaceAll(out, id, "pay_1"), o.GatewayOrderID, "order_1"))
	if b.order("o1").FulfilledAt.IsZero() {
		t.Error("it is not fulfilled")
	}

	out, _, err = b.run("o1", "--json")
	var again map[string]any
	if err != nil || json.Unmarshal([]byte(out), &again) != nil {
		t.Fatalf("%v, printed %s", err, out)
	}
	shown, _ := again["order"].(map[string]any)
	if diff := cmp.Diff([]any{}, again["learned"]); diff != "" || len(again) != 2 || shown["status"] != "paid" {
		t.Errorf("printed %s", out)
	}
}

func TestReconcileAnOrderFails(t *testing.T) {
	for _, c := range []struct {
		name, id, want string
		spoil          func(*reconcileBench)
	}{
		{"unknown", "o2", "the test's stack has no order o2: check the id, and the stack", nil},
		{"not an id", "../o1", `"../o1" is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit`, nil},
		{"another mode", "live", "the API key is a test one, and the order a live one", func(b *reconcileBench) {
			b.open("live", func(o *payment.Order) { o.Mode = payment.Live })
		}},
		{"key refused", "o1", "the gateway does not accept the API key (HTTP 401 BAD_REQUEST_ERROR): check the secret that the stack's parameter RazorpayApiKeySecretName names",
			func(b *reconcileBench) { b.gateway = b.client("another") }},
		{"cannot be opened", "o1", "there is no the test's stack for these credentials: check the name, --region and AWS_PROFILE",
			func(b *reconcileBench) { b.broken = stack.ErrNoSuchStack }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newReconcileBench(t)
			b.open("o1", nil)
			if c.spoil != nil {
				c.spoil(b)
			}
			out, _, err := b.run(c.id)
			if err == nil || err.Error() != c.want || out != "" {
				t.Errorf("got %v, want %s; printed %q", err, c.want, out)
			}
		})
	}
}

func TestReconcileFlags(t *testing.T) {
	const since = "--since=24h"
	for _, c := range []struct {
		args []string
		want string // the error, or the report's window
	}{
		{[]string{since}, "2026-11-29T10:00:00Z to 2026-11-30T09:59:00Z"},
		{[]string{"--from=2026-11-30T15:00:00+05:30"}, "2026-11-30T09:30:00Z to 2026-11-30T09:59:00Z"},
		{[]string{"--from=2026-11-30T09:00:00.9Z", "--to=2026-11-30T09:00:01.1Z"}, "2026-11-30T09:00:00Z to 2026-11-30T09:00:01Z"},
		{[]string{"--from=2026-11-30T09:00:00Z", "--to=2026-11-30T09:59:00Z"}, "2026-11-30T09:00:00Z to 2026-11-30T09:59:00Z"},
		{[]string{"--from=2000-01-01T00:00:00Z", "--to=2000-01-01T00:00:01Z"}, "2000-01-01T00:00:00Z to 2000-01-01T00:00:01Z"},
		{nil, "say what to compare: --since 24h, --from TIME, or the id of an order"},
		{[]string{since, "--from=2026-11-30T09:00:00Z"}, "--since goes back from now: give it alone, or --from and --to"},
		{[]string{since, "--to=2026-11-30T09:00:00Z"}, "--since goes back from now: give it alone, or --from and --to"},
		{[]string{"--to=2026-11-30T09:00:00Z"}, "--to says where to end: give --from too"},
		{[]string{"--since=7d"}, `--since "7d" is not a duration: write it as 24h or 90m`},
		{[]string{"--since=60s"}, "--since 60s leaves nothing to compare: it ends a minute ago, since the gateway's lists may lag"},
		{[]string{"--since=-24h"}, "--since -24h leaves nothing to compare: it ends a minute ago, since the gateway's lists may lag"},
		{[]string{"--since=9601h"}, "2025-10-26T09:00:00Z to 2026-11-30T09:59:00Z is more than 400 days: go through it in parts"},
		{[]string{"--from=2026-11-30"}, `--from "2026-11-30" is not a time: write it as 2026-11-30T00:00:00Z, or 2026-11-30T00:00:00+05:30`},
		{[]string{"--from=2026-11-30T09:00:00Z", "--to=now"}, `--to "now" is not a time: write it as 2026-11-30T00:00:00Z, or 2026-11-30T00:00:00+05:30`},
		{[]string{"--from=2026-11-30T09:00:00Z", "--to=2026-11-30T09:00:00Z"}, "--from 2026-11-30T09:00:00Z is not before --to 2026-11-30T09:00:00Z: nothing to compare"},
		{[]string{"--from=2026-11-30T09:59:00Z"}, "--from 2026-11-30T09:59:00Z is not before --to 2026-11-30T09:59:00Z: nothing to compare"},
		{[]string{"--from=2026-11-30T09:00:00Z", "--to=2026-11-30T09:59:01Z"},
			"--to 2026-11-30T09:59:01Z is later than a minute ago: the gateway's lists may not be complete yet, leave it out"},
		{[]string{"--from=1999-12-31T23:59:59Z", "--to=2000-01-01T00:00:01Z"}, "1999-12-31T23:59:59Z is before the year 2000: the gateway lists nothing as old"},
		{[]string{since, "--rate=0"}, "--rate 0: it is a number of calls per second, 1 to 100"},
		{[]string{since, "--rate=101"}, "--rate 101: it is a number of calls per second, 1 to 100"},
		{[]string{"o1", "o2"}, "2 arguments given, at most 1 taken: reconcile [ORDER] [flags]"},
		{[]string{"o1", "--dry-run"}, "an order is asked about as a whole, and what is learned is applied: leave out --since, --from, --to and --dry-run (`paidonce order get ID` only looks)"},
		{[]string{"o1", since}, "an order is asked about as a whole, and what is learned is applied: leave out --since, --from, --to and --dry-run (`paidonce order get ID` only looks)"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			b := newReconcileBench(t)
			out, _, err := b.run(append(c.args, "--json")...)
			if err != nil {
				if out != "" || err.Error() != c.want || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, want %s; printed %q", err, c.want, out)
				}
				return
			}
			var report comparisonReport
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatal(err)
			}
			if got := inUTC(report.From) + " to " + inUTC(report.To); got != c.want {
				t.Errorf("compared %s, want %s", got, c.want)
			}
		})
	}
}
