package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
)

// samples says of every sample event of the worker what becomes of the order that its webhooks are about.
var samples = map[string]payment.Status{
	"worker-payment-captured.json": payment.Paid,
	"worker-batch.json":            payment.Refunded,
}

func TestSampleEvents(t *testing.T) {
	paths, err := filepath.Glob("../../events/worker-*.json")
	if err != nil || len(paths) != len(samples) {
		t.Fatalf("%d sample events, %d expected: %v", len(paths), len(samples), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			want, expected := samples[filepath.Base(path)]
			if !expected {
				t.Fatal("nothing says what becomes of this sample's order")
			}
			b := setup(t)
			b.openSampleOrder(t)
			b.receiveSampleWebhooks(t)
			var batch events.SQSEvent
			load(t, path, &batch)
			b.expectFailed(t, b.work(t, t.Context(), batch.Records...))
			o, err := b.memory.Order(t.Context(), "sample-1")
			if err != nil {
				t.Fatal(err)
			}
			if o.Status != want {
				t.Errorf("order is %s, want %s", o.Status, want)
			}
			b.checker.Check(t, "sample-1")
		})
	}
}

func (b *bundle) openSampleOrder(t *testing.T) {
	t.Helper()
	o := payment.NewOrder("sample-1", payment.Money{Amount: 49900, Currency: "INR"}, "razorpay", payment.Test, now)
	o, err := b.memory.CreateOrder(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.GatewayOrderID = "order_Sample0Order01"
	if err := b.memory.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{
		payment.OrderPointer{GatewayOrderID: o.GatewayOrderID},
	}}); err != nil {
		t.Fatal(err)
	}
}

// receiveSampleWebhooks stores the webhook's sample events, which the worker's name.
func (b *bundle) receiveSampleWebhooks(t *testing.T) {
	t.Helper()
	paths, err := filepath.Glob("../../events/webhook-*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		var r events.APIGatewayV2HTTPRequest
		load(t, path, &r)
		body, err := apigw.Body(r)
		if err != nil {
			t.Fatal(err)
		}
		if id := apigw.Header(r, razorpay.HeaderEventID); id != "" {
			b.receive(t, id, string(body))
		}
	}
}

func load(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
