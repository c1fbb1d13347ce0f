package main

import (
	"context"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/advance"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// close releases the order's stock: money that covers it after this is held, and never fulfils it by itself. The second
// time it does nothing. [apigw.ErrFulfilled] if the goods are gone.
func (h *handler) close(ctx context.Context, id string, r events.APIGatewayV2HTTPRequest) (payment.Order, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := apigw.ReadJSON(r, &body, "a reason"); err != nil {
		return payment.Order{}, err
	}
	if err := apigw.CheckWords("reason", body.Reason); err != nil {
		return payment.Order{}, err
	}
	order, err := h.learn(ctx, id, payment.ClosedFact{Reason: body.Reason, At: h.now()})
	if err == nil && order.ClosedAt.IsZero() {
		err = apigw.ErrFulfilled
	}
	return order, err
}

// acknowledge lets a hold pass: those of the reason that stand now, or the one about the subject. If nothing else blocks
// the order it is fulfilled at once. [payment.ErrNotFound] if there is no such hold, [apigw.ErrHoldChanged] if it is not the
// one of the given detail any more.
func (h *handler) acknowledge(ctx context.Context, id string, reason payment.HoldReason, r events.APIGatewayV2HTTPRequest) (payment.Order, error) {
	var body struct {
		By      string  `json:"by"`
		Why     string  `json:"why"`
		Subject *string `json:"subject"`
		Detail  *string `json:"detail"`
	}
	if err := apigw.ReadJSON(r, &body, "by, why and perhaps subject and detail"); err != nil {
		return payment.Order{}, err
	}
	if err := apigw.CheckWords("by", body.By); err != nil {
		return payment.Order{}, err
	}
	if err := apigw.CheckWords("why", body.Why); err != nil {
		return payment.Order{}, err
	}
	order, err := h.store.Order(ctx, id)
	if err != nil {
		return payment.Order{}, err
	}
	var facts []payment.Fact
	for _, hold := range order.Derive(h.advancer.Rules).Holds {
		if hold.Reason == reason && (body.Subject == nil || hold.Subject == *body.Subject) {
			if body.Detail != nil && hold.Detail != *body.Detail {
				return payment.Order{}, apigw.ErrHoldChanged
			}
			facts = append(facts, payment.AcknowledgedFact{
				Hold: hold.HoldKey, Detail: hold.Detail, By: body.By, Why: body.Why, At: h.now(),
			})
		}
	}
	if len(facts) == 0 {
		return payment.Order{}, payment.ErrNotFound
	}
	return h.learn(ctx, id, facts...)
}

// learn takes what a person says through the same function as what the gateway says.
func (h *handler) learn(ctx context.Context, id string, facts ...payment.Fact) (payment.Order, error) {
	result, err := h.advancer.Apply(ctx, id, advance.Step{Source: payment.SourceAPI, Facts: facts})
	return result.Order, err
}

func (h *handler) timeline(ctx context.Context, id string) (events.APIGatewayV2HTTPResponse, error) {
	order, err := h.store.Order(ctx, id)
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	history, err := h.store.History(ctx, id)
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	return apigw.JSON(http.StatusOK, apigw.ShowTimeline(order, history, h.advancer.Rules)), nil
}
