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

func (b *queueBench) sentKeys() (ids []string) {
	b.Helper()
	bodies, _ := b.sqs.Bodies(benchEvents)
	for _, body := range bodies {
		k, err := queue.Decode(body)
		if err != nil {
			b.Error(err)
		}
		ids = append(ids, k.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestReplaySends(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"razorpay/evt_failed", "evt_failed"},
		{"razorpay/evt_ignored razorpay/evt_now razorpay/evt_ignored", "evt_ignored evt_now"},
		{"razorpay/evt_applied razorpay/evt_parked", "evt_parked"},
		{"razorpay/evt_applied", ""},
		{"--status failed", "evt_failed evt_failed_before"},
		{"--status received", "evt_late evt_later"}, // the worker has the other
		{"--reason unknown", "evt_parked"},
		{"--order o1", "evt_failed evt_failed_before evt_ignored"},
		{"--order o1 --status ignored", "evt_ignored"},
		{"--gateway razorpay", "evt_failed evt_failed_before evt_late evt_later evt_parked"},
		{"--type refund.failed", ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			b := newQueueBench(t)
			b.events()
			out, _, err := b.run(append([]string{"events", "replay", "--yes", "--json"}, strings.Fields(c.args)...)...)
			var report reportBulk
			if err != nil || json.Unmarshal([]byte(out), &report) != nil {
				t.Fatal(err, out)
			}
			want := strings.Fields(c.want)
			if got := b.sentKeys(); !slices.Equal(got, want) || report.Sent != len(want) || len(report.Plan) != len(want) {
				t.Errorf("sent %q, want %q; %s", got, want, out)
			}
		})
	}
}

func TestReplaySaysWhatItWouldDo(t *testing.T) {
	b := newQueueBench(t)
	b.events()
	out, _, err := b.run("events", "replay", "--order", "o1", "--dry-run")
	if err != nil {
		t.Fatal(err)
	}
	terminaltest.Golden(t, "replay-plan.txt", out)
	out, _, err = b.run("events", "replay", "razorpay/evt_applied")
	want := "No event of the test's stack is to be sent.\n\nNot sent:\n       1  already applied: nothing to do\n\n"
	if diff := cmp.Diff(want, out); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	b.asks, b.answer = true, "n\n"
	_, errOut, err := b.run("events", "replay", "razorpay/evt_failed")
	if err != nil || errOut != "Send 1 event to the worker? [y/N] " {
		t.Errorf("%q, %v", errOut, err)
	}
	_, _, err = b.run("events", "replay", "razorpay/evt_failed", "--wait", "1s")
	if b.asks = false; err != nil || len(b.sentKeys()) > 0 || b.opened > 0 {
		t.Errorf("sent %q, %v", b.sentKeys(), err)
	}
}

func TestReplayRefuses(t *testing.T) {
	const which = "say which: name events, or choose by --status, --reason, --type, --order, --gateway, --older-than or --younger-than (`paidonce events ls` shows what needs it)"
	for args, want := range map[string]string{
		"":                                      which,
		"--yes":                                 which,
		"razorpay/evt_failed --status failed":   "events that are named are taken as they are: leave out the flags that choose",
		"razorpay/evt_failed razorpay/evt_none": "the test's stack has no event razorpay/evt_none, and nothing was sent: check the id, and the stack; old events are dropped",
		"evt_failed":                            `"evt_failed" is not an event: write it as the logs do, razorpay/Q2bFhX1yZ0aBcD or razorpay/sha256:<64 hex digits>`,
		"--status ignored":                      "events that are ignored are listed with their order only: give --order too",
		"razorpay/evt_failed --json":            "--json is for programs, which cannot be asked: give --yes, or --dry-run",
		"razorpay/evt_failed --dry-run --yes":   "if any flags in the group [yes dry-run] are set none of the others can be; [dry-run yes] were all set",
		"--status failed --wait=-1s":            "--wait is how long to wait at most: write it as 30s or 5m",
	} {
		b := newQueueBench(t)
		b.events()
		out, _, err := b.run(append([]string{"events", "replay"}, strings.Fields(args)...)...)
		if err == nil || err.Error() != want || out != "" || len(b.sentKeys()) > 0 {
			t.Errorf("%s: %v; printed %q", args, err, out)
		}
	}
}

func TestReplayGoesOn(t *testing.T) {
	b := newQueueBench(t)
	keys := b.failed(200)
	args := []string{"events", "replay", "--status", "failed", "--yes"}
	_, _, err := b.runContext(b.interrupt("SendMessageBatch", 1), args...)
	sent := len(b.sentKeys())
	want := "interrupted: " + countOf(sent, 200, "event")
	want = strings.TrimSuffix(want, " events") + " sent; go on with: paidonce events replay --status failed --yes --stack test"
	if err == nil || err.Error() != want || sent == 0 || sent == 200 {
		t.Errorf("%d sent, %v, want %s", sent, err, want)
	}
	b.sqs.Before = nil
	if _, _, err := b.run(args...); err != nil {
		t.Fatal(err)
	}
	if got := slices.Compact(b.sentKeys()); len(got) != len(keys) {
		t.Errorf("%d events sent of %d", len(got), len(keys))
	}
}

func TestReplayWaits(t *testing.T) {
	b := newQueueBench(t)
	b.events()
	key := payment.EventKey{Gateway: "razorpay", ID: "evt_parked"}
	b.slept = func() { b.settle(key, payment.EventApplied, "fulfilled") }
	out, _, err := b.run("events", "replay", "razorpay/evt_parked", "--yes", "--wait", "30s")
	if err != nil || !strings.HasSuffix(out, "1 event sent to the worker.\n\nWhat became of 1 event within 1s:\n       1  APPLIED\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if took := b.now().Sub(day); took > time.Second {
		t.Errorf("it waited %s", took)
	}
}
