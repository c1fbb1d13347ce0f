// Package advance takes one order one step further: it reads the order, lets package payment decide, and writes the
// whole change in one transaction. If somebody else was faster it begins again. Webhook, callback and sweep all pass
// through it.
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
	// [payment.ErrVersionConflict], [payment.ErrEventApplied] and [*payment.CorrectionError] say why it did not.
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
}

// Advancer advances orders.
type Advancer struct {
	Store Store
	Rules payment.Rules
	Now   func() time.Time
	// Reserve is the time before the context's deadline at which no further attempt begins.
	Reserve time.Duration
}

// Result is what a step came to.
type Result struct {
	Order   payment.Order // as it is stored now
	Verdict string
	Done    bool // the event had been applied before: nothing was left to do
}

// Apply learns the step's facts and writes what follows: order, effects and event in one transaction, or the event
// alone if nothing changed. A lost race is run again until the time is up; the error is then
// [payment.ErrVersionConflict]. nil means that it is durable.
func (a Advancer) Apply(ctx context.Context, orderID string, s Step) (Result, error) {
	facts := s.Facts
	for attempt := 0; ; attempt++ {
		result, err := a.try(ctx, orderID, s, facts)
		correction := new(payment.CorrectionError)
		switch {
		case errors.Is(err, payment.ErrEventApplied):
			return Result{Verdict: "already applied", Done: true}, nil
		case errors.As(err, &correction):
			facts = append(append([]payment.Fact(nil), correction.Facts...), facts...)
		case errors.Is(err, payment.ErrVersionConflict):
			if !a.pause(ctx, attempt) {
				return Result{}, err
			}
		default:
			return result, err
		}
		if len(facts) > 2*len(s.Facts)+maxCorrections {
			return Result{}, fmt.Errorf("advance order %s: the table corrects itself without end: %w", orderID, err)
		}
	}
}

// maxCorrections bounds what a table that contradicts itself can make us do: beside one correction for each fact, which
// a sweep over many failed attempts may well need.
const maxCorrections = 100

// try reads, decides and writes once, and goes on while more effects are owed than one transaction carries. The event
// is settled with the last of them, so that a crash in between leaves it to be applied again.
func (a Advancer) try(ctx context.Context, orderID string, s Step, facts []payment.Fact) (Result, error) {
	order, err := a.Store.Order(ctx, orderID)
	if err != nil {
		return Result{}, err
	}
	if why := a.excluded(order, s); why != "" {
		return Result{order, why, false}, a.Store.SettleEvent(ctx, s.Event.Settle(payment.EventIgnored, s.Kind, orderID, why))
	}
	verdict := ""
	for {
		now := a.Now()
		out := payment.Apply(order, facts, a.Rules, now)
		if verdict == "" {
			verdict = out.Verdict()
		}
		if !out.Changed() {
			return Result{order, verdict, false}, a.settle(ctx, s, orderID, verdict)
		}
		commit := payment.Commit{Order: out.Order, Effects: out.Effects}
		switch {
		case s.Event == nil:
			commit.Change = &payment.Change{Source: s.Source, What: out.Verdict(), At: now}
		case !out.More:
			st := s.Event.Settle(payment.EventApplied, s.Kind, orderID, verdict)
			commit.Event = &st
		}
		if err := a.Store.Commit(ctx, commit); err != nil {
			return Result{}, err
		}
		order = out.Order
		order.Version++
		if !out.More {
			return Result{order, verdict, false}, nil
		}
		facts = append(counted(out.Effects), facts...) // some may have found no room; the others teach nothing again
	}
}

// counted says which attempts the effects have counted, so that they are not counted again.
func counted(effects []payment.Effect) []payment.Fact {
	var facts []payment.Fact
	for _, e := range effects {
		if attempt, ok := e.(payment.CountedAttempt); ok {
			facts = append(facts, payment.CountedAttemptFact(attempt))
		}
	}
	return facts
}

func (a Advancer) settle(ctx context.Context, s Step, orderID, verdict string) error {
	if s.Event == nil {
		return nil
	}
	return a.Store.SettleEvent(ctx, s.Event.Settle(payment.EventApplied, s.Kind, orderID, verdict))
}

func (a Advancer) excluded(o payment.Order, s Step) string {
	if s.Event == nil {
		return ""
	}
	return o.Excludes(s.Event.Key.Gateway, s.Event.Mode, s.Account)
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
