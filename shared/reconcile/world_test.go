package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/advance"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/reconcile"
	"paidonce/shared/storetest"
)

var (
	begins = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	rupees = payment.Money{Amount: 49900, Currency: "INR"}
)

const secret = "key secret of the tests"

// world is a reconciler with the simulated gateway and a store in memory, all on one clock.
type world struct {
	*testing.T
	memory  *storetest.Memory
	sim     *razorpaytest.Gateway
	url     string
	gateway reconcile.Gateway
	rec     reconcile.Reconciler
	checker *storetest.Checker
	clock   atomic.Pointer[time.Time]
	logged  bytes.Buffer
	orders  []string
	calls   map[string]int                   // of the store, by method
	serve   atomic.Pointer[http.HandlerFunc] // what stands between the client and the gateway, if anything
}

func newWorld(t *testing.T, rules payment.Rules) *world {
	t.Helper()
	w := &world{T: t, memory: storetest.NewMemory(), calls: map[string]int{}}
	w.at(0)
	w.memory.Faults = func(method string) storetest.Fault {
		w.calls[method]++
		return storetest.None
	}
	now := func() time.Time { return *w.clock.Load() }
	w.sim = razorpaytest.New(razorpaytest.Config{KeyID: "rzp_test_key", KeySecret: secret, Now: now})
	t.Cleanup(w.sim.Close)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if serve := w.serve.Load(); serve != nil {
			(*serve)(rw, r)
			return
		}
		w.sim.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	w.gateway = w.client(secret)
	advancer := advance.Advancer{Store: w.memory, Rules: rules, Now: now}
	w.rec = reconcile.Reconciler{
		Gateways: map[string]func(context.Context) reconcile.Gateway{"razorpay": func(context.Context) reconcile.Gateway { return w.gateway }},
		Store:    w.memory, Advancer: advancer, Stack: "shop", Log: logs.New(&w.logged, "WARN"), Now: now,
	}
	w.checker = &storetest.Checker{Store: w.memory, Rules: rules}
	return w
}

func (w *world) client(keySecret string) *razorpay.Client {
	w.Helper()
	document, err := json.Marshal(map[string]string{"key_id": "rzp_test_key", "key_secret": keySecret})
	if err != nil {
		w.Fatal(err)
	}
	atOnce := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	client, err := razorpay.ParseClient(w.url, razorpay.WithSleep(atOnce))(document)
	if err != nil {
		w.Fatal(err)
	}
	return client
}

// at sets everybody's clock to so long after the beginning.
func (w *world) at(after time.Duration) {
	now := begins.Add(after)
	w.clock.Store(&now)
}

func (w *world) now() time.Time { return *w.clock.Load() }

// open stores an order with its gateway order.
func (w *world) open(id string) payment.Order {
	w.Helper()
	o := payment.NewOrder(id, rupees, "razorpay", payment.Test, w.now())
	gatewayOrderID, err := w.client(secret).OpenOrder(w.Context(), o, "shop/"+id)
	if err != nil {
		w.Fatal(err)
	}
	return w.store(o, gatewayOrderID)
}

// store stores an order, with a pointer from the gateway's.
func (w *world) store(o payment.Order, gatewayOrderID string) payment.Order {
	w.Helper()
	if err := w.memory.Commit(w.Context(), payment.Commit{
		Order:   o.Opened(gatewayOrderID, w.rec.Advancer.Rules, w.now()),
		Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: gatewayOrderID}},
	}); err != nil {
		w.Fatal(err)
	}
	w.orders = append(w.orders, o.ID)
	return w.order(o.ID)
}

func (w *world) order(id string) payment.Order {
	w.Helper()
	o, err := w.memory.Order(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return o
}

// pay lets a customer pay, without a webhook.
func (w *world) pay(r razorpaytest.PaymentRequest) string {
	w.Helper()
	if r.Status == "" {
		r.Status = "captured"
	}
	r.Deliver = new(false)
	id, err := w.sim.Pay(r)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *world) paid(o payment.Order) string {
	w.Helper()
	return w.pay(razorpaytest.PaymentRequest{OrderID: o.GatewayOrderID})
}

// told is what the worker makes of a webhook about facts.
func (w *world) told(o payment.Order, facts ...payment.Fact) {
	w.Helper()
	e := payment.Event{
		Key:    payment.EventKey{Gateway: "razorpay", ID: fmt.Sprintf("evt_%s_%d", o.ID, o.Version)},
		Status: payment.EventReceived, ReceivedAt: w.now(), VerifiedBy: "current", Mode: payment.Test,
	}
	if _, err := w.memory.PutEvent(w.Context(), e); err != nil {
		w.Fatal(err)
	}
	if _, err := w.rec.Advancer.Apply(w.Context(), o.ID, advance.Step{Source: payment.SourceWebhook, Facts: facts, Event: &e}); err != nil {
		w.Fatal(err)
	}
}

// captured is what a webhook says of a payment that was captured whole.
func captured(id string) payment.PaymentFact {
	return payment.PaymentFact{ID: id, Status: payment.PaymentCaptured, Amount: rupees}
}

// compare compares everything since an hour before the beginning, and checks every invariant.
func (w *world) compare(want reconcile.Findings) {
	w.Helper()
	got, err := w.rec.Compare(w.Context(), "razorpay", begins.Add(-time.Hour), w.now(), false)
	if err != nil {
		w.Fatal(err)
	}
	w.found(want, got)
}

func (w *world) found(want, got reconcile.Findings) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("found (-want +got)\n%s", diff)
	}
	w.checker.Check(w, w.orders...)
}

// scan takes a scan on by so many slices; -1: to its end.
func (w *world) scan(scan payment.Scan, slices int) (reconcile.Findings, error) {
	w.Helper()
	found, _, err := w.rec.Scan(w.Context(), "razorpay", scan, func() bool {
		slices--
		return slices != -1
	})
	w.checker.Check(w, w.orders...)
	return found, err
}

// cursor is how far a scan has come.
func (w *world) cursor(scan payment.Scan) payment.Cursor {
	w.Helper()
	c, err := w.memory.Cursor(w.Context(), "razorpay", scan.Name)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) expect(id string, status payment.Status, fulfilled bool) {
	w.Helper()
	if o := w.order(id); o.Status != status || o.FulfilledAt.IsZero() == fulfilled {
		w.Errorf("order %s is %s, fulfilled %t; want %s, %t", id, o.Status, !o.FulfilledAt.IsZero(), status, fulfilled)
	}
}

// writes counts what was written since it was last called.
func (w *world) writes() map[string]int {
	writes := map[string]int{}
	for method, n := range w.calls {
		if strings.HasPrefix(method, "Put") || strings.HasPrefix(method, "Commit") || strings.HasPrefix(method, "Settle") || strings.HasPrefix(method, "Postpone") {
			writes[method] = n
		}
	}
	clear(w.calls)
	maps.DeleteFunc(writes, func(_ string, n int) bool { return n == 0 })
	return writes
}

// between puts a function between the client and the gateway, which changes what a list of the path says.
func (w *world) between(path string, change func(query map[string][]string, items []json.RawMessage) []json.RawMessage) {
	serve := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			w.sim.ServeHTTP(rw, r)
			return
		}
		recorder := httptest.NewRecorder()
		w.sim.ServeHTTP(recorder, r)
		var answer struct {
			Entity string            `json:"entity"`
			Count  int               `json:"count"`
			Items  []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
			w.Errorf("the gateway answered %s", recorder.Body)
		}
		answer.Items = append([]json.RawMessage{}, change(r.URL.Query(), answer.Items)...)
		answer.Count = len(answer.Items)
		if err := json.NewEncoder(rw).Encode(answer); err != nil {
			w.Error(err)
		}
	})
	w.serve.Store(&serve)
}

// spoilOrder makes the gateway answer nonsense about one order.
func (w *world) spoilOrder(id string) {
	serve := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/orders/"+id {
			w.sim.ServeHTTP(rw, r)
			return
		}
		fmt.Fprint(rw, `{"id":"`+id+`","status":"quantum"}`)
	})
	w.serve.Store(&serve)
}

// refusing is a store that cannot read one order.
type refusing struct {
	*storetest.Memory
	id string
}

func (s refusing) Order(ctx context.Context, id string) (payment.Order, error) {
	if id == s.id {
		return payment.Order{}, storetest.ErrFault
	}
	return s.Memory.Order(ctx, id)
}
