package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/storetest"
)

// attempt is how long a call of the gateway may take. In a synctest bubble waiting for it takes no time.
const attempt = 3 * time.Second

// world is the function between a store and the simulated gateway, which it reaches through the real client.
type world struct {
	t       *testing.T
	name    string // of the case
	memory  *storetest.Memory
	checker storetest.Checker
	sim     *razorpaytest.Gateway
	client  *razorpay.Client
	ticks   atomic.Int64

	mu     sync.Mutex
	handed map[string]bool // gateway orders that a 2xx answer named
}

// newWorld must be called in a synctest bubble. Close the simulation before the bubble ends.
func newWorld(t *testing.T, name string) *world {
	t.Helper()
	w := &world{t: t, name: name, memory: storetest.NewMemory(), handed: map[string]bool{}}
	w.checker = storetest.Checker{Store: w.memory}
	w.sim = razorpaytest.New(razorpaytest.Config{KeyID: "rzp_test_key", KeySecret: "key secret of the tests"})
	w.client = w.newClient("key secret of the tests")
	return w
}

func (w *world) newClient(secret string) *razorpay.Client {
	w.t.Helper()
	document, err := json.Marshal(map[string]string{"key_id": "rzp_test_key", "key_secret": secret})
	if err != nil {
		w.t.Fatal(err)
	}
	client, err := razorpay.ParseClient("http://127.0.0.1", razorpay.WithHTTPClient(&http.Client{Transport: direct{w.sim}}),
		razorpay.WithAttemptTimeout(attempt))(document)
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// direct takes calls to the gateway without a network, which would not keep to a bubble's time.
type direct struct{ gateway http.Handler }

func (d direct) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if v := recover(); v == http.ErrAbortHandler {
			err = errors.New("the connection broke")
		} else if v != nil {
			panic(v)
		}
	}()
	w := httptest.NewRecorder()
	d.gateway.ServeHTTP(w, r.Clone(r.Context()))
	return w.Result(), nil
}

// process is one invocation of the function, as far as it gets.
type process struct {
	at   int  // the call of store or gateway, from 1, with which something goes wrong; 0: none
	done bool // that call is done, and its answer lost
	dies bool // nothing is called after it, and nobody is answered

	calls int
}

func (p *process) next() storetest.Fault {
	p.calls++
	switch {
	case p.calls == p.at && p.done:
		return storetest.DoneUnsaid
	case p.calls == p.at, p.at > 0 && p.dies && p.calls > p.at:
		return storetest.NotDone
	}
	return storetest.None
}

func (p *process) reached() bool { return p.at > 0 && p.calls >= p.at }

// mortal is the gateway as a process reaches it.
type mortal struct {
	gateway
	process *process
}

func (m mortal) OpenOrder(ctx context.Context, o payment.Order, note string) (string, error) {
	return m.call(func() (string, error) { return m.gateway.OpenOrder(ctx, o, note) })
}

func (m mortal) FindOrder(ctx context.Context, o payment.Order, note string) (string, error) {
	return m.call(func() (string, error) { return m.gateway.FindOrder(ctx, o, note) })
}

func (m mortal) call(do func() (string, error)) (string, error) {
	fault := m.process.next()
	if fault == storetest.NotDone {
		return "", storetest.ErrFault
	}
	id, err := do()
	if fault == storetest.DoneUnsaid {
		return "", storetest.ErrFault
	}
	return id, err
}

// handler is one process's, whose clock is later than that of all before.
func (w *world) handler(g gateway) *handler {
	clock := func() time.Time { return now.Add(time.Duration(w.ticks.Add(1)) * time.Millisecond) }
	return &handler{
		gateways: map[string]func(context.Context) gateway{"razorpay": func(context.Context) gateway { return g }},
		store:    w.memory, advancer: advance.Advancer{Store: w.memory, Now: clock}, account: "acc_1", stack: "shop",
		log: slog.New(slog.DiscardHandler), now: clock,
	}
}

// run lets a process answer the request, as far as it gets. The status is 0 if it died.
func (w *world) run(p *process, g gateway, body string) (status int) {
	w.memory.Faults = func(string) storetest.Fault { return p.next() }
	defer func() { w.memory.Faults = nil }()
	status, id := w.answer(w.handler(mortal{g, p}), body)
	if p.dies && p.reached() {
		return 0
	}
	w.take(status, id)
	return status
}

// post is a call to which nothing happens on our side.
func (w *world) post(body string) (status int) {
	status, id := w.answer(w.handler(w.client), body)
	w.take(status, id)
	return status
}

func (w *world) answer(h *handler, body string) (status int, gatewayOrderID string) {
	response, err := h.Handle(context.Background(), events.APIGatewayV2HTTPRequest{RouteKey: "POST /orders", Body: body})
	if err != nil {
		w.t.Errorf("%s: %v", w.name, err)
	}
	var answer created
	if response.StatusCode < 300 {
		if err := json.Unmarshal([]byte(response.Body), &answer); err != nil {
			w.t.Errorf("%s: %v", w.name, err)
		}
	}
	return response.StatusCode, answer.Checkout.GatewayOrderID
}

func (w *world) take(status int, gatewayOrderID string) {
	if status >= 300 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handed[gatewayOrderID] = true
}

// sweep is what reconcile does about an order without a gateway order.
func (w *world) sweep() {
	order, err := w.memory.Order(context.Background(), "o1")
	if errors.Is(err, payment.ErrNotFound) || order.GatewayOrderID != "" {
		return
	}
	id, err := w.client.FindOrder(context.Background(), order, "shop/o1")
	if errors.Is(err, payment.ErrNotFound) {
		return
	}
	if err == nil {
		err = w.memory.Commit(context.Background(), payment.Commit{
			Order: order.Opened(id, payment.Rules{}, now), Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: id}},
		})
	}
	if err != nil {
		w.t.Errorf("%s: the sweep: %v", w.name, err)
	}
}

// atGateway counts the gateway's orders for o1.
func (w *world) atGateway() int {
	orders, err := w.client.OrdersByReceipt(context.Background(), "o1")
	if err != nil {
		w.t.Errorf("%s: %v", w.name, err)
	}
	return len(orders)
}

// check asserts what must be so at any time.
func (w *world) check() {
	w.t.Helper()
	if len(w.handed) > 1 {
		w.t.Errorf("%s: handed out %v, want one gateway order", w.name, w.handed)
	}
	order, err := w.memory.Order(context.Background(), "o1")
	if errors.Is(err, payment.ErrNotFound) {
		if len(w.handed) > 0 {
			w.t.Errorf("%s: handed out %v for an order that is gone", w.name, w.handed)
		}
		return
	}
	for id := range w.handed {
		if id == "" || order.GatewayOrderID != id {
			w.t.Errorf("%s: handed out %q, and the order has %q", w.name, id, order.GatewayOrderID)
		}
	}
	for _, broken := range w.checker.Broken(context.Background(), "o1") { // the pointer leads to the order
		w.t.Errorf("%s: %s", w.name, broken)
	}
}
