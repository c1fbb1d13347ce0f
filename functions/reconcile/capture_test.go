package main

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/reconcile"
)

const captures = "/v1/payments/*/capture"

// capturing does something before the gateway is asked to capture.
type capturing struct {
	gateway
	before func(paymentID string)
}

func (c capturing) Capture(ctx context.Context, paymentID string, amount payment.Money) (payment.PaymentFact, error) {
	c.before(paymentID)
	return c.gateway.Capture(ctx, paymentID, amount)
}

// TestAPaymentLeftAuthorizedIsCapturedOnce: the gateway was asked to capture by itself, and did not.
func TestAPaymentLeftAuthorizedIsCapturedOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		happens func(s *sweeping) // before the first sweep
		fails   bool              // the first sweep reports it
		calls   []string          // answers to the captures asked for
	}{
		{"nothing else happens", func(*sweeping) {}, false, []string{"200"}},
		{"the answer is lost with the connection", func(s *sweeping) { s.fault("POST", captures, razorpaytest.ResetAfter, 1) }, false, []string{"0"}},
		{"the answer is an error of a machine in between", func(s *sweeping) { s.fault("POST", captures, razorpaytest.BadGatewayAfter, 1) }, false, []string{"502"}},
		{"it is captured meanwhile", func(s *sweeping) {
			s.through(capturing{s.client, func(id string) {
				if err := s.sim.Move(id, razorpaytest.Move{Status: "captured", Deliver: new(false)}); err != nil {
					s.t.Error(err)
				}
			}})
		}, false, []string{"400"}},
		{"it is captured meanwhile, and its webhook is faster", func(s *sweeping) {
			s.through(capturing{s.client, func(id string) {
				if err := s.sim.Move(id, razorpaytest.Move{Status: "captured", Deliver: new(false)}); err != nil {
					s.t.Error(err)
				}
				s.webhook(s.order("o1"), payment.PaymentFact{ID: id, Status: payment.PaymentCaptured, Amount: rupees})
			}})
		}, false, []string{"400"}},
		{"the capture fails, and the next look does it", func(s *sweeping) { s.fault("POST", captures, razorpaytest.ServerError, 1) }, true, []string{"500", "200"}},
		{"the gateway is throttling, and the next look does it", func(s *sweeping) { s.fault("POST", captures, razorpaytest.Throttled, 3) }, true, []string{"429", "429", "429", "200"}},
		{"the gateway is down at that look", func(s *sweeping) { s.fault("GET", "/v1/orders/*/payments", razorpaytest.BadGateway, 3) }, true, []string{"200"}},
		{"the store is down after the capture", func(s *sweeping) {
			s.through(capturing{s.client, func(string) { s.memory.Faults = failing("Order") }})
		}, true, []string{"200"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSweeping(t, payment.Rules{})
			o := s.open("o1")
			id := s.pay(o, "authorized")
			s.webhook(o, payment.PaymentFact{ID: id, Status: payment.PaymentAuthorized, Amount: rupees})
			s.swept(15 * time.Minute) // not due yet
			if calls := s.calls("POST capture"); len(calls) > 0 {
				t.Fatal("captured before the gateway had its time to do it")
			}
			c.happens(s)
			if err := s.sweep(15*time.Minute + time.Second); err != nil != c.fails {
				t.Errorf("the first sweep: %v", err)
			}
			s.fault("", "", "", 0)
			s.through(s.client)
			s.swept(time.Hour + 16*time.Minute)
			s.swept(100 * time.Hour)
			s.expect("o1", payment.Paid, true)
			if diff := cmp.Diff(c.calls, s.calls("POST capture")); diff != "" {
				t.Errorf("answers to captures (-want +got)\n%s", diff)
			}
			if due := s.order("o1").DueAt; !due.IsZero() {
				t.Errorf("the paid order is due at %s", due)
			}
		})
	}
}

// meeting is a store whose orders are read by two at once.
type meeting struct {
	reconcile.Store
	meet func()
}

func (m meeting) Order(ctx context.Context, id string) (payment.Order, error) {
	defer m.meet()
	return m.Store.Order(ctx, id)
}

// twoMeet returns a function that two goroutines leave together.
func twoMeet(t *testing.T) func() {
	both := make(chan bool)
	return func() {
		select {
		case both <- true:
		case <-both:
		case <-time.After(10 * time.Second):
			t.Error("only one of the sweeps comes so far")
		}
	}
}

// TestTwoSweepsAtOnceCaptureOnce: both have found the order due; one of them postpones it, and asks.
func TestTwoSweepsAtOnceCaptureOnce(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	o := s.open("o1")
	id := s.pay(o, "authorized")
	s.webhook(o, payment.PaymentFact{ID: id, Status: payment.PaymentAuthorized, Amount: rupees, CreatedAt: s.at})
	s.to(received.Add(time.Hour))
	s.asks.Store = meeting{s.memory, twoMeet(t)}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if _, err := s.asks.Ask(t.Context(), "o1"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.expect("o1", payment.Paid, true)
	if diff := cmp.Diff([]string{"200"}, s.calls("POST capture")); diff != "" {
		t.Errorf("answers to captures (-want +got)\n%s", diff)
	}
	if n := len(s.calls("GET /payments")); n != 1 {
		t.Errorf("the order was asked about %d times, want once", n)
	}
}

// TestWhatIsNotCaptured: one more payment than the order wants goes back to the customer by itself.
func TestWhatIsNotCaptured(t *testing.T) {
	var always payment.Confirm
	if err := always.UnmarshalText([]byte("always")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		rules   payment.Rules
		happens func(s *sweeping, o payment.Order)
		status  payment.Status
		looks   int // at the order's payments, by the sweep
	}{
		{"a second one on an order that the same look finds paid", payment.Rules{}, func(s *sweeping, o payment.Order) {
			s.pay(o, "authorized")
			s.pay(o, "captured")
		}, payment.Paid, 1},
		{"a second one on an order that is paid, and asked about", payment.Rules{Confirm: always}, func(s *sweeping, o payment.Order) {
			id := s.pay(o, "captured")
			s.webhook(o, payment.PaymentFact{ID: id, Status: payment.PaymentCaptured, Amount: rupees})
			s.pay(o, "authorized")
		}, payment.Paid, 1},
		{"one of a closed order", payment.Rules{}, func(s *sweeping, o payment.Order) {
			s.pay(o, "authorized")
			s.webhook(o, payment.ClosedFact{Reason: "out of stock", At: s.at})
		}, payment.Pending, 7}, // the first look learns of it, and the schedule begins again
		{"one in another currency", payment.Rules{}, func(s *sweeping, o payment.Order) {
			if _, err := s.sim.Pay(razorpaytest.PaymentRequest{
				OrderID: o.GatewayOrderID, Amount: 500, Currency: "USD", Status: "authorized", Deliver: new(false),
			}); err != nil {
				s.t.Fatal(err)
			}
		}, payment.Pending, 7},
		{"one that failed", payment.Rules{}, func(s *sweeping, o payment.Order) { s.pay(o, "failed") }, payment.Failed, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSweeping(t, c.rules)
			o := s.open("o1")
			c.happens(s, o)
			for after := 16 * time.Minute; after < 80*time.Hour; after += 15 * time.Minute {
				s.swept(after)
			}
			s.expect("o1", c.status, c.status == payment.Paid)
			if looks := s.looks(o); len(looks) != c.looks {
				t.Errorf("asked %v, want %d times", looks, c.looks)
			}
			if calls := s.calls("POST capture"); len(calls) > 0 {
				t.Errorf("captures were asked for and answered %v", calls)
			}
		})
	}
}

// TestOfTwoAuthorizedPaymentsOneIsCaptured: the earlier, which pays the order.
func TestOfTwoAuthorizedPaymentsOneIsCaptured(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	o := s.open("o1")
	first := s.pay(o, "authorized")
	s.to(received.Add(time.Minute))
	second := s.pay(o, "authorized")
	for after := 16 * time.Minute; after < 80*time.Hour; after += 15 * time.Minute {
		s.swept(after)
	}
	s.expect("o1", payment.Paid, true)
	o = s.order("o1")
	if o.Payments[first].Status != payment.PaymentCaptured || o.Payments[second].Status != payment.PaymentAuthorized {
		t.Errorf("payments %+v, want the first captured", o.Payments)
	}
	if calls := s.calls("POST capture"); len(calls) != 1 {
		t.Errorf("captures were answered %v, want one", calls)
	}
}
