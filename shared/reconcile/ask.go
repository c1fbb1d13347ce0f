package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
)

// Ask takes what the gateway shows of an order into it and captures a payment that was left authorized. When to look next is
// written first, so that an order that cannot be asked about does not keep others waiting.
func (r Reconciler) Ask(ctx context.Context, orderID string) (bool, error) {
	order, err := r.Store.Order(ctx, orderID)
	if errors.Is(err, payment.ErrNotFound) {
		return false, nil // the gateway refused it
	}
	if err != nil {
		return false, err
	}
	if order.DueAt.IsZero() || r.Now().Before(order.DueAt) {
		return false, nil
	}
	next := order.NextLook(r.Advancer.Rules, r.Now())
	last := next.IsZero()
	if last {
		next = order.RetryLook(r.Advancer.Rules, r.Now())
	}
	if err := r.Store.PostponeOrder(ctx, order, next); err != nil {
		return false, ignore(err, payment.ErrVersionConflict) // somebody else is at it
	}
	order.DueAt = next
	order, err = r.read(ctx, order)
	if err != nil {
		return true, err
	}
	if last && order.DueAt.Equal(next) { // the gateway had nothing new, and nobody need ask again
		err = ignore(r.Store.PostponeOrder(ctx, order, time.Time{}), payment.ErrVersionConflict)
	}
	return true, err
}

// AskNow does what [Reconciler.Ask] does, whatever the order's schedule says, and returns the order as it then is. Unless something
// is learned the schedule stays. [payment.ErrNotFound] if there is no such order.
func (r Reconciler) AskNow(ctx context.Context, orderID string) (payment.Order, error) {
	order, err := r.Store.Order(ctx, orderID)
	if err != nil {
		return order, err
	}
	return r.read(ctx, order)
}

// read takes the gateway's payments and refunds into the order, and captures. It returns the order as it then is.
func (r Reconciler) read(ctx context.Context, order payment.Order) (payment.Order, error) {
	open := r.Gateways[order.Gateway]
	if open == nil {
		return order, fmt.Errorf("this deployment has no gateway %s", order.Gateway)
	}
	g := open(ctx)
	if g.Mode() != order.Mode {
		return order, fmt.Errorf("the API key is a %s one, and the order a %s one", g.Mode(), order.Mode)
	}
	if order.GatewayOrderID == "" {
		return r.find(ctx, g, order)
	}
	payments, err := g.OrderPayments(ctx, order.GatewayOrderID)
	if errors.Is(err, payment.ErrNotFound) { // an answer, if an odd one: asking again soon will not change it
		r.Log.LogAttrs(ctx, slog.LevelWarn, "the gateway does not show the order", slog.String("order", order.ID))
		return order, nil
	}
	if err != nil {
		return order, err
	}
	facts := payment.Facts(payments)
	if r.Advancer.Rules.AcceptOffers { // the gateway's word may make up for what was not captured
		shown, err := g.GatewayOrder(ctx, order.GatewayOrderID)
		if err != nil {
			return order, err
		}
		facts = append(facts, shown.Fact())
	}
	if order, err = r.learn(ctx, order.ID, facts...); err != nil {
		return order, err
	}
	for _, paymentID := range order.RefundsToRead(r.Advancer.Rules) {
		refunds, err := g.Refunds(ctx, paymentID)
		if err != nil {
			return order, err
		}
		if order, err = r.learn(ctx, order.ID, payment.Facts(refunds)...); err != nil {
			return order, err
		}
	}
	left, ok := order.ToCapture(payments, r.Advancer.Rules, r.Now())
	if !ok {
		return order, nil
	}
	captured, err := g.Capture(ctx, left.ID, left.Amount)
	if err != nil {
		return order, fmt.Errorf("capture %s: %w", left.ID, err)
	}
	return r.learn(ctx, order.ID, captured)
}

func (r Reconciler) learn(ctx context.Context, orderID string, facts ...payment.Fact) (payment.Order, error) {
	result, err := r.Advancer.Apply(ctx, orderID, advance.Step{Source: payment.SourceSweep, Facts: facts})
	return result.Order, err
}

// find gives an order its gateway order if a call that never heard the answer made one. It makes none: whether the shop
// still wants the order only the shop knows.
func (r Reconciler) find(ctx context.Context, g Gateway, order payment.Order) (payment.Order, error) {
	id, err := g.FindOrder(ctx, order, r.Stack+"/"+order.ID)
	if err != nil {
		return order, ignore(err, payment.ErrNotFound)
	}
	opened := order.Opened(id, r.Advancer.Rules, r.Now())
	err = r.Store.Commit(ctx, payment.Commit{
		Order:   opened,
		Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: id}},
		Change:  &payment.Change{Source: payment.SourceSweep, What: "gateway order " + id + " found", At: r.Now()},
	})
	if err != nil {
		return order, ignore(err, payment.ErrVersionConflict) // the shop's own call came through
	}
	opened.Version++
	return opened, nil
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
