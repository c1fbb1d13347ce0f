package advance

import (
	"context"
	"errors"
	"slices"
	"strings"

	"paidonce/shared/payment"
)

// maxEvents bounds the events of one transaction. DynamoDB takes 100 actions (TransactWriteItems); the order, a history
// entry and the effects take the rest.
const maxEvents = 10

// run is one call of ApplyAll.
type run struct {
	Advancer
	orderID     string
	steps       []*progress
	corrections []payment.Fact // what the table knows better, as far as it has told; learned before every step's facts
	order       payment.Order  // as it is stored
	asked       bool           // Confirm was called: once is enough, whatever came of it
	confirmed   []payment.Fact // what it read
}

// progress is a step and how far it has got.
type progress struct {
	Step
	result   Result
	refunded bool // its refund request is written: with the first transaction, if there are more
	settled  bool
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
		if !p.result.Done {
			p.result.Order = r.order
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

// maxCorrections bounds what a table that contradicts itself can make us do: one correction for each fact, which an
// order with many failed attempts may well need, and some.
func (r *run) maxCorrections() int {
	n := 100
	for _, p := range r.steps {
		n += len(p.Facts)
	}
	return n
}

// try reads the order and takes every step that is left, as many at a time as fit one transaction.
func (r *run) try(ctx context.Context) (err error) {
	if r.order, err = r.Store.Order(ctx, r.orderID); err != nil {
		return err
	}
	var left []*progress
	for _, p := range r.steps {
		if p.settled {
			continue
		}
		if why := r.excluded(p); why != "" {
			p.result.Excluded = true
			if err := r.settle(ctx, p, payment.EventIgnored, why); err != nil {
				return err
			}
			continue
		}
		left = append(left, p)
	}
	for len(left) > 0 {
		if left, err = r.take(ctx, left); err != nil {
			return err
		}
	}
	return nil
}

// take learns as many of the steps as fit, decides once on all of them, and writes what follows. It returns the steps that
// are left. Events are settled with the last transaction that their change needs, so that a crash leaves them to be
// applied again; those that taught nothing are settled alone.
func (r *run) take(ctx context.Context, steps []*progress) (left []*progress, err error) {
	draft := payment.Begin(r.order)
	var taught, others []*progress
	for left = steps; len(left) > 0 && len(taught) < maxEvents; left = left[1:] {
		learned := draft.Learn(slices.Concat(r.corrections, left[0].Facts))
		if draft.Full() {
			break // it is learned whole after this transaction
		}
		left[0].result.Verdict, left[0].result.Taught = payment.NothingNew, false
		if len(learned) == 0 {
			others = append(others, left[0])
			continue
		}
		left[0].result.Verdict, left[0].result.Taught = strings.Join(learned, "; "), true
		taught = append(taught, left[0])
	}
	if said := r.confirm(ctx, draft); said != "" {
		if len(taught) == 0 && len(others) > 0 {
			taught, others = others[len(others)-1:], others[:len(others)-1]
		}
		if n := len(taught); n > 0 {
			taught[n-1].result.Verdict += "; " + said
		}
	}
	for more := true; more; {
		out := draft.Decide(r.Rules, r.Now())
		if more = out.More; !out.Changed() {
			break
		}
		if len(taught) == 0 && len(others) > 0 { // a decision without a new fact goes with the last step
			taught, others = others[len(others)-1:], others[:len(others)-1]
		}
		for _, said := range out.Decisions() {
			if n := len(taught); n > 0 {
				taught[n-1].result.Verdict += "; " + said
			}
		}
		settled := taught
		if more {
			settled = nil
		}
		if err := r.commit(ctx, out, taught, settled); err != nil {
			return nil, err
		}
		draft = payment.Begin(r.order)
	}
	for _, p := range slices.Concat(taught, others) {
		if p.settled {
			continue
		}
		if err := r.settle(ctx, p, payment.EventApplied, p.result.Verdict); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// confirm reads from the gateway what only webhooks have said, if nothing else keeps the order from being fulfilled, and
// says in words what came of it.
func (r *run) confirm(ctx context.Context, draft *payment.Draft) string {
	if r.Confirm == nil || !draft.WaitsForConfirmation(r.Rules) {
		return ""
	}
	if !r.asked {
		r.asked = true
		facts, err := r.Confirm(ctx, r.order)
		if err != nil {
			return "not confirmed: the gateway cannot be asked" // the hold says so too, and reconcile asks again
		}
		r.confirmed = facts
	}
	return strings.Join(draft.Learn(r.confirmed), "; ")
}

// commit writes an outcome and settles the events that it completes.
func (r *run) commit(ctx context.Context, out payment.Outcome, causes, settled []*progress) error {
	c := payment.Commit{Order: out.Order, Effects: out.Effects}
	for _, p := range settled {
		if p.Event != nil {
			c.Events = append(c.Events, p.Event.Settle(payment.EventApplied, p.Kind, r.orderID, p.result.Verdict))
		}
	}
	for _, p := range causes {
		if p.Refund != nil && p.result.Taught && !p.refunded {
			c.Refund = p.Refund
		}
		if p.Event == nil {
			c.Change = &payment.Change{Source: p.Source, What: joined(c.Change, p.result.Verdict), At: out.Order.UpdatedAt}
		}
	}
	if err := r.Store.Commit(ctx, c); err != nil {
		return err
	}
	if r.Committed != nil {
		r.Committed(ctx, out)
	}
	for _, p := range causes {
		p.refunded = p.refunded || p.result.Taught
	}
	for _, p := range settled {
		p.settled = true
	}
	r.order = out.Order
	r.order.Version++
	for _, e := range out.Effects {
		if attempt, ok := e.(payment.CountedAttempt); ok {
			r.corrections = append(r.corrections, payment.CountedAttemptFact(attempt)) // it is counted now
		}
	}
	return nil
}

func joined(c *payment.Change, said string) string {
	if c == nil {
		return said
	}
	return c.What + "; " + said
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
