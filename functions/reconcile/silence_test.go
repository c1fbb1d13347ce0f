package main

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
)

// alarm is how many silent payments in a row raise the alarm, as in template.yaml.
const alarm = 3

// listening is a shop whose life goes on while the function runs on its schedule.
type listening struct {
	*sweeping
	out    *bytes.Buffer
	after  time.Duration // since the beginning
	orders int
	said   []float64 // the values of SilentPayments
}

func listen(t *testing.T) *listening {
	l := &listening{sweeping: newSweeping(t, payment.Rules{})}
	l.gateways = []string{"razorpay"}
	l.out = l.measured()
	l.pass(time.Minute, nil) // the scans' first pass
	return l
}

// pass lets time pass: runs every 5 minutes, and between them whatever minute says for each minute.
func (l *listening) pass(d time.Duration, minute func(n int)) {
	l.t.Helper()
	for n := range int(d / time.Minute) {
		l.to(received.Add(l.after + 30*time.Second)) // not where a slice ends
		if minute != nil {
			minute(n)
		}
		if l.after += time.Minute; l.after%(5*time.Minute) == 0 {
			l.to(received.Add(l.after))
			if err := l.Handle(l.t.Context()); err != nil {
				l.t.Fatal(err)
			}
			l.said = append(l.said, gauge(l.t, l.out, "SilentPayments")...)
			l.out.Reset()
		}
	}
}

// sold lets a customer pay for a new order.
func (l *listening) sold() (payment.Order, payment.PaymentFact) {
	l.t.Helper()
	l.orders++
	o := l.open(fmt.Sprint("o", l.orders))
	return o, payment.PaymentFact{ID: l.pay(o, "captured"), Status: payment.PaymentCaptured, Amount: rupees, CreatedAt: l.at.Truncate(time.Second)}
}

// webhook stores the webhook of the last sale, as the receiver does.
func (l *listening) webhook(o payment.Order) payment.Event {
	l.t.Helper()
	e := payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: "evt_" + o.ID}, Status: payment.EventReceived, Type: "payment.captured",
		ReceivedAt: l.at, NextAt: pace.FirstLook(l.at), VerifiedBy: "current", Mode: payment.Test, Verdict: "waiting",
	}
	if _, err := l.memory.PutEvent(l.t.Context(), e); err != nil {
		l.t.Fatal(err)
	}
	return e
}

// apply is the worker.
func (l *listening) apply(o payment.Order, fact payment.PaymentFact, e payment.Event) {
	l.t.Helper()
	if _, err := l.advancer.Apply(l.t.Context(), o.ID, advance.Step{Source: payment.SourceWebhook, Facts: []payment.Fact{fact}, Event: &e}); err != nil {
		l.t.Fatal(err)
	}
}

// well is a sale of which the webhook comes and is applied.
func (l *listening) well() {
	o, fact := l.sold()
	l.apply(o, fact, l.webhook(o))
}

// last is what was said last, and loudest since the last time it was asked.
func (l *listening) last() (last, loudest float64) {
	l.t.Helper()
	if len(l.said) == 0 {
		l.t.Fatal("nothing was said of silence")
	}
	last, loudest = l.said[len(l.said)-1], slices.Max(l.said)
	l.said = nil
	return last, loudest
}

func every(minutes int, do func()) func(int) {
	return func(n int) {
		if n%minutes == 0 {
			do()
		}
	}
}

func TestAWebhookThatIsSwitchedOffIsNoticed(t *testing.T) {
	for _, c := range []struct {
		name    string
		minutes int           // between two sales
		well    time.Duration // before it is switched off
		off     time.Duration // until when it must be noticed: three sales, and a pass of the scan with its settling
	}{
		{"a busy shop", 1, 2 * time.Hour, 85 * time.Minute},
		{"a shop with a sale every 10 minutes", 10, 3 * time.Hour, 100 * time.Minute},
		{"a quiet shop, with a sale every 4 hours", 240, 12 * time.Hour, 8*time.Hour + 80*time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listen(t)
			l.pass(c.well, every(c.minutes, l.well))
			if _, loudest := l.last(); loudest > 0 {
				t.Errorf("%v payments counted as silent while all was well", loudest)
			}
			l.pass(c.off, every(c.minutes, func() { l.sold() }))
			if last, _ := l.last(); last < alarm {
				t.Errorf("%s later %v payments are silent, want %d or more", c.off, last, alarm)
			}
			l.pass(4*time.Hour, every(c.minutes, func() { l.sold() }))
			if last, loudest := l.last(); last < alarm || loudest > 200 {
				t.Errorf("4 hours later %v payments are silent", last)
			}
			l.pass(6*time.Hour, every(c.minutes, l.well))
			if last, _ := l.last(); last > 0 {
				t.Errorf("once it is switched on again %v payments are silent", last)
			}
		})
	}
}

func TestNoFalseAlarm(t *testing.T) {
	for _, c := range []struct {
		name  string
		lives func(l *listening)
		most  float64 // that may be said at any time
	}{
		{"on a quiet night", func(l *listening) { l.pass(12*time.Hour, nil) }, 0},
		{"when a single webhook was lost", func(l *listening) {
			l.sold()
			l.pass(12*time.Hour, nil)
			l.pass(3*time.Hour, every(30, l.well))
		}, 1},
		{"while the worker stands still, and messages wait", func(l *listening) {
			type waiting struct {
				o payment.Order
				f payment.PaymentFact
				e payment.Event
			}
			var left []waiting
			l.pass(5*time.Hour, every(10, func() {
				o, fact := l.sold()
				left = append(left, waiting{o, fact, l.webhook(o)})
				l.queue.waiting++
			}))
			for _, w := range left { // the worker is back
				l.apply(w.o, w.f, w.e)
			}
			l.queue.waiting = 0
			l.pass(3*time.Hour, every(30, l.well))
		}, 0},
		{"after every message was lost, and handed over again", func(l *listening) {
			events := map[string]func(){}
			l.pass(3*time.Hour, func(n int) {
				if n%20 == 0 {
					o, fact := l.sold()
					e := l.webhook(o)
					events[e.Key.ID] = func() { l.apply(o, fact, e) }
				}
				for _, id := range l.queue.sent { // a minute later
					if events[id] != nil {
						events[id]()
						delete(events, id)
					}
				}
				l.queue.sent = nil
			})
		}, 0},
		{"when the worker gave up on every event", func(l *listening) {
			l.pass(5*time.Hour, every(10, func() {
				o, _ := l.sold()
				if err := l.memory.SettleEvent(l.t.Context(), l.webhook(o).Settle(payment.EventFailed, "payment.captured", o.ID, "gave up")); err != nil {
					l.t.Fatal(err)
				}
			}))
			l.pass(12*time.Hour, nil)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listen(t)
			l.pass(2*time.Hour, every(30, l.well))
			l.said = []float64{0}
			c.lives(l)
			if last, loudest := l.last(); loudest > c.most || last > 0 && c.most < alarm {
				t.Errorf("%v payments counted as silent, %v in the end", loudest, last)
			}
		})
	}
}

// TestOurOwnOutageIsForgotten: the gateway could not deliver for an hour. It may raise the alarm, and the next webhook ends it.
func TestOurOwnOutageIsForgotten(t *testing.T) {
	l := listen(t)
	l.pass(2*time.Hour, every(10, l.well))
	l.pass(time.Hour, every(10, func() { l.sold() }))
	l.pass(3*time.Hour, every(10, l.well))
	if last, _ := l.last(); last > 0 {
		t.Errorf("%v payments are silent, although webhooks come again", last)
	}
}

// TestACallbackIsNoWebhook: the browser told us of each payment, which says nothing of the webhook.
func TestACallbackIsNoWebhook(t *testing.T) {
	l := listen(t)
	l.pass(3*time.Hour, every(10, func() {
		o, fact := l.sold()
		if err := l.memory.RecordCallback(t.Context(), o.ID, payment.Callback{PaymentID: fact.ID, At: l.at}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.advancer.Apply(t.Context(), o.ID, advance.Step{Source: payment.SourceCallback, Facts: []payment.Fact{fact}}); err != nil {
			t.Fatal(err)
		}
		l.expect(o.ID, payment.Paid, true)
	}))
	if last, _ := l.last(); last < alarm {
		t.Errorf("%v payments are silent", last)
	}
}

// TestNothingIsSaidWhileMessagesWait: any of them may be the webhook that is missed.
func TestNothingIsSaidWhileMessagesWait(t *testing.T) {
	l := listen(t)
	l.said, l.queue.waiting = nil, 1
	l.pass(2*time.Hour, every(10, l.well))
	if len(l.said) > 0 {
		t.Errorf("said %v while messages waited", l.said)
	}
}
