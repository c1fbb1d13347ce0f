package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"paidonce/shared/payment"
)

const (
	visibility  = 3 * time.Minute // how long a message that failed stays hidden
	maxReceives = 5               // then it moves to the dead letter queue
)

// message is a copy of an event in the queue.
type message struct {
	id       string
	visible  time.Time
	receives int
}

// simulatedQueue is SQS with a worker behind it, on the tests' clock.
type simulatedQueue struct {
	*bundle
	t        *testing.T
	messages []message
	dead     []string
	sent     int
	fails    map[string]bool // the events that the worker cannot apply
}

func simulate(t *testing.T) *simulatedQueue {
	q := &simulatedQueue{bundle: setup(), t: t, fails: map[string]bool{}}
	q.handler.queue = q
	return q
}

func (q *simulatedQueue) Send(_ context.Context, k payment.EventKey) error {
	q.sent++
	q.messages = append(q.messages, message{id: k.ID, visible: q.at})
	return nil
}

func (q *simulatedQueue) Waiting(context.Context) (int, error) { return len(q.messages), nil }

// receive is the webhook: it stores the event and sends its message.
func (q *simulatedQueue) receive(id string) {
	q.t.Helper()
	k := payment.EventKey{Gateway: "razorpay", ID: id}
	if _, err := q.memory.PutEvent(q.t.Context(), payment.Event{
		Key: k, Status: payment.EventReceived, ReceivedAt: q.at, NextAt: pace.FirstLook(q.at), VerifiedBy: "current",
	}); err != nil {
		q.t.Fatal(err)
	}
	q.messages = append(q.messages, message{id: k.ID, visible: q.at})
}

// work lets the worker take up to n messages.
func (q *simulatedQueue) work(n int) {
	q.t.Helper()
	var hidden []message
	for ; n > 0 && len(q.messages) > 0; q.messages = q.messages[1:] {
		m := q.messages[0]
		if m.visible.After(q.at) {
			hidden = append(hidden, m)
			continue
		}
		n--
		m.receives++
		e := q.event(q.t, m.id)
		switch {
		case e.Status == payment.EventApplied:
		case !q.fails[m.id]:
			q.settle(e, payment.EventApplied)
		case m.receives < maxReceives:
			m.visible = q.at.Add(visibility)
			hidden = append(hidden, m)
		default:
			q.settle(e, payment.EventFailed)
			q.dead = append(q.dead, m.id)
		}
	}
	q.messages = append(q.messages, hidden...)
}

func (q *simulatedQueue) settle(e payment.Event, status payment.EventStatus) {
	q.t.Helper()
	if err := q.memory.SettleEvent(q.t.Context(), e.Settle(status, "payment.captured", "o", "settled")); err != nil {
		q.t.Fatal(err)
	}
}

// pass lets time pass second by second, and the function run every 5 minutes.
func (q *simulatedQueue) pass(d time.Duration, second func()) {
	q.t.Helper()
	for end := q.at.Add(d); q.at.Before(end); {
		q.at = q.at.Add(time.Second)
		second()
		if q.at.Sub(received)%(5*time.Minute) == 0 {
			if err := q.Handle(q.t.Context()); err != nil {
				q.t.Fatal(err)
			}
		}
	}
}

// TestTheWorkerStopsForTwentyMinutes at 20 events a second, which go on while it catches up.
func TestTheWorkerStopsForTwentyMinutes(t *testing.T) {
	for _, c := range []struct {
		name    string
		second  int           // events a second
		speed   int           // messages a second that the worker takes afterwards
		catches time.Duration // up after this
	}{
		{"and catches up quickly", 20, 400, 5 * time.Minute},
		{"and catches up slowly", 20, 60, 11 * time.Minute},
		{"with two events a second", 2, 20, 10 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := simulate(t)
			events := 0
			arrive := func() {
				for range c.second {
					events++
					q.receive(fmt.Sprintf("e%06d", events))
				}
			}
			q.pass(10*time.Second, func() { arrive(); q.work(c.speed) })
			q.pass(20*time.Minute, arrive)
			stopped := events
			q.pass(c.catches, func() { arrive(); q.work(c.speed) })
			q.pass(time.Hour, func() { q.work(c.speed) })
			t.Logf("%d events in 20 minutes, %d until it has caught up, %d extra messages", stopped, events, q.sent)
			if q.sent > stopped/100 {
				t.Errorf("%d extra messages of %d", q.sent, stopped)
			}
			applied := 0
			for i := range events {
				if q.event(t, fmt.Sprintf("e%06d", i+1)).Status == payment.EventApplied {
					applied++
				}
			}
			if applied != events || len(q.dead) > 0 {
				t.Errorf("%d of %d events are applied, %d failed", applied, events, len(q.dead))
			}
		})
	}
}

// TestLostMessagesAreMadeUpFor: each once, although the worker is busy.
func TestLostMessagesAreMadeUpFor(t *testing.T) {
	q := simulate(t)
	n := 0
	q.pass(30*time.Minute, func() {
		n++
		q.receive(fmt.Sprintf("e%04d", n))
		if n%10 == 0 {
			q.messages = q.messages[:len(q.messages)-1] // every tenth is lost
		}
		q.work(20)
	})
	q.pass(16*time.Minute, func() { q.work(20) })
	if q.sent != n/10 {
		t.Errorf("%d messages were sent again, want %d", q.sent, n/10)
	}
	for i := range n {
		if e := q.event(t, fmt.Sprintf("e%04d", i+1)); e.Status != payment.EventApplied {
			t.Errorf("event %s is %s", e.Key, e.Status)
		}
	}
}

// TestAPoisonEventDoesNotCircle: it ends in the dead letter queue, with at most one message more, and stays there until an operator
// sends it again.
func TestAPoisonEventDoesNotCircle(t *testing.T) {
	q := simulate(t)
	q.fails["poison"] = true
	q.receive("poison")
	q.pass(time.Hour, func() { q.work(10) })
	if e := q.event(t, "poison"); e.Status != payment.EventFailed || len(q.messages) > 0 {
		t.Fatalf("the event is %s, %d messages are left", e.Status, len(q.messages))
	}
	if q.sent > 1 || len(q.dead) != 1+q.sent {
		t.Errorf("%d messages were sent again, %d are dead", q.sent, len(q.dead))
	}
	sent, before := q.sent, q.event(t, "poison")
	q.pass(3*24*time.Hour, func() { q.work(10) })
	if after := q.event(t, "poison"); q.sent != sent || after.Status != before.Status || after.Attempts != before.Attempts {
		t.Errorf("it was sent %d times more, and went from %+v to %+v", q.sent-sent, before, after)
	}
	q.fails["poison"] = false // a new release
	q.messages = append(q.messages, message{id: "poison", visible: q.at})
	q.pass(time.Hour, func() { q.work(10) })
	if e := q.event(t, "poison"); e.Status != payment.EventApplied || q.sent != sent {
		t.Errorf("after a redrive it is %s, sent %d times more", e.Status, q.sent-sent)
	}
}
