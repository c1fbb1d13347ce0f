package payment

import (
	"cmp"
	"fmt"
	"time"
)

func (f PaymentFact) merge(o *Order) string {
	p, known := o.Payments[f.ID]
	before := p
	p.ID = f.ID
	p.Status = later(paymentRank, p.Status, f.Status)
	p.Failed = p.Failed || f.Failed
	p.Amount = o.largest(p.Amount, f.Amount)
	p.CreatedAt = earliest(p.CreatedAt, f.CreatedAt)
	switch {
	case f.Status == PaymentRefunded && !f.Captured:
		p.Voided = true
	case paymentRank[f.Status] >= paymentRank[PaymentCaptured] && f.Amount.Amount > 0: // nothing captured is no money
		p.Conflict = p.Conflict || p.Captured.Amount > 0 && p.Captured != f.Amount
		p.Captured = o.largest(p.Captured, f.Amount)
		p.Confirmed = p.Confirmed || f.Confirmed && f.GatewayOrderID == o.GatewayOrderID // of another order it proves nothing here
		p.Claim = max(p.Claim, f.AmountRefunded)
		if f.Status == PaymentRefunded {
			p.Claim = max(p.Claim, f.Amount.Amount)
		}
	}
	o.Payments[f.ID] = p
	if known && p == before {
		return ""
	}
	if before.Confirmed = p.Confirmed; known && p == before {
		return fmt.Sprintf("payment %s confirmed by the gateway: %s", f.ID, f.says())
	}
	return fmt.Sprintf("payment %s %s", f.ID, f.says())
}

// says is what the fact claims, in words.
func (f PaymentFact) says() string {
	switch {
	case f.Failed && f.Status == PaymentCreated:
		return "failed"
	case f.Status == PaymentRefunded && !f.Captured:
		return "was voided without having been captured"
	case f.AmountRefunded > 0:
		return fmt.Sprintf("%s %s, %s of it refunded", f.Status, f.Amount, Money{f.AmountRefunded, f.Amount.Currency})
	}
	return fmt.Sprintf("%s %s", f.Status, f.Amount)
}

func (f RefundFact) merge(o *Order) string {
	r, known := o.Refunds[f.ID]
	before := r
	r.ID = f.ID
	r.PaymentID = max(r.PaymentID, f.PaymentID)
	r.Receipt = max(r.Receipt, f.Receipt)
	r.Conflict = r.Conflict || known && r.Amount != f.Amount
	r.Amount = o.largest(r.Amount, f.Amount)
	r.Seen = r.Seen.With(f.Status)
	o.Refunds[f.ID] = r
	o.redeem(r)
	if known && r == before {
		return ""
	}
	return fmt.Sprintf("refund %s of payment %s %s %s", f.ID, f.PaymentID, f.Status, f.Amount)
}

// redeem drops the reservation that the refund takes the place of.
func (o *Order) redeem(r Refund) {
	if promised, ok := o.Reserved[r.Receipt]; ok && promised.PaymentID == r.PaymentID && promised.Amount == r.Amount {
		delete(o.Reserved, r.Receipt)
	}
}

func (f ReservedFact) merge(o *Order) string {
	r := f.Request
	if _, there := o.Reserved[r.Call.Key]; there || o.MayRefund(r.PaymentID, r.Amount.Amount, r.Forced, f.Read) != nil {
		return ""
	}
	if _, done := o.RefundOf(r); done {
		return ""
	}
	o.Reserved[r.Call.Key] = Reservation{r.ID, r.PaymentID, r.Amount}
	return fmt.Sprintf("refund request %s: %s of payment %s reserved", r.ID, r.Amount, r.PaymentID)
}

func (f ReleasedFact) merge(o *Order) string {
	promised, there := o.Reserved[f.Receipt]
	if !there {
		return ""
	}
	delete(o.Reserved, f.Receipt)
	return fmt.Sprintf("refund request %s failed, %s of payment %s free again: %s", promised.RequestID, promised.Amount, promised.PaymentID, f.Why)
}

func (f DisputeFact) merge(o *Order) string {
	d, known := o.Disputes[f.ID]
	before := d
	d.ID = f.ID
	d.PaymentID = max(d.PaymentID, f.PaymentID)
	d.Amount = o.largest(d.Amount, f.Amount)
	d.Deducted = max(d.Deducted, f.Deducted)
	d.EverLost = d.EverLost || f.Status == DisputeLost
	if !known || f.follows(d) {
		d.Phase, d.Status = f.Phase, f.Status
	}
	o.Disputes[f.ID] = d
	if known && d == before {
		return ""
	}
	return fmt.Sprintf("dispute %s of payment %s %s in phase %s", f.ID, f.PaymentID, f.Status, f.Phase)
}

// follows reports whether the fact is a later word on d: a later phase, or a later or worse status in the same one.
func (f DisputeFact) follows(d Dispute) bool {
	return cmp.Or(
		cmp.Compare(disputePhaseRank[f.Phase], disputePhaseRank[d.Phase]),
		cmp.Compare(disputeStatusRank[f.Status], disputeStatusRank[d.Status]),
	) > 0
}

func (f OrderFact) merge(o *Order) string {
	confirms := f.Confirmed && f.GatewayOrderID == o.GatewayOrderID
	if !f.Paid || f.Amount != o.Amount || o.GatewayPaid && (o.PaidConfirmed || !confirms) {
		return ""
	}
	o.GatewayPaid, o.PaidConfirmed = true, o.PaidConfirmed || confirms
	if !confirms {
		return fmt.Sprintf("gateway order %s paid", f.GatewayOrderID)
	}
	return fmt.Sprintf("gateway order %s paid, confirmed by the gateway", f.GatewayOrderID)
}

func (f ForeignPaymentFact) merge(o *Order) string {
	p := o.Payments[f.PaymentID]
	if p.OtherID != "" {
		return ""
	}
	p.ID, p.OtherID = f.PaymentID, f.OrderID
	p.Status = later(paymentRank, p.Status, PaymentCreated)
	o.Payments[f.PaymentID] = p
	return fmt.Sprintf("payment %s belongs to order %s", f.PaymentID, f.OrderID)
}

func (f ClosedFact) merge(o *Order) string {
	if !o.FulfilledAt.IsZero() || !o.ClosedAt.IsZero() {
		return ""
	}
	o.ClosedAt, o.CloseReason = f.At, f.Reason
	return "closed by the shop: " + f.Reason
}

func (f AcknowledgedFact) merge(o *Order) string {
	h, appeared := o.Holds[f.Hold]
	if !appeared || h.Acknowledged != nil && h.Acknowledged.Detail == f.Detail {
		return ""
	}
	h.Acknowledged = &Acknowledgement{By: f.By, Why: f.Why, At: f.At, Detail: f.Detail}
	o.Holds[f.Hold] = h
	return fmt.Sprintf("hold %s acknowledged by %s: %s", f.Hold, f.By, f.Why)
}

// A counted attempt leaves no trace in the order: it keeps the attempt from being counted again, see [Order.learn].
func (f CountedAttemptFact) merge(*Order) string { return "" }

// largest is the maximum of two amounts. An amount in the order's own currency is larger than any other, so that the
// maximum does not depend on which was seen first.
func (o *Order) largest(a, b Money) Money {
	own := func(m Money) int {
		if m.Currency == o.Amount.Currency {
			return 1
		}
		return 0
	}
	if cmp.Or(cmp.Compare(own(a), own(b)), cmp.Compare(a.Amount, b.Amount), cmp.Compare(a.Currency, b.Currency)) >= 0 {
		return a
	}
	return b
}

func later[S ~string](rank map[S]int, a, b S) S {
	if a != "" && rank[a] >= rank[b] {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
