package payment

// PaymentStatus is how far a payment has got. It only climbs: created < authorized < captured < refunded. That an
// attempt failed is a mark beside it, because a failed payment may still climb (late authorization, up to 3 days:
// Razorpay, "Late authorisation").
type PaymentStatus string

// The payment statuses, in climbing order.
const (
	PaymentCreated    PaymentStatus = "created"    // the customer began an attempt
	PaymentAuthorized PaymentStatus = "authorized" // the bank holds the money for us
	PaymentCaptured   PaymentStatus = "captured"   // the money is ours
	PaymentRefunded   PaymentStatus = "refunded"   // given back whole, or the authorization was voided
)

var paymentRank = map[PaymentStatus]int{PaymentCreated: 0, PaymentAuthorized: 1, PaymentCaptured: 2, PaymentRefunded: 3}

// RefundStatus is one state in which a refund has been seen. A refund keeps the set of them, because processed and
// then failed happens.
type RefundStatus string

// The refund statuses.
const (
	RefundPending   RefundStatus = "pending"
	RefundProcessed RefundStatus = "processed"
	RefundFailed    RefundStatus = "failed"
)

// DisputeStatus is where a dispute stands within its phase.
type DisputeStatus string

// The dispute statuses. Between two verdicts of one phase the worse one counts.
const (
	DisputeOpen        DisputeStatus = "open"
	DisputeUnderReview DisputeStatus = "under_review"
	DisputeClosed      DisputeStatus = "closed"
	DisputeWon         DisputeStatus = "won"
	DisputeLost        DisputeStatus = "lost"
)

var disputeStatusRank = map[DisputeStatus]int{
	DisputeOpen: 0, DisputeUnderReview: 1, DisputeClosed: 2, DisputeWon: 3, DisputeLost: 4,
}

// DisputePhase is the round a dispute is in. A won chargeback may return as pre-arbitration.
type DisputePhase string

// The dispute phases, in the order in which they follow each other (Razorpay, "Dispute entity").
const (
	PhaseFraud          DisputePhase = "fraud"
	PhaseRetrieval      DisputePhase = "retrieval"
	PhaseChargeback     DisputePhase = "chargeback"
	PhasePreArbitration DisputePhase = "pre_arbitration"
	PhaseArbitration    DisputePhase = "arbitration"
)

var disputePhaseRank = map[DisputePhase]int{
	PhaseFraud: 0, PhaseRetrieval: 1, PhaseChargeback: 2, PhasePreArbitration: 3, PhaseArbitration: 4,
}

// Status is where an order stands. Orders move only along the table next.
type Status string

// The order statuses.
const (
	Pending           Status = "pending"            // not paid yet
	Failed            Status = "failed"             // an attempt failed; a later one may still pay the order
	Paid              Status = "paid"               // captured money covers the order
	PartiallyRefunded Status = "partially_refunded" // paid, and part of it went back
	Refunded          Status = "refunded"           // paid, and all of it went back: the end
)

var statusRank = map[Status]int{Pending: 0, Failed: 1, Paid: 2, PartiallyRefunded: 3, Refunded: 4}

// next is the one table of allowed moves.
var next = map[Status][]Status{
	Pending:           {Failed, Paid},
	Failed:            {Paid},
	Paid:              {PartiallyRefunded, Refunded},
	PartiallyRefunded: {Refunded},
}

// A Move is one step of an order's status.
type Move struct{ From, To Status }
