package payment_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"paidonce/shared/payment"
)

// A fact is six bytes to the fuzzer: kind and whether a step ends here, id, status and marks, amount, currency and subject,
// second amount or phase. A refund's and a dispute's payment is part of its id.
const (
	factBytes = 6

	kindPayment, kindRefund, kindDispute, kindOrder, kindClosed, kindAcknowledged, kinds = 0, 1, 2, 3, 4, 5, 6

	endsStep     = 1 << 7
	markFailed   = 1 << 6
	markCaptured = 1 << 7
)

var (
	paymentStatuses = []payment.PaymentStatus{payment.PaymentCreated, payment.PaymentAuthorized, payment.PaymentCaptured, payment.PaymentRefunded}
	refundStatuses  = []payment.RefundStatus{payment.RefundPending, payment.RefundProcessed, payment.RefundFailed}
	disputeStatuses = []payment.DisputeStatus{
		payment.DisputeOpen, payment.DisputeUnderReview, payment.DisputeClosed, payment.DisputeWon, payment.DisputeLost,
	}
	disputePhases = []payment.DisputePhase{
		payment.PhaseFraud, payment.PhaseRetrieval, payment.PhaseChargeback, payment.PhasePreArbitration, payment.PhaseArbitration,
	}
	holdReasons = []payment.HoldReason{
		payment.HoldConflict, payment.HoldRefundsUnread, payment.HoldRefundInFlight, payment.HoldDispute, payment.HoldPaidAfterClose,
	}
	currencies = []string{"INR", "USD", "JPY"}
)

func pick[T any](l []T, b byte) T { return l[int(b)%len(l)] }

func index[T comparable](l []T, v T) byte { return byte(max(0, slices.Index(l, v))) }

func paymentID(b byte) string { return fmt.Sprintf("%c", 'A'+b%32) }

func decodeFact(b []byte) payment.Fact {
	id, status, subject := b[1], b[2], paymentID(b[4]>>3)
	money := payment.Money{Amount: int64(b[3]), Currency: pick(currencies, b[4]&7)}
	switch (b[0] &^ endsStep) % kinds {
	case kindPayment:
		f := pay(paymentID(id), pick(paymentStatuses, status&3), 0)
		f.Amount, f.AmountRefunded = money, int64(b[5])
		f.Captured, f.Failed = f.Captured || status&markCaptured != 0, status&markFailed != 0
		return f
	case kindRefund:
		f := refund(fmt.Sprint("r", id%4), subject, pick(refundStatuses, status), 0)
		f.Amount = money
		return named(f)
	case kindDispute:
		f := dispute(fmt.Sprintf("d%d_%s", id%4, subject), pick(disputePhases, b[5]), pick(disputeStatuses, status))
		f.PaymentID, f.Amount, f.Deducted = subject, money, int64(status/8)
		return f
	case kindOrder:
		return payment.OrderFact{GatewayOrderID: "order_1", Paid: status&1 != 0, Amount: money}
	case kindClosed:
		return payment.ClosedFact{Reason: "out of stock", At: day}
	default:
		hold := payment.HoldKey{Reason: pick(holdReasons, status), Subject: subject}
		if hold.Reason == payment.HoldPaidAfterClose {
			hold.Subject = ""
		}
		return payment.AcknowledgedFact{Hold: hold, By: "ann", Why: "called", At: day}
	}
}

func encodeFact(f payment.Fact) []byte {
	money := func(m payment.Money, paymentID string) (byte, byte) {
		return byte(m.Amount), index(currencies, m.Currency) | (paymentID[0]-'A')<<3
	}
	b := make([]byte, factBytes)
	switch f := f.(type) {
	case payment.PaymentFact:
		b[0], b[1], b[2] = kindPayment, f.ID[0]-'A', index(paymentStatuses, f.Status)
		if f.Failed {
			b[2] |= markFailed
		}
		if f.Captured {
			b[2] |= markCaptured
		}
		b[3], b[4] = money(f.Amount, f.ID)
		b[5] = byte(f.AmountRefunded)
	case payment.RefundFact:
		b[0], b[1], b[2] = kindRefund, f.ID[1]-'0', index(refundStatuses, f.Status)
		b[3], b[4] = money(f.Amount, f.PaymentID)
	case payment.DisputeFact:
		b[0], b[1], b[2] = kindDispute, f.ID[1]-'0', index(disputeStatuses, f.Status)
		b[3], b[4] = money(f.Amount, f.PaymentID)
		b[5] = index(disputePhases, f.Phase)
	case payment.OrderFact:
		b[0], b[2] = kindOrder, 1
		b[3], b[4] = money(f.Amount, "A")
	default:
		panic(fmt.Sprintf("scenarios have no %T", f))
	}
	return b
}

// FuzzApply takes an order through any facts, in steps of any size.
func FuzzApply(f *testing.F) {
	for _, s := range scenarios {
		var together, apart []byte
		for _, fact := range s.facts {
			b := encodeFact(fact)
			together = append(together, b...)
			b[0] |= endsStep
			apart = append(apart, b...)
		}
		f.Add(s.partial, s.rules.AcceptOffers, together)
		f.Add(s.partial, s.rules.AcceptOffers, apart)
	}
	f.Fuzz(func(t *testing.T, partial, offers bool, input []byte) {
		s := scenario{partial: partial, rules: payment.Rules{AcceptOffers: offers}}
		l := life{t: t, rules: s.rules, order: s.order(), rows: map[string]payment.Effect{}}
		var step facts
		for ; len(input) >= factBytes; input = input[factBytes:] {
			step = append(step, decodeFact(input))
			if input[0]&endsStep != 0 {
				l.apply(step)
				step = nil
			}
		}
		l.apply(step)
	})
}

// life is an order without a store: rows are what its changes owe.
type life struct {
	t     *testing.T
	rules payment.Rules
	order payment.Order
	rows  map[string]payment.Effect
}

// apply learns the facts whole and checks what must hold without a store.
func (l *life) apply(step facts) {
	l.t.Helper()
	for more := true; more; {
		out := payment.Apply(l.order, append(l.counted(), step...), l.rules, day)
		l.moved(out)
		l.write(out.Effects)
		l.order, more = out.Order, out.More
		if more && len(out.Effects) == 0 {
			l.t.Fatal("more is owed, and nothing was")
		}
	}
	if again := payment.Apply(l.order, append(l.counted(), step...), l.rules, day); again.Changed() && !slices.ContainsFunc(step, fromAPerson) {
		l.t.Fatalf("the same facts again: %s", again.Verdict())
	}
	l.booksAgree()
}

// counted is what the table knows of attempts.
func (l *life) counted() facts {
	var known facts
	for _, e := range l.rows {
		if attempt, ok := e.(payment.CountedAttempt); ok {
			known = append(known, payment.CountedAttemptFact(attempt))
		}
	}
	return known
}

func (l *life) moved(out payment.Outcome) {
	l.t.Helper()
	at := l.order.Status
	for _, m := range out.Moves {
		allowed := map[payment.Status][]payment.Status{
			payment.Pending:           {payment.Failed, payment.Paid},
			payment.Failed:            {payment.Paid},
			payment.Paid:              {payment.PartiallyRefunded, payment.Refunded},
			payment.PartiallyRefunded: {payment.Refunded},
		}
		if m.From != at || !slices.Contains(allowed[at], m.To) {
			l.t.Fatalf("move %v of an order that was %s", m, at)
		}
		at = m.To
	}
	if out.Order.Status != at {
		l.t.Fatalf("moves to %s, order %s", at, out.Order.Status)
	}
	if d := out.Order.Derive(l.rules); l.order.FulfilledAt.IsZero() && !out.Order.FulfilledAt.IsZero() {
		blocked := slices.ContainsFunc(d.Holds, func(h payment.Hold) bool {
			return h.Reason.Blocking() && out.Order.Holds[h.HoldKey].Acknowledged == nil
		})
		if d.Status != payment.Paid || out.Order.Status != payment.Paid || blocked {
			l.t.Fatalf("fulfilled as %s, derived %s, holds %v", out.Order.Status, d.Status, d.Holds)
		}
	}
}

// write keeps the effects. No row is owed twice: the database would refuse it.
func (l *life) write(effects []payment.Effect) {
	l.t.Helper()
	if len(effects) > 40 {
		l.t.Fatalf("%d effects in one transaction", len(effects))
	}
	for _, e := range effects {
		row := fmt.Sprintf("%#v", e)
		switch e := e.(type) {
		case payment.Fulfilment:
			row = "fulfilment"
		case payment.LedgerEntry:
			row = fmt.Sprint("ledger ", e.SubjectID, e.Type)
		case payment.Notification:
			row = "notification " + e.Key
		}
		if there, ok := l.rows[row]; ok {
			l.t.Fatalf("%s is owed twice: %v and %v", row, there, e)
		}
		l.rows[row] = e
	}
}

// booksAgree: what was captured is booked, by currency, and what is booked as refunded was refunded.
func (l *life) booksAgree() {
	l.t.Helper()
	captured, booked := map[string]int64{}, map[string]int64{}
	var refunded int64
	for _, p := range l.order.Payments {
		if p.IsCaptured() {
			captured[p.Captured.Currency] += p.Captured.Amount
		}
	}
	fulfilled := false
	for _, e := range l.rows {
		switch e := e.(type) {
		case payment.Fulfilment:
			fulfilled = true
		case payment.LedgerEntry:
			switch of := l.order.Payments[e.PaymentID]; {
			case e.Type.Corrects() == payment.LedgerCaptured:
				booked[e.Amount.Currency] += e.Amount.Amount
			case e.Type.Corrects() == payment.LedgerRefunded && e.Amount.Currency == "INR" && of.Captured.Currency == "INR":
				refunded += e.Amount.Amount
			}
		}
	}
	maps.DeleteFunc(booked, func(_ string, amount int64) bool { return amount == 0 })
	if !maps.Equal(captured, booked) {
		l.t.Fatalf("captured %v, booked %v", captured, booked)
	}
	if d := l.order.Derive(l.rules); refunded != d.Refunded {
		l.t.Fatalf("refunded %d, booked %d", d.Refunded, refunded)
	}
	if fulfilled == l.order.FulfilledAt.IsZero() {
		l.t.Fatalf("fulfilled at %s, row there: %t", l.order.FulfilledAt, fulfilled)
	}
}
