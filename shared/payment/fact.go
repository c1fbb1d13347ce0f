package payment

import (
	"time"
)

// Source names where facts came from. It is kept with every change.
type Source string

// The sources there are.
const (
	SourceWebhook  Source = "webhook"  // a signed delivery of the gateway
	SourceCallback Source = "callback" // read back from the gateway after the browser's checkout callback
	SourceSweep    Source = "sweep"    // read from the gateway's API by reconciliation
	SourceAPI      Source = "api"      // a call of the shop's own back end, or an operator
)

// Mode separates a gateway's test world from its live one. Facts of one never touch orders of the other.
type Mode string

// The modes there are.
const (
	Test Mode = "test"
	Live Mode = "live"
)

// A Fact is one thing the gateway says is true. The facts are [PaymentFact], [RefundFact], [DisputeFact] and
// [OrderFact]. [ForeignPaymentFact] and [CountedAttemptFact] are what our own table says, [ClosedFact],
// [AcknowledgedFact] and [ReservedFact] what a person says, [ReleasedFact] what came of a refund request.
type Fact interface {
	// Ref says how to find the order that the fact is about.
	Ref() Ref
	// merge joins the fact into o and says in words what it taught, or "" if it taught nothing.
	merge(o *Order) string
}

// Facts is a list of facts of one kind as facts of any.
func Facts[F Fact](list []F) []Fact {
	var facts []Fact
	for _, f := range list {
		facts = append(facts, f)
	}
	return facts
}

// Notice is what one body of a gateway says.
type Notice struct {
	Type    string // in the gateway's words, such as "payment.captured"
	Account string // the merchant account that it is about; empty if the body does not say
	Facts   []Fact
	Note    string // without facts: why the body is of no concern, in words
	// At is when the gateway says that it happened, to measure delays by and nothing else; zero if it does not say.
	At time.Time
}

// Verified is what a valid signature says about a delivery.
type Verified struct {
	By      string // label of the secret that matched
	Mode    Mode   // that secret's
	EventID string // as the gateway sent it; not signed, may be empty or odd
	// Unsigned: it is not valid because it carries no signature at all. No gateway sends such a thing.
	Unsigned bool
}

// Ref names an order from the gateway's side. Either field may be empty. PaymentID counts only where GatewayOrderID is
// empty: a gateway order that we do not know is not ours, whatever its payment is called.
type Ref struct {
	GatewayOrderID string
	PaymentID      string
}

// String names the order for people.
func (r Ref) String() string {
	if r.GatewayOrderID == "" {
		return "payment " + r.PaymentID
	}
	return "gateway order " + r.GatewayOrderID
}

// RefOf says how to find the one order that all the facts are about. It reports false if they name several.
func RefOf(facts []Fact) (Ref, bool) {
	var ref Ref
	for _, f := range facts {
		r := f.Ref()
		if r.GatewayOrderID != "" && ref.GatewayOrderID != "" && r.GatewayOrderID != ref.GatewayOrderID {
			return Ref{}, false
		}
		ref.GatewayOrderID = max(ref.GatewayOrderID, r.GatewayOrderID)
		if ref.PaymentID == "" {
			ref.PaymentID = r.PaymentID
		}
	}
	return ref, true
}

// PaymentFact says that the gateway showed a payment in this state.
type PaymentFact struct {
	ID             string
	GatewayOrderID string // empty: a payment made without a gateway order
	Status         PaymentStatus
	Failed         bool // the gateway showed the attempt as failed; Status is then what it is known to have reached
	Captured       bool // with Refunded: money had been captured (false: the authorization was voided)
	Amount         Money
	Confirmed      bool      // read from the gateway's API by us, not told by a webhook
	AmountRefunded int64     // minor units of Amount's currency, as the payment entity claims
	CreatedAt      time.Time // when the gateway created it; zero if not said
}

// IsCaptured reports whether the fact says that money was taken, whatever became of it.
func (f PaymentFact) IsCaptured() bool {
	return (f.Status == PaymentCaptured || f.Status == PaymentRefunded && f.Captured) && f.Amount.Amount > 0
}

// RefundFact says that the gateway showed a refund in this state.
type RefundFact struct {
	ID             string
	PaymentID      string
	GatewayOrderID string // of the payment, where the body says it
	Status         RefundStatus
	Amount         Money
	Receipt        string // what whoever asked for the refund named it; empty if not said
}

// DisputeFact says that the gateway showed a dispute in this state.
type DisputeFact struct {
	ID             string
	PaymentID      string
	GatewayOrderID string // of the payment, where the body says it
	Status         DisputeStatus
	Phase          DisputePhase
	Amount         Money
	Deducted       int64 // minor units of Amount's currency taken from the merchant
}

// OrderFact says that the gateway showed its own order in this state.
type OrderFact struct {
	GatewayOrderID string
	Paid           bool // the gateway calls the order paid
	Confirmed      bool // read from the gateway's API by us, not told by a webhook
	Amount         Money
}

// ForeignPaymentFact says that our own table has the payment under another order.
type ForeignPaymentFact struct {
	PaymentID string
	OrderID   string // the order that has it
}

// CountedAttemptFact says that our own table has already counted the failed attempt.
type CountedAttemptFact struct{ PaymentID string }

// ClosedFact says that the shop released the order's stock: money that covers the order after that is held. It teaches
// nothing about an order that is fulfilled.
type ClosedFact struct {
	Reason string
	At     time.Time
}

// AcknowledgedFact says that a person looked at a hold and lets it pass. It teaches nothing about a hold that never
// appeared, or that was acknowledged before as it is.
type AcknowledgedFact struct {
	Hold   HoldKey
	Detail string // of the hold as the person saw it
	By     string
	Why    string
	At     time.Time
}

// ReservedFact says that the shop wants this refund. It teaches nothing if the money is not there; see [Order.MayRefund].
type ReservedFact struct {
	Request RefundRequest
	Read    *Reading // of the payment, just now; nil: not read
}

// ReleasedFact says that a refund request came to nothing: its money is free again.
type ReleasedFact struct {
	Receipt string
	Why     string
}

// Ref implements [Fact].
func (f PaymentFact) Ref() Ref { return Ref{f.GatewayOrderID, f.ID} }

// Ref implements [Fact].
func (f RefundFact) Ref() Ref { return Ref{f.GatewayOrderID, f.PaymentID} }

// Ref implements [Fact].
func (f DisputeFact) Ref() Ref { return Ref{f.GatewayOrderID, f.PaymentID} }

// Ref implements [Fact].
func (f OrderFact) Ref() Ref { return Ref{GatewayOrderID: f.GatewayOrderID} }

// Ref implements [Fact].
func (f ForeignPaymentFact) Ref() Ref { return Ref{PaymentID: f.PaymentID} }

// Ref implements [Fact].
func (f CountedAttemptFact) Ref() Ref { return Ref{PaymentID: f.PaymentID} }

// Ref implements [Fact].
func (ClosedFact) Ref() Ref { return Ref{} }

// Ref implements [Fact].
func (AcknowledgedFact) Ref() Ref { return Ref{} }

// Ref implements [Fact].
func (f ReservedFact) Ref() Ref { return Ref{PaymentID: f.Request.PaymentID} }

// Ref implements [Fact].
func (ReleasedFact) Ref() Ref { return Ref{} }
