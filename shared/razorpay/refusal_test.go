package razorpay

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"paidonce/shared/payment"
)

// TestRefusals holds what each text of the gateway's comes to. Texts with a dot are from its documentation.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		status      int
		description string
		reason      string // of the envelope
		want        any    // a payment.RefusalReason, or an error
	}{
		{400, "The refund amount provided is greater than amount captured.", "", payment.RefusedAmount},
		{400, "The total refund amount is greater than the refund payment amount", "NA", payment.RefusedAmount},
		{400, "the REFUND amount exceeds  what is\nleft", "", payment.RefusedAmount},
		{400, "The payment has been fully refunded already.", "", payment.RefusedAlready},
		{400, "THE PAYMENT HAS BEEN FULLY REFUNDED ALREADY", "null", payment.RefusedAlready},
		{400, "This payment is already refunded", "", payment.RefusedAlready},
		{400, "The payment status should be captured for action to be taken.", "", payment.RefusedNotCaptured},
		{400, "Only payments which have been captured can be refunded", "", payment.RefusedNotCaptured},
		{400, "The payment has not been captured", "", payment.RefusedNotCaptured},
		{400, "Void is not supported for partial refunds.", "", payment.RefusedNotCaptured},
		{400, "The id provided does not exist", "input_validation_failed", payment.RefusedUnknownID},
		{400, "pay_1 is not a valid id.", "", payment.RefusedUnknownID},
		{400, "The payment_id given does not exist", "", payment.RefusedUnknownID},
		{400, "Normal refund is not possible for a payment which is more than 6 months old", "", payment.RefusedTooOld},
		{400, "Refund amount cannot be refunded for payments older than six months", "", payment.RefusedTooOld},
		{400, "Payment is too old to be refunded", "", payment.RefusedTooOld},
		{400, "Refunds are possible for 180 days", "", payment.RefusedTooOld},
		{400, "Your account does not have enough balance to carry out the refund operation.", "", payment.RefusedBalance},
		{400, "Insufficient balance", "", payment.RefusedBalance},
		{400, "Refund failed", "insufficient_funds", payment.RefusedBalance},
		{400, "Your account does not have enough credits", "", payment.RefusedBalance},
		{400, "The balance of your account is lower than the refund amount", "", payment.RefusedBalance},
		{400, "The amount must be at least INR 1.00.", "input_validation_failed", payment.RefusedOther},
		{400, "Amount cannot be blank.", "", payment.RefusedOther},
		{400, "reason is/are not required and should not be sent.", "", payment.RefusedOther},
		{400, "The refund on this payment is blocked due to ongoing dispute investigation.", "", payment.RefusedDisputed},
		{400, "Refund is currently not supported for this payment method.", "", payment.RefusedOther},
		{400, "Refunds cannot be created on your account.", "", payment.RefusedOther},
		{400, "invalid request sent", "", payment.RefusedOther},
		{400, "", "", payment.RefusedOther},
		{404, "The requested URL was not found on the server.", "", payment.RefusedOther},

		{409, "Different request with the same idempotency key has already been processed.", "NA", payment.ErrKeyUsed},
		{400, "Different request with the same idempotency key has already been processed.", "NA", payment.ErrKeyUsed},
		{400, "The idempotency key was used with a different body", "", payment.ErrKeyUsed},
		{400, "Duplicate receipt found for this refund request.", "", payment.ErrKeyUsed},
		{409, "duplicate receipt found for this refund request", "", payment.ErrKeyUsed},
		{422, "Duplicate receipt found for this refund request.", "", payment.ErrKeyUsed},
		{400, "Refund has already been processed.", "", payment.ErrKeyUsed},

		{409, "Another request with the same idempotency key is still in progress.", "", payment.ErrOutcomeUnknown},
		{409, "Another request with the same idempotency key is already in progress", "", payment.ErrOutcomeUnknown},
		{400, "Request failed because another payment operation is in progress.", "", payment.ErrOutcomeUnknown},
		{400, "A prior request is still being processed", "", payment.ErrOutcomeUnknown},
		{409, "", "", payment.ErrOutcomeUnknown},
		{409, "The payment has been fully refunded already", "", payment.ErrOutcomeUnknown},
		{400, "The idempotency record is gone", "", payment.ErrOutcomeUnknown},
		{401, "The API {key/secret} provided is invalid.", "", payment.ErrOutcomeUnknown},
		{403, "The payment has been fully refunded already", "", payment.ErrOutcomeUnknown},
		{429, "The payment has been fully refunded already", "", payment.ErrOutcomeUnknown},
		{500, "Internal server error - Failed to fetch idempotency record", "", payment.ErrOutcomeUnknown},
		{500, "Duplicate receipt found for this refund request.", "", payment.ErrOutcomeUnknown},
		{502, "The payment has been fully refunded already", "", payment.ErrOutcomeUnknown},
	} {
		client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
				"code": "BAD_REQUEST_ERROR", "description": test.description, "source": "NA", "step": "NA", "reason": test.reason, "metadata": struct{}{},
			}})
		})
		_, err := client.SendRefund(t.Context(), call1)
		var got any
		var refusal *payment.Refusal
		for _, meaning := range []error{payment.ErrKeyUsed, payment.ErrOutcomeUnknown} {
			if errors.Is(err, meaning) {
				got = meaning
			}
		}
		if errors.As(err, &refusal) {
			got = refusal.Reason
		}
		if got != test.want || errors.Is(err, payment.ErrGatewayRefused) != (refusal != nil) {
			t.Errorf("%d %q: %v, want %v", test.status, test.description, err, test.want)
		}
		if test.description != "" && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(strings.Trim(test.description, "."))) {
			t.Errorf("the error repeats the gateway's text: %v", err)
		}
		var e *Error
		if !errors.As(err, &e) || e.Description != test.description {
			t.Errorf("%d %q: the description is lost: %+v", test.status, test.description, e)
		}
	}
}

// TestRefusalsOfOthers: a refusal that the gateway itself did not write is no refusal.
func TestRefusalsOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		body    string
		refused bool
	}{
		"HTML":                       {"<html>The payment has been fully refunded already", false},
		"nothing":                    {"", false},
		"two bytes":                  {"{}", false},
		"cut off":                    {`{"error":{"code":"BAD_REQUEST_ERROR","description":"The paym`, false},
		"wrong types":                {`{"error":["BAD_REQUEST_ERROR"]}`, false},
		"text for an error":          {`{"error":"BAD_REQUEST_ERROR"}`, false},
		"no code":                    {`{"error":{"description":"The payment has been fully refunded already"}}`, false},
		"a bank's failure":           {`{"error":{"code":"GATEWAY_ERROR","description":"The payment has been fully refunded already"}}`, false},
		"the gateway's failure":      {`{"error":{"code":"SERVER_ERROR","description":"The payment has been fully refunded already"}}`, false},
		"the gateway's":              {`{"error":{"code":"BAD_REQUEST_ERROR","description":"The payment has been fully refunded already"}}`, true},
		"the gateway's other kind":   {`{"error":{"code":400,"message":"The payment has been fully refunded already","errors":[{"reason":"x"}]}}`, true},
		"the gateway's, but endless": {strings.Repeat(" ", 2*maxAnswer) + `{"error":{"code":"BAD_REQUEST_ERROR"}}`, false},
	} {
		client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			io.WriteString(w, test.body)
		})
		_, err := client.SendRefund(t.Context(), call1)
		var refusal *payment.Refusal
		if errors.As(err, &refusal) != test.refused || errors.Is(err, payment.ErrOutcomeUnknown) == test.refused {
			t.Errorf("%s: %v, refused: %t", name, err, test.refused)
		}
		if refusal != nil && refusal.Reason != payment.RefusedAlready {
			t.Errorf("%s: reason %s", name, refusal.Reason)
		}
	}
}
