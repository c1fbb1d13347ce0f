package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
)

// samples are the sample events in the order in which a shop would send them, and what each is answered.
var samples = []struct {
	file   string
	status int
	order  string // the field of the answer that holds the order; empty: the answer is the order
}{
	{"orders-create.json", 201, ""},
	{"orders-get.json", 200, ""},
	{"orders-acknowledge.json", 200, ""},
	{"orders-close.json", 200, ""},
	{"orders-timeline.json", 200, "order"},
}

func TestSampleEvents(t *testing.T) {
	paths, err := filepath.Glob("../../events/orders-*.json")
	if err != nil || len(paths) != len(samples) {
		t.Fatalf("%d sample events, %d expected: %v", len(paths), len(samples), err)
	}
	b := setup()
	for _, sample := range samples {
		t.Run(sample.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../events", sample.file))
			if err != nil {
				t.Fatal(err)
			}
			var r events.APIGatewayV2HTTPRequest
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			if r.RequestContext.Authorizer == nil || r.RequestContext.Authorizer.IAM == nil {
				t.Error("the sample is not of a caller with AWS credentials")
			}
			response, err := b.Handle(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			answer := map[string]any{}
			if err := json.Unmarshal([]byte(response.Body), &answer); err != nil {
				t.Fatal(err)
			}
			order := answer
			if sample.order != "" {
				order, _ = answer[sample.order].(map[string]any)
			}
			if response.StatusCode != sample.status || order["id"] != "sample-1" {
				t.Errorf("answered %d %s, want %d", response.StatusCode, response.Body, sample.status)
			}
		})
		if sample.file == "orders-create.json" {
			b.payShort(t, "sample-1")
		}
	}
}

// payShort captures too little for the order, which holds it as short.
func (b *bundle) payShort(t *testing.T, id string) {
	t.Helper()
	b.gatewaySays(t, id, payment.PaymentFact{ID: "pay_short", Status: payment.PaymentCaptured, Amount: payment.Money{Amount: 100, Currency: "INR"}})
}

// gatewaySays takes facts into the order, as the worker does.
func (b *bundle) gatewaySays(t *testing.T, id string, facts ...payment.Fact) {
	t.Helper()
	if _, err := b.advancer.Apply(t.Context(), id, advance.Step{Source: payment.SourceSweep, Facts: facts}); err != nil {
		t.Fatal(err)
	}
}
