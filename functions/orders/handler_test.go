package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

var now = time.Date(2026, 11, 30, 10, 0, 5, 0, time.UTC)

// fakeGateway has orders by note, and fails as told.
type fakeGateway struct {
	mu     sync.Mutex
	opened map[string][]string // ids by note
	made   int
	mode   payment.Mode                             // empty: test
	fail   func(call string) (done bool, err error) // nil: nothing fails
}

func (g *fakeGateway) Mode() payment.Mode {
	if g.mode == "" {
		return payment.Test
	}
	return g.mode
}

func (g *fakeGateway) KeyID() string { return "rzp_test_key" }

func (g *fakeGateway) OpenOrder(_ context.Context, _ payment.Order, note string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	done, err := g.outcome("open")
	if !done {
		return "", err
	}
	g.made++
	id := fmt.Sprintf("order_%d", g.made)
	g.opened[note] = append(g.opened[note], id)
	if err != nil {
		return "", err
	}
	return id, nil
}

func (g *fakeGateway) FindOrder(_ context.Context, _ payment.Order, note string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := g.outcome("find"); err != nil {
		return "", err
	}
	if ids := g.opened[note]; len(ids) > 0 {
		return ids[0], nil
	}
	return "", payment.ErrNotFound
}

func (g *fakeGateway) outcome(call string) (bool, error) {
	if g.fail == nil {
		return true, nil
	}
	return g.fail(call)
}

type bundle struct {
	*handler
	memory  *storetest.Memory
	gateway *fakeGateway
	checker *storetest.Checker
}

func setup() *bundle {
	b := &bundle{memory: storetest.NewMemory(), gateway: &fakeGateway{opened: map[string][]string{}}}
	b.checker = &storetest.Checker{Store: b.memory}
	b.handler = &handler{
		gateways: map[string]func(context.Context) gateway{"razorpay": func(context.Context) gateway { return b.gateway }},
		store:    b.memory, advancer: advance.Advancer{Store: b.memory, Now: func() time.Time { return now }}, account: "acc_1", stack: "shop", log: slog.New(slog.DiscardHandler),
		now: func() time.Time { return now },
	}
	return b
}

func (b *bundle) call(t *testing.T, route, id, body string) (int, map[string]any) {
	t.Helper()
	r := events.APIGatewayV2HTTPRequest{RouteKey: route, Body: body}
	if id != "" {
		r.PathParameters = map[string]string{"id": id}
	}
	response, err := b.Handle(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(response.Body), &answer); err != nil {
		t.Fatalf("answer %s: %v", response.Body, err)
	}
	return response.StatusCode, answer
}

func (b *bundle) create(t *testing.T, body string) (int, map[string]any) {
	t.Helper()
	return b.call(t, "POST /orders", "", body)
}

const good = `{"id":"o1","amount":49900,"currency":"INR","gateway":"razorpay","notes":{"cart":"7"}}`

func TestCreate(t *testing.T) {
	b := setup()
	status, answer := b.create(t, good)
	want := map[string]any{
		"id": "o1", "status": "pending", "derived": "pending", "holds": []any{}, "amount": 49900.0, "amount_paid": 0.0,
		"amount_refunded": 0.0, "currency": "INR", "mode": "test", "gateway": "razorpay", "gateway_order_id": "order_1",
		"payments": []any{}, "refunds": []any{}, "failed_attempts": 0.0, "fulfilled_at": nil, "closed_at": nil, "version": 2.0,
		"created_at": "2026-11-30T10:00:05Z", "updated_at": "2026-11-30T10:00:05Z",
		"checkout": map[string]any{"key_id": "rzp_test_key", "gateway_order_id": "order_1", "amount": 49900.0, "currency": "INR"},
	}
	if diff := cmp.Diff(want, answer); status != 201 || diff != "" {
		t.Errorf("status %d, want 201 (-want +got)\n%s", status, diff)
	}
	o, err := b.memory.Order(t.Context(), "o1")
	if err != nil || o.Account != "acc_1" || o.Notes["cart"] != "7" || o.Mode != payment.Test {
		t.Errorf("stored %+v, %v", o, err)
	}
	b.checker.Check(t, "o1") // the pointer is there

	status, again := b.create(t, good)
	if diff := cmp.Diff(want, again); status != 200 || diff != "" {
		t.Errorf("again: status %d, want 200 (-want +got)\n%s", status, diff)
	}
	delete(want, "checkout")
	status, shown := b.call(t, "GET /orders/{id}", "o1", "")
	if diff := cmp.Diff(want, shown); status != 200 || diff != "" {
		t.Errorf("shown: status %d, want 200 (-want +got)\n%s", status, diff)
	}
	if status, _ := b.call(t, "GET /orders/{id}", "none", ""); status != 404 {
		t.Errorf("unknown order: status %d, want 404", status)
	}
	if status, _ := b.call(t, "DELETE /orders/{id}", "o1", ""); status != 404 {
		t.Errorf("unknown route: status %d, want 404", status)
	}
	if b.gateway.made != 1 {
		t.Errorf("%d gateway orders, want 1", b.gateway.made)
	}
}

func TestCreateRefusesAnotherOrderUnderTheSameID(t *testing.T) {
	for name, other := range map[string]string{
		"amount":   strings.Replace(good, "49900", "49901", 1),
		"currency": strings.Replace(good, "INR", "USD", 1),
		"partial":  strings.Replace(good, `"notes"`, `"partial":true,"notes"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			b := setup()
			b.create(t, good)
			status, answer := b.create(t, other)
			if status != 409 || answer["error"] != "the id belongs to another order" {
				t.Errorf("answered %d %v, want 409", status, answer)
			}
		})
	}
}

func TestCreateNamesTheFieldAtFault(t *testing.T) {
	long := strings.Repeat("x", 257)
	for field, bodies := range map[string][]string{
		"id": {
			strings.Replace(good, "o1", "", 1), strings.Replace(good, "o1", "a b", 1), strings.Replace(good, "o1", "a|b", 1), strings.Replace(good, "o1", "-a", 1),
			strings.Replace(good, "o1", strings.Repeat("a", 41), 1), strings.Replace(good, `"o1"`, "7", 1),
		},
		"amount": {
			strings.Replace(good, "49900", "0", 1), strings.Replace(good, "49900", "-1", 1), strings.Replace(good, "49900", "499.5", 1),
			strings.Replace(good, "49900", "4.99e4", 1), strings.Replace(good, "49900", "9223372036854775808", 1),
			strings.Replace(good, `"amount":49900,`, "", 1), strings.Replace(good, "49900", "true", 1),
			strings.Replace(good, "49900", `"49900"`, 1), strings.Replace(good, "49900", "1000000000000001", 1), strings.Replace(good, "49900", "null", 1),
		},
		"currency": {strings.Replace(good, "INR", "inr", 1), strings.Replace(good, "INR", "RUPEE", 1), strings.Replace(good, `"currency":"INR",`, "", 1)},
		"gateway":  {strings.Replace(good, "razorpay", "paypal", 1), strings.Replace(good, `"gateway":"razorpay",`, "", 1)},
		"partial":  {strings.Replace(good, `"notes"`, `"partial":"yes","notes"`, 1)},
		"notes": {
			strings.Replace(good, `"cart":"7"`, `"paidonce":"x"`, 1), strings.Replace(good, `"7"`, `"`+long+`"`, 1),
			strings.Replace(good, `"cart"`, `""`, 1), strings.Replace(good, `{"cart":"7"}`, manyNotes(15), 1),
		},
		"body": {"", "[]", "{", good + "{}", strings.Replace(good, `"notes"`, `"nodes"`, 1)},
	} {
		for _, body := range bodies {
			t.Run(field+" "+body[:min(len(body), 60)], func(t *testing.T) {
				b := setup()
				status, answer := b.create(t, body)
				if status != 400 || answer["field"] != field || answer["error"] == "" {
					t.Errorf("answered %d %v, want 400 about %s", status, answer, field)
				}
				if b.gateway.made != 0 {
					t.Error("a gateway order was made")
				}
			})
		}
	}
	b := setup()
	if status, answer := b.create(t, strings.Replace(good, `{"cart":"7"}`, manyNotes(14), 1)); status != 201 {
		t.Errorf("14 notes: answered %d %v, want 201", status, answer)
	}
}

func manyNotes(n int) string {
	var l []string
	for i := range n {
		l = append(l, fmt.Sprintf(`"k%d":"v"`, i))
	}
	return "{" + strings.Join(l, ",") + "}"
}

// TestCreateSurvivesEveryFailure breaks one call of the first request, then calls again until it answers.
func TestCreateSurvivesEveryFailure(t *testing.T) {
	refused := fmt.Errorf("razorpay: %w", payment.ErrGatewayRefused)
	unknown := fmt.Errorf("razorpay: %w", payment.ErrOutcomeUnknown)
	for _, c := range []struct {
		name  string
		store map[string]storetest.Fault // by method, once
		open  []any                      // done, err: of the first call
		first int
		made  int // gateway orders in the end
	}{
		{"order not stored", map[string]storetest.Fault{"CreateOrder": storetest.NotDone}, nil, 500, 1},
		{"order stored, answer lost", map[string]storetest.Fault{"CreateOrder": storetest.DoneUnsaid}, nil, 500, 1},
		{"gateway did nothing, outcome unknown", nil, []any{false, unknown}, 503, 1},
		{"gateway did it, outcome unknown", nil, []any{true, unknown}, 503, 1},
		{"gateway refused", nil, []any{false, refused}, 502, 1},
		{"gateway refused, row not deleted", map[string]storetest.Fault{"DeleteOrder": storetest.NotDone}, []any{false, refused}, 503, 1},
		{"gateway order not attached", map[string]storetest.Fault{"Commit": storetest.NotDone}, nil, 500, 1},
		{"gateway order attached, answer lost", map[string]storetest.Fault{"Commit": storetest.DoneUnsaid}, nil, 500, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup()
			left := c.store
			b.memory.Faults = func(method string) storetest.Fault {
				f := left[method]
				delete(left, method)
				return f
			}
			if c.open != nil {
				b.gateway.fail = func(string) (bool, error) {
					b.gateway.fail = nil
					return c.open[0].(bool), c.open[1].(error)
				}
			}
			if status, answer := b.create(t, good); status != c.first || strings.Contains(fmt.Sprint(answer), "razorpay:") {
				t.Errorf("first call answered %d %v, want %d", status, answer, c.first)
			}
			status, answer := b.create(t, good)
			if status != 200 && status != 201 || answer["gateway_order_id"] != "order_1" {
				t.Errorf("second call answered %d %v", status, answer)
			}
			if b.gateway.made != c.made {
				t.Errorf("%d gateway orders, want %d", b.gateway.made, c.made)
			}
			b.checker.Check(t, "o1")
		})
	}
}

// TestAnIDThatWasFreedIsAnotherOrder: a call that hangs at the gateway meets, when it wakes, another request's order.
func TestAnIDThatWasFreedIsAnotherOrder(t *testing.T) {
	b := setup()
	small := strings.Replace(good, "49900", "10000", 1)
	calls := 0
	b.gateway.fail = func(call string) (bool, error) {
		if calls++; calls > 1 {
			return true, nil
		}
		// While the first call hangs, a twin is refused and frees the id, and another request takes it.
		b.gateway.mu.Unlock()
		defer b.gateway.mu.Lock()
		o, err := b.memory.Order(t.Context(), "o1")
		if err != nil {
			t.Fatal(err)
		}
		if err := b.memory.DeleteOrder(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		b.handler.now = func() time.Time { return now.Add(time.Second) }
		if status, answer := b.create(t, good); status != 201 || answer["amount"] != 49900.0 {
			t.Errorf("the other request was answered %d %v", status, answer)
		}
		return true, nil
	}
	if status, answer := b.create(t, small); status != 409 {
		t.Errorf("the first call was answered %d %v, want 409", status, answer)
	}
	if _, answer := b.call(t, "GET /orders/{id}", "o1", ""); answer["amount"] != 49900.0 {
		t.Errorf("the order is of %v, want 49900", answer["amount"])
	}
	b.checker.Check(t, "o1")
}

func TestAChangedKeyDoesNotServeOldOrders(t *testing.T) {
	b := setup()
	b.gateway.fail = func(string) (bool, error) { return false, payment.ErrOutcomeUnknown }
	b.create(t, good)
	b.gateway.fail, b.gateway.mode = nil, payment.Live
	if status, answer := b.create(t, good); status != 409 {
		t.Errorf("answered %d %v, want 409: a live payment would never pay a test order", status, answer)
	}
}

func TestAClosedOrderOpensNoCheckout(t *testing.T) {
	b := setup()
	b.create(t, good)
	b.closeOrder(t, "o1", `{"reason":"out of stock"}`)
	if status, answer := b.create(t, good); status != 409 || answer["error"] != "closed" {
		t.Errorf("answered %d %v, want 409 closed", status, answer)
	}
}

func TestARefusalLeavesTheIDFree(t *testing.T) {
	b := setup()
	b.gateway.fail = func(string) (bool, error) { return false, payment.ErrGatewayRefused }
	if status, answer := b.create(t, good); status != 502 || answer["error"] != "the gateway refused" {
		t.Errorf("answered %d %v, want 502", status, answer)
	}
	if _, err := b.memory.Order(t.Context(), "o1"); !errors.Is(err, payment.ErrNotFound) {
		t.Errorf("reading the order: %v, want not found", err)
	}
	b.gateway.fail = nil
	if status, _ := b.create(t, strings.Replace(good, "49900", "100", 1)); status != 201 {
		t.Errorf("another order under the id: %d, want 201", status)
	}
}

func TestTwentyAtOnceGetOneGatewayOrder(t *testing.T) {
	b := setup()
	ids := make(chan any, 20)
	var wg sync.WaitGroup
	for range cap(ids) {
		wg.Go(func() {
			status, answer := b.create(t, good)
			if status != 200 && status != 201 {
				t.Errorf("answered %d %v", status, answer)
			}
			ids <- answer["gateway_order_id"]
		})
	}
	wg.Wait()
	close(ids)
	distinct := map[any]bool{}
	for id := range ids {
		distinct[id] = true
	}
	if len(distinct) != 1 {
		t.Errorf("handed out %v, want one gateway order", distinct)
	}
	b.checker.Check(t, "o1")
}

func TestARefusedLookUpKeepsTheOrder(t *testing.T) {
	b := setup()
	b.gateway.fail = func(string) (bool, error) { return true, payment.ErrOutcomeUnknown } // made, but the answer was lost
	b.create(t, good)
	b.gateway.fail = func(string) (bool, error) { return false, payment.ErrGatewayRefused } // the key was revoked
	if status, answer := b.create(t, good); status != 503 {
		t.Errorf("answered %d %v, want 503", status, answer)
	}
	b.gateway.fail = nil
	if status, answer := b.create(t, good); status != 200 || answer["gateway_order_id"] != "order_1" || b.gateway.made != 1 {
		t.Errorf("answered %d %v with %d gateway orders, want the one that was made", status, answer, b.gateway.made)
	}
}
