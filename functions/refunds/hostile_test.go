package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/refund"
)

type failedAtOnce struct{}

func (failedAtOnce) Request(context.Context, string, refund.Ask) (refund.Answer, error) {
	return refund.Answer{New: true, Request: payment.RefundRequest{ID: "r1", Status: payment.RequestAccepted},
		Refund: payment.Refund{ID: "rfnd_1", Seen: payment.RefundStates{Failed: true}}}, nil
}

func TestHostileCreatedButFailed(t *testing.T) {
	h := &handler{refunder: failedAtOnce{}, log: logs.New(io.Discard, "ERROR"), now: time.Now}
	r, _ := h.Handle(t.Context(), events.APIGatewayV2HTTPRequest{PathParameters: map[string]string{"id": "o1"}, Body: `{"id":"r1","amount":100}`})
	if r.StatusCode == 201 {
		t.Errorf("%d %s", r.StatusCode, r.Body)
	}
}
