package advance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"paidonce/shared/payment"
)

// maxEffects bounds the effects of several steps in one transaction. DynamoDB takes 100 actions (TransactWriteItems); the
// order, a history entry and the events of a batch of 10 take the rest.
const maxEffects = 80

// run is one call of ApplyAll: what is still to do, and what is gathered for the next transaction.
type run struct {
	Advancer
	orderID     string
	steps       []*progress
	corrections []payment.Fact // what the table knew better so far

	order   payment.Order // as the gathered changes leave it; Version is the stored one
	now     time.Time
	known   []payment.Fact // attempts counted since the order was read
	effects []payment.Effect
	changed []*progress // settled with the next transaction
	causes  []string    // what steps without an event did
	dirty   bool
}

// progress is a step and how far it has got.
type progress struct {
	Step
	result  Result
	settled bool
}

func newRun(a Advancer, orderID string, steps []Step) *run {
	r := &run{Advancer: a, orderID: orderID}
	for _, s := range steps {
		r.steps = append(r.steps, &progress{Step: s})
	}
	return r
}

func (r *run) results() []Result {
	var results []Result
	for _, p := range r.steps {
		p.result.Order = r.order
		if p.result.Done {
			p.result.Order = payment.Order{}
		}
		results = append(results, p.result)
	}
	return results
}

// done marks the steps whose events turned out to be applied before.
func (r *run) done(keys []payment.EventKey) {
	for _, p := range r.steps {
		if p.Event != nil && slices.Contains(keys, p.Event.Key) {
			p.result, p.settled = Result{Verdict: "already applied", Done: true}, true
		}
	}
}

// maxCorrections bounds what a table that contradicts itself can make us do: one correction for each fact, which a sweep
// over many failed attempts may well need, and some.
func (r *run) maxCorrections() int {
	n := 100
	for _, p := range r.steps {
		n += len(p.Facts)
	}
	return n
}

// try reads the order and takes every step that is left. Events are settled with the change they caused, so that a crash
// leaves them to be applied again; those that caused none come last.
func (r *run) try(ctx context.Context) error {
	order, err := r.Store.Order(ctx, r.orderID)
	if err != nil {
		return err
	}
	r.order, r.now, r.known = order, r.Now(), nil
	r.effects, r.changed, r.causes, r.dirty = nil, nil, nil, false
	var unchanged []*progress
	for _, p := range r.steps {
		if p.settled {
			continue
		}
		if why := r.excluded(p); why != "" {
			if err := r.settle(ctx, p, payment.EventIgnored, why); err != nil {
				return err
			}
			continue
		}
		gathered, err := r.take(ctx, p)
		if err != nil {
			return err
		}
		if !gathered {
			unchanged = append(unchanged, p)
		}
	}
	if err := r.commit(ctx); err != nil {
		return err
	}
	for _, p := range unchanged {
		if err := r.settle(ctx, p, payment.EventApplied, p.result.Verdict); err != nil {
			return err
		}
	}
	return nil
}

// take learns one step and gathers what follows. It reports whether the step's event goes with what is gathered; if not,
// nothing is left to write for it. What does not fit is committed first.
func (r *run) take(ctx context.Context, p *progress) (gathered bool, err error) {
	facts := slices.Concat(r.corrections, p.Facts)
	for first := true; ; first = false {
		out := payment.Apply(r.order, slices.Concat(r.known, facts), r.Rules, r.now)
		if first {
			p.result.Verdict = out.Verdict()
		}
		if !out.Changed() {
			return false, nil
		}
		if len(r.effects)+len(out.Effects) > maxEffects {
			if err := r.commit(ctx); err != nil {
				return false, err
			}
			out.Order.Version = r.order.Version
		}
		r.order, r.dirty = out.Order, true
		r.effects = append(r.effects, out.Effects...)
		r.known = append(r.known, counted(out.Effects)...)
		if p.Event == nil {
			r.causes = append(r.causes, out.Verdict())
		}
		if !out.More {
			r.changed = append(r.changed, p)
			return true, nil
		}
		if err := r.commit(ctx); err != nil {
			return false, err
		}
		// The facts again: some may have found no room, the others teach nothing new.
	}
}

// commit writes what is gathered, if anything is.
func (r *run) commit(ctx context.Context) error {
	if !r.dirty {
		return nil
	}
	c := payment.Commit{Order: r.order, Effects: r.effects}
	for _, p := range r.changed {
		if p.Event != nil {
			c.Events = append(c.Events, p.Event.Settle(payment.EventApplied, p.Kind, r.orderID, p.result.Verdict))
		}
	}
	if len(r.causes) > 0 {
		c.Change = &payment.Change{Source: r.source(), What: strings.Join(r.causes, "; "), At: r.now}
	}
	if err := r.Store.Commit(ctx, c); err != nil {
		return err
	}
	for _, p := range r.changed {
		p.settled = true
	}
	r.order.Version++
	r.effects, r.changed, r.causes, r.dirty = nil, nil, nil, false
	return nil
}

// source is where the steps without an event came from. A run has them from one source.
func (r *run) source() payment.Source {
	for _, p := range r.steps {
		if p.Event == nil {
			return p.Source
		}
	}
	return ""
}

// settle writes what became of an event that changed nothing.
func (r *run) settle(ctx context.Context, p *progress, status payment.EventStatus, verdict string) error {
	p.result.Verdict = verdict
	if p.Event != nil {
		err := r.Store.SettleEvent(ctx, p.Event.Settle(status, p.Kind, r.orderID, verdict))
		if errors.Is(err, payment.ErrEventApplied) {
			r.done([]payment.EventKey{p.Event.Key})
			return nil
		}
		if err != nil {
			return err
		}
	}
	p.settled = true
	return nil
}

func (r *run) excluded(p *progress) string {
	if p.Event == nil {
		return ""
	}
	return r.order.Excludes(p.Event.Key.Gateway, p.Event.Mode, p.Account)
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
