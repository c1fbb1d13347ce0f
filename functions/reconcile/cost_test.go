package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/announce"
	"paidonce/shared/dynamo"
	"paidonce/shared/payment"
	"paidonce/shared/reconcile"
	"paidonce/shared/storetest"
)

// count lets the store's calls be counted, by method.
func (s *sweeping) count() map[string]int {
	calls := map[string]int{}
	s.memory.Faults = func(method string) storetest.Fault {
		calls[method]++
		return storetest.None
	}
	return calls
}

// settledOrders stores orders that are paid and fulfilled, each with its webhook and its announcement sent.
func (s *sweeping) settledOrders(n int) {
	s.t.Helper()
	for i := range n {
		id := fmt.Sprintf("settled%06d", i)
		o := payment.NewOrder(id, rupees, "razorpay", payment.Test, received)
		o.GatewayOrderID, o.Status, o.PaidAt, o.FulfilledAt = "order_"+id, payment.Paid, received, received
		o.Payments = map[string]payment.Payment{"pay_" + id: {ID: "pay_" + id, Status: payment.PaymentCaptured, Amount: rupees, Captured: rupees}}
		e := payment.Event{Key: payment.EventKey{Gateway: "razorpay", ID: id}, Status: payment.EventApplied, OrderID: id, ReceivedAt: received}
		if _, err := s.memory.PutEvent(s.t.Context(), e); err != nil {
			s.t.Fatal(err)
		}
		if err := s.memory.Commit(s.t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{payment.Fulfilment{Captured: rupees}}}); err != nil {
			s.t.Fatal(err)
		}
		if err := s.memory.MarkSent(s.t.Context(), payment.OutboxKey{OrderID: id, Name: "FULFILMENT"}, received); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestARunWithNothingToDoCostsTheSame, whatever the table holds.
func TestARunWithNothingToDoCostsTheSame(t *testing.T) {
	cost := map[int]map[string]int{}
	for _, orders := range []int{0, 1_000, 100_000} {
		s := newSweeping(t, payment.Rules{})
		s.gateways = []string{"razorpay"}
		s.settledOrders(orders)
		s.to(received.Add(time.Minute))
		if err := s.Handle(t.Context()); err != nil { // the scans' first pass
			t.Fatal(err)
		}
		asked := len(s.sim.Calls())
		calls := s.count()
		s.to(received.Add(6 * time.Minute))
		if err := s.Handle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(s.sim.Calls()) - asked; n > 0 {
			t.Errorf("%d calls of the gateway", n)
		}
		n := 0
		for _, of := range calls {
			n += of
		}
		t.Logf("%6d orders: %d calls of the store, %v", orders, n, calls)
		if n > 20 {
			t.Errorf("%d calls of the store", n)
		}
		cost[orders] = calls
	}
	if diff := cmp.Diff(cost[1_000], cost[100_000]); diff != "" {
		t.Errorf("(-with 1,000 orders +with 100,000)\n%s", diff)
	}
}

// requests are the requests to DynamoDB. It keeps nothing but the cursors; all lists are empty.
type requests struct {
	made map[string]int
	rows map[string]map[string]types.AttributeValue
}

func rowKey(key map[string]types.AttributeValue) string {
	text := func(name string) string {
		if s, ok := key[name].(*types.AttributeValueMemberS); ok {
			return s.Value
		}
		return ""
	}
	return text("pk") + " " + text("sk")
}

func (r *requests) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	r.made["GetItem"]++
	return &dynamodb.GetItemOutput{Item: r.rows[rowKey(in.Key)]}, nil
}

func (r *requests) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	r.made["PutItem"]++
	r.rows[rowKey(in.Item)] = in.Item
	return &dynamodb.PutItemOutput{}, nil
}

func (r *requests) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.made["UpdateItem"]++
	return &dynamodb.UpdateItemOutput{}, nil
}

func (r *requests) DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	r.made["DeleteItem"]++
	return &dynamodb.DeleteItemOutput{}, nil
}

func (r *requests) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	r.made["TransactWriteItems"]++
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func (r *requests) BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	r.made["BatchGetItem"]++
	return &dynamodb.BatchGetItemOutput{}, nil
}

func (r *requests) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	r.made["Query"]++
	if in.IndexName == nil {
		r.made["Query of the table"]++
	}
	return &dynamodb.QueryOutput{}, nil
}

// TestTheTableIsNeverScanned: a run with nothing to do queries the index, and reads and writes rows by key.
func TestTheTableIsNeverScanned(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	s.gateways = []string{"razorpay"}
	r := &requests{made: map[string]int{}, rows: map[string]map[string]types.AttributeValue{}}
	table := dynamo.New(r, "table")
	s.handler.store, s.asks.Store, s.asks.Advancer.Store = table, table, table
	s.handler.reconciler = reconcile.Reconciler(s.asks)
	s.handler.announcer = announce.Announcer{Store: table, Bus: s.bus, Now: s.advancer.Now}
	for _, c := range []struct {
		after time.Duration
		name  string
		want  map[string]int
	}{
		// A cursor is written for each slice: 18 of 3 hours, 864 of 6 days.
		{0, "the first, with both scans", map[string]int{"GetItem": 2, "PutItem": 18 + 864, "Query": 40, "UpdateItem": 2}},
		{5 * time.Minute, "one with nothing to do", map[string]int{"GetItem": 2, "Query": 40, "UpdateItem": 2}},
		{10 * time.Minute, "another", map[string]int{"GetItem": 2, "Query": 40, "UpdateItem": 2}},
		{60 * time.Minute, "one with the hourly scan", map[string]int{"GetItem": 2, "PutItem": 18, "Query": 40, "UpdateItem": 2}},
	} {
		clear(r.made)
		s.to(received.Add(c.after))
		if err := s.Handle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, r.made); diff != "" {
			t.Errorf("%s: requests (-want +got)\n%s", c.name, diff)
		}
	}
}
