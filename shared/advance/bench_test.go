package advance_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

const (
	orderID        = "shop-1"
	gatewayOrderID = "order_1"
	account        = "acc_1"
)

var at = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

func inr(amount int64) payment.Money { return payment.Money{Amount: amount, Currency: "INR"} }

func captured(id string) payment.PaymentFact {
	return payment.PaymentFact{ID: id, GatewayOrderID: gatewayOrderID, Status: payment.PaymentCaptured, Amount: inr(100)}
}

func failed(id string) payment.PaymentFact {
	return payment.PaymentFact{ID: id, GatewayOrderID: gatewayOrderID, Status: payment.PaymentCreated, Failed: true, Amount: inr(100)}
}

func facts(f ...payment.Fact) []payment.Fact { return f }

// failures are n attempts that failed, named from pay_<first> on.
func failures(first, n int) []payment.Fact {
	var all []payment.Fact
	for i := range n {
		all = append(all, failed(fmt.Sprintf("pay_%03d", first+i)))
	}
	return all
}

// bench is an order in a store, with whatever a test wants to happen to its calls.
type bench struct {
	*storetest.Memory
	checker storetest.Checker
	calls   []string // the writes so far, by method
	// before, if set, runs before each write, with the number of earlier writes by that method; it may be a rival.
	before func(method string, earlier int)
	inside bool // before is running: its own writes are not counted
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Memory: storetest.NewMemory()}
	b.checker.Store = b.Memory
	b.create(t, orderID, gatewayOrderID)
	return b
}

// create stores an order that its gateway order leads to.
func (b *bench) create(t *testing.T, id, gatewayOrder string) {
	t.Helper()
	o := payment.NewOrder(id, inr(100), "razorpay", payment.Test, at)
	o.Account = account
	o, err := b.CreateOrder(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.GatewayOrderID = gatewayOrder
	err = b.Memory.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: gatewayOrder}}})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) intervene(method string) {
	if b.inside {
		return
	}
	if b.before != nil {
		earlier := 0
		for _, c := range b.calls {
			if c == method {
				earlier++
			}
		}
		b.inside = true
		b.before(method, earlier)
		b.inside = false
	}
	b.calls = append(b.calls, method)
}

// Commit is Memory's, after what the test wants to happen.
func (b *bench) Commit(ctx context.Context, c payment.Commit) error {
	b.intervene("Commit")
	return b.Memory.Commit(ctx, c)
}

// SettleEvent is Memory's, after what the test wants to happen.
func (b *bench) SettleEvent(ctx context.Context, s payment.Settlement) error {
	b.intervene("SettleEvent")
	return b.Memory.SettleEvent(ctx, s)
}

func (b *bench) advancer() advance.Advancer {
	return advance.Advancer{Store: b, Now: func() time.Time { return at.Add(time.Minute) }, Reserve: time.Second}
}

// delivery stores an event and returns the step it calls for.
func (b *bench) delivery(t *testing.T, id string, f ...payment.Fact) advance.Step {
	t.Helper()
	e := payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: id}, Status: payment.EventReceived, Mode: payment.Test, ReceivedAt: at,
	}
	if _, err := b.PutEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return advance.Step{Source: payment.SourceWebhook, Facts: f, Event: &e, Kind: "payment.captured", Account: account}
}

// apply runs the step, expects wantErr, and checks the invariants.
func (b *bench) apply(t *testing.T, s advance.Step, wantErr error) advance.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a race that is never won
	defer cancel()
	result, err := b.advancer().Apply(ctx, orderID, s)
	if !errors.Is(err, wantErr) {
		t.Fatalf("got error %v, want %v", err, wantErr)
	}
	b.checker.Check(t, orderID)
	if err == nil && !result.Done {
		if diff := cmp.Diff(b.order(t, orderID), result.Order); diff != "" {
			t.Errorf("the order is not as it is stored (-stored +got)\n%s", diff)
		}
	}
	return result
}

func (b *bench) order(t *testing.T, id string) payment.Order {
	t.Helper()
	o, err := b.Order(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// wantOrder compares version, status and the number of fulfilments.
func (b *bench) wantOrder(t *testing.T, version int64, status payment.Status, fulfilled int) {
	t.Helper()
	o := b.order(t, orderID)
	if got := b.count(t, "fulfilment"); o.Version != version || o.Status != status || got != fulfilled {
		t.Errorf("order is at version %d, %s, with %d fulfilments, want %d, %s, %d", o.Version, o.Status, got, version, status, fulfilled)
	}
}

// wantEvent compares status and verdict.
func (b *bench) wantEvent(t *testing.T, s advance.Step, status payment.EventStatus, verdict string) {
	t.Helper()
	e, err := b.Event(t.Context(), s.Event.Key)
	if err != nil {
		t.Fatal(err)
	}
	if e.Status != status || e.Verdict != verdict {
		t.Errorf("event %s is %s, %q, want %s, %q", e.Key, e.Status, e.Verdict, status, verdict)
	}
}

// count counts the effects of a kind.
func (b *bench) count(t *testing.T, kind string) int {
	t.Helper()
	effects, err := b.Effects(t.Context(), orderID)
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, e := range effects {
		switch e.(type) {
		case payment.Fulfilment:
			n["fulfilment"]++
		case payment.LedgerEntry:
			n["ledger"]++
		case payment.CountedAttempt:
			n["attempt"]++
		}
	}
	return n[kind]
}

func (b *bench) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, b.calls); diff != "" {
		t.Errorf("writes (-want +got)\n%s", diff)
	}
	b.calls = nil
}

func (b *bench) wantHolds(t *testing.T, want ...payment.HoldReason) {
	t.Helper()
	var got []payment.HoldReason
	for _, h := range b.order(t, orderID).Derive(payment.Rules{}).Holds {
		got = append(got, h.Reason)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("holds (-want +got)\n%s", diff)
	}
}
