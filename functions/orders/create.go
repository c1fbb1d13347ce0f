package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// checkout is what the browser needs to open the gateway's checkout.
type checkout struct {
	KeyID          string `json:"key_id"` // public
	GatewayOrderID string `json:"gateway_order_id"`
	Amount         int64  `json:"amount"` // minor units
	Currency       string `json:"currency"`
}

// created is the answer of POST /orders.
type created struct {
	apigw.Order
	Checkout checkout `json:"checkout"`
}

// create makes the order and the gateway's, and hands out one gateway order per order, however often it is called and
// wherever an earlier call stopped. The order comes first: a gateway order that we lost sight of can be found by our
// order, not the other way round.
func (h *handler) create(ctx context.Context, request request) (events.APIGatewayV2HTTPResponse, error) {
	g := h.gateways[request.Gateway](ctx)
	wanted := wanted{payment.NewOrder(request.ID, request.money(), request.Gateway, g.Mode(), h.now())}
	wanted.Account, wanted.Partial, wanted.Notes = h.account, request.Partial, request.Notes
	wanted.DueAt = wanted.NextLook(h.advancer.Rules, h.now())

	status := http.StatusCreated
	order, err := h.store.CreateOrder(ctx, wanted.Order)
	if errors.Is(err, payment.ErrOrderExists) {
		status = http.StatusOK
		if err = wanted.mayBe(order); err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
	}
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	if order.GatewayOrderID == "" {
		if order, err = h.open(ctx, g, wanted, order, status == http.StatusOK); err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
	}
	return apigw.JSON(status, created{
		apigw.ShowOrder(order, h.advancer.Rules),
		checkout{g.KeyID(), order.GatewayOrderID, order.Amount.Amount, order.Amount.Currency},
	}), nil
}

// open gets the order its gateway order. Whoever writes the id first wins; everyone hands out the winner's. A gateway
// order that was made before, by a call that never heard the answer, is used before another is made.
func (h *handler) open(ctx context.Context, g gateway, wanted wanted, order payment.Order, retried bool) (payment.Order, error) {
	note := h.stack + "/" + order.ID
	gatewayOrderID := ""
	if retried {
		var err error
		gatewayOrderID, err = g.FindOrder(ctx, order, note)
		if err != nil && !errors.Is(err, payment.ErrNotFound) {
			// Even a refusal to look does not prove that there is none: the row stays.
			return payment.Order{}, fmt.Errorf("%w: %v", payment.ErrOutcomeUnknown, err)
		}
	}
	if gatewayOrderID == "" {
		var err error
		gatewayOrderID, err = g.OpenOrder(ctx, order, note)
		if errors.Is(err, payment.ErrGatewayRefused) {
			return h.release(ctx, wanted, order, err)
		}
		if err != nil {
			return payment.Order{}, err
		}
	}
	opened := order.Opened(gatewayOrderID, h.advancer.Rules, h.now())
	err := h.store.Commit(ctx, payment.Commit{
		Order:   opened,
		Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: gatewayOrderID}},
		Change:  &payment.Change{Source: payment.SourceAPI, What: "gateway order " + gatewayOrderID + " created", At: h.now()},
	})
	if errors.Is(err, payment.ErrVersionConflict) {
		return h.winner(ctx, wanted, err)
	}
	opened.Version++
	return opened, err
}

// release frees the id of an order that the gateway refused, unless another call got it a gateway order meanwhile.
func (h *handler) release(ctx context.Context, wanted wanted, order payment.Order, refusal error) (payment.Order, error) {
	err := h.store.DeleteOrder(ctx, order)
	switch {
	case errors.Is(err, payment.ErrVersionConflict):
		return h.winner(ctx, wanted, refusal)
	case err != nil: // the id is not free: the next call is refused again, and frees it
		return payment.Order{}, fmt.Errorf("%w: %v; %v", payment.ErrOutcomeUnknown, refusal, err)
	}
	return payment.Order{}, refusal
}

// winner is the order as the call that was faster left it, or otherwise if that left no gateway order.
func (h *handler) winner(ctx context.Context, wanted wanted, otherwise error) (payment.Order, error) {
	order, err := h.store.Order(ctx, wanted.ID)
	switch {
	case errors.Is(err, payment.ErrNotFound), err == nil && order.GatewayOrderID == "":
		return payment.Order{}, otherwise
	case err != nil:
		return payment.Order{}, err
	}
	return order, wanted.mayBe(order)
}

// wanted is the order that a request asks for.
type wanted struct{ payment.Order }

// mayBe says why the stored order is not the one that is wanted: another request has its id, or it is closed.
func (w wanted) mayBe(stored payment.Order) error {
	switch {
	case w.Amount != stored.Amount, w.Partial != stored.Partial:
		return apigw.ErrDifferentOrder
	case stored.Excludes(w.Gateway, w.Mode, w.Account) != "": // the API key was changed: its checkout would never pay this order
		return apigw.ErrDifferentOrder
	case !stored.ClosedAt.IsZero():
		return apigw.ErrClosed
	}
	return nil
}
