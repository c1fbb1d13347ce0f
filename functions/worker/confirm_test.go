package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/storetest"
)

func TestConfirmationByRule(t *testing.T) {
	for _, c := range []struct {
		rule  string
		calls int
	}{
		{"never", 0}, {"always", 1}, {"above:49899", 1}, {"above:49900", 0}, {"above:0", 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w := newConfirming(t, c.rule)
			before := w.commits.Load()
			w.says(t, "payment.captured", w.pay(t, "captured", 0), "captured")
			w.expectOrder(t, "o1", payment.Paid, true)
			w.expectHolds(t)
			w.expectCalls(t, c.calls)
			if n := w.commits.Load() - before; n != 1 {
				t.Errorf("%d commits, want 1", n)
			}
		})
	}
}

// TestWithoutConfirmationNoGatewayIsNeeded: the function has then neither a key nor a gateway.
func TestWithoutConfirmationNoGatewayIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name string
		set  bool // the function, although the rule wants nothing confirmed
	}{{"as main leaves it", false}, {"where it may adopt", true}} {
		t.Run(c.name, func(t *testing.T) {
			w := newConfirming(t, "never")
			w.gateways = nil
			if !c.set {
				w.advancer.Confirm = nil
			}
			w.says(t, "payment.captured", "pay_1", "captured")
			w.expectOrder(t, "o1", payment.Paid, true)
			w.expectCalls(t, 0)
		})
	}
}

// TestAForgedWebhookBuysNothing: it is signed, with a secret that leaked, and the gateway knows better.
func TestAForgedWebhookBuysNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		payment func(t *testing.T, w *confirming) string
		status  payment.Status
		hold    string
	}{
		{"the payment is authorized only", func(t *testing.T, w *confirming) string { return w.pay(t, "authorized", 0) }, payment.Paid, "unconfirmed"},
		{"the payment failed", func(t *testing.T, w *confirming) string { return w.pay(t, "failed", 0) }, payment.Paid, "unconfirmed"},
		{"there is no such payment", func(*testing.T, *confirming) string { return "pay_1" }, payment.Paid, "unconfirmed"},
		{"it is another order's payment", func(t *testing.T, w *confirming) string {
			other, err := w.sim.AddOrder(razorpaytest.OrderRequest{Amount: 49900, Currency: "INR"})
			if err != nil {
				t.Fatal(err)
			}
			id, err := w.sim.Pay(razorpaytest.PaymentRequest{OrderID: other, Status: "captured", Deliver: new(false)})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}, payment.Paid, "unconfirmed"},
		{"a smaller amount was captured", func(t *testing.T, w *confirming) string { return w.pay(t, "captured", 100) }, payment.Paid, "conflict"},
		{"the gateway has no such order", func(t *testing.T, w *confirming) string {
			w.gateways["razorpay"] = func(context.Context) gateway {
				return &fakeGateway{mode: payment.Test, err: payment.ErrNotFound}
			}
			return "pay_1"
		}, payment.Paid, "unconfirmed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newConfirming(t, "always")
			id := c.payment(t, w)
			w.says(t, "payment.captured", id, "captured")
			w.expectOrder(t, "o1", c.status, false)
			w.expectHolds(t, c.hold+" "+id)

			// The order's webhook changes nothing about that.
			w.says(t, "order.paid", id, "captured")
			w.expectOrder(t, "o1", c.status, false)
			w.expectHolds(t, c.hold+" "+id)
			o, err := w.memory.Order(t.Context(), "o1")
			if err != nil {
				t.Fatal(err)
			}
			if c.hold == "unconfirmed" && !o.DueAt.Equal(now.Add(time.Minute)) {
				t.Errorf("the order is due at %s, want it asked about in a minute", o.DueAt)
			}
		})
	}
}

// TestAGatewayThatIsDownHoldsTheOrder, and reconcile, which reads it a minute later, fulfils it once.
func TestAGatewayThatIsDownHoldsTheOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		breaks func(t *testing.T, w *confirming)
	}{
		{"errors", func(t *testing.T, w *confirming) {
			if err := w.sim.SetFaults(razorpaytest.Fault{Path: "/v1/orders/*/payments", Kind: razorpaytest.ServerError, Count: 3}); err != nil {
				t.Fatal(err)
			}
		}},
		{"a key of the other mode", func(_ *testing.T, w *confirming) {
			w.gateways["razorpay"] = func(context.Context) gateway { return &fakeGateway{mode: payment.Live} }
		}},
		{"no such gateway", func(_ *testing.T, w *confirming) { delete(w.gateways, "razorpay") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newConfirming(t, "always")
			id := w.pay(t, "captured", 0)
			c.breaks(t, w)
			w.says(t, "payment.captured", id, "captured")
			w.expectOrder(t, "o1", payment.Paid, false)
			w.expectHolds(t, "unconfirmed "+id)
			w.expectEvent(t, "payment.captured "+id, payment.EventApplied, "payment "+id+" captured 499.00 INR; "+
				"not confirmed: the gateway cannot be asked; order pending → paid; held: unconfirmed "+id)

			for range 2 { // as reconcile does
				payments, err := w.client.OrderPayments(t.Context(), "order_1")
				if err != nil || len(payments) != 1 {
					t.Fatal(payments, err)
				}
				if _, err := w.advancer.Apply(t.Context(), "o1", advance.Step{
					Source: payment.SourceSweep, Facts: []payment.Fact{payments[0]},
				}); err != nil {
					t.Fatal(err)
				}
				w.checker.Check(t, "o1")
				w.expectOrder(t, "o1", payment.Paid, true)
			}
			if holds, _ := w.holds(t); len(holds) > 0 {
				t.Errorf("still held: %v", holds)
			}
		})
	}
}

func TestABatchIsConfirmedOnce(t *testing.T) {
	w := newConfirming(t, "always")
	id := w.pay(t, "captured", 0)
	var messages []events.SQSMessage
	for _, event := range []string{"payment.authorized", "payment.captured", "order.paid"} {
		status := "captured"
		if event == "payment.authorized" {
			status = "authorized"
		}
		w.receive(t, event, strings.Replace(body(event, "1", status), "pay_1", id, 1))
		messages = append(messages, message(event, 1))
	}
	w.expectFailed(t, w.work(t, t.Context(), messages...))
	w.expectOrder(t, "o1", payment.Paid, true)
	w.expectHolds(t)
	w.expectCalls(t, 1)
}

// overtaken is a store in which somebody else is faster with the first commit.
type overtaken struct {
	advance.Store
	once  *sync.Once
	rival func()
}

func (o overtaken) Commit(ctx context.Context, c payment.Commit) error {
	o.once.Do(o.rival)
	return o.Store.Commit(ctx, c)
}

func TestALostRaceDoesNotAskAgain(t *testing.T) {
	w := newConfirming(t, "always")
	id := w.pay(t, "captured", 0)
	quiet := w.advancer
	w.advancer.Store = overtaken{w.memory, &sync.Once{}, func() {
		failed := payment.PaymentFact{ID: "pay_other", Status: payment.PaymentCreated, Failed: true}
		if _, err := quiet.Apply(t.Context(), "o1", advance.Step{Source: payment.SourceSweep, Facts: []payment.Fact{failed}}); err != nil {
			t.Error(err)
		}
	}}
	w.says(t, "payment.captured", id, "captured")
	w.expectOrder(t, "o1", payment.Paid, true)
	w.expectHolds(t)
	w.expectCalls(t, 1)
}

func TestConcurrentDeliveriesAreFulfilledOnce(t *testing.T) {
	w := newConfirming(t, "always")
	id := w.pay(t, "captured", 0)
	var wg sync.WaitGroup
	for i, event := range []string{"payment.captured", "order.paid"} {
		name := fmt.Sprint("e", i)
		w.receive(t, name, strings.Replace(body(event, "1", "captured"), "pay_1", id, 1))
		wg.Go(func() {
			response, err := w.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{message(name, 1)}})
			if err != nil || len(response.BatchItemFailures) > 0 {
				t.Errorf("%s failed: %v", name, err)
			}
		})
	}
	wg.Wait()
	w.checker.Check(t, "o1")
	w.expectOrder(t, "o1", payment.Paid, true)
	w.expectHolds(t)
	if n := len(w.sim.Calls()); n < 1 || n > 2 {
		t.Errorf("the gateway was asked %d times, want once per delivery at most", n)
	}
}

func TestAnAcknowledgedHoldNeedsNoConfirmation(t *testing.T) {
	w := newConfirming(t, "always")
	id := w.pay(t, "authorized", 0)
	w.says(t, "payment.captured", id, "captured")
	w.expectHolds(t, "unconfirmed "+id)
	w.expectCalls(t, 1)
	o, err := w.memory.Order(t.Context(), "o1")
	if err != nil {
		t.Fatal(err)
	}
	hold := o.Derive(w.advancer.Rules).Holds[0]
	if _, err := w.advancer.Apply(t.Context(), "o1", advance.Step{Source: payment.SourceAPI, Facts: []payment.Fact{
		payment.AcknowledgedFact{Hold: hold.HoldKey, Detail: hold.Detail, By: "ann", Why: "seen in the dashboard", At: now},
	}}); err != nil {
		t.Fatal(err)
	}
	w.checker.Check(t, "o1")
	w.expectOrder(t, "o1", payment.Paid, true)
	w.expectCalls(t, 1)
}

// TestOnlyWhatIsMissingIsAsked: nothing but the confirmation must keep the order, or asking is in vain.
func TestOnlyWhatIsMissingIsAsked(t *testing.T) {
	w := newConfirming(t, "always")
	if _, err := w.advancer.Apply(t.Context(), "o1", advance.Step{
		Source: payment.SourceAPI, Facts: []payment.Fact{payment.ClosedFact{Reason: "out of stock", At: now}},
	}); err != nil {
		t.Fatal(err)
	}
	w.says(t, "payment.captured", w.pay(t, "captured", 0), "captured")
	w.expectOrder(t, "o1", payment.Paid, false)
	w.says(t, "payment.failed", w.pay(t, "failed", 0), "failed")
	w.expectCalls(t, 0)
}

// TestAConfirmationSurvivesEveryCrash breaks each of the worker's calls in turn; the next receive makes it good.
func TestAConfirmationSurvivesEveryCrash(t *testing.T) {
	for _, method := range []string{"Event", "OrderID", "Order", "Commit"} {
		for name, fault := range map[string]storetest.Fault{"not done": storetest.NotDone, "done, answer lost": storetest.DoneUnsaid} {
			t.Run(method+" "+name, func(t *testing.T) {
				w := newConfirming(t, "always")
				id := w.pay(t, "captured", 0)
				w.receive(t, "e", strings.Replace(body("payment.captured", "1", "captured"), "pay_1", id, 1))
				var once sync.Once
				w.memory.Faults = func(m string) (f storetest.Fault) {
					if m == method {
						once.Do(func() { f = fault })
					}
					return f
				}
				w.expectFailed(t, w.work(t, t.Context(), message("e", 1)), "m-e")
				w.expectFailed(t, w.work(t, t.Context(), message("e", 2)))
				w.expectOrder(t, "o1", payment.Paid, true)
				w.expectHolds(t)
			})
		}
	}
}

// TestConfirmWaitsOnlySoLong: the other messages of the batch want their time too.
func TestConfirmWaitsOnlySoLong(t *testing.T) {
	b := setup(t)
	b.gateways = map[string]func(context.Context) gateway{"razorpay": func(context.Context) gateway {
		return hanging{&fakeGateway{mode: payment.Test}}
	}}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := b.confirm(t.Context(), payment.Order{Gateway: "razorpay", Mode: payment.Test})
		if waited := time.Since(began); waited != confirmTime || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited %s, %v; want %s", waited, err, confirmTime)
		}
	})
}

// hanging answers only when its time is over.
type hanging struct{ gateway }

func (hanging) OrderPayments(ctx context.Context, _ string) ([]payment.PaymentFact, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
