package refund_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/refund"
	"paidonce/shared/storetest"
)

// callers is how many there are at once.
const callers = 20

// watchedStore checks the invariants after each change, before anybody else makes another.
type watchedStore struct {
	*storetest.Memory
	mu      sync.Mutex
	world   *world
	reached int64 // the most that was reserved and refunded at a time
}

func (s *watchedStore) Commit(ctx context.Context, c payment.Commit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Memory.Commit(ctx, c)
	s.world.check()
	var gone int64
	o, readErr := s.Memory.Order(ctx, orderID)
	if readErr != nil {
		s.world.broken("%v", readErr)
	}
	for _, r := range o.Refunds {
		gone += r.Amount.Amount
	}
	for _, r := range o.Reserved {
		gone += r.Amount.Amount
	}
	s.reached = max(s.reached, gone)
	return err
}

// crowd is the world with many processes at once.
func (w *world) crowd() (refund.Refunder, *watchedStore) {
	store := &watchedStore{Memory: w.memory, world: w}
	r := w.refunder
	r.Store, r.Advancer.Store = store, store
	r.Gateways = map[string]func(context.Context) refund.Gateway{"razorpay": func(context.Context) refund.Gateway { return w.client }}
	return r, store
}

// together calls n times at once and returns the results.
func together(t *testing.T, n int, call func(ctx context.Context, i int) (refund.Answer, error)) []result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	results := make([]result, n)
	var begin, end sync.WaitGroup
	begin.Add(1)
	for i := range n {
		end.Go(func() {
			begin.Wait()
			results[i].Answer, results[i].err = call(ctx, i)
		})
	}
	begin.Done()
	end.Wait()
	return results
}

func TestManyRefundsAtOnce(t *testing.T) {
	for _, amount := range []int64{captured, 5 * captured} {
		t.Run(rupees(amount).String(), func(t *testing.T) {
			w := worldOf(t, "crowd", amount)
			defer w.close()
			r, store := w.crowd()
			results := together(t, callers, func(ctx context.Context, i int) (refund.Answer, error) {
				return r.Request(ctx, orderID, of(asked, fmt.Sprintf("r%d", i)))
			})
			var accepted int64
			for i, result := range results {
				switch {
				case result.err == nil && result.Refund.Status() == payment.RefundProcessed && result.New:
					accepted++
				case errors.Is(result.err, payment.ErrBeyondRefundable):
				default:
					t.Errorf("caller %d: %s", i, result.words())
				}
			}
			if want := amount / asked; accepted != want {
				t.Errorf("%d refunds were made, want %d", accepted, want)
			}
			if store.reached != accepted*asked {
				t.Errorf("up to %d were reserved or refunded, want %d", store.reached, accepted*asked)
			}
			w.webhooks()
			w.wantBack(accepted)
			w.wantRefunded(payment.PartiallyRefunded, accepted*asked, int(accepted))
		})
	}
}

// wantBack asserts how many refunds of what the tests ask for the gateway has.
func (w *world) wantBack(n int64) {
	w.t.Helper()
	receipts := map[string]bool{}
	all := w.atGateway("")
	for _, f := range all {
		receipts[f.Receipt] = true
		if f.Amount != rupees(asked) {
			w.broken("the gateway has %+v", f)
		}
	}
	if int64(len(all)) != n || len(receipts) != len(all) {
		w.broken("the gateway has %d refunds with %d receipts, want %d", len(all), len(receipts), n)
	}
	if reused := w.gateway.ReusedKeys(); len(reused) > 0 {
		w.broken("keys that came with several bodies: %v", reused)
	}
}

// TestSameRequestAtOnce: all of one id come to one refund, whatever the gateway does, also where it takes all that is left.
func TestSameRequestAtOnce(t *testing.T) {
	for _, kind := range []razorpaytest.FaultKind{"", razorpaytest.ServerError, razorpaytest.ServerErrorAfter, razorpaytest.ResetAfter} {
		t.Run("fault "+string(kind), func(t *testing.T) {
			w := worldOf(t, "the same", asked)
			defer w.close()
			if kind != "" {
				fault(kind, callers/2)(w)
			}
			r, _ := w.crowd()
			results := together(t, callers, func(ctx context.Context, _ int) (refund.Answer, error) {
				return r.Request(ctx, orderID, w.ask)
			})
			fresh := 0
			for i, result := range results {
				if words := result.words(); words != "accepted" && words != "unknown" {
					t.Errorf("caller %d: %s", i, words)
				}
				if result.New {
					fresh++
				}
			}
			if fresh != 1 {
				t.Errorf("%d callers made the request, want one", fresh)
			}
			w.must(w.gateway.SetFaults())
			w.shop().want(t, payment.RefundProcessed)
			w.webhooks()
			w.wantBack(1)
			w.wantRefunded(payment.Refunded, asked, 1)
		})
	}
}

// TestSameIDOnTwoOrders: the shop's ids are its own within an order.
func TestSameIDOnTwoOrders(t *testing.T) {
	w := newWorld(t, "two orders")
	defer w.close()
	w.addOrder("o2", captured)
	other := w.pay("o2", captured, "INR")
	r, _ := w.crowd()
	orders := []string{orderID, "o2"}
	results := together(t, 2, func(ctx context.Context, i int) (refund.Answer, error) {
		return r.Request(ctx, orders[i], w.ask)
	})
	for _, r := range results {
		r.want(t, payment.RefundProcessed)
	}
	a, b := results[0], results[1]
	if a.Refund.ID == b.Refund.ID || a.Refund.Receipt == b.Refund.Receipt || a.Request.Call.Key == b.Request.Call.Key {
		t.Errorf("the refunds meet: %+v and %+v", a.Answer, b.Answer)
	}
	w.wantBack(1)
	w.paymentID = other
	w.wantBack(1)
	w.webhooks()
	w.checker.Check(t, orders...)
}

// TestShopAgainstReconcile: both work on a request whose first call was killed.
func TestShopAgainstReconcile(t *testing.T) {
	for n := range 20 {
		w := newWorld(t, fmt.Sprintf("round %d", n))
		w.store.arm(point{beforeSend: true})
		w.shop()
		w.gateway.Advance(2 * time.Minute)
		r, _ := w.crowd()
		results := together(t, 4, func(ctx context.Context, i int) (refund.Answer, error) {
			if i%2 == 0 {
				return r.Request(ctx, orderID, w.ask)
			}
			_, err := r.Pursue(ctx, orderID, requestID)
			return refund.Answer{Refund: payment.Refund{ID: "-"}}, err
		})
		for i, r := range results {
			if words := r.words(); words != "accepted" && words != "unknown" {
				w.broken("caller %d: %s", i, words)
			}
		}
		w.pass(time.Hour)
		w.shop().want(t, payment.RefundProcessed)
		w.wantBack(1)
		w.close()
	}
}
