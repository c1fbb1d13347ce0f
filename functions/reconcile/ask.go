package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
)

// gateway is what reconciling needs of a payment gateway. Errors wrap [payment.ErrGatewayRefused] or
// [payment.ErrOutcomeUnknown].
type gateway interface {
	// Mode is the mode of the API key.
	Mode() payment.Mode
	// FindOrder looks for the gateway's order of o by its note. [payment.ErrNotFound] if there is none.
	FindOrder(ctx context.Context, o payment.Order, note string) (string, error)
	// OrderPayments reads all payments of an order, Refunds all refunds of a payment.
	OrderPayments(ctx context.Context, gatewayOrderID string) ([]payment.PaymentFact, error)
	Refunds(ctx context.Context, paymentID string) ([]payment.RefundFact, error)
	// Capture takes the money of an authorized payment. One that is captured already is a success.
	Capture(ctx context.Context, paymentID string, amount payment.Money) (payment.PaymentFact, error)
}

// afterFailure is when an order is asked about once more whose last look failed.
const afterFailure = time.Hour

// ask takes what the gateway shows of an order into it and captures a payment that was left authorized. When to look next is
// written first, so that an order that cannot be asked about does not keep others waiting.
func (h *handler) ask(ctx context.Context, orderID string) (bool, error) {
	order, err := h.store.Order(ctx, orderID)
	if errors.Is(err, payment.ErrNotFound) {
		return false, nil // the gateway refused it
	}
	if err != nil {
		return false, err
	}
	if order.DueAt.IsZero() || h.now().Before(order.DueAt) {
		return false, nil
	}
	next := order.NextLook(h.advancer.Rules, h.now())
	last := next.IsZero()
	if last {
		next = h.now().Add(afterFailure)
	}
	if err := h.store.PostponeOrder(ctx, order, next); err != nil {
		return false, ignore(err, payment.ErrVersionConflict) // somebody else is at it
	}
	order, err = h.read(ctx, order)
	if err != nil {
		return true, err
	}
	if last && order.DueAt.Equal(next) { // the gateway had nothing new, and nobody need ask again
		err = ignore(h.store.PostponeOrder(ctx, order, time.Time{}), payment.ErrVersionConflict)
	}
	return true, err
}

// read takes the gateway's payments and refunds into the order, and captures. It returns the order as it then is.
func (h *handler) read(ctx context.Context, order payment.Order) (payment.Order, error) {
	open := h.gateways[order.Gateway]
	if open == nil {
		return order, fmt.Errorf("this deployment has no gateway %s", order.Gateway)
	}
	g := open(ctx)
	if g.Mode() != order.Mode {
		return order, fmt.Errorf("the API key is a %s one, and the order a %s one", g.Mode(), order.Mode)
	}
	if order.GatewayOrderID == "" {
		return h.find(ctx, g, order)
	}
	payments, err := g.OrderPayments(ctx, order.GatewayOrderID)
	if errors.Is(err, payment.ErrNotFound) { // an answer, if an odd one: asking again soon will not change it
		h.log.LogAttrs(ctx, slog.LevelWarn, "the gateway does not show the order", slog.String("order", order.ID))
		return order, nil
	}
	if err != nil {
		return order, err
	}
	var facts []payment.Fact
	for _, p := range payments {
		facts = append(facts, p)
	}
	if order, err = h.learn(ctx, order.ID, facts...); err != nil {
		return order, err
	}
	for _, paymentID := range order.RefundsToRead(h.advancer.Rules) {
		refunds, err := g.Refunds(ctx, paymentID)
		if err != nil {
			return order, err
		}
		var facts []payment.Fact
		for _, r := range refunds {
			facts = append(facts, r)
		}
		if order, err = h.learn(ctx, order.ID, facts...); err != nil {
			return order, err
		}
	}
	left, ok := order.ToCapture(h.advancer.Rules)
	if !ok {
		return order, nil
	}
	captured, err := g.Capture(ctx, left.ID, left.Amount)
	if err != nil {
		return order, fmt.Errorf("capture %s: %w", left.ID, err)
	}
	return h.learn(ctx, order.ID, captured)
}

func (h *handler) learn(ctx context.Context, orderID string, facts ...payment.Fact) (payment.Order, error) {
	result, err := h.advancer.Apply(ctx, orderID, advance.Step{Source: payment.SourceSweep, Facts: facts})
	return result.Order, err
}

// find gives an order its gateway order if a call that never heard the answer made one. It makes none: whether the shop
// still wants the order only the shop knows.
func (h *handler) find(ctx context.Context, g gateway, order payment.Order) (payment.Order, error) {
	id, err := g.FindOrder(ctx, order, h.stack+"/"+order.ID)
	if err != nil {
		return order, ignore(err, payment.ErrNotFound)
	}
	opened := order.Opened(id, h.advancer.Rules, h.now())
	err = h.store.Commit(ctx, payment.Commit{
		Order:   opened,
		Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: id}},
		Change:  &payment.Change{Source: payment.SourceSweep, What: "gateway order " + id + " found", At: h.now()},
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
