package events

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/cmd/paidonce/terminal/terminaltest"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

func TestRedriveSaysWhatItWouldDo(t *testing.T) {
	b := newQueueBench(t)
	b.each()
	before, _ := b.sqs.Bodies(benchDead)
	out, _, err := b.run("dlq", "redrive", "--all", "--dry-run")
	if err != nil {
		t.Fatal(err)
	}
	terminaltest.Golden(t, "dlq-plan.txt", out)
	out, _, err = b.run("dlq", "redrive", "--all", "--dry-run", "--json")
	if err != nil {
		t.Fatal(err)
	}
	terminaltest.Golden(t, "dlq-plan.json", out)
	if after, hidden := b.sqs.Bodies(benchDead); !slices.Equal(before, after) || hidden != 0 {
		t.Errorf("%d hidden of %q", hidden, after)
	}
	if sent, _ := b.sqs.Bodies(benchEvents); sent != nil {
		t.Errorf("sent %q", sent)
	}
}

func TestRedriveAsks(t *testing.T) {
	for _, c := range []struct {
		name   string
		asks   bool
		answer string
		flags  []string
		sent   bool
		err    string
	}{
		{"yes", true, "y\n", nil, true, ""},
		{"yes, in full", true, " YES \n", nil, true, ""},
		{"no", true, "n\n", nil, false, ""},
		{"nothing", true, "\n", nil, false, ""},
		{"end of input", true, "", nil, false, ""},
		{"anything else", true, "all\n", nil, false, ""},
		{"no terminal", false, "y\n", nil, false, "nothing was sent: there is no terminal to ask on, so give --yes (or --dry-run, to end here)"},
		{"no terminal, but agreed", false, "", []string{"--yes"}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newQueueBench(t)
			keys := b.failed(3)
			b.asks, b.answer = c.asks, c.answer
			out, errOut, err := b.run(append([]string{"dlq", "redrive", "--all"}, c.flags...)...)
			if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("ended with %v", err)
			}
			if asked := strings.Contains(errOut, "Send 3 messages to the worker? [y/N] "); asked != c.asks {
				t.Errorf("asked %q", errOut)
			}
			if c.sent {
				b.want(keys, nil)
			} else {
				b.want(nil, keys)
			}
			if c.err == "" && strings.HasSuffix(out, "\nNothing was sent.\n") == c.sent {
				t.Error(out)
			}
		})
	}
}

func TestRedriveByKeyAndFilter(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		sent []string
	}{
		{"one", []string{"razorpay/evt_race1"}, []string{"race"}},
		{"two, one of them named twice", []string{"razorpay/evt_race1", "razorpay/evt_aws", "razorpay/evt_race1"}, []string{"race", "aws"}},
		{"by reason", []string{"--reason", "throttling"}, []string{"aws"}},
		{"by order", []string{"--order", "o2"}, []string{"race2"}},
		{"a key and a filter", []string{"razorpay/evt_race1", "razorpay/evt_aws", "--reason", "throttling"}, []string{"aws"}},
		{"all that can be", []string{"--all"}, []string{"race", "race2", "young", "applied", "unsaid", "aws"}},
		{"what has no row", []string{"razorpay/evt_gone"}, nil},
		{"what does not match", []string{"--gateway", "stripe"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newQueueBench(t)
			keys := b.each()
			before, _ := b.sqs.Bodies(benchDead)
			out, _, err := b.run(append([]string{"dlq", "redrive", "--yes", "--json"}, c.args...)...)
			var report reportBulk
			if err != nil || json.Unmarshal([]byte(out), &report) != nil || report.Sent != len(c.sent) {
				t.Errorf("%v\n%s", err, out)
			}
			var sent []string
			for _, name := range c.sent {
				sent = append(sent, queue.Encode(keys[name]))
			}
			want := slices.DeleteFunc(before, func(body string) bool { return slices.Contains(sent, body) })
			got, hidden := b.sqs.Bodies(benchDead)
			if diff := cmp.Diff(want, got); diff != "" || hidden != 0 {
				t.Errorf("left, %d hidden (-want +got)\n%s", hidden, diff)
			}
			events, _ := b.sqs.Bodies(benchEvents)
			slices.Sort(events)
			slices.Sort(sent)
			if diff := cmp.Diff(sent, events); diff != "" {
				t.Errorf("sent (-want +got)\n%s", diff)
			}
		})
	}
}

func TestRedriveRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                                  "say which: name events, choose by --reason, --type, --order, --gateway, --older-than or --younger-than, or take --all (`paidonce dlq ls` shows what is there)",
		"--yes":                             "say which: name events, choose by --reason, --type, --order, --gateway, --older-than or --younger-than, or take --all (`paidonce dlq ls` shows what is there)",
		"--all --reason x":                  "--all takes every message: leave it out, or what else chooses",
		"--all razorpay/evt_000":            "--all takes every message: leave it out, or what else chooses",
		"evt_000":                           `"evt_000" is not an event: write it as the logs do, razorpay/Q2bFhX1yZ0aBcD or razorpay/sha256:<64 hex digits>`,
		"--all --json":                      "--json is for programs, which cannot be asked: give --yes, or --dry-run",
		"--all --wait=-1s":                  "--wait is how long to wait at most: write it as 30s or 5m",
		"--older-than=-1h":                  "--older-than and --younger-than say how long ago: write them as 90m or 24h",
		"--older-than=2h --younger-than=1h": "nothing is older than 2h0m0s and younger than 1h0m0s",
		"--order=o/1":                       `--order "o/1" is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit`,
		"--yes razorpay/evt_000 razorpay/evt_x razorpay/evt_y!" + strings.Repeat("ab", 32): "the dead letter queue of the test's stack has no message of razorpay/evt_x, razorpay/evt_y!" + strings.Repeat("ab", 32) +
			", and nothing was sent: if the event needs the worker, paidonce events replay razorpay/evt_x 'razorpay/evt_y!" + strings.Repeat("ab", 32) + "' --stack test",
	} {
		b := newQueueBench(t)
		keys := b.failed(3)
		out, _, err := b.run(append([]string{"dlq", "redrive"}, strings.Fields(args)...)...)
		if err == nil || err.Error() != want || out != "" {
			t.Errorf("%s: %v; printed %q", args, err, out)
		}
		b.want(nil, keys)
	}
}

func TestRedriveLeavesWhatComesAfterThePlan(t *testing.T) {
	b := newQueueBench(t)
	keys := b.failed(3)
	late := payment.EventKey{Gateway: "razorpay", ID: "evt_late"}
	receives := 0
	b.sqs.Before = func(operation string) error {
		if operation == "SendMessageBatch" {
			if receives++; receives == 1 {
				b.letter("evt_late", nil)
			}
		}
		return nil
	}
	if _, _, err := b.run("dlq", "redrive", "--all", "--yes"); err != nil {
		t.Fatal(err)
	}
	b.want(keys, []payment.EventKey{late})
}

// TestRedriveGoesOn interrupts a redrive at each of its calls: what was said leads through the rest, and nothing is lost or
// counted twice.
func TestRedriveGoesOn(t *testing.T) {
	const again = "paidonce dlq redrive --reason 'changed by' --yes --stack test"
	for _, operation := range []string{"ReceiveMessage", "SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", "GetQueueAttributes"} {
		for at := 1; at <= 12; at++ {
			b := newQueueBench(t)
			keys := b.failed(45)
			ctx := b.interrupt(operation, at)
			args := []string{"dlq", "redrive", "--reason", "changed by", "--yes"}
			out, _, err := b.runContext(ctx, args...)
			b.sqs.Before = nil
			sent, _ := b.sqs.Bodies(benchEvents)
			left, hidden := b.sqs.Bodies(benchDead)
			if hidden != 0 || len(sent)+len(left) != 45 {
				t.Errorf("%s %d: %d sent, %d left, %d hidden", operation, at, len(sent), len(left), hidden)
			}
			switch {
			case err == nil && len(sent) != 45, err != nil && ctx.Err() == nil:
				t.Errorf("%s %d: %d sent, %v", operation, at, len(sent), err)
			case err != nil && len(sent) > 0 && !strings.HasSuffix(err.Error(), "of 45 sent, the rest stays in the dead letter queue; go on with: "+again):
				t.Errorf("%s %d: %v", operation, at, err)
			case err != nil && !strings.HasPrefix(err.Error(), "interrupted"):
				t.Errorf("%s %d: %v", operation, at, err)
			case len(sent) > 0 && !strings.Contains(out, countOf(len(sent), 45, "message")+" sent to the worker.\n"):
				t.Errorf("%s %d: %d sent, and it says\n%s", operation, at, len(sent), out)
			}
			if _, _, err := b.run(args...); err != nil {
				t.Errorf("%s %d: then %v", operation, at, err)
			}
			b.want(keys, nil)
		}
	}
}

func TestRedriveWaits(t *testing.T) {
	b := newQueueBench(t)
	keys := b.failed(4)
	b.sqs.Put(benchDead, queue.Encode(keys[0]), day) // a second message of the first event
	polls := 0
	b.slept = func() {
		switch polls++; polls {
		case 1:
			b.settle(keys[0], payment.EventApplied, "fulfilled")
		case 2:
			b.settle(keys[1], payment.EventFailed, "gave up after 5 receives: dynamo: no")
			b.settle(keys[2], payment.EventIgnored, "another account")
		}
	}
	out, _, err := b.run("dlq", "redrive", "--all", "--yes", "--wait", "1m")
	if err == nil || err.Error() != "1 failed again, 1 not settled after 1m00s; later: paidonce events ls --stack test" {
		t.Errorf("ended with %v", err)
	}
	_, became, _ := strings.Cut(out, "sent to the worker.\n")
	want := `
What became of 4 events within 1m00s:
       1  APPLIED
       1  FAILED again
       1  IGNORED
       1  not settled yet: the worker tries an event several times before it gives up

  Failed again because of:
         1  dynamo: no
`
	if diff := cmp.Diff(want, became); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRedriveWaitsNoLongerThanNeeded(t *testing.T) {
	b := newQueueBench(t)
	keys := b.failed(2)
	b.slept = func() {
		for _, k := range keys {
			if e, _ := b.memory.Event(t.Context(), k); e.Status != payment.EventApplied {
				b.settle(k, payment.EventApplied, "fulfilled")
			}
		}
	}
	out, _, err := b.run("dlq", "redrive", "--all", "--yes", "--wait", "1h", "--json")
	var report reportBulk
	if err != nil || json.Unmarshal([]byte(out), &report) != nil {
		t.Fatal(err, out)
	}
	if diff := cmp.Diff(&outcome{Applied: 2, Reasons: []reasonCount{}}, report.Became); diff != "" || b.now().Sub(day) > time.Second {
		t.Errorf("after %s (-want +got)\n%s", b.now().Sub(day), diff)
	}
}

func TestRedriveOfTenThousand(t *testing.T) {
	b := newQueueBench(t)
	keys := make([]payment.EventKey, 10_000)
	for i := range keys {
		keys[i] = b.letter("evt_"+strings.Repeat("x", i%7)+time.Duration(i).String(), nil)
	}
	out, _, err := b.run("dlq", "redrive", "--all", "--yes")
	if err != nil || !strings.HasSuffix(out, "\n10000 messages sent to the worker.\n") {
		t.Errorf("%v\n%s", err, out[max(0, len(out)-500):])
	}
	b.want(keys, nil)
}
