package functions_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

func rupees(amount int64) payment.Money { return payment.Money{Amount: amount, Currency: "INR"} }

// storeOrder stores an order that a gateway order leads to, without the API.
func storeOrder(t *testing.T, s *winners, amount int64, partial bool) payment.Order {
	t.Helper()
	id := fmt.Sprint("direct-", orderNumber.Add(1))
	o := payment.NewOrder(id, rupees(amount), "razorpay", payment.Test, time.Now())
	o.Account, o.GatewayOrderID, o.Partial = accountID, "order_"+id, partial
	if err := s.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: o.GatewayOrderID}}}); err != nil {
		t.Fatal(err)
	}
	return storedOrder(t, id)
}

func storedOrder(t *testing.T, id string) payment.Order {
	t.Helper()
	o, err := table.Order(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// winners is the table, and who wrote which version of an order.
type winners struct {
	advance.Store
	mu     sync.Mutex
	won    map[string]int // by order and version
	failed int
}

func (w *winners) Commit(ctx context.Context, c payment.Commit) error {
	err := w.Store.Commit(ctx, c)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed++
		return err
	}
	w.won[fmt.Sprint(c.Order.ID, " ", c.Order.Version+1)]++
	return nil
}

func (w *winners) advancer() advance.Advancer { return advance.Advancer{Store: w, Now: time.Now} }

// TestTwoWorkersOnOneOrder lets two workers learn different facts about one order at the same time, again and again.
func TestTwoWorkersOnOneOrder(t *testing.T) {
	const rounds, roundsPerOrder, part = 200, 10, 100
	w := &winners{Store: table, won: map[string]int{}}
	checker := storetest.Checker{Store: table}
	var o payment.Order
	for round := range rounds {
		if round%roundsPerOrder == 0 {
			o = storeOrder(t, w, part*2*roundsPerOrder, true)
		}
		var wg sync.WaitGroup
		for worker := range 2 {
			p := payment.PaymentFact{
				ID: fmt.Sprintf("pay_%s_%d_%d", o.ID, round, worker), GatewayOrderID: o.GatewayOrderID, Status: payment.PaymentCaptured, Amount: rupees(part),
			}
			shared := payment.PaymentFact{
				ID: fmt.Sprintf("pay_%s_%d_failed", o.ID, round), GatewayOrderID: o.GatewayOrderID, Status: payment.PaymentCreated, Failed: true, Amount: rupees(part),
			}
			wg.Go(func() {
				step := advance.Step{Source: payment.SourceSweep, Facts: []payment.Fact{p, shared}}
				if _, err := w.advancer().Apply(t.Context(), o.ID, step); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
		checker.Check(t, o.ID)
		now, done := storedOrder(t, o.ID), round%roundsPerOrder+1
		if n := len(now.Payments); n != 3*done || now.FailedAttempts() != done {
			t.Fatalf("round %d: %d payments, %d failed; want %d and %d", round, n, now.FailedAttempts(), 3*done, done)
		}
		for version := int64(1); version <= now.Version; version++ {
			if n := w.won[fmt.Sprint(o.ID, " ", version)]; n != 1 {
				t.Fatalf("round %d: version %d was written %d times", round, version, n)
			}
		}
		if captured, want := now.Derive(payment.Rules{}).Captured, int64(2*done*part); captured != want {
			t.Fatalf("round %d: %d captured, want %d", round, captured, want)
		}
		if paid := done == roundsPerOrder; paid != !now.FulfilledAt.IsZero() {
			t.Fatalf("round %d: fulfilled %t, want %t", round, !now.FulfilledAt.IsZero(), paid)
		}
	}
	if w.failed == 0 {
		t.Error("no worker ever lost a race")
	}
	t.Logf("%d rounds, %d commits, %d races lost", rounds, len(w.won), w.failed)
}

// TestAnOlderOrderRowIsNotPoisoned restores an order's row from before its payment, with the effects' rows still there.
func TestAnOlderOrderRowIsNotPoisoned(t *testing.T) {
	w := &winners{Store: table, won: map[string]int{}}
	o := storeOrder(t, w, price, false)
	learn := func(facts ...payment.Fact) {
		t.Helper()
		if _, err := w.advancer().Apply(t.Context(), o.ID, advance.Step{Source: payment.SourceSweep, Facts: facts}); err != nil {
			t.Fatal(err)
		}
		(&storetest.Checker{Store: table}).Check(t, o.ID)
	}
	paid := payment.PaymentFact{ID: "pay_" + o.ID, GatewayOrderID: o.GatewayOrderID, Status: payment.PaymentCaptured, Amount: rupees(price)}
	refunded := payment.RefundFact{ID: "rfnd_" + o.ID, PaymentID: paid.ID, Status: payment.RefundProcessed, Amount: rupees(price)}
	var failures []payment.Fact
	for i := range 25 {
		failures = append(failures, payment.PaymentFact{
			ID: fmt.Sprintf("pay_%s_%d", o.ID, i), GatewayOrderID: o.GatewayOrderID, Status: payment.PaymentCreated, Failed: true, Amount: rupees(price),
		})
	}

	db := dynamodb.NewFromConfig(stack.Config())
	key := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "ORDER#" + o.ID}, "sk": &types.AttributeValueMemberS{Value: "ORDER"},
	}
	older, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &stack.Table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	learn(failures...)
	learn(paid)
	learn(refunded)
	effects, err := table.Effects(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &stack.Table, Item: older.Item}); err != nil {
		t.Fatal(err)
	}
	// Between the loss and the end the books hold more than the order knows, so that the checker has its say at the end.
	for _, facts := range [][]payment.Fact{failures, {paid}, {refunded}} {
		if _, err := w.advancer().Apply(t.Context(), o.ID, advance.Step{Source: payment.SourceSweep, Facts: facts}); err != nil {
			t.Fatal(err)
		}
	}
	(&storetest.Checker{Store: table}).Check(t, o.ID)
	again, err := table.Effects(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	if now := storedOrder(t, o.ID); now.Status != payment.Refunded || now.FulfilledAt.IsZero() || len(again) != len(effects) {
		t.Errorf("order %s with %d effects, fulfilled at %s; want it refunded and fulfilled with %d", now.Status, len(again), now.FulfilledAt, len(effects))
	}
}
