package razorpaytest

import (
	"net/http"
	"strings"
	"time"
)

// headerKey carries the idempotency key of a refund.
const headerKey = "X-Refund-Idempotency"

// keyUse is what an idempotency key was used for. Requests that were refused do not use a key up.
type keyUse struct {
	request string        // path and body: every byte counts
	answer  *refundEntity // as it was at first; nil: the request is in progress
}

// refundCall is a request for a refund on its way.
type refundCall struct {
	payment *paymentEntity
	order   refundOrder
	key     string // empty: none

	answer  *refundEntity // as it was at first
	refused *refusal
	done    chan struct{}
}

// createRefund looks at the idempotency key before anything else.
func (g *Gateway) createRefund(r *http.Request) (any, *refusal) {
	body, refused := readBody(r)
	if refused != nil {
		return nil, refused
	}
	key, refused := parseKey(r.Header)
	if refused != nil {
		return nil, refused
	}
	call, refused := g.beginRefund(r.PathValue("id"), key, r.URL.Path+"\n"+string(body), body)
	if refused != nil {
		return nil, refused
	}
	select {
	case <-call.done:
		if call.refused != nil {
			return nil, call.refused
		}
		return call.answer, nil
	case <-r.Context().Done():
	case <-g.ctx.Done():
	}
	panic(http.ErrAbortHandler) // nobody waits for the answer any more
}

func parseKey(header http.Header) (string, *refusal) {
	if len(header.Values(headerKey)) == 0 {
		return "", nil
	}
	key := header.Get(headerKey)
	odd := func(c rune) bool { return !strings.ContainsRune(base62+"_-", c) }
	switch {
	case len(key) < 10:
		return "", business("The idempotency key must be at least 10 characters long.")
	case strings.ContainsFunc(key, odd):
		return "", business("The idempotency key must only contain alphanumeric characters, underscores, and hyphens")
	}
	return key, nil
}

// beginRefund checks a request, and does it, unless it is to take some time.
func (g *Gateway) beginRefund(paymentID, key, request string, body []byte) (*refundCall, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	call := &refundCall{key: key, done: make(chan struct{})}
	if use := g.keys[key]; use != nil {
		switch {
		case use.answer == nil:
			return nil, errKeyInProgress
		case use.request != request:
			return nil, &refusal{g.settings.KeyConflict, "BAD_REQUEST_ERROR",
				"Different request with the same idempotency key has already been processed.", "NA", ""}
		}
		call.answer = use.answer
		close(call.done)
		return call, nil
	}
	var refused *refusal
	if call.order, refused = parseRefund(body); refused != nil {
		return nil, refused
	}
	if call.payment = g.payments.get(paymentID); call.payment == nil {
		return nil, errNoSuchID
	}
	if _, refused = g.checkRefund(call.payment, call.order); refused != nil {
		return nil, refused
	}
	if key != "" {
		g.keys[key] = &keyUse{request: request}
	}
	if g.settings.RefundTakes == 0 {
		g.finishRefund(call)
		return call, nil
	}
	call.payment.busy = true
	g.schedule(g.now().Add(time.Duration(g.settings.RefundTakes)*time.Second), func() { g.finishRefund(call) })
	return call, nil
}

// finishRefund does what was asked for, unless it cannot be any more. The caller holds mu.
func (g *Gateway) finishRefund(call *refundCall) {
	defer close(call.done)
	call.payment.busy = false
	var amount int64
	if amount, call.refused = g.checkRefund(call.payment, call.order); call.refused != nil {
		delete(g.keys, call.key)
		return
	}
	answer := *g.addRefund(call.payment, amount, call.order, g.settings.RefundStatus, true)
	call.answer = &answer
	if call.key != "" {
		g.keys[call.key].answer = &answer
	}
}

func (g *Gateway) readRefund(r *http.Request) (any, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.refunds.get(r.PathValue("id")); f != nil {
		return *f, nil
	}
	return nil, errNoSuchID
}

func (g *Gateway) readPaymentRefund(r *http.Request) (any, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.refunds.get(r.PathValue("refund")); f != nil && f.PaymentID == r.PathValue("id") {
		return *f, nil
	}
	return nil, errNoSuchID
}

func (g *Gateway) listRefunds(r *http.Request) (any, *refusal) {
	page, refused := parsePage(r.URL.Query())
	if refused != nil {
		return nil, refused
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return cut(g.refunds.all, page, func(f *refundEntity) bool { return page.holds(f.CreatedAt) }), nil
}

func (g *Gateway) listPaymentRefunds(r *http.Request) (any, *refusal) {
	page, refused := parsePage(r.URL.Query())
	if refused != nil {
		return nil, refused
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.payments.get(r.PathValue("id"))
	if p == nil {
		return nil, errNoSuchID
	}
	return cut(p.refunds, page, func(f *refundEntity) bool { return page.holds(f.CreatedAt) }), nil
}
