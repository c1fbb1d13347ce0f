package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// gateway is what orders need of a payment gateway.
type gateway interface {
	// Mode is the mode of the API key, KeyID its public half, which the browser's checkout needs.
	Mode() payment.Mode
	KeyID() string
	// OpenOrder creates the gateway's order for o and returns its id. note is kept with it, to know it again by.
	// [payment.ErrGatewayRefused] and [payment.ErrOutcomeUnknown] say what an error comes to.
	OpenOrder(ctx context.Context, o payment.Order, note string) (string, error)
	// FindOrder looks for an order that OpenOrder created before, with this note. [payment.ErrNotFound] if there is
	// none.
	FindOrder(ctx context.Context, o payment.Order, note string) (string, error)
}

// store is where orders are kept.
type store interface {
	// Order reads an order as it is now. [payment.ErrNotFound] if there is none.
	Order(ctx context.Context, id string) (payment.Order, error)
	// CreateOrder stores a new order; if the id is taken it returns the stored one with [payment.ErrOrderExists].
	CreateOrder(ctx context.Context, o payment.Order) (payment.Order, error)
	// Commit writes a change whole or not at all; [payment.ErrVersionConflict] if the order has changed since.
	Commit(ctx context.Context, c payment.Commit) error
	// DeleteOrder removes an order that has no gateway order; [payment.ErrVersionConflict] if it changed.
	DeleteOrder(ctx context.Context, id string, version int64) error
}

type handler struct {
	gateways map[string]func(context.Context) gateway // by name; asked anew each time, since keys are rotated
	store    store
	rules    payment.Rules
	account  string // the gateway account that new orders belong to; empty: not compared
	stack    string // distinguishes our orders at the gateway from another deployment's
	log      *slog.Logger
	now      func() time.Time
}

// Handle serves the shop's own routes. Who may call them is API Gateway's affair (AWS_IAM).
func (h *handler) Handle(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	response, orderID, err := h.route(ctx, r)
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("route", r.RouteKey), slog.String("order", orderID),
		slog.String("request_id", r.RequestContext.RequestID),
	}
	if err != nil {
		response = apigw.Error(err)
		level = slog.LevelWarn
		if response.StatusCode >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		attributes = append(attributes, slog.String("error", err.Error()))
	}
	h.log.LogAttrs(ctx, level, "orders", append(attributes, slog.Int("status", response.StatusCode))...)
	return response, nil
}

func (h *handler) route(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, string, error) {
	switch r.RouteKey {
	case "POST /orders":
		request, err := readRequest(r, h.gateways)
		if err != nil {
			return events.APIGatewayV2HTTPResponse{}, request.ID, err
		}
		response, err := h.create(ctx, request)
		return response, request.ID, err
	case "GET /orders/{id}":
		id := r.PathParameters["id"]
		order, err := h.store.Order(ctx, id)
		if err != nil {
			return events.APIGatewayV2HTTPResponse{}, id, err
		}
		return apigw.JSON(http.StatusOK, apigw.ShowOrder(order, h.rules)), id, nil
	}
	return events.APIGatewayV2HTTPResponse{}, "", apigw.ErrNoRoute
}

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
	wanted := payment.NewOrder(request.ID, request.money(), request.Gateway, g.Mode(), h.now())
	wanted.Account, wanted.Partial, wanted.Notes = h.account, request.Partial, request.Notes

	status := http.StatusCreated
	order, err := h.store.CreateOrder(ctx, wanted)
	if errors.Is(err, payment.ErrOrderExists) {
		status = http.StatusOK
		if !sameRequest(order, wanted) {
			return events.APIGatewayV2HTTPResponse{}, apigw.ErrDifferentOrder
		}
		err = nil
	}
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	if order.GatewayOrderID == "" {
		if order, err = h.open(ctx, g, order, status == http.StatusOK); err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
	}
	return apigw.JSON(status, created{
		apigw.ShowOrder(order, h.rules),
		checkout{g.KeyID(), order.GatewayOrderID, order.Amount.Amount, order.Amount.Currency},
	}), nil
}

// open gets the order its gateway order. Whoever writes the id first wins; everyone hands out the winner's. A gateway
// order that was made before, by a call that never heard the answer, is used before another is made.
func (h *handler) open(ctx context.Context, g gateway, order payment.Order, retried bool) (payment.Order, error) {
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
			return h.release(ctx, order, err)
		}
		if err != nil {
			return payment.Order{}, err
		}
	}
	opened := order
	opened.GatewayOrderID, opened.UpdatedAt = gatewayOrderID, h.now()
	err := h.store.Commit(ctx, payment.Commit{
		Order:   opened,
		Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: gatewayOrderID}},
		Change:  &payment.Change{Source: payment.SourceAPI, What: "gateway order " + gatewayOrderID + " created", At: h.now()},
	})
	if errors.Is(err, payment.ErrVersionConflict) {
		return h.winner(ctx, order.ID, err)
	}
	opened.Version++
	return opened, err
}

// release frees the id of an order that the gateway refused, unless another call got it a gateway order meanwhile.
func (h *handler) release(ctx context.Context, order payment.Order, refusal error) (payment.Order, error) {
	err := h.store.DeleteOrder(ctx, order.ID, order.Version)
	if errors.Is(err, payment.ErrVersionConflict) {
		return h.winner(ctx, order.ID, refusal)
	}
	return payment.Order{}, errors.Join(refusal, err)
}

// winner is the order as the call that was faster left it, or otherwise if that left no gateway order.
func (h *handler) winner(ctx context.Context, id string, otherwise error) (payment.Order, error) {
	order, err := h.store.Order(ctx, id)
	switch {
	case errors.Is(err, payment.ErrNotFound), err == nil && order.GatewayOrderID == "":
		return payment.Order{}, otherwise
	case err != nil:
		return payment.Order{}, err
	}
	return order, nil
}

func sameRequest(a, b payment.Order) bool {
	return a.Amount == b.Amount && a.Gateway == b.Gateway && a.Partial == b.Partial
}
