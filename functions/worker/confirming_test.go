package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/storetest"
)

// confirming is the worker with the simulated gateway, which has an order order_1 of 499.00 INR.
type confirming struct {
	*bundle
	sim     *razorpaytest.Gateway
	client  *razorpay.Client
	commits atomic.Int64
}

func newConfirming(t *testing.T, rule string) *confirming {
	t.Helper()
	c := &confirming{bundle: setup(t)}
	c.sim = razorpaytest.New(razorpaytest.Config{KeyID: "rzp_test_key", KeySecret: "key secret of the tests"})
	t.Cleanup(c.sim.Close)
	url, err := c.sim.Start(0)
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(map[string]string{"key_id": "rzp_test_key", "key_secret": "key secret of the tests"})
	if err != nil {
		t.Fatal(err)
	}
	atOnce := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	if c.client, err = razorpay.ParseClient(url, razorpay.WithSleep(atOnce))(document); err != nil {
		t.Fatal(err)
	}
	if _, err := c.sim.AddOrder(razorpaytest.OrderRequest{ID: "order_1", Amount: 49900, Currency: "INR"}); err != nil {
		t.Fatal(err)
	}
	if err := c.advancer.Rules.Confirm.UnmarshalText([]byte(rule)); err != nil {
		t.Fatal(err)
	}
	c.gateways = map[string]func(context.Context) gateway{"razorpay": func(context.Context) gateway { return c.client }}
	c.advancer.Confirm = c.confirm
	c.checker.Rules = c.advancer.Rules
	c.memory.Faults = func(method string) storetest.Fault {
		if method == "Commit" {
			c.commits.Add(1)
		}
		return storetest.None
	}
	return c
}

// pay lets a customer pay order_1; amount 0 is what it wants.
func (c *confirming) pay(t *testing.T, status string, amount int64) string {
	t.Helper()
	id, err := c.sim.Pay(razorpaytest.PaymentRequest{OrderID: "order_1", Amount: amount, Status: status, Deliver: new(false)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// says stores a signed event about the payment and lets the worker apply it.
func (c *confirming) says(t *testing.T, event, paymentID, status string) {
	t.Helper()
	name := fmt.Sprint(event, " ", paymentID)
	c.receive(t, name, strings.Replace(body(event, "1", status), "pay_1", paymentID, 1))
	c.expectFailed(t, c.work(t, t.Context(), message(name, 1)))
}

// holds are those that stand, in words, and alerts those that subscribers were told of.
func (c *confirming) holds(t *testing.T) (holds, alerts []string) {
	t.Helper()
	o, err := c.memory.Order(t.Context(), "o1")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range o.Derive(c.advancer.Rules).Holds {
		holds = append(holds, h.String())
	}
	effects, err := c.memory.Effects(t.Context(), "o1")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range effects {
		if n, ok := e.(payment.Notification); ok && n.Hold != (payment.HoldKey{}) {
			alerts = append(alerts, n.Hold.String())
		}
	}
	return holds, alerts
}

func (c *confirming) expectHolds(t *testing.T, want ...string) {
	t.Helper()
	holds, alerts := c.holds(t)
	if diff := cmp.Diff(want, holds); diff != "" {
		t.Errorf("holds (-want +got)\n%s", diff)
	}
	slices.Sort(alerts)
	if diff := cmp.Diff(want, alerts); diff != "" {
		t.Errorf("alerts (-want +got)\n%s", diff)
	}
}

func (c *confirming) expectCalls(t *testing.T, want int) {
	t.Helper()
	if calls := c.sim.Calls(); len(calls) != want {
		t.Errorf("the gateway was called %d times, want %d: %+v", len(calls), want, calls)
	}
}
