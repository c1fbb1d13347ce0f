package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/apigw"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/refund"
)

// refunder makes refunds; see [refund.Refunder].
type refunder interface {
	Request(ctx context.Context, orderID string, a refund.Ask) (refund.Answer, error)
}

type handler struct {
	refunder refunder
	log      *slog.Logger
	now      func() time.Time
}

// Handle serves POST /orders/{id}/refunds. Who may call it is API Gateway's affair (AWS_IAM).
func (h *handler) Handle(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	began := h.now()
	var answer refund.Answer
	var response events.APIGatewayV2HTTPResponse
	orderID, err := apigw.OrderID(r)
	if err == nil {
		answer, response, err = h.refund(ctx, orderID, r)
	}
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("route", r.RouteKey), slog.String("order", orderID), slog.String("refund_request", answer.Request.ID),
		slog.String("payment", answer.Request.PaymentID), slog.String("refund", answer.Refund.ID),
		slog.String("outcome", outcome(answer)), slog.String("request_id", r.RequestContext.RequestID),
	}
	if err != nil {
		response = apigw.Error(err)
		level = slog.LevelWarn
		if response.StatusCode >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		attributes = append(attributes, slog.String("error", err.Error()))
	}
	h.log.LogAttrs(ctx, level, "refund", append(attributes, slog.Int("status", response.StatusCode), slog.Int64("took_ms", h.now().Sub(began).Milliseconds()))...)
	return response, nil
}

// refund answers 201 for a refund that this call made, 200 for one that was made before, and 202 where the gateway's word is
// not known yet: call again, or let reconcile find out. What the gateway refused for good is an error.
func (h *handler) refund(ctx context.Context, orderID string, r events.APIGatewayV2HTTPRequest) (refund.Answer, events.APIGatewayV2HTTPResponse, error) {
	none := events.APIGatewayV2HTTPResponse{}
	ask, err := readAsk(r)
	if err != nil {
		return refund.Answer{}, none, err
	}
	answer, err := h.refunder.Request(logs.With(ctx, slog.String("order", orderID)), orderID, ask)
	if err != nil {
		answer.Request.ID, answer.Request.PaymentID = ask.ID, ask.PaymentID // for the log
		return answer, none, err
	}
	status := http.StatusOK
	switch {
	case answer.Refund.ID != "" && answer.New && answer.Refund.Status() != payment.RefundFailed:
		status = http.StatusCreated
	case answer.Refund.ID != "":
	case answer.Request.Status == payment.RequestFailed:
		return answer, none, &payment.Refusal{Reason: payment.RefusalReason(answer.Request.Refusal)}
	default:
		status = http.StatusAccepted
	}
	return answer, apigw.JSON(status, apigw.ShowRefundRequest(answer.Request, answer.Refund)), nil
}

// outcome is what the log says of the request.
func outcome(a refund.Answer) string {
	switch {
	case a.Refund.ID != "":
		return string(a.Refund.Status())
	case a.Request.Refusal != "":
		return "failed: " + a.Request.Refusal
	}
	return string(a.Request.Status)
}

// readAsk reads and checks the body. Errors are [*apigw.FieldError].
func readAsk(r events.APIGatewayV2HTTPRequest) (refund.Ask, error) {
	var body struct {
		ID        string           `json:"id"`
		Amount    apigw.MinorUnits `json:"amount"`
		PaymentID string           `json:"payment_id"`
		Reason    string           `json:"reason"`
		Force     bool             `json:"force"`
	}
	if err := apigw.ReadJSON(r, &body, "id, amount and perhaps payment_id, reason and force"); err != nil {
		return refund.Ask{}, err
	}
	switch {
	case !apigw.IsID(body.ID):
		return refund.Ask{}, &apigw.FieldError{Field: "id", Problem: apigw.IDForm}
	case body.Amount <= 0:
		return refund.Ask{}, &apigw.FieldError{Field: "amount", Problem: apigw.AmountForm}
	case body.PaymentID != "" && !apigw.IsID(body.PaymentID):
		return refund.Ask{}, &apigw.FieldError{Field: "payment_id", Problem: "is not the id of a payment"}
	}
	if err := apigw.CheckLength("reason", body.Reason); err != nil {
		return refund.Ask{}, err
	}
	return refund.Ask{ID: body.ID, PaymentID: body.PaymentID, Amount: int64(body.Amount), Reason: body.Reason, Force: body.Force}, nil
}
