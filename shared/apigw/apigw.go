// Package apigw speaks the HTTP API's payload format 2.0: the raw bytes of a request, headers without case, JSON
// replies, and the one table that turns an error into a status.
package apigw

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/payment"
)

// Body returns the bytes of the request as they arrived. API Gateway sends some content types in base64; which ones
// is its own affair, so that only the flag counts (AWS, "Working with AWS Lambda proxy integrations for HTTP APIs").
func Body(r events.APIGatewayV2HTTPRequest) ([]byte, error) {
	if !r.IsBase64Encoded {
		return []byte(r.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(r.Body)
	if err != nil {
		return nil, &FieldError{Field: "body", Problem: "is not base64, though marked so"}
	}
	return body, nil
}

// Header returns a header's value whatever the case of its name: API Gateway lower-cases names, `sam local start-api`
// does not. Of several spellings the one in lower case counts, else the last in byte order. Empty if there is none.
func Header(r events.APIGatewayV2HTTPRequest, name string) string {
	var found string
	for spelling := range r.Headers {
		if strings.EqualFold(spelling, name) {
			found = max(found, spelling) // small letters come after capitals
		}
	}
	return r.Headers[found]
}

// JSON replies with v as JSON.
func JSON(status int, v any) events.APIGatewayV2HTTPResponse {
	body, err := json.Marshal(v)
	if err != nil { // v is always a value of ours; a failure is a mistake in it
		status, body = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
	}
	return events.APIGatewayV2HTTPResponse{
		StatusCode: status,
		Headers:    map[string]string{"content-type": "application/json; charset=utf-8", "cache-control": "no-store"},
		Body:       string(body),
	}
}

// FieldError is a request that the caller can mend: which field is wrong and what is wrong with it.
type FieldError struct {
	Field   string
	Problem string // goes to the caller: "is missing", "must be a whole number above 0"
}

func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

// What a handler answers beside what a store does.
var (
	ErrBadSignature   = errors.New("bad signature")
	ErrTooLarge       = errors.New("body too large")
	ErrUnknownGateway = errors.New("unknown gateway")
	ErrDifferentOrder = errors.New("the id belongs to another order")
	ErrFulfilled      = errors.New("fulfilled")
	ErrClosed         = errors.New("closed")
	ErrHoldChanged    = errors.New("the hold has changed")
	ErrNoRoute        = errors.New("no such route")
)

// statuses is the one table from error to HTTP status. What is not in it is 500 and says nothing of its cause.
var statuses = []struct {
	err    error
	status int
}{
	{ErrBadSignature, http.StatusUnauthorized},
	{ErrUnknownGateway, http.StatusNotFound},
	{ErrNoRoute, http.StatusNotFound},
	{payment.ErrNotFound, http.StatusNotFound},
	{ErrDifferentOrder, http.StatusConflict},
	{ErrFulfilled, http.StatusConflict},
	{ErrClosed, http.StatusConflict},
	{ErrHoldChanged, http.StatusConflict},
	{payment.ErrDifferentRefund, http.StatusConflict},
	{payment.ErrDisputed, http.StatusConflict},
	{payment.ErrBeyondRefundable, http.StatusUnprocessableEntity},
	{payment.ErrPaymentNeeded, http.StatusUnprocessableEntity},
	{ErrTooLarge, http.StatusRequestEntityTooLarge},
	{payment.ErrGatewayRefused, http.StatusBadGateway},
	{payment.ErrOutcomeUnknown, http.StatusServiceUnavailable},
	{payment.ErrVersionConflict, http.StatusServiceUnavailable},
}

// Error replies with {"error": ...} and, for a [FieldError], {"field": ...}, for a [payment.Refusal] {"reason": ...}. Only messages of the table above reach
// the caller, never the text around them.
func Error(err error) events.APIGatewayV2HTTPResponse {
	if field := new(FieldError); errors.As(err, &field) {
		return JSON(http.StatusBadRequest, map[string]string{"error": field.Error(), "field": field.Field})
	}
	if refused := new(payment.Refusal); errors.As(err, &refused) {
		return JSON(refusedStatus(refused.Reason), refusal(refused))
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return JSON(s.status, map[string]string{"error": s.err.Error()})
		}
	}
	return JSON(http.StatusInternalServerError, map[string]string{"error": "internal error"})
}
