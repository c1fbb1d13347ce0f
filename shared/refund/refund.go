// Package refund gives money back, once per request, whatever fails on the way.
//
// A request is stored together with the reservation of its money before the gateway is called. Every call sends the same
// bytes under the same idempotency key, and before every call but the first the gateway is asked for the payment's refunds.
// What is not known stays open until it is read back; nothing is concluded from an error.
package refund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
)

// Gateway is what refunding needs of a payment gateway. Errors wrap [payment.ErrGatewayRefused], [payment.ErrKeyUsed] or
// [payment.ErrOutcomeUnknown].
type Gateway interface {
	// Mode is the mode of the API key.
	Mode() payment.Mode
	// DraftRefund returns the call that asks for a refund. receipt becomes its idempotency key; note is kept with it.
	DraftRefund(paymentID string, amount payment.Money, receipt, note string) (payment.RefundCall, error)
	// SendRefund makes the call. A refusal is a [*payment.Refusal].
	SendRefund(ctx context.Context, call payment.RefundCall) (payment.RefundFact, error)
	// Refunds reads all refunds of a payment, and Payment the payment. [payment.ErrNotFound] if there is no such payment.
	Refunds(ctx context.Context, paymentID string) ([]payment.RefundFact, error)
	Payment(ctx context.Context, id string) (payment.PaymentFact, error)
	// GatewayOrder reads an order. [payment.ErrNotFound] if there is none of that id.
	GatewayOrder(ctx context.Context, id string) (payment.GatewayOrder, error)
}

// Store is where orders and refund requests are kept.
type Store interface {
	// Order reads an order as it is now. [payment.ErrNotFound] if there is none.
	Order(ctx context.Context, id string) (payment.Order, error)
	// RefundRequest reads a refund request. [payment.ErrNotFound] if there is none.
	RefundRequest(ctx context.Context, orderID, id string) (payment.RefundRequest, error)
	// PutRefundRequest writes a refund request; [payment.ErrRefundChanged] if it is not at its version any more.
	PutRefundRequest(ctx context.Context, r payment.RefundRequest) error
}

// Refunder makes refunds.
type Refunder struct {
	Gateways map[string]func(context.Context) Gateway // by name; asked anew each time, since keys are rotated
	Store    Store
	Advancer advance.Advancer
	Stack    string // distinguishes our refunds at the gateway from another deployment's
	Now      func() time.Time
}

// writingTime is what is kept of a function's time to write down what the gateway said.
const writingTime = 4 * time.Second

// Ask is what the shop wants.
type Ask struct {
	ID        string // the shop's own for it: the same id is the same refund
	PaymentID string // empty: the order's payment, if only one can be meant
	Amount    int64  // minor units of the currency in which the payment was captured
	Reason    string
	Force     bool // in spite of a dispute
}

// Answer is where a refund request stands. Of an open one the outcome is not known yet; a failed one has its Refusal.
type Answer struct {
	Request payment.RefundRequest
	Refund  payment.Refund // the gateway's; its ID is empty until it is known
	New     bool           // this call made the request
}

// Request makes the refund, or says where the one of this id stands. It may be called again, at any time, with the same ask.
//
// [payment.ErrNotFound]: there is no such order. [payment.ErrDifferentRefund], [payment.ErrDisputed],
// [payment.ErrBeyondRefundable] and [payment.ErrPaymentNeeded]: it was not begun. After every other error it may have been:
// call again. A request that failed for good is an [Answer], not an error.
func (r Refunder) Request(ctx context.Context, orderID string, a Ask) (Answer, error) {
	request, err := r.Store.RefundRequest(ctx, orderID, a.ID)
	made := false
	if errors.Is(err, payment.ErrNotFound) {
		if request, err = r.reserve(ctx, orderID, a); err != nil {
			request, err = r.found(ctx, orderID, a.ID, err)
		} else {
			made = request.Version > 0 // 0: its refund is known, and only its row has been lost
		}
	}
	if err != nil {
		return Answer{}, err
	}
	if request.Amount.Amount != a.Amount || a.PaymentID != "" && request.PaymentID != a.PaymentID {
		return Answer{}, payment.ErrDifferentRefund
	}
	answer, err := r.pursue(ctx, request, payment.SourceAPI, made)
	answer.New = made
	return answer, err
}

// Pursue takes a stored request that is due one step further: reconcile's part. When to look next is written first, so that
// one that always fails does not keep others waiting. It reports false if there is nothing to do any more.
func (r Refunder) Pursue(ctx context.Context, orderID, id string) (bool, error) {
	request, err := r.Store.RefundRequest(ctx, orderID, id)
	if err != nil {
		return false, err
	}
	if request.NextAt.IsZero() || r.Now().Before(request.NextAt) {
		return false, nil
	}
	request.NextAt = r.Advancer.Rules.Pace.NextRefundLook(request, r.Now())
	if err := r.Store.PutRefundRequest(ctx, request); err != nil {
		return false, ignore(err, payment.ErrRefundChanged)
	}
	request.Version++
	_, err = r.pursue(ctx, request, payment.SourceSweep, false)
	return true, err
}

// found is the request that another call with the same id made meanwhile: it may be what has taken the money that this one
// found missing. If there is none, why this call failed.
func (r Refunder) found(ctx context.Context, orderID, id string, why error) (payment.RefundRequest, error) {
	request, err := r.Store.RefundRequest(ctx, orderID, id)
	switch {
	case err == nil:
		return request, nil
	case !errors.Is(err, payment.ErrNotFound): // nobody knows whether it was begun
		return payment.RefundRequest{}, unknown(fmt.Errorf("%v; %w", why, err))
	case errors.Is(why, payment.ErrRefundChanged):
		return payment.RefundRequest{}, payment.ErrVersionConflict
	}
	return payment.RefundRequest{}, why
}

// reserve stores the request together with the reservation of its money. [payment.ErrRefundChanged] if there is one already. A
// request whose refund the order has, although there is no row of it, comes back as it would be, not stored.
func (r Refunder) reserve(ctx context.Context, orderID string, a Ask) (payment.RefundRequest, error) {
	order, err := r.Store.Order(ctx, orderID)
	if err != nil {
		return payment.RefundRequest{}, err
	}
	paymentID := a.PaymentID
	if paymentID == "" {
		if paymentID, err = order.PaymentToRefund(); err != nil {
			return payment.RefundRequest{}, err
		}
	}
	if !order.Payments[paymentID].IsCaptured() {
		return payment.RefundRequest{}, payment.ErrBeyondRefundable
	}
	gateway, err := r.gateway(ctx, order)
	if err != nil {
		return payment.RefundRequest{}, err
	}
	request := payment.NewRefundRequest(order, a.ID, paymentID, a.Amount, r.Now())
	request.Reason, request.Forced = a.Reason, a.Force
	request.Call, err = gateway.DraftRefund(paymentID, request.Amount, payment.Receipt(r.Stack, orderID, a.ID), r.Stack+"/"+orderID+"/"+a.ID)
	if err != nil {
		return payment.RefundRequest{}, err
	}
	if _, made := order.RefundOf(request); made {
		return request, nil
	}

	var reading *payment.Reading
	err = order.MayRefund(paymentID, a.Amount, a.Force, nil)
	if errors.Is(err, payment.ErrBeyondRefundable) && order.MayRefund(paymentID, a.Amount, a.Force, payment.AllFailed(order)) == nil {
		// Refunds that failed, or that the gateway spoke of, stand in the way: only the gateway knows what is left.
		if order, reading, err = r.read(ctx, gateway, orderID, paymentID); err == nil {
			err = order.MayRefund(paymentID, a.Amount, a.Force, reading)
		}
	}
	if err != nil {
		return payment.RefundRequest{}, err
	}
	request.NextAt = r.Advancer.Rules.Pace.NextRefundLook(request, r.Now())
	request = request.Did(r.Now(), "asked for: %s of payment %s", request.Amount, paymentID)
	result, err := r.Advancer.Apply(ctx, orderID, advance.Step{
		Source: payment.SourceAPI, Facts: []payment.Fact{payment.ReservedFact{Request: request, Read: reading}}, Refund: &request,
	})
	switch {
	case err != nil:
		return payment.RefundRequest{}, err
	case result.Taught:
		request.Version++
		return request, nil
	}
	// The order is another than it was: the same request is there, or its money is gone.
	if err := result.Order.MayRefund(paymentID, a.Amount, a.Force, reading); err != nil {
		if _, there := result.Order.Reserved[request.Call.Key]; !there {
			return payment.RefundRequest{}, err
		}
	}
	return payment.RefundRequest{}, payment.ErrRefundChanged
}

// read takes what the gateway shows of a payment and its refunds into the order.
func (r Refunder) read(ctx context.Context, g Gateway, orderID, paymentID string) (payment.Order, *payment.Reading, error) {
	calls, cancel := forCalls(ctx)
	defer cancel()
	var refunds []payment.RefundFact
	shown, err := g.Payment(calls, paymentID)
	if err == nil {
		refunds, err = g.Refunds(calls, paymentID)
	}
	if errors.Is(err, payment.ErrNotFound) {
		err = &payment.Refusal{Reason: payment.RefusedUnknownID}
	}
	if err != nil {
		return payment.Order{}, nil, err
	}
	facts := append(payment.Facts(refunds), shown)
	result, err := r.Advancer.Apply(ctx, orderID, advance.Step{Source: payment.SourceAPI, Facts: facts})
	reading := &payment.Reading{AmountRefunded: shown.AmountRefunded, Failed: map[string]bool{}}
	for _, f := range refunds {
		reading.Failed[f.ID] = f.Status == payment.RefundFailed
	}
	return result.Order, reading, err
}

// forCalls is ctx for calls of the gateway: it ends early enough to write down what came of them.
func forCalls(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-writingTime))
}

// gateway is the order's. A key of another mode is refused: of an order of this one the gateway would only say to it that
// there is none.
func (r Refunder) gateway(ctx context.Context, o payment.Order) (Gateway, error) {
	open := r.Gateways[o.Gateway]
	if open == nil {
		return nil, fmt.Errorf("refund: this deployment has no gateway %s", o.Gateway)
	}
	g := open(ctx)
	if g.Mode() != o.Mode {
		return nil, fmt.Errorf("refund: the API key is a %s one, and the order a %s one", g.Mode(), o.Mode)
	}
	return g, nil
}
