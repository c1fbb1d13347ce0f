package payment

import (
	"fmt"
	"maps"
	"time"
)

// maxStoredAttempts is how many attempts that were never authorized an order keeps one by one. Further ones are only
// counted, so that card testing cannot grow the order without bound.
const maxStoredAttempts = 20

// Order is the shop's order as we know it: what is expected, what the gateway says, and what follows.
type Order struct {
	ID             string // the shop's own id
	Gateway        string
	Mode           Mode
	Account        string // the gateway's id of the merchant account; empty: not compared
	GatewayOrderID string // empty until the gateway has created its order
	Amount         Money  // expected, > 0
	Partial        bool   // the customer may pay in parts
	Notes          map[string]string

	// What the gateway says.

	Payments        map[string]Payment
	Refunds         map[string]Refund
	Disputes        map[string]Dispute
	Reserved        map[string]Reservation // money promised to refund requests that the gateway does not show yet, by receipt
	GatewayPaid     bool                   // the gateway called its own order paid, with our amount and currency
	PaidConfirmed   bool                   // it said so when it was asked, not by a webhook alone
	CountedAttempts int                    // failed attempts beyond those in Payments

	// What follows.

	Status      Status
	Holds       map[HoldKey]HoldHistory // every hold that ever appeared
	PaidAt      time.Time               // first time captured money covered the order
	FulfilledAt time.Time
	ClosedAt    time.Time // the shop released the stock
	CloseReason string
	ActiveAt    time.Time // when something was last learned
	DueAt       time.Time // when the gateway should be asked about it; zero if nobody need
	Version     int64     // grows by one with every write; 0: not stored yet
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Payment is one attempt of a customer as we know it.
type Payment struct {
	ID        string
	Status    PaymentStatus
	Failed    bool   // seen failed at least once
	Voided    bool   // an authorization that went back to the customer without having been captured
	Amount    Money  // largest seen
	Captured  Money  // largest captured amount seen; zero until captured
	Conflict  bool   // two different captured amounts were seen
	Confirmed bool   // seen captured by reading it from the gateway, not by a webhook alone
	Claim     int64  // largest amount the gateway said was refunded of it, minor units of Captured's currency
	OtherID   string // our other order that has this payment; it is never counted here
	CreatedAt time.Time

	Pointed bool  // its pointer row is written
	Booked  Money // how much of it is in the ledger
}

// IsCaptured reports whether money was ever captured, in whatever currency, for this order.
func (p Payment) IsCaptured() bool { return p.Captured.Amount > 0 && p.OtherID == "" }

// Refund is one refund of a payment as we know it.
type Refund struct {
	ID        string
	PaymentID string
	Amount    Money
	Receipt   string
	Seen      RefundStates // every status in which it was seen

	Conflict bool         // two different amounts were seen
	Told     RefundStates // the statuses that subscribers are told of
	Booked   Money        // how much of it is in the ledger
	Reversed Money        // how much of that the ledger takes back
}

// Reservation is money of a payment that is promised to a refund request. It is neither in the payment nor in a refund
// until the gateway's refund is known and takes its place.
type Reservation struct {
	RequestID string
	PaymentID string
	Amount    Money
}

// RefundStates is a set of refund statuses.
type RefundStates struct{ Pending, Processed, Failed bool }

// With returns the set with s in it.
func (r RefundStates) With(s RefundStatus) RefundStates {
	switch s {
	case RefundProcessed:
		r.Processed = true
	case RefundFailed:
		r.Failed = true
	default:
		r.Pending = true
	}
	return r
}

// Status is the one word for the refund: failed, processed or pending. A refund that failed after it was processed
// is failed.
func (r Refund) Status() RefundStatus {
	switch {
	case r.Seen.Failed:
		return RefundFailed
	case r.Seen.Processed:
		return RefundProcessed
	}
	return RefundPending
}

// Dispute is one dispute of a payment as we know it.
type Dispute struct {
	ID        string
	PaymentID string
	Status    DisputeStatus
	Phase     DisputePhase
	Amount    Money
	Deducted  int64 // minor units of Amount's currency
	EverLost  bool  // seen lost in some phase, even if a later one was won

	Booked Money // how much of its loss is in the ledger
}

// loss is what the merchant lost by the dispute.
func (d Dispute) loss() Money {
	switch {
	case !d.EverLost:
		return Money{}
	case d.Deducted > 0:
		return Money{d.Deducted, d.Amount.Currency}
	}
	return d.Amount
}

// threat is how far the dispute has got, for people.
func (d Dispute) threat() string {
	if d.Status == DisputeLost {
		return fmt.Sprintf("lost in phase %s", d.Phase)
	}
	return fmt.Sprintf("open in phase %s", d.Phase)
}

// settled reports whether the dispute no longer threatens the money.
func (d Dispute) settled() bool { return d.Status == DisputeWon || d.Status == DisputeClosed }

// FailedAttempts counts every attempt that was seen failing.
func (o Order) FailedAttempts() int {
	n := o.CountedAttempts
	for _, p := range o.Payments {
		if p.Failed {
			n++
		}
	}
	return n
}

// counts reports whether a payment's captured money counts towards o.
func (o Order) counts(p Payment) bool {
	return p.IsCaptured() && p.Captured.Currency == o.Amount.Currency
}

// clone returns a copy of o that shares no map with it.
func (o Order) clone() Order {
	o.Payments = orEmpty(o.Payments)
	o.Refunds = orEmpty(o.Refunds)
	o.Disputes = orEmpty(o.Disputes)
	o.Reserved = orEmpty(o.Reserved)
	o.Holds = orEmpty(o.Holds)
	return o
}

func orEmpty[K comparable, V any](m map[K]V) map[K]V {
	if c := maps.Clone(m); c != nil {
		return c
	}
	return map[K]V{}
}

// GatewayOrder is the gateway's own order, as it was read from there.
type GatewayOrder struct {
	ID     string
	Amount Money
	Paid   bool
	Note   string // our note, if we made it: "<stack>/<order id>"
}

// Fact is what the gateway's order says, as it was read.
func (g GatewayOrder) Fact() OrderFact {
	return OrderFact{GatewayOrderID: g.ID, Paid: g.Paid, Amount: g.Amount, Confirmed: true}
}

// Adopt makes an order of ours for a gateway order that somebody else created. Its id is "<gateway>.<gateway order id>",
// which no shop's order has by accident. It reports false for one without an amount, such as a mandate's.
func Adopt(g GatewayOrder, gateway string, mode Mode, account string, at time.Time) (Order, bool) {
	if g.Amount.Amount <= 0 {
		return Order{}, false
	}
	o := NewOrder(gateway+"."+g.ID, g.Amount, gateway, mode, at)
	o.GatewayOrderID, o.Account = g.ID, account
	return o, true
}
