package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/announce"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

const pace = payment.Pace(time.Minute)

var received = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// fakeQueue keeps what was sent.
type fakeQueue struct {
	waiting int
	sent    []string
	refuse  string // the id that cannot be sent
	broken  error  // of counting
}

func (q *fakeQueue) Send(_ context.Context, k payment.EventKey) error {
	if k.ID == q.refuse {
		return errors.New("refused")
	}
	q.sent = append(q.sent, k.ID)
	return nil
}

func (q *fakeQueue) Waiting(context.Context) (int, error) { return q.waiting, q.broken }

// fakeBus keeps what was published, by key.
type fakeBus struct {
	published map[string]int
	refuse    string // the key that is not taken
}

func (b *fakeBus) Publish(_ context.Context, announcements []payment.Announcement) []error {
	results := make([]error, len(announcements))
	for i, a := range announcements {
		if a.Key.String() == b.refuse {
			results[i] = errors.New("refused")
			continue
		}
		b.published[a.Key.String()]++
	}
	return results
}

type bundle struct {
	*handler
	memory *storetest.Memory
	queue  *fakeQueue
	bus    *fakeBus
	at     time.Time
}

func setup() *bundle {
	b := &bundle{memory: storetest.NewMemory(), queue: &fakeQueue{}, bus: &fakeBus{published: map[string]int{}}, at: received}
	clock := func() time.Time { return b.at }
	b.handler = &handler{
		store: b.memory, queue: b.queue, pace: pace, log: logs.New(io.Discard, "ERROR"), now: clock,
		announcer: announce.Announcer{Store: b.memory, Bus: b.bus, Now: clock},
	}
	return b
}

// put stores an event that was received at the time all of the tests begin.
func (b *bundle) put(t *testing.T, id string, status payment.EventStatus, next time.Time) {
	t.Helper()
	if _, err := b.memory.PutEvent(t.Context(), payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: id}, Status: status, Verdict: "because", ReceivedAt: received, NextAt: next,
	}); err != nil {
		t.Fatal(err)
	}
}

// run sweeps after so much time since the events were received, and returns what was sent, sorted.
func (b *bundle) run(t *testing.T, after time.Duration) []string {
	t.Helper()
	b.at, b.queue.sent = received.Add(after), nil
	if err := b.Handle(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(b.queue.sent)
	return b.queue.sent
}

func (b *bundle) event(t *testing.T, id string) payment.Event {
	t.Helper()
	e, err := b.memory.Event(t.Context(), payment.EventKey{Gateway: "razorpay", ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEventsAreSentWhenTheyAreDueAndNotBefore(t *testing.T) {
	b := setup()
	b.put(t, "received", payment.EventReceived, pace.FirstLook(received))
	b.put(t, "parked", payment.EventParked, received.Add(time.Minute))
	b.put(t, "undecodable", payment.EventParked, time.Time{})
	for _, status := range []payment.EventStatus{payment.EventFailed, payment.EventIgnored, payment.EventApplied} {
		b.put(t, string(status), status, received.Add(time.Minute))
	}
	for _, c := range []struct {
		after string
		want  []string
	}{
		{"59s", nil}, {"1m1s", []string{"parked"}}, {"1m2s", nil}, {"5m1s", []string{"parked"}},
		{"9m", nil}, {"10m1s", []string{"received"}}, {"29m", nil}, {"30m1s", []string{"parked", "received"}},
		{"1h", nil}, {"2h1s", []string{"parked", "received"}}, {"6h1s", []string{"parked", "received"}}, {"11h", nil},
		{"12h2s", []string{"received"}}, {"24h1s", []string{"parked", "received"}},
	} {
		after, err := time.ParseDuration(c.after)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, b.run(t, after)); diff != "" {
			t.Errorf("after %s (-want +sent)\n%s", c.after, diff)
		}
	}
	if e := b.event(t, "received"); e.Status != payment.EventReceived || e.Verdict != "because" {
		t.Errorf("the event is now %s: %q", e.Status, e.Verdict)
	}
}

func TestABacklogIsNotALoss(t *testing.T) {
	b := setup()
	b.put(t, "received", payment.EventReceived, pace.FirstLook(received))
	b.put(t, "parked", payment.EventParked, received.Add(time.Minute))
	b.queue.waiting = backlog
	if diff := cmp.Diff([]string{"parked"}, b.run(t, time.Hour)); diff != "" {
		t.Errorf("with a long queue (-want +sent)\n%s", diff)
	}
	b.queue.waiting = backlog - 1
	if diff := cmp.Diff([]string{"received"}, b.run(t, time.Hour)); diff != "" {
		t.Errorf("with a short one (-want +sent)\n%s", diff)
	}
}

func TestOneBadEventDoesNotKeepTheOthers(t *testing.T) {
	b := setup()
	for i := range 5 {
		b.put(t, fmt.Sprint("e", i), payment.EventReceived, pace.FirstLook(received))
	}
	b.queue.refuse = "e0"
	b.at = received.Add(time.Hour)
	if err := b.Handle(t.Context()); err != nil {
		t.Errorf("one bad event fails the run: %v", err)
	}
	if diff := cmp.Diff([]string{"e1", "e2", "e3", "e4"}, b.queue.sent); diff != "" {
		t.Errorf("(-want +sent)\n%s", diff)
	}
	if e := b.event(t, "e0"); !e.NextAt.After(b.at) {
		t.Error("the bad event comes first again in the next run")
	}
	b.queue.refuse = ""
	if diff := cmp.Diff([]string{"e0", "e1", "e2", "e3", "e4"}, b.run(t, 3*time.Hour)); diff != "" {
		t.Errorf("later (-want +sent)\n%s", diff)
	}
}

func TestEveryFailureIsReported(t *testing.T) {
	broken := errors.New("broken")
	for name, breaks := range map[string]func(*bundle){
		"the queue's count": func(b *bundle) { b.queue.broken = broken },
		"the list":          func(b *bundle) { b.memory.Faults = failing("DueEvents") },
		"the event":         func(b *bundle) { b.memory.Faults = failing("Event") },
		"the settlement":    func(b *bundle) { b.memory.Faults = failing("SettleEvent") },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup()
			b.put(t, "e", payment.EventReceived, pace.FirstLook(received))
			b.at = received.Add(time.Hour)
			breaks(b)
			if err := b.Handle(t.Context()); err == nil {
				t.Error("the run says that all is well")
			}
			if len(b.queue.sent) > 0 {
				t.Errorf("sent %v although it was not written down", b.queue.sent)
			}
		})
	}
}

func failing(method string) func(string) storetest.Fault {
	return func(m string) storetest.Fault {
		if m == method {
			return storetest.NotDone
		}
		return storetest.None
	}
}

func TestNothingBeginsWithLittleTimeLeft(t *testing.T) {
	b := setup()
	b.put(t, "e", payment.EventReceived, pace.FirstLook(received))
	b.at = received.Add(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), reserve-time.Second)
	defer cancel()
	if err := b.Handle(ctx); err != nil || len(b.queue.sent) > 0 {
		t.Errorf("sent %v, %v", b.queue.sent, err)
	}
	if diff := cmp.Diff([]string{"e"}, b.run(t, time.Hour)); diff != "" {
		t.Errorf("the next run (-want +sent)\n%s", diff)
	}
}

func TestSampleEvents(t *testing.T) {
	paths, err := filepath.Glob("../../events/reconcile-*.json")
	if err != nil || len(paths) != 1 {
		t.Fatalf("%d sample events, 1 expected: %v", len(paths), err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	b := setup()
	b.put(t, "e", payment.EventReceived, pace.FirstLook(received))
	b.at = received.Add(time.Hour)
	answer, err := lambda.NewHandler(b.Handle).Invoke(t.Context(), text)
	if err != nil || string(answer) != "null" || len(b.queue.sent) != 1 {
		t.Errorf("answered %s, %v, and sent %v", answer, err, b.queue.sent)
	}
}
