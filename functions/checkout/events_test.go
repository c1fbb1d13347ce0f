package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/localaws"
	"paidonce/shared/razorpay"
)

var update = flag.Bool("update", false, "sign the sample events anew, after their bodies were changed")

const (
	sampleOrder   = "order_Sample0Order01"
	samplePayment = "pay_Sample0Paymt01"
)

// samples says of every sample event what it is answered and whether it is signed.
var samples = map[string]struct {
	status int
	answer string
	signed bool
}{
	"checkout-form.json":    {303, shopPage + "?order=sample-1&status=paid", true},
	"checkout-json.json":    {200, `{"order":"sample-1","status":"paid","amount":49900}`, true},
	"checkout-failure.json": {303, shopPage + "?order=sample-1&status=pending", false},
}

// TestSampleEvents goes through the client that calls the gateway, with the local stack's key.
func TestSampleEvents(t *testing.T) {
	paths, err := filepath.Glob("../../events/checkout-*.json")
	if err != nil || len(paths) != len(samples) {
		t.Fatalf("%d sample events, %d expected: %v", len(paths), len(samples), err)
	}
	client := sampleClient(t)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			sample, expected := samples[filepath.Base(path)]
			if !expected {
				t.Fatal("nothing says what this sample is answered")
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if *update && sample.signed {
				text = sign(t, path, text)
			}
			var r events.APIGatewayV2HTTPRequest
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprint(len(r.Body)); r.Headers["content-length"] != want {
				t.Errorf("content-length is %s, want %s", r.Headers["content-length"], want)
			}
			b := setup(t)
			b.order(t, "sample-1", sampleOrder, nil)
			b.gateways["razorpay"] = access{
				current: func(context.Context) gateway { return client },
				refresh: func(context.Context) (gateway, bool) { return client, false },
			}
			b.expect(t, r, sample.status, sample.answer)
			b.checker.Check(t, "sample-1")
		})
	}
}

// sampleClient calls a gateway that has the sample payment.
func sampleClient(t *testing.T) *razorpay.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/payments/"+samplePayment {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"id":%q,"entity":"payment","amount":49900,"currency":"INR","status":"captured","order_id":%q,`+
			`"captured":true,"amount_refunded":0,"email":"buyer@example.com","created_at":1796032800}`, samplePayment, sampleOrder)
	}))
	t.Cleanup(server.Close)
	document := fmt.Sprintf(`{"key_id":%q,"key_secret":%q}`, localaws.SampleSecrets.KeyID, localaws.SampleSecrets.KeySecret)
	client, err := razorpay.ParseClient(server.URL)([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// sign writes the sample with the signature that it needs, and returns it.
func sign(t *testing.T, path string, text []byte) []byte {
	t.Helper()
	var r events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	c, err := readCallback(r)
	if err != nil {
		t.Fatal(err)
	}
	signature := razorpay.SignCheckout(sampleOrder, c.paymentID, localaws.SampleSecrets.KeySecret)
	text = bytes.ReplaceAll(text, []byte(c.signature), []byte(signature))
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return text
}
