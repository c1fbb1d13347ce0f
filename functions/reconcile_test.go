package functions_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"paidonce/shared/localaws"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

// sweep runs reconcile as its schedule does.
func sweep(t *testing.T) {
	t.Helper()
	scheduled, err := os.ReadFile("../events/reconcile-schedule.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stack.Invoke(t.Context(), "ReconcileFunction", scheduled); err != nil {
		t.Error(err)
	}
}

// The webhook died between storing and sending, and the gateway never came again.
func TestReconcileHandsOverWhatWasNeverSent(t *testing.T) {
	o, id := newOrder(t), uniqueEvent()
	fault := stack.Proxy.Inject(localaws.Fault{Kind: localaws.Refuse, Operation: send, Contains: id, Count: 2})
	defer fault.Remove()
	if status, answer := deliver(t, id, body(o, "pay_"+id), stack.WebhookSecret); status != 500 {
		t.Fatalf("the broken delivery answered %d %s, want 500", status, answer)
	}
	eventually(t, "handed over", func() bool {
		sweep(t)
		return event(t, id).Status == payment.EventApplied
	})
	paidOnce(t, o.ID)
}

// The event comes before the order's pointer is written, or of an order that appears later.
func TestAnEarlyEventIsAppliedOnceItsOrderIsKnown(t *testing.T) {
	early, id := newOrder(t), uniqueEvent()
	gatewayOrder := "order_NotYet" + strings.TrimPrefix(id, "evt_proof_")
	early.GatewayOrderID = aws.String(gatewayOrder)
	deliver(t, id, body(early, "pay_"+id), stack.WebhookSecret)
	becomes(t, id, payment.EventParked)

	o, err := table.CreateOrder(t.Context(), payment.NewOrder("late-"+id, payment.Money{Amount: price, Currency: "INR"}, "razorpay", payment.Test, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	o.GatewayOrderID = gatewayOrder
	if err := table.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{
		payment.OrderPointer{GatewayOrderID: gatewayOrder},
	}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "applied", func() bool {
		sweep(t)
		return event(t, id).Status == payment.EventApplied
	})
	paidOnce(t, o.ID)
}

func TestSomebodyElsesOrderIsAdopted(t *testing.T) {
	id, err := gateway.AddOrder(razorpaytest.OrderRequest{Amount: price, Currency: "INR"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.Pay(razorpaytest.PaymentRequest{OrderID: id, Status: "captured"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "adopted and fulfilled", func() bool {
		o, err := table.Order(t.Context(), "razorpay."+id)
		return err == nil && !o.FulfilledAt.IsZero() && o.GatewayPaid
	})
	paidOnce(t, "razorpay."+id)
}
