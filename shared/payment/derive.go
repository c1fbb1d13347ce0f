package payment

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rules are the shop's choices.
type Rules struct {
	// AcceptOffers: an order that the gateway itself calls paid is covered, even if less than its amount was
	// captured (the gateway's offers and discounts).
	AcceptOffers bool
	// FulfilWithin, if set, holds an order that is covered later than this after its creation.
	FulfilWithin time.Duration
	// Confirm says which captures are read from the gateway before the goods go out.
	Confirm Confirm
	// Pace is how long a minute of the schedules takes.
	Pace Pace
}

// Confirm says which captures are read from the gateway's API before the goods go out, so that a webhook's word alone, and
// with it a stolen webhook secret, buys nothing. The zero value confirms none. As text it is "never", "always" or
// "above:<amount>", in minor units of the order's currency.
type Confirm struct {
	wanted bool
	above  int64
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Confirm) UnmarshalText(text []byte) error {
	amount, isAbove := strings.CutPrefix(string(text), "above:")
	switch {
	case string(text) == "never":
		*c = Confirm{}
	case string(text) == "always":
		*c = Confirm{wanted: true}
	case isAbove:
		n, err := strconv.ParseInt(amount, 10, 64)
		if err != nil || n < 0 || n > MaxAmount {
			return fmt.Errorf("confirm captures: %q is no amount in minor units", amount)
		}
		*c = Confirm{true, n}
	default:
		return fmt.Errorf("confirm captures: %q is none of never, always, above:<amount>", text)
	}
	return nil
}

// Any reports whether the captures of any order are confirmed.
func (c Confirm) Any() bool { return c.wanted }

// Wants reports whether the captures of an order of this amount are confirmed.
func (c Confirm) Wants(amount Money) bool { return c.wanted && amount.Amount > c.above }

// Derivation is what the facts known of an order say, whatever the order in which they arrived.
type Derivation struct {
	Status   Status
	Captured int64  // minor units of the order's currency that were captured for it
	Refunded int64  // minor units of that which went back
	Holds    []Hold // by reason, then subject
}

// HoldReason names why a person should look at an order.
type HoldReason string

// The hold reasons. Those in [HoldReason.Blocking] keep the order from being fulfilled.
const (
	HoldShort             HoldReason = "short"               // captured money does not cover the order
	HoldOver              HoldReason = "over"                // more was captured than expected
	HoldSurplus           HoldReason = "surplus"             // a payment too many: the others cover the order
	HoldCurrency          HoldReason = "currency"            // captured in another currency; never counted
	HoldStatusBehind      HoldReason = "status_behind"       // the facts say less than the order has already been
	HoldRefundBeforeCover HoldReason = "refund_before_cover" // money went back before the order was covered
	HoldConflict          HoldReason = "conflict"            // the gateway contradicts itself, or it is another order's payment
	HoldRefundsUnread     HoldReason = "refunds_unread"      // the gateway speaks of refunds that we don't know
	HoldRefundInFlight    HoldReason = "refund_in_flight"    // this pending refund, with others, would leave the order uncovered
	HoldRefundReversed    HoldReason = "refund_reversed"     // a refund failed after it was processed
	HoldDispute           HoldReason = "dispute"             // the customer's bank may take the money back, or did
	HoldPaidAfterClose    HoldReason = "paid_after_close"    // covered although the shop had closed the order
	HoldLate              HoldReason = "late"                // covered later than the shop wants to fulfil
	HoldUnconfirmed       HoldReason = "unconfirmed"         // only a webhook says so, and the shop wants it read from the gateway
)

// Blocking reports whether a hold of this reason keeps the order from being fulfilled until it is gone or
// acknowledged.
func (r HoldReason) Blocking() bool {
	switch r {
	case HoldConflict, HoldRefundsUnread, HoldRefundInFlight, HoldDispute, HoldPaidAfterClose, HoldLate,
		HoldUnconfirmed:
		return true
	}
	return false
}

// onlyGuardsTheGoods reports whether a hold of this reason matters to nobody once the order is fulfilled: a refund on its way then
// is what the shop asked for.
func (r HoldReason) onlyGuardsTheGoods() bool {
	return r == HoldRefundInFlight || r == HoldUnconfirmed
}

// HoldKey names a hold: why, and about which payment, refund or dispute. Subject is empty for the order itself.
type HoldKey struct {
	Reason  HoldReason
	Subject string
}

// String is the key for people: "short", "dispute disp_1".
func (k HoldKey) String() string {
	if k.Subject == "" {
		return string(k.Reason)
	}
	return string(k.Reason) + " " + k.Subject
}

// Hold is a hold that the facts call for now.
type Hold struct {
	HoldKey
	// Detail is what it is about, as far as that can get worse: "lost in phase chargeback", "499.00 INR". An
	// acknowledgement counts for the detail that the person saw.
	Detail string
}

// HoldHistory is what happened to a hold since it first appeared. It stays when the hold is gone, so that a hold that
// comes back alarms nobody twice.
type HoldHistory struct {
	Since        time.Time
	Told         bool // subscribers have been told
	Acknowledged *Acknowledgement
}

// Acknowledgement is a person's word that a hold may be disregarded.
type Acknowledgement struct {
	By     string
	Why    string
	At     time.Time
	Detail string // of the hold that the person saw
}

// Acknowledged reports whether a person let the hold pass, as it stands now.
func (o Order) Acknowledged(h Hold) bool {
	a := o.Holds[h.HoldKey].Acknowledged
	return a != nil && a.Detail == h.Detail
}

// Derive says what the facts of o amount to. It is the whole of the rule; docs/design.md has its table.
func (o Order) Derive(r Rules) Derivation {
	m := o.tally()
	covers := o.covering(m, r)
	covered := covers(m.captured)
	net, due := m.captured-m.refunded, min(o.Amount.Amount, m.captured)

	d := Derivation{Captured: m.captured, Refunded: m.refunded}
	switch {
	case !covered && o.anyAttemptFailed() && !o.Partial:
		d.Status = Failed
	case !covered:
		d.Status = Pending
	case net >= due:
		d.Status = Paid
	case net > 0:
		d.Status = PartiallyRefunded
	default:
		d.Status = Refunded
	}

	detailed := func(when bool, reason HoldReason, subject, detail string) {
		if when {
			d.Holds = append(d.Holds, Hold{HoldKey{reason, subject}, detail})
		}
	}
	hold := func(when bool, reason HoldReason, subject string) { detailed(when, reason, subject, "") }
	hold(!covered && m.captured > 0 && !o.Partial, HoldShort, "")
	hold(!covered && m.refunded > 0, HoldRefundBeforeCover, "")
	hold(statusRank[d.Status] < statusRank[o.Status], HoldStatusBehind, "")
	hold(covered && !o.ClosedAt.IsZero(), HoldPaidAfterClose, "")
	hold(r.FulfilWithin > 0 && o.PaidAt.Sub(o.CreatedAt) > r.FulfilWithin, HoldLate, "")
	if d.Status == Paid && net > due {
		extra := o.surplus(m, covers)
		for _, id := range extra {
			hold(true, HoldSurplus, id)
		}
		hold(len(extra) == 0, HoldOver, "")
	}
	unconfirmed := d.Status == Paid && o.FulfilledAt.IsZero() && r.Confirm.Wants(o.Amount) && !o.confirmed(m, r)
	detailed(unconfirmed && m.confirmed == m.captured, HoldUnconfirmed, "", "the gateway's order") // its offer is all that is not
	for id, p := range o.Payments {
		hold(p.IsCaptured() && p.Captured.Currency != o.Amount.Currency, HoldCurrency, id)
		detailed(p.Conflict || p.OtherID != "" || p.Voided && p.IsCaptured(), HoldConflict, id, p.Captured.String())
		detailed(unconfirmed && o.counts(p) && !p.Confirmed, HoldUnconfirmed, id, p.Captured.String())
		detailed(o.counts(p) && p.Claim > m.known[id], HoldRefundsUnread, id, Money{p.Claim, o.Amount.Currency}.String())
	}
	uncovering := d.Status == Paid && m.captured-m.leaving < due
	for id, refund := range o.Refunds {
		hold(refund.Seen.Processed && refund.Seen.Failed, HoldRefundReversed, id)
		detailed(uncovering && m.inFlight(refund), HoldRefundInFlight, id, refund.Amount.String())
		detailed(refund.Conflict, HoldConflict, id, refund.Amount.String())
	}
	for receipt, promised := range o.Reserved {
		counted := o.counts(o.Payments[promised.PaymentID])
		detailed(uncovering && counted, HoldRefundInFlight, receipt, promised.Amount.String())
	}
	for id, dispute := range o.Disputes {
		detailed(!dispute.settled(), HoldDispute, id, dispute.threat())
	}
	slices.SortFunc(d.Holds, func(a, b Hold) int {
		return cmp.Or(strings.Compare(string(a.Reason), string(b.Reason)), strings.Compare(a.Subject, b.Subject))
	})
	return d
}

// confirmed reports whether what was read from the gateway covers the order, its word on offers included.
func (o Order) confirmed(m tally, r Rules) bool {
	if m.confirmed >= o.Amount.Amount {
		return true
	}
	o.GatewayPaid = o.GatewayPaid && o.PaidConfirmed
	return o.covering(m, r)(m.confirmed)
}

// fulfils is the rule for handing over the goods, tested on every Apply, so that the release of a hold can trigger it.
func (o Order) fulfils(d Derivation) bool {
	if o.Status != Paid || d.Status != Paid || !o.FulfilledAt.IsZero() {
		return false
	}
	return !slices.ContainsFunc(d.Holds, func(h Hold) bool {
		return h.Reason.Blocking() && !o.Acknowledged(h)
	})
}

// covering is the rule by which an amount captured, in minor units of the order's currency, pays the order. The gateway's
// offers count only where less than the amount was captured, and never with part payments: there the gateway's word and
// the money can come apart.
func (o Order) covering(m tally, r Rules) func(captured int64) bool {
	offer := r.AcceptOffers && o.GatewayPaid && !o.Partial && m.captured < o.Amount.Amount
	return func(captured int64) bool { return captured > 0 && (captured >= o.Amount.Amount || offer) }
}

func (o Order) anyAttemptFailed() bool {
	if o.CountedAttempts > 0 {
		return true
	}
	for _, p := range o.Payments {
		if p.Failed || p.Voided {
			return true
		}
	}
	return false
}

// tally is the order's money, in minor units of its currency, over the payments that count.
type tally struct {
	captured  int64
	confirmed int64            // of that, as far as it was read from the gateway
	refunded  int64            // by refunds seen processed
	leaving   int64            // by refunds that are processed or may still become it, and by what is promised to others
	back      map[string]int64 // refunded, by payment
	known     map[string]int64 // of every refund known, whatever its status, by payment
}

// inFlight reports whether the refund is of a payment that counts and may still become processed.
func (t tally) inFlight(r Refund) bool {
	_, counted := t.known[r.PaymentID]
	return counted && !r.Seen.Processed && !r.Seen.Failed
}

func (o Order) tally() tally {
	t := tally{back: map[string]int64{}, known: map[string]int64{}}
	for _, p := range o.Payments {
		if o.counts(p) {
			t.captured += p.Captured.Amount
			if p.Confirmed {
				t.confirmed += p.Captured.Amount
			}
		}
	}
	for _, r := range o.Refunds {
		if !o.counts(o.Payments[r.PaymentID]) || r.Amount.Currency != o.Amount.Currency {
			continue
		}
		t.known[r.PaymentID] += r.Amount.Amount
		if r.Seen.Processed {
			t.refunded += r.Amount.Amount
			t.back[r.PaymentID] += r.Amount.Amount
		}
		if r.Seen.Processed || !r.Seen.Failed {
			t.leaving += r.Amount.Amount
		}
	}
	for _, promised := range o.Reserved {
		if p := o.Payments[promised.PaymentID]; o.counts(p) {
			t.leaving += promised.Amount.Amount
		}
	}
	return t
}

// surplus lists the payments that are too many, if the others would cover the order: those after which the earlier ones'
// remaining money does already, or else the last. Earlier is by the gateway's time of creation, then by id.
func (o Order) surplus(m tally, covers func(int64) bool) []string {
	var remaining []Payment // payments that were not given back whole
	spare := false
	for _, p := range o.Payments {
		if !o.counts(p) {
			continue
		}
		spare = spare || covers(m.captured-p.Captured.Amount)
		if p.Captured.Amount > m.back[p.ID] {
			remaining = append(remaining, p)
		}
	}
	if !spare {
		return nil
	}
	slices.SortFunc(remaining, func(a, b Payment) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	var kept int64
	var extra []string
	for i, p := range remaining {
		if covers(kept) || len(extra) == 0 && i == len(remaining)-1 {
			extra = append(extra, p.ID)
		}
		kept += p.Captured.Amount - m.back[p.ID]
	}
	return extra
}
