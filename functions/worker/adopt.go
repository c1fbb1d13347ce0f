package main

import (
	"context"
	"fmt"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
)

// adopted is the setting of UNKNOWN_ORDERS with which the worker makes orders of ours for those that it does not know.
const adopted = "adopt"

// gateway is what adopting and confirming need of a payment gateway.
type gateway interface {
	advance.OrderReader
	// OrderPayments reads all payments of an order, failed ones included.
	OrderPayments(ctx context.Context, gatewayOrderID string) ([]payment.PaymentFact, error)
}

// unknown decides about an event whose order we do not know: adopt the order, if the shop wants that and the gateway has
// it, or else park the event.
func (h *handler) unknown(ctx context.Context, t *task, ref payment.Ref) error {
	why := "no order of ours is known for " + ref.String()
	if open := h.gateways[t.key.Gateway]; h.adopts && open != nil && ref.GatewayOrderID != "" {
		orderID, reason, err := h.adopt(ctx, open(ctx), t, ref.GatewayOrderID)
		if err != nil {
			return err // tried again, and then a person hears of it
		}
		if orderID != "" {
			t.orderID = orderID
			return nil
		}
		why += ": " + reason
	}
	return h.settle(ctx, t, h.pace.Park(t.event, t.notice.Type, why, h.now()))
}

// adopt makes an order for the gateway's and returns its id, or says why not.
func (h *handler) adopt(ctx context.Context, g gateway, t *task, gatewayOrderID string) (orderID, why string, err error) {
	if g.Mode() != t.event.Mode {
		t.odd = true
		return "", fmt.Sprintf("a %s event, and the API key is a %s one", t.event.Mode, g.Mode()), nil
	}
	stray := advance.Stray{Gateway: t.key.Gateway, ID: gatewayOrderID, Account: t.notice.Account, Source: payment.SourceWebhook}
	return advance.Adopt(ctx, h.store, g, stray, h.stack, h.now())
}
