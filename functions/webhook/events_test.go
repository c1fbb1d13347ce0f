package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/apigw"
	"paidonce/shared/localaws"
	"paidonce/shared/razorpay"
)

var update = flag.Bool("update", false, "sign the sample events anew, after their bodies were changed")

// samples says of every sample event of the webhook what it is answered and which secret signed it.
var samples = map[string]struct {
	status    int
	answer    string
	signed    string // label; empty: by nobody we know
	eventType string // empty: cannot be decoded
}{
	"webhook-payment-authorized.json":      {200, first, "test_current", "payment.authorized"},
	"webhook-payment-captured.json":        {200, first, "test_current", "payment.captured"},
	"webhook-payment-captured-base64.json": {200, first, "test_current", "payment.captured"},
	"webhook-payment-failed.json":          {200, first, "test_current", "payment.failed"},
	"webhook-order-paid.json":              {200, first, "test_current", "order.paid"},
	"webhook-refund-processed.json":        {200, first, "test_current", "refund.processed"},
	"webhook-settlement-processed.json":    {200, first, "test_current", "settlement.processed"},
	"webhook-no-event-id.json":             {200, first, "test_current", "payment.captured"},
	"webhook-previous-secret.json":         {200, first, "test_previous", "payment.captured"},
	"webhook-undecodable.json":             {200, first, "test_current", ""},
	"webhook-forged.json":                  {401, unsigned, "", "payment.captured"},
}

func TestSampleEvents(t *testing.T) {
	paths, err := filepath.Glob("../../events/webhook-*.json")
	if err != nil || len(paths) != len(samples) {
		t.Fatalf("%d sample events, %d expected: %v", len(paths), len(samples), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			sample, expected := samples[filepath.Base(path)]
			if !expected {
				t.Fatal("nothing says what this sample is answered")
			}
			var r events.APIGatewayV2HTTPRequest
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			body, err := apigw.Body(r)
			if err != nil {
				t.Fatal(err)
			}
			if *update && sample.signed != "" {
				sign(t, path, text, r, body, sample.signed)
			}
			label, _ := razorpay.Verify(body, apigw.Header(r, razorpay.HeaderSignature), sampleSecrets)
			if label != sample.signed {
				t.Errorf("signed by %q, want %q (run the test with -update after changing a body)", label, sample.signed)
			}
			if notice, err := razorpay.Decode(body); notice.Type != sample.eventType || (err != nil) != (sample.eventType == "") {
				t.Errorf("says %q (%v), want %q", notice.Type, err, sample.eventType)
			}
			b := setup()
			b.gateways = map[string]gateway{"razorpay": razorpay.Webhook{
				Secrets: func(context.Context) []razorpay.Secret { return sampleSecrets },
				Refresh: func(context.Context) ([]razorpay.Secret, bool) { return nil, false },
			}}
			b.now = time.Now
			b.expect(t, r, sample.status, sample.answer)
		})
	}
}

var sampleSecrets = []razorpay.Secret{
	{Label: "test_current", Value: localaws.SampleSecrets.Webhook},
	{Label: "test_previous", Value: localaws.SampleSecrets.PreviousWebhook},
}

// sign writes the sample with the signature that its body needs.
func sign(t *testing.T, path string, text []byte, r events.APIGatewayV2HTTPRequest, body []byte, label string) {
	t.Helper()
	old := r.Headers["x-razorpay-signature"]
	for _, s := range sampleSecrets {
		if s.Label == label {
			r.Headers["x-razorpay-signature"] = razorpay.Sign(body, s.Value)
		}
	}
	signed := bytes.ReplaceAll(text, []byte(old), []byte(r.Headers["x-razorpay-signature"]))
	if err := os.WriteFile(path, signed, 0o644); err != nil {
		t.Fatal(err)
	}
}
