package refund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
)

// pursuit is one attempt at finding out what becomes of a request.
type pursuit struct {
	Refunder
	gateway Gateway
	source  payment.Source
	request payment.RefundRequest
	order   payment.Order
	calls   context.Context // for calls of the gateway; see forCalls
}

// pursue takes the request one step further. first: this very call made it, so that the gateway cannot know of it.
func (r Refunder) pursue(ctx context.Context, request payment.RefundRequest, source payment.Source, first bool) (Answer, error) {
	order, err := r.Store.Order(ctx, request.OrderID)
	if err != nil {
		return Answer{}, unknown(err)
	}
	gateway, err := r.gateway(ctx, order)
	if err != nil {
		return Answer{}, unknown(err)
	}
	calls, cancel := forCalls(ctx)
	defer cancel()
	p := &pursuit{Refunder: r, gateway: gateway, source: source, request: request, order: order, calls: calls}
	return p.step(ctx, first)
}

func (p *pursuit) step(ctx context.Context, first bool) (Answer, error) {
	if refund, known := p.order.RefundOf(p.request); known {
		if p.source == payment.SourceSweep && !settled(refund) {
			return p.readPending(ctx)
		}
		return p.accept(ctx, refund)
	}
	if p.request.Status == payment.RequestFailed {
		return p.answer(), nil
	}
	lastSent := p.request.SentAt
	if !first {
		if answer, done, err := p.sendAgain(ctx); done || err != nil {
			return answer, err
		}
	}
	return p.send(ctx, lastSent)
}

// sendAgain reads the payment's refunds back and, if ours is not among them, writes down that it is about to be sent again.
// done: it is not to be sent.
func (p *pursuit) sendAgain(ctx context.Context) (_ Answer, done bool, err error) {
	refund, known, err := p.readBack(ctx)
	switch {
	case err != nil:
		answer, err := p.leave(ctx, "cannot be read back: %v", err)
		return answer, true, err
	case known:
		answer, err := p.accept(ctx, refund)
		return answer, true, err
	case p.request.MayGiveUp(p.Now()) && p.resembled():
		answer, err := p.fail(ctx, payment.RefusedReceiptUsed)
		return answer, true, err
	case p.resembled():
		answer, err := p.leave(ctx, "the gateway shows another refund under our receipt: look at it there")
		return answer, true, err
	case p.request.MayGiveUp(p.Now()) && p.disputed():
		answer, err := p.fail(ctx, payment.RefusedDisputed)
		return answer, true, err
	case p.request.MayGiveUp(p.Now()):
		answer, err := p.fail(ctx, payment.RefusedNeverReached)
		return answer, true, err
	case p.disputed():
		answer, err := p.leave(ctx, "the payment is disputed meanwhile: not sent again")
		return answer, true, err
	case !p.request.MaySend(p.Now()):
		answer, err := p.leave(ctx, "the gateway does not show it, and it is not sent again")
		return answer, true, err
	}
	p.request.Attempts++
	p.request.SentAt = p.Now()
	err = p.put(ctx, "the gateway does not show it; sent again, attempt %d", p.request.Attempts)
	return p.answer(), errors.Is(err, errOvertaken), ignore(err, errOvertaken)
}

// send makes the call. lastSent is when the call before it began.
func (p *pursuit) send(ctx context.Context, lastSent time.Time) (Answer, error) {
	fact, err := p.gateway.SendRefund(p.calls, p.request.Call)
	switch {
	case err == nil:
		refund, known, err := p.learn(ctx, []payment.Fact{fact})
		if err != nil {
			return p.answer(), unknown(err)
		}
		if !known {
			return p.leave(ctx, "the gateway answered with another refund, %s", fact.ID)
		}
		return p.accept(ctx, refund)
	case errors.Is(err, payment.ErrKeyUsed):
		p.request.KeyUsed = true
	case !errors.Is(err, payment.ErrGatewayRefused):
		return p.leave(ctx, "no answer: %v", err)
	}
	// The gateway said no, or that it knows the key. Either may be because an earlier call came through.
	refund, known, readErr := p.readBack(ctx)
	switch {
	case readErr != nil:
		return p.leave(ctx, "%v, and cannot be read back: %v", err, readErr)
	case known:
		return p.accept(ctx, refund)
	case p.request.KeyUsed:
		return p.leave(ctx, "%v, and the gateway does not show it", err)
	case p.resembled():
		return p.leave(ctx, "%v, and the gateway shows another refund under our receipt", err)
	case !p.request.Alone(lastSent, p.Now()):
		p.request.SentAt = lastSent // this call is over
		return p.leave(ctx, "%v; an earlier call may still come through", err)
	}
	refusal := &payment.Refusal{Reason: payment.RefusedOther}
	errors.As(err, &refusal)
	if refusal.Reason == payment.RefusedOther && p.request.Attempts == 1 {
		return p.leave(ctx, "%v; looked at once more before it counts", err)
	}
	return p.fail(ctx, refusal.Reason)
}

// readPending asks what became of a refund that the gateway has and has not settled.
func (p *pursuit) readPending(ctx context.Context) (Answer, error) {
	refund, known, err := p.readBack(ctx)
	switch {
	case err != nil:
		return p.leave(ctx, "cannot be read back: %v", err)
	case !known:
		return p.leave(ctx, "the gateway shows another refund than before")
	}
	return p.accept(ctx, refund)
}

// readBack takes the payment's refunds into the order and looks for ours. That the gateway does not show the payment at all, although
// it was captured, is an answer only if it shows the payment's order: else the key is of another account by now.
func (p *pursuit) readBack(ctx context.Context) (refund payment.Refund, known bool, err error) {
	refunds, err := p.gateway.Refunds(p.calls, p.request.PaymentID)
	if errors.Is(err, payment.ErrNotFound) {
		_, err = p.gateway.GatewayOrder(p.calls, p.order.GatewayOrderID)
	}
	if err != nil {
		return payment.Refund{}, false, err
	}
	return p.learn(ctx, payment.Facts(refunds))
}

// resembled reports whether the gateway shows something else under our receipt.
func (p *pursuit) resembled() bool {
	for _, f := range p.order.Refunds {
		if p.request.Resembles(f) {
			return true
		}
	}
	return false
}

// disputed reports whether the payment has come to be disputed since the request was made.
func (p *pursuit) disputed() bool { return p.order.Disputed(p.request.PaymentID) && !p.request.Forced }

// learn takes what the gateway says into the order and looks for our refund there.
func (p *pursuit) learn(ctx context.Context, facts []payment.Fact) (refund payment.Refund, known bool, err error) {
	result, err := p.Advancer.Apply(ctx, p.order.ID, advance.Step{Source: p.source, Facts: facts})
	if err != nil {
		return payment.Refund{}, false, err
	}
	p.order = result.Order
	refund, known = p.order.RefundOf(p.request)
	return refund, known, nil
}

// accept writes down that the gateway has the refund. Reconcile looks after it until it is settled.
func (p *pursuit) accept(ctx context.Context, refund payment.Refund) (Answer, error) {
	before := p.request
	p.request.Status, p.request.RefundID, p.request.Refusal = payment.RequestAccepted, refund.ID, ""
	if before.Status == payment.RequestAccepted && settled(refund) == before.NextAt.IsZero() && p.source != payment.SourceSweep {
		return p.answer(), nil // as it is written
	}
	err := p.put(ctx, "the gateway has it: %s, %s", refund.ID, refund.Status())
	return p.answer(), ignore(err, errOvertaken) // the order has the refund: the row only follows
}

// fail writes down that there is no such refund and gives its money free, both or neither.
func (p *pursuit) fail(ctx context.Context, reason payment.RefusalReason) (Answer, error) {
	open := p.request
	p.request.Status, p.request.Refusal, p.request.NextAt = payment.RequestFailed, string(reason), time.Time{}
	p.request = p.request.Did(p.Now(), "failed: %s", reason)
	result, err := p.Advancer.Apply(ctx, p.order.ID, advance.Step{
		Source: p.source, Facts: []payment.Fact{payment.ReleasedFact{Receipt: p.request.Call.Key, Why: string(reason)}}, Refund: &p.request,
	})
	switch {
	case errors.Is(err, payment.ErrRefundChanged): // somebody else sends it just now
		p.request = open
		return p.answer(), nil
	case err != nil:
		p.request = open
		return p.answer(), unknown(err)
	case result.Taught:
		p.request.Version++
		return p.answer(), nil
	}
	// Its money was not reserved any more: the refund came by webhook meanwhile, or somebody else was faster.
	p.order, p.request = result.Order, open
	if refund, known := p.order.RefundOf(open); known {
		return p.accept(ctx, refund)
	}
	now, err := p.Store.RefundRequest(ctx, open.OrderID, open.ID)
	if err != nil {
		return p.answer(), unknown(err)
	}
	p.request = now
	return p.answer(), nil
}

// leave writes down what was tried. The outcome stays unknown until somebody looks again.
func (p *pursuit) leave(ctx context.Context, format string, args ...any) (Answer, error) {
	err := p.put(ctx, format, args...)
	return p.answer(), ignore(err, errOvertaken)
}

// errOvertaken: somebody else has taken the request further since it was read.
var errOvertaken = errors.New("overtaken")

// put writes the request with one more step and with when to look next.
func (p *pursuit) put(ctx context.Context, format string, args ...any) error {
	r := p.request.Did(p.Now(), format, args...)
	r.NextAt = p.pace().NextRefundLook(r, p.Now())
	if refund, known := p.order.RefundOf(r); known && settled(refund) {
		r.NextAt = time.Time{}
	}
	err := p.Store.PutRefundRequest(ctx, r)
	switch {
	case errors.Is(err, payment.ErrRefundChanged):
		return errOvertaken
	case err != nil:
		return unknown(err)
	}
	r.Version++
	p.request = r
	return nil
}

func (p *pursuit) answer() Answer {
	refund, _ := p.order.RefundOf(p.request)
	return Answer{Request: p.request, Refund: refund}
}

func (p *pursuit) pace() payment.Pace { return p.Advancer.Rules.Pace }

// settled reports whether the gateway has said what became of the refund.
func settled(f payment.Refund) bool { return f.Seen.Processed || f.Seen.Failed }

func unknown(err error) error { return fmt.Errorf("refund: %w: %w", payment.ErrOutcomeUnknown, err) }

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
