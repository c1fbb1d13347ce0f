package payment

import (
	"errors"
	"fmt"
)

// What a store answers when a condition stops a write or there is nothing to read. Every adapter translates its own
// errors into these once; callers match them with errors.Is.
var (
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrEventExists: an event with this key is already stored. The stored one comes with it.
	ErrEventExists = errors.New("event already stored")
	// ErrEventApplied: the event is APPLIED, which is final.
	ErrEventApplied = errors.New("event already applied")
	// ErrOrderExists: an order with this id is already stored. The stored one comes with it.
	ErrOrderExists = errors.New("order already stored")
	// ErrVersionConflict: somebody else wrote the order since it was read. Read it again and decide again.
	ErrVersionConflict = errors.New("order was changed by somebody else")
	// ErrEffectConflict: an effect's row is already there and says something else. A person has to look.
	ErrEffectConflict = errors.New("effect is already recorded with other content")
	// ErrEventTooLarge: the event does not fit into a row. Keep a reduced body instead.
	ErrEventTooLarge = errors.New("event too large to store")
	// ErrRefundChanged: somebody else wrote the refund request since it was read, or made it first. Read it again.
	ErrRefundChanged = errors.New("refund request was changed by somebody else")
	// ErrCallbackSeen: a callback about this payment was recorded before.
	ErrCallbackSeen = errors.New("callback already recorded")
	// ErrNewerVersion: a row or message was written by a newer release than this one. Leave it to that release.
	ErrNewerVersion = errors.New("written by a newer release")
)

// What a gateway's answer to a call comes to, whichever gateway it is.
var (
	// ErrGatewayRefused: the gateway said no. It was not done, and asking again will not help.
	ErrGatewayRefused = errors.New("the gateway refused")
	// ErrOutcomeUnknown: it may or may not have been done. Read back before anything else.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrTooMany: a list is longer than what is read of one. Ask for a part of it.
	ErrTooMany = errors.New("too many to read at a time")
	// ErrKeyUsed: the gateway knows the idempotency key or the receipt from another call. Read back, never send it again.
	ErrKeyUsed = errors.New("the idempotency key was used before")
)

// Why a refund is not begun.
var (
	// ErrBeyondRefundable: more than what is left of the payment, or of an order without captured money.
	ErrBeyondRefundable = errors.New("more than is refundable")
	// ErrPaymentNeeded: several payments could be meant.
	ErrPaymentNeeded = errors.New("payment_id needed: the order has several captured payments")
	// ErrDifferentRefund: the order has a refund request of this id for another amount or payment.
	ErrDifferentRefund = errors.New("the id belongs to another refund request")
	// ErrDisputed: the customer's bank may take the money back, or did. Only force refunds it as well.
	ErrDisputed = errors.New("disputed")
)

// Refusal is a gateway's definite no with its reason. It matches [ErrGatewayRefused].
type Refusal struct {
	Reason RefusalReason
	Cause  error // for the log; never shown to the caller
}

func (e *Refusal) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("%v: %s", ErrGatewayRefused, e.Reason)
	}
	return fmt.Sprintf("%v: %s: %v", ErrGatewayRefused, e.Reason, e.Cause)
}

// Is implements the match with [ErrGatewayRefused].
func (e *Refusal) Is(target error) bool { return target == ErrGatewayRefused }

// Unwrap returns the cause.
func (e *Refusal) Unwrap() error { return e.Cause }

// AppliedError is a store's answer to a commit with events that are APPLIED already. Nothing was written. It matches
// [ErrEventApplied].
type AppliedError struct{ Keys []EventKey }

func (e *AppliedError) Error() string { return fmt.Sprintf("%v: %v", ErrEventApplied, e.Keys) }

// Is implements the match with [ErrEventApplied].
func (e *AppliedError) Is(target error) bool { return target == ErrEventApplied }

// UnreadableError is a gateway's list in which some entities could not be read. The others come with it.
type UnreadableError struct {
	Count int
	Cause error // of the first
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%d entities cannot be read: %v", e.Count, e.Cause)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Cause }

// CorrectionError is a store's answer to a commit that rests on something the table knows better: a payment that
// belongs to another order, or an attempt that is already counted. Nothing was written. Apply the order again with
// these facts in front of the others.
type CorrectionError struct{ Facts []Fact }

func (e *CorrectionError) Error() string { return "the table knows better about a payment" }
