package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"paidonce/shared/payment"
)

// confirmTime is how long the gateway may take to confirm a capture. After that the order is held, and reconcile asks again.
const confirmTime = 4 * time.Second

// confirm reads an order's payments from the gateway, for what only webhooks have said so far.
func (h *handler) confirm(ctx context.Context, o payment.Order) ([]payment.Fact, error) {
	open := h.gateways[o.Gateway]
	if open == nil {
		return nil, fmt.Errorf("confirm: this deployment has no gateway %s", o.Gateway)
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	g := open(ctx)
	if g.Mode() != o.Mode {
		return nil, fmt.Errorf("confirm: the API key is a %s one, and the order a %s one", g.Mode(), o.Mode)
	}
	payments, err := g.OrderPayments(ctx, o.GatewayOrderID)
	if err != nil {
		h.log.LogAttrs(ctx, slog.LevelWarn, "not confirmed", slog.String("order", o.ID), slog.String("error", err.Error()))
		return nil, fmt.Errorf("confirm: %w", err)
	}
	facts := payment.Facts(payments)
	if !h.advancer.Rules.AcceptOffers {
		return facts, nil
	}
	order, err := g.GatewayOrder(ctx, o.GatewayOrderID) // its word may make up for what was not captured
	if err != nil {
		return nil, fmt.Errorf("confirm: %w", err)
	}
	return append(facts, order.Fact()), nil
}
