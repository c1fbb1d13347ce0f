package refund_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/refund"
	"paidonce/shared/storetest"
)

const (
	stack     = "shop"
	orderID   = "o1"
	requestID = "r1"
	captured  = 100_00 // of the order's payment
	asked     = 60_00  // of it, by the request

	keyID, keySecret = "rzp_test_key", "secret-of-the-key"

	impatience = 15 * time.Millisecond // how long a call waits for an answer that does not come
)

var start = time.Date(2026, 11, 30, 10, 0, 5, 0, time.UTC)

func rupees(amount int64) payment.Money { return payment.Money{Amount: amount, Currency: "INR"} }

// world is a shop with one paid order, its table, and the gateway, whose clock is everybody's.
type world struct {
	t         *testing.T
	label     string // what sets this world apart, for failures
	gateway   *razorpaytest.Gateway
	url       string // of its API
	client    *razorpay.Client
	memory    *storetest.Memory
	store     *shakyStore   // the table as the refunder sees it
	calls     *shakyGateway // the gateway as the refunder sees it
	checker   *storetest.Checker
	advancer  advance.Advancer // what the worker has: nothing ever goes wrong with it
	refunder  refund.Refunder
	paymentID string
	ask       refund.Ask   // what the shop wants
	later     func(*world) // what happens at the gateway two days on; nil: nothing
	heard     int          // how many of the gateway's webhooks were taken
	said      []string     // the definite answers that the shop got, in words
}

func newWorld(t *testing.T, label string) *world { return worldOf(t, label, captured) }

// worldOf is a world whose order is of this amount.
func worldOf(t *testing.T, label string, amount int64) *world {
	w := &world{t: t, label: label, memory: storetest.NewMemory(), ask: refund.Ask{ID: requestID, Amount: asked}}
	w.gateway = razorpaytest.New(razorpaytest.Config{KeyID: keyID, KeySecret: keySecret, Now: func() time.Time { return start }})
	var err error
	w.url, err = w.gateway.Start(0)
	w.must(err)
	_, err = w.gateway.ChangeDelivery(razorpaytest.DeliveryChange{Enabled: new(false)}) // they are taken by hand; see webhooks
	w.must(err)
	w.client, err = razorpay.New(w.url, keyID, keySecret, razorpay.WithSleep(func(ctx context.Context, _ time.Duration) error { return ctx.Err() }))
	w.must(err)
	w.checker = &storetest.Checker{Store: w.memory}
	w.store, w.calls = &shakyStore{Memory: w.memory, world: w}, &shakyGateway{Client: w.client, world: w}
	w.advancer = advance.Advancer{Store: w.memory, Now: w.gateway.Now}
	careful := w.advancer
	careful.Store = w.store
	w.refunder = refund.Refunder{
		Gateways: map[string]func(context.Context) refund.Gateway{"razorpay": func(context.Context) refund.Gateway { return w.calls }},
		Store:    w.store, Advancer: careful, Stack: stack, Now: w.gateway.Now,
	}
	w.addOrder(orderID, amount)
	w.paymentID = w.pay(orderID, amount, "INR")
	return w
}

// close ends the gateway. A table of thousands of worlds cannot wait for the test's end.
func (w *world) close() { w.gateway.Close() }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", w.label, err)
	}
}

func (w *world) broken(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("%s: %s", w.label, fmt.Sprintf(format, args...))
}

func (w *world) check() {
	w.t.Helper()
	for _, broken := range w.checker.Broken(w.t.Context(), orderID) {
		w.broken("%s", broken)
	}
}

// addOrder makes an order here and at the gateway.
func (w *world) addOrder(id string, amount int64) {
	w.t.Helper()
	gatewayID, err := w.gateway.AddOrder(razorpaytest.OrderRequest{Amount: amount, Currency: "INR"})
	w.must(err)
	o, err := w.memory.CreateOrder(w.t.Context(), payment.NewOrder(id, rupees(amount), "razorpay", "", w.gateway.Now()))
	w.must(err)
	w.must(w.memory.Commit(w.t.Context(), payment.Commit{
		Order: o.Opened(gatewayID, payment.Rules{}, w.gateway.Now()), Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: gatewayID}},
	}))
}

// pay captures a payment of the order and returns its id.
func (w *world) pay(order string, amount int64, currency string) string {
	w.t.Helper()
	id, err := w.gateway.Pay(razorpaytest.PaymentRequest{OrderID: w.order(order).GatewayOrderID, Amount: amount, Currency: currency, Status: "captured"})
	w.must(err)
	w.webhooks()
	return id
}

func (w *world) order(id string) payment.Order {
	w.t.Helper()
	o, err := w.memory.Order(w.t.Context(), id)
	w.must(err)
	return o
}

// request is the refund request as it is stored, if it is.
func (w *world) request() (payment.RefundRequest, bool) {
	w.t.Helper()
	r, err := w.memory.RefundRequest(w.t.Context(), orderID, requestID)
	if !errors.Is(err, payment.ErrNotFound) {
		w.must(err)
	}
	return r, err == nil
}

func receipt() string { return payment.Receipt(stack, orderID, requestID) }

// atGateway lists the payment's refunds there that carry the receipt, or all if it is empty.
func (w *world) atGateway(receipt string) []payment.RefundFact {
	w.t.Helper()
	all, err := w.client.Refunds(w.t.Context(), w.paymentID)
	if errors.Is(err, payment.ErrNotFound) {
		return nil
	}
	w.must(err)
	return slices.DeleteFunc(all, func(f payment.RefundFact) bool { return receipt != "" && f.Receipt != receipt })
}

// dashboard refunds past the shop. The webhooks that tell of it are lost.
func (w *world) dashboard(r razorpaytest.RefundRequest) string {
	w.t.Helper()
	id, err := w.gateway.Refund(r)
	w.must(err)
	w.heard = len(w.gateway.Deliveries())
	return id
}

// webhooks takes what the gateway has told since the last time, as the worker does.
func (w *world) webhooks() {
	w.t.Helper()
	all := w.gateway.Deliveries()
	for _, d := range all[w.heard:] {
		w.webhook(d)
	}
	w.heard = len(all)
}

func (w *world) webhook(d razorpaytest.Delivery) {
	w.t.Helper()
	notice, err := razorpay.Decode(d.Body)
	w.must(err)
	of := orderID
	if ref, _ := payment.RefOf(notice.Facts); ref.GatewayOrderID != "" {
		of, err = w.memory.OrderID(w.t.Context(), "razorpay", ref)
		w.must(err)
	}
	_, err = w.advancer.Apply(w.t.Context(), of, advance.Step{Source: payment.SourceWebhook, Facts: notice.Facts})
	w.must(err)
	w.check()
}

// learn takes what a webhook would say into the order.
func (w *world) learn(facts ...payment.Fact) {
	w.t.Helper()
	_, err := w.advancer.Apply(w.t.Context(), orderID, advance.Step{Source: payment.SourceWebhook, Facts: facts})
	w.must(err)
	w.check()
}

// result is what a caller saw of one call. A caller whose process was killed saw nothing.
type result struct {
	refund.Answer
	err    error
	killed bool
}

// definite reports whether the caller may rely on it: the gateway has the refund, or never will.
func (r result) definite() bool {
	return r.err == nil && !r.killed && (r.Refund.ID != "" || r.Request.Status == payment.RequestFailed)
}

// words is the answer in words.
func (r result) words() string {
	switch {
	case r.killed:
		return "killed"
	case r.err != nil:
		return "error: " + r.err.Error()
	case r.Refund.ID != "":
		return "accepted"
	case r.Request.Status == payment.RequestFailed:
		return "failed: " + r.Request.Refusal
	}
	return "unknown"
}

// killed is how a process ends in the midst of something.
type killed struct{}

// alive runs f and reports whether it came to its end.
func alive(f func()) (ended bool) {
	defer func() {
		if r := recover(); r != nil && r != any(killed{}) {
			panic(r)
		}
	}()
	f()
	return true
}

// shop calls once.
func (w *world) shop() result {
	w.t.Helper()
	return w.shopAsks(w.ask)
}

func (w *world) shopAsks(a refund.Ask) (r result) {
	w.t.Helper()
	r.killed = !alive(func() { r.Answer, r.err = w.refunder.Request(w.t.Context(), orderID, a) })
	w.check()
	if r.definite() && a.ID == requestID {
		w.said = append(w.said, r.words())
	}
	return r
}

// sweep looks after the refund requests that are due, as reconcile does.
func (w *world) sweep() {
	w.t.Helper()
	w.must(w.memory.DueRefunds(w.t.Context(), w.gateway.Now(), func(orderID, id string) bool {
		alive(func() { _, _ = w.refunder.Pursue(w.t.Context(), orderID, id) }) // reconcile logs the error, and goes on
		w.check()
		return true
	}))
}

// pass lets time pass, with a sweep whenever one is due.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for end := w.gateway.Now().Add(d); w.gateway.Now().Before(end); {
		next := end
		w.must(w.memory.DueRefunds(w.t.Context(), end, func(orderID, id string) bool {
			r, err := w.memory.RefundRequest(w.t.Context(), orderID, id)
			w.must(err)
			next = r.NextAt.Add(time.Second)
			return false // the soonest
		}))
		if change := start.Add(48 * time.Hour); w.later != nil && next.After(change) {
			w.gateway.Advance(max(0, change.Sub(w.gateway.Now())))
			w.later(w)
			w.later = nil
			continue
		}
		w.gateway.Advance(next.Sub(w.gateway.Now()))
		w.sweep()
	}
}
