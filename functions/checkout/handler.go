package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/advance"
	"paidonce/shared/apigw"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
)

// readBackWithin is how long the gateway may take to show the payment, all attempts together. The customer is looking at
// an empty page meanwhile, and the webhook and the sweep bring the same answer.
const readBackWithin = 3 * time.Second

// gateway is what checkout needs of a payment gateway.
type gateway interface {
	// Mode is the mode of the API key.
	Mode() payment.Mode
	// VerifyCheckout reports whether signature proves that the payment belongs to the gateway order, and nothing more.
	VerifyCheckout(gatewayOrderID, paymentID, signature string) bool
	// Payment reads a payment as the gateway has it now.
	Payment(ctx context.Context, id string) (payment.PaymentFact, error)
}

// access is the way to a gateway, whose key may be changed at any time.
type access struct {
	current func(context.Context) gateway
	// refresh reads the key again, because a signature did not match, and reports whether it did. It limits its own rate.
	refresh func(context.Context) (gateway, bool)
}

// store is where orders are kept.
type store interface {
	// Order reads an order as it is now. [payment.ErrNotFound] if there is none.
	Order(ctx context.Context, id string) (payment.Order, error)
	// RecordCallback records that a payment of the order was called back; [payment.ErrCallbackSeen] if it was before.
	RecordCallback(ctx context.Context, orderID string, c payment.Callback) error
}

type handler struct {
	gateways map[string]access // by the name in the path
	store    store
	advancer advance.Advancer
	returnTo returnURL // where forms are sent on to
	log      *slog.Logger
	now      func() time.Time
}

// outcome is what became of one callback.
type outcome struct {
	orderID   string        // from the path; empty unless it looks like one
	paymentID string        // see callback
	order     payment.Order // as it is now; zero if nothing may be said of it: err says why
	verdict   string        // in words
	err       error         // with an order: what kept it from being settled here
}

// What is wrong with a callback, for the log. The caller is told no more than that its signature is bad.
var (
	errNoOrder  = fmt.Errorf("%w: no such order at this gateway", apigw.ErrBadSignature)
	errUnsigned = fmt.Errorf("%w: none, or not of this payment and order", apigw.ErrBadSignature)
)

// What keeps a payment from being read from the gateway wraps errUnread. None of it is our failure.
var (
	errUnread     = errors.New("payment not read")
	errMismatched = errors.New("the gateway shows another payment, or another order's")
)

// Handle answers where the order stands. A callback that is signed has its payment read from the gateway first, once.
func (h *handler) Handle(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	began := h.now()
	o := h.receive(ctx, r)
	response := h.answer(r, o)
	h.report(ctx, r, o, response.StatusCode, h.now().Sub(began))
	return response, nil
}

func (h *handler) receive(ctx context.Context, r events.APIGatewayV2HTTPRequest) outcome {
	o := outcome{orderID: fit(fitOrderID, r.PathParameters["order"]), verdict: "refused"}
	name := r.PathParameters["gateway"]
	way, known := h.gateways[name]
	if !known {
		o.err = apigw.ErrUnknownGateway
		return o
	}
	c, err := readCallback(r)
	if err != nil {
		o.err = err
		return o
	}
	o.paymentID = c.paymentID
	order, err := h.order(ctx, name, o.orderID)
	if err != nil {
		o.err = err
		return o
	}
	if c.failed { // anyone can say so: it changes nothing
		o.order, o.verdict = order, "payment failed, says the browser"
		return o
	}
	g, ok := way.verify(ctx, order, c)
	if !ok {
		o.err = errUnsigned
		return o
	}
	o.order, o.verdict, o.err = h.settle(logs.With(ctx, slog.String("order", order.ID)), g, order, c.paymentID)
	return o
}

// order reads the order, if it is the gateway's. One that does not exist is no better than a bad signature.
func (h *handler) order(ctx context.Context, gateway, id string) (payment.Order, error) {
	if id == "" {
		return payment.Order{}, errNoOrder
	}
	order, err := h.store.Order(ctx, id)
	switch {
	case errors.Is(err, payment.ErrNotFound):
		return payment.Order{}, errNoOrder
	case err != nil:
		return payment.Order{}, err
	case order.Gateway != gateway, order.GatewayOrderID == "":
		return payment.Order{}, errNoOrder
	}
	return order, nil
}

// verify returns the gateway whose key signed the callback about the order. If the key at hand did not, it may just have
// been changed.
func (a access) verify(ctx context.Context, o payment.Order, c callback) (gateway, bool) {
	if c.paymentID == "" || c.signature == "" {
		return nil, false
	}
	g := a.current(ctx)
	ok := signed(g, o, c)
	if !ok {
		var read bool
		if g, read = a.refresh(ctx); read {
			ok = signed(g, o, c)
		}
	}
	return g, ok
}

// signed goes by the gateway order that we made for o, so that a payment of another order proves nothing.
func signed(g gateway, o payment.Order, c callback) bool {
	return g.Mode() == o.Mode && g.VerifyCheckout(o.GatewayOrderID, c.paymentID, c.signature)
}

// settle takes what the gateway shows of the payment into the order, and returns the order as it is then. A signature
// does not say what was paid, so the payment is read; that is done once per payment, however often the browser comes.
// An error means that the order is as it was: the webhook or the sweep settles it.
func (h *handler) settle(ctx context.Context, g gateway, o payment.Order, paymentID string) (payment.Order, string, error) {
	switch o.Status {
	case payment.Paid, payment.PartiallyRefunded, payment.Refunded:
		return o, "was paid before", nil
	}
	err := h.store.RecordCallback(ctx, o.ID, payment.Callback{PaymentID: paymentID, At: h.now()})
	if errors.Is(err, payment.ErrCallbackSeen) {
		return o, "came before", nil
	}
	if err != nil {
		return o, "not recorded, so not read back", err
	}
	fact, err := readBack(ctx, g, o, paymentID)
	if err != nil {
		return o, "not read back", err
	}
	result, err := h.advancer.Apply(ctx, o.ID, advance.Step{Source: payment.SourceCallback, Facts: []payment.Fact{fact}})
	if err != nil {
		return o, "read back, not applied", err
	}
	return result.Order, result.Verdict, nil
}

// readBack reads the payment from the gateway. One that is not what the signature says teaches nothing.
func readBack(ctx context.Context, g gateway, o payment.Order, paymentID string) (payment.PaymentFact, error) {
	ctx, cancel := context.WithTimeout(ctx, readBackWithin)
	defer cancel()
	fact, err := g.Payment(ctx, paymentID)
	switch {
	case err != nil:
		return payment.PaymentFact{}, fmt.Errorf("%w: %w", errUnread, err)
	case fact.ID != paymentID, fact.GatewayOrderID != o.GatewayOrderID:
		return payment.PaymentFact{}, fmt.Errorf("%w: %w", errUnread, errMismatched)
	}
	return fact, nil
}

// report writes the one line about a callback.
func (h *handler) report(ctx context.Context, r events.APIGatewayV2HTTPRequest, o outcome, status int, took time.Duration) {
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("route", r.RouteKey),
		slog.String("request_id", r.RequestContext.RequestID),
		slog.String("order", o.orderID),
		slog.Int("status", status),
		slog.String("outcome", o.verdict),
		slog.Int64("took_ms", took.Milliseconds()),
	}
	if o.paymentID != "" {
		attributes = append(attributes, slog.String("payment", o.paymentID))
	}
	if o.err != nil {
		level = slog.LevelWarn
		if !errors.Is(o.err, errUnread) && apigw.Error(o.err).StatusCode >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		attributes = append(attributes, slog.String("error", o.err.Error()))
	}
	h.log.LogAttrs(ctx, level, "checkout", attributes...)
}
