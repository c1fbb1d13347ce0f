package payment_test

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"paidonce/shared/payment"
)

func (s scenario) order() payment.Order {
	o := payment.NewOrder("o1", inr(100), "razorpay", payment.Test, day)
	o.GatewayOrderID, o.Partial = "order_1", s.partial
	if s.closed {
		o.ClosedAt = day
	}
	return o
}

// holdList renders holds as scenarios write them.
func holdList(d payment.Derivation) string {
	var l []string
	for _, h := range d.Holds {
		switch {
		case h.Reason == payment.HoldStatusBehind:
		case h.Subject != "":
			l = append(l, fmt.Sprintf("%s:%s", h.Reason, h.Subject))
		default:
			l = append(l, string(h.Reason))
		}
	}
	return strings.Join(l, " ")
}

func TestScenarios(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			out := payment.Apply(s.order(), s.facts, s.rules, day)
			d := out.Order.Derive(s.rules)
			if d.Status != s.derived {
				t.Errorf("derived %s, want %s", d.Status, s.derived)
			}
			if got := holdList(d); got != s.holds {
				t.Errorf("holds %q, want %q", got, s.holds)
			}
			// All facts at once: nothing forbids too late.
			if got, want := !out.Order.FulfilledAt.IsZero(), s.fulfil == "yes" || s.fulfil == "early" && mayFulfilAtOnce(s); got != want {
				t.Errorf("fulfilled %t, want %t", got, want)
			}
			again := payment.Apply(out.Order, s.facts, s.rules, day)
			if again.Changed() {
				t.Errorf("the same facts again changed something: %s", again.Verdict())
			}
		})
	}
}

// mayFulfilAtOnce: surplus payments, given back or not, leave an order that may be fulfilled, if nothing was against it
// when all was known.
func mayFulfilAtOnce(s scenario) bool {
	return s.derived == payment.Paid && (s.holds == "" || strings.HasPrefix(s.holds, "surplus"))
}

func TestMoves(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts []payment.Fact
		want  string
	}{
		{"straight to refunded", facts{captured("A", 100), refund("r1", "A", processedRefund, 100)}, "pending>paid paid>refunded"},
		{"failed first", facts{failed("A")}, "pending>failed"},
		{"to partially refunded", facts{captured("A", 100), refund("r1", "A", processedRefund, 1)}, "pending>paid paid>partially_refunded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, m := range payment.Apply(scenario{}.order(), c.facts, payment.Rules{}, day).Moves {
				got = append(got, fmt.Sprintf("%s>%s", m.From, m.To))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("moves %q, want %q", s, c.want)
			}
		})
	}
}

func TestApplyLeavesItsInputAlone(t *testing.T) {
	o := payment.Apply(scenario{}.order(), facts{authorized("A"), refund("r1", "A", pendingRefund, 10)}, payment.Rules{}, day).Order
	before := fmt.Sprint(o)
	payment.Apply(o, facts{captured("A", 100), captured("B", 50), dispute("d1", payment.PhaseFraud, payment.DisputeLost)}, payment.Rules{}, day)
	if after := fmt.Sprint(o); after != before {
		t.Errorf("input changed from %s to %s", before, after)
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	o := scenario{}.order()
	counted := 0
	for i := range 500 {
		f := failed("A")
		f.ID = fmt.Sprintf("pay_%03d", i)
		out := payment.Apply(o, facts{f}, payment.Rules{}, day)
		for _, e := range out.Effects {
			if _, ok := e.(payment.CountedAttempt); ok {
				counted++
			}
		}
		o = out.Order
		if again := payment.Apply(o, facts{payment.CountedAttemptFact{PaymentID: f.ID}, f}, payment.Rules{}, day); again.Changed() {
			t.Fatalf("attempt %d counted twice", i)
		}
	}
	if len(o.Payments) != 20 || counted != 480 || o.FailedAttempts() != 500 {
		t.Errorf("%d stored, %d counted, %d in all; want 20, 480, 500", len(o.Payments), counted, o.FailedAttempts())
	}
	late := payment.Apply(o, facts{captured("Z", 100)}, payment.Rules{}, day).Order
	if late.Status != payment.Paid {
		t.Errorf("a capture after many attempts leaves the order %s", late.Status)
	}
}

// A failure is counted once, whatever else becomes of the payment or of the others.
func TestAnAttemptIsCountedOnce(t *testing.T) {
	var crowd facts
	for i := range 20 {
		f := failed("T")
		f.ID = fmt.Sprintf("T%02d", i)
		crowd = append(crowd, f)
	}
	late := pay("T00", payment.PaymentAuthorized, 100) // makes room among the crowd
	for _, c := range []struct {
		name  string
		facts facts
	}{
		{"twice in one body", facts{failed("A"), failed("A")}},
		{"counted, then captured, then seen failing again", facts{failed("A"), captured("A", 100), failed("A")}},
		{"counted, then another makes room, then seen failing again", facts{failed("A"), late, failed("A")}},
		{"captured, then seen failing twice", facts{captured("A", 100), failed("A"), failed("A")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, together := range []bool{true, false} {
				l := life{t: t, order: scenario{}.order(), rows: map[string]payment.Effect{}}
				l.apply(crowd)
				if together {
					l.apply(c.facts)
				} else {
					for _, f := range c.facts {
						l.apply(facts{f})
					}
				}
				if got := l.order.FailedAttempts(); got != 21 {
					t.Errorf("%d failed attempts, want 21 (all at once: %t)", got, together)
				}
			}
		})
	}
}

// A capture of nothing is no money, and contradicts none.
func TestACaptureOfNothing(t *testing.T) {
	for _, l := range []facts{{captured("A", 0), captured("A", 100)}, {captured("A", 100), captured("A", 0)}, {dollars("A", 30), captured("A", 0)}} {
		life := life{t: t, order: scenario{}.order(), rows: map[string]payment.Effect{}}
		for _, f := range l {
			life.apply(facts{f})
		}
		if p := life.order.Payments["A"]; p.Conflict || p.Captured.Amount == 0 {
			t.Errorf("%v: captured %s, conflict %t", l, p.Captured, p.Conflict)
		}
	}
}

func TestEffectsFitATransaction(t *testing.T) {
	var l facts
	for i := range 60 {
		p := captured(fmt.Sprintf("A%02d", i), 10)
		l = append(l, p, refund(fmt.Sprintf("r%02d", i), p.ID, processedRefund, 5))
	}
	s := scenario{partial: true}
	out := payment.Apply(s.order(), l, s.rules, day)
	if len(out.Effects) > 40 || !out.More {
		t.Fatalf("%d effects, more %t; want at most 40, and more to come", len(out.Effects), out.More)
	}
	entries := map[payment.LedgerType]int{}
	for {
		for _, e := range out.Effects {
			if entry, ok := e.(payment.LedgerEntry); ok {
				entries[entry.Type]++
			}
		}
		if !out.More {
			break
		}
		out = payment.Apply(out.Order, nil, s.rules, day)
	}
	want := map[payment.LedgerType]int{payment.LedgerCaptured: 60, payment.LedgerRefunded: 60}
	if !maps.Equal(entries, want) {
		t.Errorf("ledger entries %v, want %v", entries, want)
	}
}

func TestMoneyString(t *testing.T) {
	for want, m := range map[string]payment.Money{
		"499.00 INR": {Amount: 49900, Currency: "INR"}, "0.05 INR": {Amount: 5, Currency: "INR"},
		"295 JPY": {Amount: 295, Currency: "JPY"}, "99.990 KWD": {Amount: 99990, Currency: "KWD"},
		"-0.50 USD": {Amount: -50, Currency: "USD"},
	} {
		if got := m.String(); got != want {
			t.Errorf("%d %s is %q, want %q", m.Amount, m.Currency, got, want)
		}
	}
}

func TestPark(t *testing.T) {
	e := payment.Event{Key: payment.EventKey{Gateway: "razorpay", ID: "e"}, Status: payment.EventParked, ReceivedAt: day}
	for _, c := range []struct{ age, next string }{
		{"0s", "1m"}, {"59s", "1m"}, {"1m", "5m"}, {"10m", "30m"}, {"45m", "2h"}, {"3h", "6h"}, {"23h", "24h"}, {"24h", ""},
	} {
		s := payment.Pace(time.Minute).Park(e, "payment.captured", "unknown", day.Add(duration(t, c.age)))
		status, next := payment.EventParked, e.ReceivedAt.Add(duration(t, cmp.Or(c.next, "0s")))
		if c.next == "" {
			status, next = payment.EventIgnored, payment.Settlement{}.NextAt
		}
		if s.Status != status || !s.NextAt.Equal(next) {
			t.Errorf("at age %s: %s, next at %s; want %s, next at %s", c.age, s.Status, s.NextAt, status, next)
		}
	}
}

// TestAnEventThatComesLateIsParkedFirst: after days without a worker, what an event waits for may be in the same batch.
func TestAnEventThatComesLateIsParkedFirst(t *testing.T) {
	e := payment.Event{Key: payment.EventKey{Gateway: "razorpay", ID: "e"}, Status: payment.EventReceived, ReceivedAt: day}
	late := day.Add(50 * time.Hour)
	s := payment.Pace(time.Minute).Park(e, "refund.processed", "unknown", late)
	if s.Status != payment.EventParked || !s.NextAt.Equal(late.Add(time.Minute)) {
		t.Errorf("%s, next at %s; want PARKED for another minute", s.Status, s.NextAt)
	}
}

// TestCorrectionsNeverShareARow: the loss of a dispute can go up and down, and every correction is an entry of its own.
func TestCorrectionsNeverShareARow(t *testing.T) {
	o := scenario{}.order()
	var sum int64
	seen := map[payment.LedgerType]bool{}
	for i, f := range []struct{ amount, deducted int64 }{{100, 0}, {150, 0}, {150, 100}, {150, 150}} {
		fact := payment.DisputeFact{
			ID: "d1", PaymentID: "A", Status: payment.DisputeLost, Phase: payment.PhaseChargeback, Amount: inr(f.amount), Deducted: f.deducted,
		}
		out := payment.Apply(o, facts{fact}, payment.Rules{}, day)
		for _, e := range out.Effects {
			if entry, ok := e.(payment.LedgerEntry); ok {
				if seen[entry.Type] {
					t.Errorf("step %d: entry %s is written again", i, entry.Type)
				}
				seen[entry.Type] = true
				sum += entry.Amount.Amount
			}
		}
		o = out.Order
		o.Version++
	}
	if sum != 150 {
		t.Errorf("the ledger says %d were lost, want 150", sum)
	}
}
