package send

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
)

func TestSendComplains(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses []int
		want     string
	}{
		{"rotated", []int{200, 401}, "1 of 2 were not answered 2xx: the functions keep a secret for some minutes: if it was just rotated, try again then"},
		{"throttled", []int{429, 429}, "2 of 2 were not answered 2xx: the API throttles (parameter ThrottleRate): send fewer at a time, with --delay"},
		{"broken", []int{500}, "1 of 1 were not answered 2xx: `paidonce logs --errors --stack test` says why"},
		{"all sorts", []int{500, 401}, "2 of 2 were not answered 2xx: `paidonce logs --errors --stack test` says why"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newWebhookBench(t)
			b.answers = func(receipt) stacktest.Answer {
				return stacktest.Answer{Status: c.statuses[len(b.receipts)-1], Body: "\x1b[31m"}
			}
			out, err := b.send(fileOf(t, "body.json", sampleBody), "--dup", fmt.Sprint(len(c.statuses)-1))
			if err == nil || err.Error() != c.want || strings.Contains(out, "\x1b") {
				t.Errorf("got  %v\nwant %s\n%q", err, c.want, out)
			}
		})
	}
	b := newWebhookBench(t)
	b.API.URL = "http://127.0.0.1:1" // nobody listens there
	out, err := b.send(fileOf(t, "body.json", sampleBody), "--event-id", "e")
	if want := "1 of 1 were not answered 2xx: the test's stack did not answer: check that it is still there, and the network"; err == nil || err.Error() != want || out != "payment.captured  e    0  no answer: the connection failed\n" {
		t.Errorf("%v, %q", err, out)
	}
}

func TestNothingIsSentIf(t *testing.T) {
	body := fileOf(t, "body.json", sampleBody)
	for _, c := range []struct{ name, args, want string }{
		{"no file", "", "name a file: paidonce send events/webhook-payment-captured.json (- is the standard input)"},
		{"an absent one", "DIR/none.json", "open DIR/none.json: no such file or directory"},
		{"one of two is absent", "BODY DIR/none.json", "open DIR/none.json: no such file or directory"},
		{"an empty one", "/dev/null", "/dev/null is empty: it should hold a webhook's body"},
		{"a live label", "BODY --label live_current", "live_current signs for live mode, and a signed event is money: add --live if that is meant"},
		{"a label that is not there", "BODY --label live_current --live", "the secret the/secret has no live_current, only test_current, test_previous: name one of them with --label"},
		{"no label", "BODY --label current", `--label "current" is none: it is test_current, test_previous, live_current or live_previous`},
		{"no such order", "BODY --order o2", "the test's stack has no order o2: make it with `paidonce order create o2 --amount 49900 --currency INR --stack test`"},
		{"an odd order", "BODY --order o/1", `--order "o/1" is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit`},
		{"nothing to fill", "../../../events/webhook-settlement-processed.json --order o1", "../../../events/webhook-settlement-processed.json: it tells of no payment, order, refund or dispute: leave out --order"},
		{"nothing to set", "BODY --set payload.refund.entity.id=x", "BODY: the body has no payload.refund, so payload.refund.entity.id cannot be put in"},
		{"an odd set", "BODY --set amount", `--set "amount": write it as payload.payment.entity.amount=100`},
		{"a wait for nothing", "BODY --wait 1s", "--wait shows an order: name it with --order"},
		{"a payment of no order", "BODY --payment pay_1", "--payment belongs to --order; without, use --set payload.payment.entity.id=ID"},
		{"too many at a time", "BODY --concurrency 0", "--dup is 0 to 1000 more times, --drop 0 to 100 percent, --concurrency 1 to 200 at a time"},
		{"two inputs", "- -", "the standard input can be read once: name - once"},
		{"two to print", "BODY BODY --print", "--print prints one event: name one file, without --dup and --drop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newWebhookBench(t)
			in := strings.NewReplacer("BODY", body, "DIR", filepath.Dir(body))
			out, err := b.send(strings.Fields(in.Replace(c.args))...)
			if want := in.Replace(c.want); err == nil || err.Error() != want || out != "" {
				t.Errorf("got  %v\nwant %s\n%s", err, want, out)
			}
			if len(b.receipts) > 0 {
				t.Errorf("sent %v", b.receipts)
			}
		})
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&smithy.GenericAPIError{Code: "AccessDeniedException"}, "the AWS credentials do not allow this: they need cloudformation:DescribeStacks, and secretsmanager:GetSecretValue on the webhook secret (and kms:Decrypt, if it has a key of its own)"},
		{&smithy.GenericAPIError{Code: "ExpiredTokenException"}, "the AWS credentials have expired (ExpiredTokenException): sign in again (`aws sso login`)"},
		{fmt.Errorf("secret: %w", &stack.FaultySecret{Parameter: stack.WebhookSecretParameter, Name: "the/secret", Why: "does not exist, or has no value"}), "the secret the/secret does not exist, or has no value: correct the secret, or the parameter RazorpayWebhookSecretName: docs/runbook.md#rotate-the-webhook-secret"},
	} {
		b := newWebhookBench(t)
		b.signing = func(context.Context) (signing, error) { return signing{}, c.err }
		if _, err := b.send(body); err == nil || err.Error() != c.want || len(b.receipts) > 0 {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
