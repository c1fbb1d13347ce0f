package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/cmd/paidonce/terminal/terminaltest"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

func TestDLQList(t *testing.T) {
	b := newQueueBench(t)
	b.each()
	before, _ := b.sqs.Bodies(benchDead)
	out, errOut, err := b.run("dlq", "ls")
	if err != nil || errOut != "" {
		t.Fatal(err, errOut)
	}
	terminaltest.Golden(t, "dlq.txt", out)
	if strings.Contains(out, "asha") {
		t.Error("what is no message of ours is printed")
	}
	after, hidden := b.sqs.Bodies(benchDead)
	if diff := cmp.Diff(before, after); diff != "" || hidden != 0 {
		t.Errorf("%d hidden (-before +after)\n%s", hidden, diff)
	}
	out, _, err = b.run("dlq", "ls", "--json")
	if err != nil {
		t.Fatal(err)
	}
	terminaltest.Golden(t, "dlq.json", out)
}

func TestDLQListOfNothing(t *testing.T) {
	b := newQueueBench(t)
	out, _, err := b.run("dlq", "ls")
	if err != nil || out != "The dead letter queue of the test's stack is empty.\n" {
		t.Errorf("%q, %v", out, err)
	}
	b.sqs.Lag = 2
	out, _, err = b.run("dlq", "ls")
	if want := "No message of the dead letter queue of the test's stack could be seen.\n\nPerhaps not all: SQS counts about 2 messages more than it gave out. Try again in a minute.\n"; err != nil || out != want {
		t.Errorf("%q, %v", out, err)
	}
	b.sqs.Lag = 0
	out, _, err = b.run("dlq", "ls", "--json")
	if want := `{"messages":[],"total":0,"reasons":[],"complete":true,"held_by_others":0,"left":0}`; err != nil || terminaltest.Compacted(t, out) != want {
		t.Errorf("%s, %v", out, err)
	}
}

func TestFiltersOfDeadLetters(t *testing.T) {
	for _, c := range []struct {
		flags string
		want  []string
	}{
		{"--reason CHANGED", []string{"evt_race1", "evt_race2", "evt_young"}},
		{"--reason throttlingexception", []string{"evt_aws"}},
		{"--reason 7UB5-A", []string{"evt_aws"}}, // of the verdict alone
		{"--reason already", []string{"evt_applied"}},
		{"--reason …throttlingEXCEPTION", []string{"evt_aws"}}, // as a list cuts it off
		{"--reason row --gateway razorpay", []string{"evt_gone"}},
		{"--gateway stripe", nil},
		{"--type refund.processed", []string{"evt_young"}},
		{"--order o2", []string{"evt_race2"}},
		{"--older-than 24h", []string{"evt_gone"}},
		{"--younger-than 30m", []string{"evt_young", "", ""}},
		{"--younger-than 30m --gateway razorpay", []string{"evt_young"}},
	} {
		t.Run(c.flags, func(t *testing.T) {
			b := newQueueBench(t)
			b.each()
			out, _, err := b.run(append([]string{"dlq", "ls", "--json"}, strings.Split(c.flags, " ")...)...)
			var list letterList
			if err := errors.Join(err, json.Unmarshal([]byte(out), &list)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range list.Messages {
				got = append(got, strings.TrimPrefix(m.Event, "razorpay/"))
			}
			if diff := cmp.Diff(c.want, got); diff != "" || list.Total != 9 {
				t.Errorf("of %d (-want +got)\n%s", list.Total, diff)
			}
		})
	}
}

func TestDLQShow(t *testing.T) {
	b := newQueueBench(t)
	keys := b.each()
	b.sqs.Put(benchDead, queue.Encode(keys["aws"]), day) // twice
	out, _, err := b.run("dlq", "show", "razorpay/evt_aws")
	if err != nil || strings.Contains(out, "asha") {
		t.Fatal(err, out)
	}
	terminaltest.Golden(t, "dlq-show.txt", out)
	out, _, err = b.run("dlq", "show", "razorpay/evt_aws", "--json")
	if err != nil || strings.Contains(out, "asha") {
		t.Fatal(err, out)
	}
	terminaltest.Golden(t, "dlq-show.json", out)

	out, _, err = b.run("dlq", "show", "razorpay/evt_gone")
	want := "razorpay/evt_gone: no event row: its row has expired, or somebody sent it by hand; take it out with `paidonce dlq drop`\n\n" +
		"In the dead letter queue:\n  message message-7  sent 2026-11-16 12:00:00 UTC  3 receives\n"
	if diff := cmp.Diff(want, out); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	b.event("evt_alone", nil)
	out, _, err = b.run("dlq", "show", "razorpay/evt_alone")
	if want := "\nIt has no message in the dead letter queue.\nOnce the cause is gone, send it again: paidonce events replay razorpay/evt_alone --stack test\n"; err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("%v\n%s", err, out)
	}
	_, _, err = b.run("dlq", "show", "razorpay/evt_none")
	if want := "the test's stack has no event razorpay/evt_none: check the id, and the stack; old events are dropped"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestDLQErrors(t *testing.T) {
	denied := fmt.Errorf("operation error: %w", &smithy.GenericAPIError{Code: "AccessDenied", Message: "arn:aws:iam::1:user/asha"})
	for _, c := range []struct {
		name, operation string
		err             error
		want            string
	}{
		{"not allowed", "ReceiveMessage", denied, "the AWS credentials do not allow this: they need " + mayLook},
		{"expired", "GetQueueAttributes", &smithy.GenericAPIError{Code: "ExpiredToken"}, "the AWS credentials have expired (ExpiredToken): sign in again (`aws sso login`)"},
		{"no queue", "ReceiveMessage", &smithy.GenericAPIError{Code: "QueueDoesNotExist"}, "the test's stack has lost a queue that its outputs name (QueueDoesNotExist): deploy it again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newQueueBench(t)
			keys := b.failed(25)
			b.sqs.Before = func(operation string) error {
				if operation == c.operation {
					return c.err
				}
				return nil
			}
			for _, args := range [][]string{{"ls"}, {"show", "razorpay/evt_001"}, {"redrive", "--all", "--yes"}} {
				out, _, err := b.run(append([]string{"dlq"}, args...)...)
				if err == nil || err.Error() != c.want || out != "" {
					t.Errorf("%v: %v, printed %q", args, err, out)
				}
			}
			b.want(nil, keys)
		})
	}
}

func TestAStackOfAnotherRelease(t *testing.T) {
	_, _, err := queueURLs(t.Context(), stacktest.TemplateParameters(t, nil), "s")
	if err == nil || err.Error() != "stack s has no outputs EventsQueueUrl and EventsDlqUrl: it is of another release, use the paidonce of that one" {
		t.Error(err)
	}
}

// Equal causes read alike, whatever event or call they are of.
func TestReasons(t *testing.T) {
	for verdict, want := range map[string]string{
		"gave up after 5 receives: dynamo: read event razorpay/evt_1: request id: AB-1, deadline exceeded": "dynamo: read event …: request id: …, deadline exceeded",
		"gave up after 12 receives: payment pay_1Ab already belongs to order-7":                            "payment pay_… already belongs to …",
		"order-70 is not order-7, nor is my-order-7; order-7":                                              "order-70 is not …, nor is my-order-7; …",
		"order order_Zz9 of the gateway is unknown":                                                        "order order_… of the gateway is unknown",
		"": "no reason is written",
	} {
		e := entry{event: payment.Event{Key: payment.EventKey{Gateway: "razorpay", ID: "evt_1"}, OrderID: "order-7", Verdict: verdict}}
		if got := e.reason(); got != want {
			t.Errorf("%s: %s", verdict, got)
		}
	}
}
