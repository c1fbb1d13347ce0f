package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"paidonce/shared/payment"
)

// adopted is the setting of UNKNOWN_ORDERS with which the worker makes orders of ours for those that it does not know.
const adopted = "adopt"

// gateway is what adopting and confirming need of a payment gateway.
type gateway interface {
	// Mode is the mode of the API key.
	Mode() payment.Mode
	// OrderPayments reads all payments of an order, failed ones included.
	OrderPayments(ctx context.Context, gatewayOrderID string) ([]payment.PaymentFact, error)
	// GatewayOrder reads an order, whoever created it. [payment.ErrNotFound] if there is none.
	GatewayOrder(ctx context.Context, id string) (payment.GatewayOrder, error)
}

// unknown decides about an event whose order we do not know: adopt the order, if the shop wants that and the gateway has
// it, or else park the event.
func (h *handler) unknown(ctx context.Context, t *task, ref payment.Ref) error {
	why := "no order of ours is known for " + ref.String()
	if open := h.gateways[t.key.Gateway]; h.adopts && open != nil && ref.GatewayOrderID != "" {
		orderID, reason, err := h.adopt(ctx, open(ctx), t, ref.GatewayOrderID)
		if err != nil {
			return err
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
	found, err := g.GatewayOrder(ctx, gatewayOrderID)
	switch {
	case errors.Is(err, payment.ErrNotFound):
		return "", "the gateway does not show it to us", nil
	case err != nil:
		return "", "", fmt.Errorf("adopt: %w", err) // tried again, and then a person hears of it
	}
	if id, ours := strings.CutPrefix(found.Note, h.stack+"/"); ours {
		return "", fmt.Sprintf("it was made for order %s, which has not got it yet", id), nil
	}
	order, ok := payment.Adopt(found, t.key.Gateway, t.event.Mode, t.notice.Account, h.now())
	if !ok {
		return "", "its amount is zero", nil
	}
	err = h.store.Commit(ctx, payment.Commit{
		Order:   order,
		Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: gatewayOrderID}},
		Change:  &payment.Change{Source: payment.SourceWebhook, What: "adopted: the gateway has it, and no order of ours is known for it", At: h.now()},
	})
	if errors.Is(err, payment.ErrVersionConflict) || errors.Is(err, payment.ErrEffectConflict) {
		// Somebody was faster: another event adopted it, or the shop's own call came through.
		id, err := h.store.OrderID(ctx, t.key.Gateway, payment.Ref{GatewayOrderID: gatewayOrderID})
		if errors.Is(err, payment.ErrNotFound) {
			return "", "its id is taken by another order", nil
		}
		return id, "", err
	}
	return order.ID, "", err
}
