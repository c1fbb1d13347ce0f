package payment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// A refund request passes through these times, counted from when it was made. They are the gateway's, and real ones even where
// somebody watches a local stack.
const (
	// sendFor is how long the same idempotency key is sent again. Razorpay does not publish how long it keeps one; a day
	// is what gateways promise at least.
	sendFor = 24 * time.Hour
	// giveUpAfter is when a request that the gateway does not show is taken for one that never reached it. The hour
	// after sendFor is for calls still on their way.
	giveUpAfter = 25 * time.Hour
	// inFlight is how long a call may still take effect after it began, whatever became of its answer and however far apart the
	// clocks of two functions are.
	inFlight = 15 * time.Minute
)

// RefundRequest is the shop's wish to give money back. It is written before the gateway is called, together with the
// reservation of its money, so that it is neither lost nor made twice.
type RefundRequest struct {
	ID        string // the shop's own, unique within the order
	OrderID   string
	Gateway   string
	PaymentID string
	Amount    Money
	Reason    string // in the shop's words; it stays with us
	Forced    bool   // in spite of a dispute

	Call RefundCall // as it goes to the gateway, every time

	Status   RequestStatus
	RefundID string // the gateway's, once it is known
	Refusal  string // of a failed request: a [RefusalReason] or another word for why
	KeyUsed  bool   // the gateway knows the key from another call: never send it again
	Attempts int    // calls that were begun
	SentAt   time.Time
	Steps    []RequestStep // what was done about it, oldest first

	NextAt    time.Time // when somebody should look again; zero if nobody need
	CreatedAt time.Time
	Version   int64 // grows by one with every write; 0: not stored yet
}

// RefundCall is a refund request as it goes to the gateway. It is kept byte for byte, because the gateway takes the same
// key with another body for a mistake.
type RefundCall struct {
	Method string
	Path   string // below the gateway's base URL: "/v1/payments/pay_1/refund"
	Body   []byte
	Key    string // the idempotency key, and the refund's receipt
}

// RequestStatus says how far a refund request has got. What becomes of an accepted one is the refund's own affair; see
// [Refund.Status].
type RequestStatus string

// The statuses of a refund request.
const (
	RequestOpen     RequestStatus = "open"     // its outcome is not known
	RequestAccepted RequestStatus = "accepted" // the gateway has the refund
	RequestFailed   RequestStatus = "failed"   // the gateway has no such refund, and never will
)

// RequestStep is one thing that was done about a refund request.
type RequestStep struct {
	At   time.Time
	What string
}

// maxSteps bounds what a request remembers; the oldest but the first go.
const maxSteps = 40

// RefusalReason says in one word why a gateway refused, whichever gateway it is. It may be shown to the shop.
type RefusalReason string

// The reasons for refusals.
const (
	RefusedAmount       RefusalReason = "amount_exceeded"      // more than is left of the payment
	RefusedAlready      RefusalReason = "already_refunded"     // nothing is left of the payment
	RefusedTooOld       RefusalReason = "payment_too_old"      // the gateway refunds payments for a limited time
	RefusedBalance      RefusalReason = "insufficient_balance" // the merchant's balance does not cover it
	RefusedNotCaptured  RefusalReason = "payment_not_captured"
	RefusedUnknownID    RefusalReason = "unknown_payment"
	RefusedDisputed     RefusalReason = "disputed" // the gateway waits for the outcome of a dispute
	RefusedOther        RefusalReason = "other"
	RefusedReceiptUsed  RefusalReason = "receipt_used"          // ours: the gateway shows another refund under our receipt
	RefusedNeverReached RefusalReason = "never_reached_gateway" // ours: the gateway does not show it a day later
)

// Receipt names a refund request at the gateway: its receipt and idempotency key. It is the same for ever, and no two
// requests of any order or stack share one.
func Receipt(stack, orderID, requestID string) string {
	digest := sha256.Sum256([]byte(stack + "|" + orderID + "|" + requestID))
	return "po_" + hex.EncodeToString(digest[:16])
}

// NewRefundRequest returns the request as it is before anything was done about it. The shop's call that makes it also
// sends it, so it counts as sent.
func NewRefundRequest(o Order, id, paymentID string, amount int64, at time.Time) RefundRequest {
	return RefundRequest{
		ID: id, OrderID: o.ID, Gateway: o.Gateway, PaymentID: paymentID,
		Amount: Money{amount, o.Payments[paymentID].Captured.Currency},
		Status: RequestOpen, Attempts: 1, SentAt: at, CreatedAt: at,
	}
}

// Did adds a step.
func (r RefundRequest) Did(at time.Time, format string, args ...any) RefundRequest {
	r.Steps = append(slices.Clone(r.Steps), RequestStep{at, fmt.Sprintf(format, args...)})
	if len(r.Steps) > maxSteps {
		r.Steps = slices.Delete(r.Steps, 1, 2)
	}
	return r
}

// MaySend reports whether the call may be sent again, if the gateway does not show the refund.
func (r RefundRequest) MaySend(at time.Time) bool {
	return r.Status == RequestOpen && !r.KeyUsed && at.Sub(r.CreatedAt) < sendFor
}

// MayGiveUp reports whether a request that the gateway does not show has failed.
func (r RefundRequest) MayGiveUp(at time.Time) bool {
	return r.Status == RequestOpen && at.Sub(r.CreatedAt) >= giveUpAfter
}

// Alone reports whether no call but the one that began last can still take effect, so that what the gateway says to that
// one decides. before is when the call before it began.
func (r RefundRequest) Alone(before, at time.Time) bool {
	return r.Attempts == 1 || at.Sub(before) >= inFlight
}

// refundLooks are when a refund request is looked after, counted in minutes from when it was made: until its outcome is
// known, and then until the refund is settled, which takes banks up to a week. Later looks are a week apart.
var refundLooks = []int{1, 5, 15, 60, 6 * 60, 12 * 60, 24*60 - 10, 25 * 60, 2 * 24 * 60, 3 * 24 * 60, 5 * 24 * 60, 7 * 24 * 60}

const week = 7 * 24 * 60 // minutes

// NextRefundLook is when reconcile looks after the request again.
func (p Pace) NextRefundLook(r RefundRequest, at time.Time) time.Time {
	age := at.Sub(r.CreatedAt)
	wait, ok := p.after(refundLooks, age)
	if !ok {
		wait = age + p.minutes(week)
	}
	return r.CreatedAt.Add(wait)
}

// Is reports whether the gateway's refund is the one that r asks for. A receipt alone does not prove it: anybody with the
// account may write one.
func (r RefundRequest) Is(f Refund) bool {
	return f.Receipt == r.Call.Key && f.PaymentID == r.PaymentID && f.Amount == r.Amount
}

// Reading is what the gateway showed of a payment just now, beside its refunds: those are facts.
type Reading struct {
	AmountRefunded int64           // minor units of the payment's currency
	Failed         map[string]bool // the refunds that it showed as failed, by id
}

// AllFailed is the reading that would leave most of the order's payments: every refund failed.
func AllFailed(o Order) *Reading {
	r := &Reading{Failed: map[string]bool{}}
	for id := range o.Refunds {
		r.Failed[id] = true
	}
	return r
}

// MayRefund says why so much of the payment, in minor units, may not be refunded: [ErrDisputed] unless forced, or
// [ErrBeyondRefundable]. Whatever is or may be on its way back is not there any more; a refund that failed is, but only once
// a reading of the payment says so.
func (o Order) MayRefund(paymentID string, amount int64, forced bool, read *Reading) error {
	if o.Disputed(paymentID) && !forced {
		return ErrDisputed
	}
	if amount > o.refundable(paymentID, read) {
		return ErrBeyondRefundable
	}
	return nil
}

// Disputed reports whether the customer's bank may take the payment's money back, or did.
func (o Order) Disputed(paymentID string) bool {
	for _, d := range o.Disputes {
		if d.PaymentID == paymentID && !d.settled() {
			return true
		}
	}
	return false
}

// refundable is what is left of a payment, in minor units of the currency in which it was captured.
func (o Order) refundable(paymentID string, read *Reading) int64 {
	p := o.Payments[paymentID]
	if !p.IsCaptured() {
		return 0
	}
	claimed, known, promised := p.Claim, int64(0), int64(0)
	if read != nil {
		claimed = read.AmountRefunded
	}
	for _, r := range o.Refunds {
		if r.PaymentID == paymentID && (read == nil || !read.Failed[r.ID]) {
			known += r.Amount.Amount
		}
	}
	for _, r := range o.Reserved {
		if r.PaymentID == paymentID {
			promised += r.Amount.Amount
		}
	}
	return p.Captured.Amount - max(claimed, known) - promised
}

// PaymentToRefund is the payment that a refund is of where the shop names none: the only captured one, or the only one of
// which something is left. [ErrPaymentNeeded] if there are several, [ErrBeyondRefundable] if there is none.
func (o Order) PaymentToRefund() (paymentID string, err error) {
	var captured, left []string
	for id, p := range o.Payments {
		if !p.IsCaptured() {
			continue
		}
		captured = append(captured, id)
		if o.refundable(id, nil) > 0 {
			left = append(left, id)
		}
	}
	switch {
	case len(captured) == 0:
		return "", ErrBeyondRefundable
	case len(captured) == 1:
		return captured[0], nil
	case len(left) == 1:
		return left[0], nil
	}
	return "", ErrPaymentNeeded
}

// Resembles reports whether the gateway's refund has r's receipt and is another all the same: something is wrong, and whether r
// was made nobody can tell.
func (r RefundRequest) Resembles(f Refund) bool { return f.Receipt == r.Call.Key && !r.Is(f) }

// RefundOf is the gateway's refund for the request, if it is known.
func (o Order) RefundOf(r RefundRequest) (Refund, bool) {
	for _, f := range o.Refunds {
		if r.Is(f) {
			return f, true
		}
	}
	return Refund{}, false
}
