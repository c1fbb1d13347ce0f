package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/advance"
	"paidonce/shared/apigw"
	"paidonce/shared/logs"
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
	DeleteOrder(ctx context.Context, o payment.Order) error
	// History reads everything that is kept about an order beside its row.
	History(ctx context.Context, id string) (payment.History, error)
}

type handler struct {
	gateways map[string]func(context.Context) gateway // by name; asked anew each time, since keys are rotated
	store    store
	advancer advance.Advancer
	account  string // the gateway account that new orders belong to; empty: not compared
	stack    string // distinguishes our orders at the gateway from another deployment's
	log      *slog.Logger
	now      func() time.Time
}

// Handle serves the shop's own routes. Who may call them is API Gateway's affair (AWS_IAM).
func (h *handler) Handle(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	began := h.now()
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
	h.log.LogAttrs(ctx, level, "orders", append(attributes, slog.Int("status", response.StatusCode), slog.Int64("took_ms", h.now().Sub(began).Milliseconds()))...)
	return response, nil
}

func (h *handler) route(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, string, error) {
	id, err := apigw.OrderID(r)
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, "", err
	}
	switch r.RouteKey {
	case "POST /orders":
		request, err := readRequest(r, h.gateways)
		if !apigw.IsID(request.ID) {
			request.ID = "" // it could be anything, and is logged
		}
		if err != nil {
			return events.APIGatewayV2HTTPResponse{}, request.ID, err
		}
		response, err := h.create(logs.With(ctx, slog.String("order", request.ID)), request)
		return response, request.ID, err
	case "GET /orders/{id}":
		order, err := h.store.Order(ctx, id)
		return h.show(order), id, err
	case "GET /orders/{id}/timeline":
		response, err := h.timeline(ctx, id)
		return response, id, err
	case "POST /orders/{id}/close":
		order, err := h.close(ctx, id, r)
		return h.show(order), id, err
	case "POST /orders/{id}/holds/{reason}/acknowledge":
		order, err := h.acknowledge(ctx, id, payment.HoldReason(r.PathParameters["reason"]), r)
		return h.show(order), id, err
	}
	return events.APIGatewayV2HTTPResponse{}, "", apigw.ErrNoRoute
}

func (h *handler) show(o payment.Order) events.APIGatewayV2HTTPResponse {
	return apigw.JSON(http.StatusOK, apigw.ShowOrder(o, h.advancer.Rules))
}
