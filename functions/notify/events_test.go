package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

// samples says of every sample event of notify what is published of an order that was paid and refunded.
var samples = map[string][]string{
	"notify-batch.json": {"sample-1#FULFILMENT order.paid", "sample-1#OUTBOX#refund#rfnd_SampleRefund01#processed refund.processed"},
}

func TestSampleEvents(t *testing.T) {
	paths, err := filepath.Glob("../../events/notify-*.json")
	if err != nil || len(paths) != len(samples) {
		t.Fatalf("%d sample events, %d expected: %v", len(paths), len(samples), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			event, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b := setup()
			o := payment.NewOrder("sample-1", price, "razorpay", payment.Test, written)
			if err := b.memory.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{
				payment.Fulfilment{Captured: price},
				payment.Notification{Key: "refund#rfnd_SampleRefund01#processed", Status: payment.Refunded, About: "rfnd_SampleRefund01", Amount: price},
			}}); err != nil {
				t.Fatal(err)
			}
			answer, err := lambda.NewHandler(b.Handle).Invoke(t.Context(), event)
			if err != nil || string(answer) != `{"batchItemFailures":[]}` {
				t.Errorf("answered %s, %v", answer, err)
			}
			var got []string
			for key, copies := range b.bus.published {
				for _, a := range copies {
					got = append(got, key+" "+a.Type)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(samples[filepath.Base(path)], got); diff != "" {
				t.Errorf("(-want +published)\n%s", diff)
			}
		})
	}
}
