package apigw_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

func TestBody(t *testing.T) {
	for _, c := range []struct {
		name    string
		body    string
		encoded bool
		want    string
		wantErr bool
	}{
		{"as it is", `{"₹":"\u0026"}` + "\n", false, `{"₹":"\u0026"}` + "\n", false},
		{"what looks like base64 without the flag", "e30=", false, "e30=", false},
		{"base64", "eyLigrkiOiAxfQo=", true, `{"₹": 1}` + "\n", false},
		{"bytes that are no text", "/wD+", true, "\xff\x00\xfe", false},
		{"none", "", false, "", false},
		{"none, in base64", "", true, "", false},
		{"JSON with the flag", `{"id":"o1"}`, true, "", true},
		{"base64 cut short", "e30", true, "", true},
		{"base64 for URLs", "_wD-", true, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := apigw.Body(events.APIGatewayV2HTTPRequest{Body: c.body, IsBase64Encoded: c.encoded})
			if string(got) != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if field := new(apigw.FieldError); errors.As(err, &field) != c.wantErr || err != nil && field.Field != "body" {
				t.Errorf("got error %v, want one of the body: %t", err, c.wantErr)
			}
		})
	}
}

func TestHeader(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers map[string]string
		ask     string
		want    string
	}{
		{"lower case, as API Gateway sends", map[string]string{"x-razorpay-signature": "ab"}, "X-Razorpay-Signature", "ab"},
		{"mixed case, as sam local sends", map[string]string{"X-Razorpay-Signature": "ab"}, "x-razorpay-signature", "ab"},
		{"upper case", map[string]string{"X-RAZORPAY-SIGNATURE": "ab"}, "X-Razorpay-Signature", "ab"},
		{"none", map[string]string{"x-razorpay-event-id": "e"}, "X-Razorpay-Signature", ""},
		{"no headers at all", nil, "X-Razorpay-Signature", ""},
		{"a longer name", map[string]string{"x-razorpay-signature-2": "ab"}, "X-Razorpay-Signature", ""},
		{"the value stays as it is", map[string]string{"X-ID": " Ab,Cd "}, "x-id", " Ab,Cd "},
		{"lower case before others", map[string]string{"X-ID": "1", "X-Id": "2", "x-id": "3", "x-ID": "4"}, "X-ID", "3"},
		{"lower case before others, though empty", map[string]string{"X-ID": "1", "x-id": ""}, "X-ID", ""},
		{"several spellings, none in lower case", map[string]string{"X-ID": "1", "X-Id": "2"}, "x-id", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 20 { // maps are walked in another order each time
				if got := apigw.Header(events.APIGatewayV2HTTPRequest{Headers: c.headers}, c.ask); got != c.want {
					t.Fatalf("got %q, want %q", got, c.want)
				}
			}
		})
	}
}

var jsonHeaders = map[string]string{"content-type": "application/json; charset=utf-8", "cache-control": "no-store"}

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		v      any
		want   events.APIGatewayV2HTTPResponse
	}{
		{"an object", 201, map[string]any{"received": true}, events.APIGatewayV2HTTPResponse{StatusCode: 201, Headers: jsonHeaders, Body: `{"received":true}`}},
		{"an amount beyond 2^53", 200, int64(9007199254740993), events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: jsonHeaders, Body: `9007199254740993`}},
		{"what JSON cannot say", 200, func() {}, events.APIGatewayV2HTTPResponse{StatusCode: 500, Headers: jsonHeaders, Body: `{"error":"internal error"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, apigw.JSON(c.status, c.v)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestError(t *testing.T) {
	const internal = "internal error"
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{apigw.ErrBadSignature, http.StatusUnauthorized, "bad signature"},
		{apigw.ErrUnknownGateway, http.StatusNotFound, "unknown gateway"},
		{apigw.ErrNoRoute, http.StatusNotFound, "no such route"},
		{apigw.ErrDifferentOrder, http.StatusConflict, "the id belongs to another order"},
		{apigw.ErrTooLarge, http.StatusRequestEntityTooLarge, "body too large"},
		{payment.ErrNotFound, http.StatusNotFound, "not found"},
		{payment.ErrGatewayRefused, http.StatusBadGateway, "the gateway refused"},
		{payment.ErrOutcomeUnknown, http.StatusServiceUnavailable, "outcome unknown"},
		{payment.ErrVersionConflict, http.StatusServiceUnavailable, "order was changed by somebody else"},
		{payment.ErrEventExists, http.StatusInternalServerError, internal},
		{payment.ErrEventApplied, http.StatusInternalServerError, internal},
		{payment.ErrOrderExists, http.StatusInternalServerError, internal},
		{payment.ErrEffectConflict, http.StatusInternalServerError, internal},
		{payment.ErrEventTooLarge, http.StatusInternalServerError, internal},
		{payment.ErrNewerVersion, http.StatusInternalServerError, internal},
		{&payment.CorrectionError{}, http.StatusInternalServerError, internal},
		{errors.New("AccessDenied: arn:aws:iam::123456789012:role/leaked"), http.StatusInternalServerError, internal},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			body, err := json.Marshal(map[string]string{"error": c.says})
			if err != nil {
				t.Fatal(err)
			}
			want := events.APIGatewayV2HTTPResponse{StatusCode: c.status, Headers: jsonHeaders, Body: string(body)}
			for _, err := range []error{
				c.err,
				fmt.Errorf("dynamo: read order leaked: %w", c.err),
				errors.Join(errors.New("leaked"), fmt.Errorf("leaked: %w", c.err)),
			} {
				if diff := cmp.Diff(want, apigw.Error(err)); diff != "" {
					t.Errorf("%v: (-want +got)\n%s", err, diff)
				}
			}
		})
	}
}

func TestErrorOfAField(t *testing.T) {
	field := &apigw.FieldError{Field: "amount", Problem: "must be a whole number above 0"}
	want := events.APIGatewayV2HTTPResponse{
		StatusCode: http.StatusBadRequest, Headers: jsonHeaders,
		Body: `{"error":"amount must be a whole number above 0","field":"amount"}`,
	}
	for _, err := range []error{field, fmt.Errorf("orders: read the request: %w", field)} {
		if diff := cmp.Diff(want, apigw.Error(err)); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", err, diff)
		}
	}
}
