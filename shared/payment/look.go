package payment

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// looks are when the gateway is asked about an order with an open question, counted in minutes from when something was last
// learned of it. A late authorization may take 3 days (Razorpay, "Late authorisation"); the last look is an hour after that.
var looks = []int{15, 60, 6 * 60, 24 * 60, 48 * 60, 73 * 60}

// urgent is when the gateway is asked, in minutes, where it has to be: it speaks of refunds that we don't know, or its word is
// all that the goods wait for.
const urgent = 1

// NextLook is when the gateway should be asked about the order next; zero if nobody need ask any more.
func (o Order) NextLook(r Rules, at time.Time) time.Time {
	d := o.Derive(r)
	if !o.questionable(d) {
		return time.Time{}
	}
	schedule := looks
	if slices.ContainsFunc(d.Holds, waitsForGateway) {
		schedule = append([]int{urgent}, looks...)
	}
	wait, ok := r.Pace.after(schedule, at.Sub(o.ActiveAt))
	if !ok {
		return time.Time{}
	}
	return o.ActiveAt.Add(wait)
}

// lastLooks is how long, in minutes, an order whose last look failed is asked about once more, and then again after each hour.
const lastLooks = 24 * 60

// RetryLook is when the gateway should be asked once more if the last look, due now, fails: in an hour, for a day; then never.
func (o Order) RetryLook(r Rules, at time.Time) time.Time {
	if at.Sub(o.ActiveAt) >= r.Pace.minutes(looks[len(looks)-1]+lastLooks) {
		return time.Time{}
	}
	return at.Add(r.Pace.minutes(60))
}

// questionable reports whether the gateway may know more of the order than we do: it is not paid, or a hold waits for the
// gateway's word.
func (o Order) questionable(d Derivation) bool {
	return statusRank[d.Status] < statusRank[Paid] || slices.ContainsFunc(d.Holds, waitsForGateway)
}

func waitsForGateway(h Hold) bool {
	return h.Reason == HoldRefundsUnread || h.Reason == HoldUnconfirmed
}

// Opened is the order once the gateway has its order for it.
func (o Order) Opened(gatewayOrderID string, r Rules, at time.Time) Order {
	o.GatewayOrderID, o.UpdatedAt, o.ActiveAt = gatewayOrderID, at, at
	o.DueAt = o.NextLook(r, at)
	return o
}

// RefundsToRead lists the payments whose refunds the gateway knows better than we do: it speaks of some that we don't know, or
// one is on its way.
func (o Order) RefundsToRead(r Rules) []string {
	var ids []string
	for _, h := range o.Derive(r).Holds {
		if h.Reason == HoldRefundsUnread {
			ids = append(ids, h.Subject)
		}
	}
	for _, f := range o.Refunds {
		if !f.Seen.Processed && !f.Seen.Failed {
			ids = append(ids, f.PaymentID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ToCapture is the payment that should be captured by hand, of those that the gateway has just listed as the order's: the earliest
// that was left authorized, although the gateway was asked to capture by itself, on an order that still wants it. It reports
// false if there is none. What the order does not want goes back to the customer by itself: one more on an order that is paid,
// closed or too late, or, unless it may be paid in parts, another amount than the order's.
func (o Order) ToCapture(listed []PaymentFact, r Rules, at time.Time) (PaymentFact, bool) {
	late := r.FulfilWithin > 0 && at.Sub(o.CreatedAt) > r.FulfilWithin
	if statusRank[o.Derive(r).Status] >= statusRank[Paid] || !o.ClosedAt.IsZero() || late {
		return PaymentFact{}, false
	}
	left := slices.DeleteFunc(slices.Clone(listed), func(f PaymentFact) bool {
		wanted := f.Amount == o.Amount || (o.Partial || r.AcceptOffers) && f.Amount.Currency == o.Amount.Currency
		return !wanted || f.Status != PaymentAuthorized || f.GatewayOrderID != o.GatewayOrderID || o.Payments[f.ID].OtherID != ""
	})
	if len(left) == 0 {
		return PaymentFact{}, false
	}
	return slices.MinFunc(left, func(a, b PaymentFact) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	}), true
}
