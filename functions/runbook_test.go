package functions_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"paidonce/shared/payment"
)

// What the runbook's examples name.
const (
	runbookFailed     = "Q2bFhX1yZ0aBcD"
	runbookUnreadable = "Q2bFhX1yZ0xYzW"
	runbookHeld       = "order-1001"
	runbookRefunded   = "order-1002"
	runbookBroken     = "order-1003"
)

var (
	// notEmulated are the operations of the AWS CLI that the emulator refuses.
	notEmulated = []string{
		"service-quotas request-service-quota-increase",
		"deploy list-deployments",
		"deploy stop-deployment",
		"cloudformation execute-change-set", // it sees no drift, so that the set of changes is empty
		"sqs start-message-move-task",
	}
	// wouldEndTheStack are those that it would carry out, and no test could run after them.
	wouldEndTheStack = []string{"cloudformation delete-stack", "sqs delete-queue"}
)

// runbookCase is what a section of the runbook is about: what is so before its commands run, what they are to show, and what they
// are to have done.
type runbookCase struct {
	before func(*testing.T)
	shows  []string
	calls  []string // of the AWS CLI, those whose effect nothing else proves
	after  func(*testing.T)
}

// TestTheRunbooksCommandsWork runs every command of docs/runbook.md, in its order and in one terminal, against the local stack with
// the trouble that each section is about. Only the first block is replaced: it names a stack in AWS and builds its release. Where a
// person would be asked, the answer is yes.
func TestTheRunbooksCommandsWork(t *testing.T) {
	r := &runbookWorld{}
	r.prepare(t)
	o := openTerminal(t, notEmulated, wouldEndTheStack)
	r.dir = o.dir
	r.isThere(t)
	cases := r.cases()

	blocks := runbookBlocks(t)
	setUp := func(b runbookBlock) bool { return strings.Contains(b.code, "PAIDONCE_STACK=") }
	if len(blocks) == 0 || !setUp(blocks[0]) || slices.ContainsFunc(blocks[1:], setUp) {
		t.Fatal("want exactly one block that sets PAIDONCE_STACK, the first")
	}
	blocks[0].code = fmt.Sprintf("export AWS_REGION=%s AWS_DEFAULT_REGION=%[1]s AWS_PAGER= PAIDONCE_STACK=%s\n", stack.Region, stack.StackName)

	var called []string
	for len(blocks) > 0 {
		section := blocks[0].section
		c, known := cases[section]
		if !known {
			t.Fatalf("docs/runbook.md:%d: the section #%s has commands, and this test does not know what they are about", blocks[0].line, section)
		}
		delete(cases, section)
		if c.before != nil {
			c.before(t)
		}
		line, printed := blocks[0].line, ""
		for len(blocks) > 0 && blocks[0].section == section {
			printed += o.run(t, blocks[0])
			blocks = blocks[1:]
		}
		for _, want := range c.shows {
			if !strings.Contains(printed, want) {
				t.Errorf("docs/runbook.md:%d: the commands of #%s do not show %q:\n%s", line, section, want, printed)
			}
		}
		made := o.calls(t)
		for _, want := range c.calls {
			if !slices.Contains(made, want) {
				t.Errorf("docs/runbook.md:%d: #%s does not call aws %s; it calls %v", line, section, want, made)
			}
		}
		called = append(called, made...)
		if c.after != nil {
			c.after(t)
		}
		if t.Failed() {
			t.Fatalf("docs/runbook.md:%d: that was #%s", line, section)
		}
	}
	for section := range cases {
		t.Errorf("the runbook has no commands in a section #%s", section)
	}
	for _, operation := range slices.Concat(notEmulated, wouldEndTheStack) {
		if !slices.Contains(called, operation) {
			t.Errorf("the runbook does not call aws %s: take it off the list", operation)
		}
	}
}

// cases are the sections that have commands, by name.
func (r *runbookWorld) cases() map[string]runbookCase {
	const newer = "written by a newer release"
	looksAt := func(shows ...string) runbookCase { return runbookCase{shows: shows} }
	return map[string]runbookCase{
		"set-up-a-terminal": looksAt("dead letter queues   events: 2", "docs/runbook.md#events-dlq-not-empty"),
		"look-at-an-event-or-an-order": looksAt("razorpay/"+runbookFailed+": FAILED", newer, runbookHeld+": PAID, NOT FULFILLED: held by dispute",
			"webhook    INFO   webhook  event=razorpay/"+runbookFailed),
		"list-the-events-that-need-somebody": looksAt("razorpay/"+runbookFailed, "razorpay/"+r.parked, "a person"),

		"events-dlq-not-empty": looksAt("razorpay/"+runbookFailed, "2 messages", newer),
		"events-backlog-age": {
			before: func(t *testing.T) { switchMapping(t, r.worker, false) },
			shows:  []string{"worker's is Disabled", "worker     ERROR  message"},
			after:  func(t *testing.T) { switchMapping(t, r.worker, true) },
		},
		"webhook-errors": {
			before: func(t *testing.T) {
				if _, err := secrets().DeleteSecret(t.Context(), &secretsmanager.DeleteSecretInput{SecretId: aws.String(webhookSecretName)}); err != nil {
					t.Fatal(err)
				}
			},
			shows: []string{webhookSecretName + " is marked for deletion", "queue: send event"},
			after: func(t *testing.T) { r.oldSecret = secretValue(t, webhookSecretName) },
		},
		"webhook-throttled": {
			before: func(t *testing.T) {
				r.throttledFunction = output(t, "WebhookFunctionName")
				reserve(t, r.throttledFunction, 0)
			},
			shows: []string{`"ReservedConcurrentExecutions": 0`},
			calls: []string{"lambda delete-function-concurrency"},
			after: func(t *testing.T) {
				got, err := functionsAPI().GetFunctionConcurrency(t.Context(), &lambda.GetFunctionConcurrencyInput{FunctionName: &r.throttledFunction})
				if err != nil || aws.ToInt32(got.ReservedConcurrentExecutions) != 50 {
					t.Errorf("the function's share is %+v, %v; want 50", got, err)
				}
				unreserve(t, r.throttledFunction)
			},
		},
		"worker-errors":         looksAt("How often:", newer),
		"worker-event-failures": looksAt("How often:", newer),
		"orders-errors":         looksAt("orders"),
		"checkout-errors":       looksAt("checkout"),
		"refunds-errors":        looksAt("refunds"),
		"notify-errors":         looksAt("notify"),
		"notify-late": {
			before: func(t *testing.T) { switchMapping(t, r.notify, false) },
			shows:  []string{"notify's is Disabled"},
			after:  mappingsEnabled,
		},
		"notify-dlq-not-empty": {
			before: func(t *testing.T) { put(t, output(t, "NotifyDlqUrl")) },
			shows:  []string{"reconcile"},
			after:  func(t *testing.T) { isEmpty(t, output(t, "NotifyDlqUrl")) },
		},
		"reconcile-errors": looksAt("reconcile"),
		"reconcile-silent": looksAt("its schedule is ENABLED"),
		"webhook-silent":   looksAt("status=200", "status=401"),
		"overdue":          looksAt("reconcile  INFO   sweep", "finished=true"),
		"async-dlq-not-empty": {
			before: func(t *testing.T) { put(t, stack.AsyncDlqURL) },
			shows:  []string{"reconcile", "ERROR_CODE"},
			after:  func(t *testing.T) { isEmpty(t, stack.AsyncDlqURL) },
		},
		"signatures-invalid": looksAt(`status=401`, "bad signature", "verified_by=test_current"),
		"orders-held":        looksAt("WARN   held  order=" + runbookHeld + ` outcome="dispute disp_`),
		"paid-not-fulfilled": looksAt("reconcile  INFO   sweep"),
		"undecodable": {
			shows: []string{"razorpay/" + runbookUnreadable, "cannot be decoded"},
			after: func(t *testing.T) {
				if got, err := os.ReadFile(filepath.Join(r.dir, "body.json")); err != nil || string(got) != string(r.unreadable) {
					t.Errorf("body.json holds %q, %v; want what was delivered", got, err)
				}
				if e := event(t, runbookUnreadable); e.Status != payment.EventIgnored {
					t.Errorf("junk is %s: %s", e.Status, e.Verdict)
				}
			},
		},
		"gateway-errors":   looksAt("WARN   gateway call", runbookRefunded),
		"api-5xx":          looksAt("How often:", "queue: send event"),
		"rollback-webhook": looksAt("queue: send event"),

		"heal-a-failed-event": {
			before: func(t *testing.T) { setRowVersion(t, r.broken.ID, "1") },
			shows:  []string{newer, "In the dead letter queue:"},
			after: func(t *testing.T) {
				settled(t, runbookFailed)
				settled(t, r.failedToo)
				paidOnce(t, r.broken.ID)
				isEmpty(t, stack.EventsDlqURL)
			},
		},
		"send-an-event-again": {
			before: r.orderTurnsUp,
			shows:  []string{"1  APPLIED"},
			after: func(t *testing.T) {
				settled(t, r.parked)
				paidOnce(t, "late-"+r.parked)
			},
		},
		"paid-but-not-fulfilled": {
			shows: []string{"NOT FULFILLED: held by dispute"},
			after: func(t *testing.T) { paidOnce(t, runbookHeld) },
		},
		"a-refund-in-doubt": {
			shows: []string{"refund request return-7: asked for: 100.00 INR"},
			after: func(t *testing.T) {
				request, err := table.RefundRequest(t.Context(), runbookRefunded, "return-7")
				if err != nil || request.Status != payment.RequestAccepted {
					t.Errorf("the request is %s, %v", request.Status, err)
				}
				if n := callsOf(http.MethodPost, "/v1/payments/"+r.refundedPayment+"/refund"); n != 1 {
					t.Errorf("the gateway was asked %d times for one refund", n)
				}
			},
		},
		"pause-the-worker": {
			shows: []string{`"State": "Disabled"`},
			after: mappingsEnabled,
		},
		"undo-what-was-changed-by-hand": {calls: []string{"cloudformation create-change-set", "cloudformation describe-change-set", "cloudformation execute-change-set"}},
		"go-back-to-the-release-before": {
			before: r.newVersion,
			after:  r.olderVersion,
		},
		"rotate-the-webhook-secret": {
			before: r.liveSecrets,
			shows:  []string{"live_current", "live_previous", "bad signature"},
			after:  func(t *testing.T) { r.rotated(t, false) },
		},
		"put-the-secret-before-back": {after: func(t *testing.T) {
			r.rotated(t, true)
			store(t, webhookSecretName, r.oldSecret)
			eventually(t, "taken with the old secret again", func() bool { return r.takes(t, stack.PreviousWebhookSecret, "test_previous") })
		}},
		"rotate-the-api-key": {
			before: r.newAPIKey,
			shows:  []string{"takes the key " + stack.KeyID},
			after: func(t *testing.T) {
				if now := secretVersion(t, apiKeySecretName); now == r.apiKeyVersion {
					t.Error("the API key was not stored")
				}
				if _, err := os.Stat(filepath.Join(r.dir, "key.json")); err == nil {
					t.Error("key.json is left behind")
				}
			},
		},
		"the-gateway-has-disabled-the-webhook": looksAt("webhook URL", "missing_webhook"),
		"delete-a-stack":                       looksAt("dead letter queues"),
		"without-the-command-line": {
			shows: []string{`"status": "APPLIED"`, `"status": "partially_refunded"`},
			calls: []string{"sqs send-message"},
		},
	}
}
