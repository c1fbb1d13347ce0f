package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/reconcile"
	"paidonce/shared/refund"
	"paidonce/shared/storetest"
)

var rupees = payment.Money{Amount: 49900, Currency: "INR"}

// sweeping is the function with the simulated gateway, all on one clock.
type sweeping struct {
	*bundle
	t        *testing.T
	sim      *razorpaytest.Gateway
	client   *razorpay.Client
	advancer advance.Advancer
	asks     reconcile.Reconciler
	refunder refund.Refunder
	checker  *storetest.Checker
	clock    atomic.Pointer[time.Time] // everybody's
	logged   *bytes.Buffer
}

// to sets everybody's clock.
func (s *sweeping) to(at time.Time) {
	s.at = at
	s.clock.Store(&at)
}

func newSweeping(t *testing.T, rules payment.Rules) *sweeping {
	t.Helper()
	s := &sweeping{bundle: setup(), t: t, logged: &bytes.Buffer{}}
	s.to(received)
	rules.Pace = pace
	clock := func() time.Time { return *s.clock.Load() }
	s.sim = razorpaytest.New(razorpaytest.Config{KeyID: "rzp_test_key", KeySecret: "key secret of the tests", Now: clock})
	t.Cleanup(s.sim.Close)
	url, err := s.sim.Start(0)
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(map[string]string{"key_id": "rzp_test_key", "key_secret": "key secret of the tests"})
	if err != nil {
		t.Fatal(err)
	}
	atOnce := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	if s.client, err = razorpay.ParseClient(url, razorpay.WithSleep(atOnce))(document); err != nil {
		t.Fatal(err)
	}
	s.log = logs.New(s.logged, "WARN")
	s.advancer = advance.Advancer{Store: s.memory, Rules: rules, Now: clock}
	s.refunder = refund.Refunder{
		Gateways: map[string]func(context.Context) refund.Gateway{"razorpay": func(context.Context) refund.Gateway { return s.client }},
		Store:    s.memory, Advancer: s.advancer, Stack: "shop", Now: clock,
	}
	s.handler.refunder = s.refunder
	s.through(s.client)
	s.checker = &storetest.Checker{Store: s.memory, Rules: rules}
	return s
}

type gateway = reconcile.Gateway

// through lets the function reach the gateway as g.
func (s *sweeping) through(g gateway) {
	s.asks = reconcile.Reconciler{
		Gateways: map[string]func(context.Context) gateway{"razorpay": func(context.Context) gateway { return g }},
		Store:    s.memory, Advancer: s.advancer, Stack: "shop", Log: s.log, Now: s.advancer.Now,
	}
	s.reconciler = s.asks
}

// create stores an order as the shop's call leaves it that died before the gateway's answer.
func (s *sweeping) create(id string) payment.Order {
	s.t.Helper()
	o := payment.NewOrder(id, rupees, "razorpay", payment.Test, s.at)
	o.DueAt = o.NextLook(s.advancer.Rules, s.at)
	o, err := s.memory.CreateOrder(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// open stores an order with its gateway order.
func (s *sweeping) open(id string) payment.Order {
	s.t.Helper()
	o := s.create(id)
	gatewayOrderID, err := s.client.OpenOrder(s.t.Context(), o, "shop/"+id)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.memory.Commit(s.t.Context(), payment.Commit{
		Order:   o.Opened(gatewayOrderID, s.advancer.Rules, s.at),
		Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: gatewayOrderID}},
	}); err != nil {
		s.t.Fatal(err)
	}
	return s.order(id)
}

func (s *sweeping) order(id string) payment.Order {
	s.t.Helper()
	o, err := s.memory.Order(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// pay lets a customer pay the order, as far as the status says, without a webhook.
func (s *sweeping) pay(o payment.Order, status string) string {
	s.t.Helper()
	id, err := s.sim.Pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID, Status: status, Deliver: new(false)})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// webhook is what the worker makes of facts that a webhook brings.
func (s *sweeping) webhook(o payment.Order, facts ...payment.Fact) {
	s.t.Helper()
	if _, err := s.advancer.Apply(s.t.Context(), o.ID, advance.Step{Source: payment.SourceWebhook, Facts: facts}); err != nil {
		s.t.Fatal(err)
	}
}

// sweep runs the function so long after the tests' beginning, heals the store and checks every invariant.
func (s *sweeping) sweep(after time.Duration) error {
	s.t.Helper()
	s.to(received.Add(after))
	err := s.Handle(s.t.Context())
	s.memory.Faults = nil
	s.check()
	return err
}

func (s *sweeping) check() {
	s.t.Helper()
	var ids []string
	if err := s.memory.DueOrders(s.t.Context(), received.AddDate(1, 0, 0), func(id string) bool {
		ids = append(ids, id)
		return true
	}); err != nil {
		s.t.Fatal(err)
	}
	s.checker.Check(s.t, ids...)
}

// swept is sweep where nothing may go wrong.
func (s *sweeping) swept(after time.Duration) {
	s.t.Helper()
	if err := s.sweep(after); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sweeping) expect(id string, status payment.Status, fulfilled bool) {
	s.t.Helper()
	o := s.order(id)
	if o.Status != status || o.FulfilledAt.IsZero() == fulfilled {
		s.t.Errorf("order %s is %s, fulfilled %t; want %s, %t", id, o.Status, !o.FulfilledAt.IsZero(), status, fulfilled)
	}
	s.checker.Check(s.t, id)
}

// calls lists the calls of the gateway whose method and path end so, such as "POST capture", with what they were answered.
func (s *sweeping) calls(what string) []string {
	method, end, _ := strings.Cut(what, " ")
	var calls []string
	for _, c := range s.sim.Calls() {
		if c.Method == method && strings.HasSuffix(c.Path, end) {
			calls = append(calls, fmt.Sprint(c.Status))
		}
	}
	return calls
}

// looks are the times, since the tests' beginning, at which the gateway was asked about the order's payments.
func (s *sweeping) looks(o payment.Order) []string {
	var at []string
	for _, c := range s.sim.Calls() {
		if c.Method == "GET" && strings.Contains(c.Path, o.GatewayOrderID) {
			at = append(at, c.At.Sub(received).String())
		}
	}
	return at
}

func (s *sweeping) fault(method, path string, kind razorpaytest.FaultKind, calls int) {
	s.t.Helper()
	var faults []razorpaytest.Fault
	if calls > 0 {
		faults = append(faults, razorpaytest.Fault{Method: method, Path: path, Kind: kind, Count: calls})
	}
	if err := s.sim.SetFaults(faults...); err != nil {
		s.t.Fatal(err)
	}
}
