// Package advance takes one order one step further: it reads the order, lets package payment decide, and writes the
// whole change in one transaction. If somebody else was faster it begins again. Whatever is
// learned of an order, from whichever side, passes through it.
package advance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"paidonce/shared/payment"
)

// Store is where orders are kept.
type Store interface {
	// Order reads an order as it is now, never as it was. [payment.ErrNotFound] if there is none.
	Order(ctx context.Context, id string) (payment.Order, error)
	// Commit writes a change whole or not at all; see [payment.Commit] for the conditions.
	// [payment.ErrVersionConflict], [payment.ErrRefundChanged], [payment.ErrEventApplied] and [*payment.CorrectionError]
	// say why it did not.
	Commit(ctx context.Context, c payment.Commit) error
	// SettleEvent writes what became of an event that changed no order. [payment.ErrEventApplied] if it is APPLIED.
	SettleEvent(ctx context.Context, s payment.Settlement) error
}

// Step is what there is to learn about an order.
type Step struct {
	Source payment.Source
	Facts  []payment.Fact
	// Event is the delivery that the facts came from, Kind its type in the gateway's words and Account the merchant
	// account it names. A nil Event: the step leaves an entry in the order's history instead.
	Event   *payment.Event
	Kind    string
	Account string
	// Refund, if set, is the refund request that the facts are about. It is written with the change that they bring; if they
	// teach nothing it is not written. [payment.ErrRefundChanged] is for the caller to handle.
	Refund *payment.RefundRequest
}

// Advancer advances orders.
type Advancer struct {
	Store Store
	Rules payment.Rules
	Now   func() time.Time
	// Reserve is the time before the context's deadline at which no further attempt begins.
	Reserve time.Duration
	// Confirm, if set, reads the order's payments from the gateway. It is called only if nothing but that keeps an order from
	// being fulfilled; see [payment.Confirm]. If it fails the order is held until reconcile has read them.
	Confirm func(ctx context.Context, o payment.Order) ([]payment.Fact, error)
	// Committed, if set, is told of each change that was written.
	Committed func(context.Context, payment.Outcome)
}

// Result is what a step came to.
type Result struct {
	Order   payment.Order // as it is stored now
	Verdict string
	Taught  bool // the step's facts were new
	Done    bool // the event had been applied before: nothing was left to do
	// Excluded: the event is of another mode, account or gateway than the order, and was IGNORED.
	Excluded bool
}

// Apply learns one step's facts; see [Advancer.ApplyAll].
func (a Advancer) Apply(ctx context.Context, orderID string, s Step) (Result, error) {
	results, err := a.ApplyAll(ctx, orderID, []Step{s})
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}

// ApplyAll learns several steps about one order, one after the other, and writes what follows: order, effects and events
// in one transaction, as far as they fit. An event that changed nothing is settled alone. A lost race is run again until
// the time is up; the error is then [payment.ErrVersionConflict].
//
// nil means that all of it is durable. After an error some steps may be; applying those again does nothing.
func (a Advancer) ApplyAll(ctx context.Context, orderID string, steps []Step) ([]Result, error) {
	r := newRun(a, orderID, steps)
	for attempt := 0; ; attempt++ {
		err := r.try(ctx)
		applied, correction := new(payment.AppliedError), new(payment.CorrectionError)
		switch {
		case err == nil:
			return r.results(), nil
		case errors.As(err, &applied):
			r.done(applied.Keys)
		case errors.As(err, &correction):
			r.corrections = append(r.corrections, correction.Facts...)
			if len(r.corrections) > r.maxCorrections() {
				return nil, fmt.Errorf("advance order %s: the table corrects itself without end: %w", orderID, err)
			}
		case errors.Is(err, payment.ErrVersionConflict):
			if !a.pause(ctx, attempt) {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

// pause waits before the next attempt, longer and less predictably each time. It reports false if the time is up.
func (a Advancer) pause(ctx context.Context, attempt int) bool {
	longest := min(20*time.Millisecond<<min(attempt, 6), time.Second)
	wait := rand.N(longest)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline)-wait < a.Reserve {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}
