package events

import (
	"strings"
	"testing"

	"paidonce/shared/payment"
)

func TestIgnoreSettlesWhatNobodyNeeds(t *testing.T) {
	for _, c := range []struct {
		name   string
		status payment.EventStatus
		args   []string
		err    string
	}{
		{"undecodable", payment.EventParked, []string{"--by", "asha", "--why", "junk"}, ""},
		{"failed", payment.EventFailed, []string{"--by", "asha", "--why", "a test"}, ""},
		{"waiting", payment.EventReceived, []string{"--by", "asha", "--why", "junk"}, "has yet to look"},
		{"applied", payment.EventApplied, []string{"--by", "asha", "--why", "junk"}, "APPLIED already"},
		{"ignored before", payment.EventIgnored, []string{"--by", "asha", "--why", "junk"}, "IGNORED already"},
		{"by nobody", payment.EventParked, []string{"--why", "junk"}, "--by says who"},
		{"for no reason", payment.EventParked, []string{"--by", "asha", "--why", " "}, "--why says"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newQueueBench(t)
			key := b.event("evt_1", func(e *payment.Event) { e.Status, e.Verdict = c.status, "cannot be decoded" })
			_, _, err := b.run(append([]string{"events", "ignore", key.String()}, c.args...)...)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
			e, err := b.memory.Event(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			want, verdict := c.status, "cannot be decoded"
			if c.err == "" {
				want, verdict = payment.EventIgnored, "ignored by asha: "+c.args[3]+"; before: cannot be decoded"
			}
			if e.Status != want || e.Verdict != verdict {
				t.Errorf("%s: %s; want %s: %s", e.Status, e.Verdict, want, verdict)
			}
		})
	}
	b := newQueueBench(t)
	if _, _, err := b.run("events", "ignore", "razorpay/none", "--by", "a", "--why", "b"); err == nil || !strings.Contains(err.Error(), "has no event") {
		t.Errorf("an unknown event: %v", err)
	}
}
