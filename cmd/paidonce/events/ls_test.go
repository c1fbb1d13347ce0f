package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/cmd/paidonce/terminal/terminaltest"
	"paidonce/shared/payment"
)

// status makes an event be of it: received so long ago, settled so many times, with its next look so long from now.
func status(s payment.EventStatus, ago time.Duration, attempts int, next time.Duration) func(*payment.Event) {
	return func(e *payment.Event) {
		e.Status, e.ReceivedAt, e.Attempts, e.NextAt = s, day.Add(-ago), attempts, day.Add(next)
		switch s {
		case payment.EventParked:
			e.OrderID, e.Verdict = "", "order order_Zz9 of the gateway is unknown"
		case payment.EventReceived:
			e.OrderID, e.Type, e.Verdict = "", "", "waiting for the worker"
		case payment.EventIgnored, payment.EventApplied:
			e.NextAt, e.Verdict = time.Time{}, "it is "+strings.ToLower(string(s))
		case payment.EventFailed:
			e.NextAt = time.Time{}
		}
	}
}

// events is one event of each kind that a table can have.
func (b *queueBench) events() {
	b.Helper()
	b.event("evt_failed", status(payment.EventFailed, 2*time.Hour, 1, 0))
	b.event("evt_failed_before", status(payment.EventFailed, 3*time.Hour, 1, 0))
	b.event("evt_parked", status(payment.EventParked, 26*time.Hour, 5, 40*time.Minute))
	b.event("evt_now", status(payment.EventReceived, time.Second, 0, 10*time.Minute-time.Second))
	b.event("evt_late", status(payment.EventReceived, 11*time.Minute, 0, -time.Minute))
	b.event("evt_later", status(payment.EventReceived, 25*time.Minute, 1, 5*time.Minute))
	b.event("evt_applied", status(payment.EventApplied, 4*time.Hour, 1, 0))
	b.event("evt_ignored", status(payment.EventIgnored, 5*time.Hour, 1, 0))
}

func TestEventsList(t *testing.T) {
	b := newQueueBench(t)
	b.events()
	out, errOut, err := b.run("events", "ls")
	if err != nil || errOut != "" {
		t.Fatal(err, errOut)
	}
	terminaltest.Golden(t, "events.txt", out)
	out, _, err = b.run("events", "ls", "--json")
	if err != nil {
		t.Fatal(err)
	}
	terminaltest.Golden(t, "events.json", out)
	if b.opened > 0 {
		t.Error("a list of the table opens the queues")
	}
}

func TestWhichEventsAreListed(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"", "evt_failed_before evt_failed evt_parked evt_later evt_late"},
		{"--status failed", "evt_failed_before evt_failed"},
		{"--status PARKED", "evt_parked"},
		{"--status received", "evt_later evt_late evt_now"},
		{"--older-than 150m", "evt_failed_before evt_parked"},
		{"--younger-than 20m", "evt_late"},
		{"--reason unknown", "evt_parked"},
		{"--type payment.captured --status failed", "evt_failed_before evt_failed"},
		{"--gateway stripe", ""},
		{"--order o1", "evt_ignored evt_applied evt_failed_before evt_failed"},
		{"--order o1 --status ignored", "evt_ignored"},
		{"--order o2", ""},
	} {
		t.Run(c.flags, func(t *testing.T) {
			b := newQueueBench(t)
			b.events()
			out, _, err := b.run(append([]string{"events", "ls", "--json"}, strings.Fields(c.flags)...)...)
			var list eventList
			if err := errors.Join(err, json.Unmarshal([]byte(out), &list)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range list.Events {
				got = append(got, strings.TrimPrefix(e.Event, "razorpay/"))
			}
			if diff := cmp.Diff(strings.Fields(c.want), got); c.want != "" && diff != "" || c.want == "" && len(got) > 0 {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEventsListSaysIfThereAreMore(t *testing.T) {
	b := newQueueBench(t)
	b.events()
	out, _, err := b.run("events", "ls", "--limit", "2")
	if err != nil || strings.Contains(out, "evt_parked") || !strings.HasSuffix(out, "\n\n3 more are not listed: --limit 5 lists them too.\n") {
		t.Errorf("%v\n%s", err, out)
	}
	for i := range maxListed + 1 {
		b.event(fmt.Sprint("evt_flood", i), status(payment.EventReceived, time.Second, 0, time.Minute))
	}
	out, _, err = b.run("events", "ls", "--status", "received", "--limit", "1")
	if err != nil || !strings.HasSuffix(out, "\nThere are over 10000 events RECEIVED: only so many were looked at.\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The index lags: what it lists may be settled.
func TestTheRowDecides(t *testing.T) {
	b := newQueueBench(t)
	b.table = oddTable{EventKeeper: b.memory, stale: b.event("evt_healed", status(payment.EventApplied, time.Hour, 2, 0))}
	out, _, err := b.run("events", "ls")
	if err != nil || out != "No event of the test's stack needs anybody.\n" {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = b.run("events", "replay", "--status", "failed", "--yes")
	if err != nil || out != "No event of the test's stack is to be sent.\n\n" || len(b.sentKeys()) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRowsOfANewerReleaseAreShownAndNotSent(t *testing.T) {
	b := newQueueBench(t)
	newer := b.letter("evt_newer", nil)
	b.table = oddTable{EventKeeper: b.memory, newer: newer}
	const reason = "       1  the event row was written by a newer release: use the paidonce of that release; runbook: After a rollback\n"
	for _, args := range [][]string{{"dlq", "ls"}, {"dlq", "redrive", "--all", "--yes"}, {"events", "replay", "razorpay/evt_newer", "--yes"}} {
		out, _, err := b.run(args...)
		if err != nil || !strings.Contains(out, reason) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	out, _, err := b.run("events", "ls", "--status", "failed")
	if err != nil || !strings.Contains(out, "razorpay/evt_newer") || !strings.Contains(out, "the event row was written by a newer release") {
		t.Errorf("%v\n%s", err, out)
	}
	b.want(nil, []payment.EventKey{newer})
}

func TestEventsListOfNothing(t *testing.T) {
	b := newQueueBench(t)
	for args, want := range map[string]string{
		"":                "No event of the test's stack needs anybody.\n",
		"--status parked": "No such event of the test's stack needs anybody.\n",
		"--order o9":      "the test's stack has no such events of order o9. (Those that wait for the worker belong to no order yet.)\n",
		"--json":          "{\n  \"events\": [],\n  \"more\": 0,\n  \"cut\": []\n}\n",
	} {
		out, _, err := b.run(append([]string{"events", "ls"}, strings.Fields(args)...)...)
		if out != want || err != nil {
			t.Errorf("%s: %q, %v", args, out, err)
		}
	}
}

func TestEventsListRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--status lost":    `--status "lost" is none: it is received, parked or failed, and with --order also applied or ignored`,
		"--status applied": "events that are applied are listed with their order only: give --order too",
		"--limit 0":        "--limit 0: it is how many to list at most",
		"evt_1":            "1 arguments given, 0 needed: paidonce events ls [flags]",
	} {
		out, _, err := newQueueBench(t).run(append([]string{"events", "ls"}, strings.Fields(args)...)...)
		if err == nil || err.Error() != want || out != "" {
			t.Errorf("%s: %v; printed %q", args, err, out)
		}
	}
}

func TestNextLook(t *testing.T) {
	for _, c := range []struct {
		status payment.EventStatus
		next   time.Duration
		want   string
	}{
		{payment.EventReceived, 90 * time.Second, "in 1m30s"}, {payment.EventParked, -90 * time.Second, "overdue 1m30s"},
		{payment.EventFailed, 0, "a person"}, {payment.EventApplied, 0, "-"}, {payment.EventIgnored, 0, "-"},
	} {
		e := payment.Event{Status: c.status}
		if c.next != 0 {
			e.NextAt = day.Add(c.next)
		}
		if got := nextLook(entry{event: e}, day); got != c.want {
			t.Errorf("%s: %s, want %s", c.status, got, c.want)
		}
	}
}
