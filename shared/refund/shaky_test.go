package refund_test

import (
	"context"
	"errors"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/storetest"
)

// mishap is what goes wrong with one step of the code under test.
type mishap string

const (
	notDone  mishap = "not done"
	unsaid   mishap = "done, answer lost"
	killedBy mishap = "killed after"
)

// point is where something happens: at the n-th call of the store from 1, or around a call of the gateway.
type point struct {
	n          int
	beforeSend bool // killed just before the gateway is called
	afterSend  bool // killed just after it answered
	mishap     mishap
}

// shakyStore is the table for a process that may crash at any of its calls.
type shakyStore struct {
	*storetest.Memory
	world *world

	armed *point // nil: nothing goes wrong
	n     int    // calls since it was armed
	at    string // the method that it went wrong with; empty: none has
	// between, if set, is called before the call with the number it was armed with.
	between func()
}

func (s *shakyStore) arm(p point) { s.armed, s.n, s.at = &p, 0, "" }

func (s *shakyStore) disarm() { s.armed = nil }

func (s *shakyStore) call(method string, do func() error) error {
	if s.armed == nil {
		return do()
	}
	s.n++
	if s.n != s.armed.n {
		return do()
	}
	armed := *s.armed
	s.at = method
	s.armed = nil
	switch {
	case s.between != nil:
		s.between()
		return do()
	case armed.mishap == notDone:
		return storetest.ErrFault
	case armed.mishap == unsaid:
		_ = do() // whatever came of it
		return storetest.ErrFault
	}
	_ = do()
	panic(killed{})
}

func (s *shakyStore) Order(ctx context.Context, id string) (o payment.Order, err error) {
	err = s.call("Order", func() (err error) { o, err = s.Memory.Order(ctx, id); return err })
	return o, err
}

func (s *shakyStore) Commit(ctx context.Context, c payment.Commit) error {
	if c.Refund != nil && c.Refund.Status == payment.RequestFailed {
		s.world.mustHaveReadBack("failed")
	}
	return s.call("Commit", func() error {
		err := s.Memory.Commit(ctx, c)
		s.world.check()
		return err
	})
}

func (s *shakyStore) RefundRequest(ctx context.Context, orderID, id string) (r payment.RefundRequest, err error) {
	err = s.call("RefundRequest", func() (err error) { r, err = s.Memory.RefundRequest(ctx, orderID, id); return err })
	return r, err
}

func (s *shakyStore) PutRefundRequest(ctx context.Context, r payment.RefundRequest) error {
	if r.Status == payment.RequestFailed {
		s.world.broken("failed without giving its money free")
	}
	return s.call("PutRefundRequest", func() error { return s.Memory.PutRefundRequest(ctx, r) })
}

// shakyGateway is the gateway for a process that may crash before and after it is called.
type shakyGateway struct {
	*razorpay.Client
	world *world

	sent  bool // our refund was called for
	read  bool // the payment's refunds were read since
	first bool // the call that made the request sends it without reading back, even if somebody else was faster
	held  bool // the next call for a refund is given up before it arrives
	hangs bool // calls for a refund may stay without an answer
	mode  payment.Mode
	after func() // called when a call for a refund has been answered
}

func (g *shakyGateway) Mode() payment.Mode { return g.mode }

func (g *shakyGateway) SendRefund(ctx context.Context, call payment.RefundCall) (payment.RefundFact, error) {
	if call.Key == receipt() {
		if g.sent && !g.first {
			g.world.mustHaveReadBack("sent again")
		}
		g.sent, g.read = true, false
	}
	if g.hangs {
		limited, cancel := context.WithTimeout(ctx, impatience)
		defer cancel()
		ctx = limited
	}
	g.crash(func(p *point) bool { return p.beforeSend })
	if g.held {
		g.held = false
		return payment.RefundFact{}, payment.ErrOutcomeUnknown
	}
	fact, err := g.Client.SendRefund(ctx, call)
	if after := g.after; after != nil {
		g.after = nil
		after()
	}
	g.crash(func(p *point) bool { return p.afterSend })
	return fact, err
}

func (g *shakyGateway) Refunds(ctx context.Context, paymentID string) ([]payment.RefundFact, error) {
	refunds, err := g.Client.Refunds(ctx, paymentID)
	g.read = g.read || paymentID == g.world.paymentID && (err == nil || errors.Is(err, payment.ErrNotFound))
	return refunds, err
}

func (g *shakyGateway) crash(here func(*point) bool) {
	store := g.world.store
	if store.armed == nil || !here(store.armed) {
		return
	}
	store.armed, store.at = nil, "SendRefund"
	if store.between == nil {
		panic(killed{})
	}
	store.between()
}

// mustHaveReadBack asserts that the payment's refunds were read after our last call for a refund.
func (w *world) mustHaveReadBack(what string) {
	if !w.calls.read {
		w.broken("%s without reading back first", what)
	}
}
