package dev

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/view"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

// attempt is something that a customer may do at the gateway.
type attempt struct {
	payments  []string // how far each gets: the gateway's statuses
	comesBack bool     // the browser does, with the form that the gateway gives it
	said      string   // what happened, for the person who clicked; %s are the payments
}

// attempts are the customer's buttons.
var attempts = map[string]attempt{
	"pay": {[]string{"captured"}, true,
		"The gateway captured %s, sends its webhooks, and gave your browser a signed form for the shop."},
	"fail": {[]string{"failed"}, true,
		"The bank refused %s: the gateway sends payment.failed, and your browser comes back with the failure, which nobody signs."},
	"pay-twice": {[]string{"captured", "captured"}, true,
		"Two attempts raced, and the gateway captured both: %s and %s. It sends webhooks of both; your browser comes back with the first."},
	"close-tab": {[]string{"captured"}, false,
		"The gateway captured %s, and the tab was closed before the browser could come back: only the webhooks tell the shop."},
	"authorize": {[]string{"authorized"}, true,
		"The bank reserved the money of %s, but the gateway has not captured it: nothing is paid yet."},
}

// attempted is what became of an attempt.
type attempted struct {
	Said     string    `json:"said"`
	Callback *callback `json:"callback"` // null: the browser does not come back
}

// callback is the form with which the gateway sends the browser back.
type callback struct {
	Action string            `json:"action"` // of the application
	Fields map[string]string `json:"fields"`
}

func (s *shop) attempt(r *http.Request) (any, error) {
	var body struct {
		Attempt string `json:"attempt"`
	}
	id, err := orderOf(r)
	if err != nil {
		return nil, err
	}
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	a, known := attempts[body.Attempt]
	if !known {
		return nil, badRequest("an attempt is one of " + strings.Join(slices.Sorted(maps.Keys(attempts)), ", "))
	}
	o, err := s.api.Order(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if o.GatewayOrderID == nil {
		return nil, badRequest("the gateway does not have the order yet")
	}
	var ids []any
	for _, status := range a.payments {
		paymentID, err := s.gateway.Pay(razorpaytest.PaymentRequest{OrderID: *o.GatewayOrderID, Amount: o.Amount, Status: status})
		if err != nil {
			return nil, err
		}
		ids = append(ids, paymentID)
	}
	done := attempted{Said: fmt.Sprintf(a.said, ids...)}
	if a.comesBack {
		fields, err := s.gateway.Checkout(ids[0].(string))
		if err != nil {
			return nil, err
		}
		done.Callback = &callback{Action: checkoutURL(s.api.URL, id), Fields: map[string]string{}}
		for name := range fields {
			done.Callback.Fields[name] = fields.Get(name)
		}
	}
	return done, nil
}

// checkoutURL is where the gateway sends the browser of an order's customer.
func checkoutURL(apiURL, orderID string) string {
	return apiURL + "/checkout/razorpay/" + url.PathEscape(orderID)
}

// refund gives back an amount of one payment, or without an amount all that is left of all of them. The page makes a new
// id for each click, so that a call that is repeated gives nothing back twice.
func (s *shop) refund(r *http.Request) (any, error) {
	var body struct {
		ID     string `json:"id"`
		Amount *int64 `json:"amount"`
	}
	orderID, err := orderOf(r)
	if err != nil {
		return nil, err
	}
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if !apigw.IsID(body.ID) || len(body.ID) > 36 { // some are numbered
		return nil, badRequest("a refund needs an id of at most 36 letters, digits or hyphens")
	}
	o, err := s.api.Order(r.Context(), orderID)
	if err != nil {
		return nil, err
	}
	var asks []stack.RefundAsk
	if body.Amount != nil {
		asks = []stack.RefundAsk{{ID: body.ID, Amount: *body.Amount, PaymentID: paymentToRefund(o, *body.Amount)}}
	} else {
		for i, p := range o.Payments {
			if left := leftOf(o, p); left > 0 {
				asks = append(asks, stack.RefundAsk{ID: fmt.Sprint(body.ID, "-", i), Amount: left, PaymentID: p.ID})
			}
		}
	}
	if len(asks) == 0 {
		return nil, badRequest("nothing is left to refund")
	}
	said, err := s.refundAll(r.Context(), orderID, asks)
	return map[string]string{"said": said}, err
}

func (s *shop) refundAll(ctx context.Context, orderID string, asks []stack.RefundAsk) (said string, err error) {
	var sentences []string
	for _, ask := range asks {
		made, _, err := s.api.Refund(ctx, orderID, ask)
		if err != nil {
			return "", err
		}
		amount := rupees(made.Amount)
		sentence := fmt.Sprintf("The shop asked for %s of %s back, and cannot know yet whether the gateway has it.", amount, made.PaymentID)
		if made.RefundID != nil {
			sentence = fmt.Sprintf("The shop asked for %s of %s back, and the gateway made %s: %s.", amount, made.PaymentID, *made.RefundID, made.Status)
		}
		sentences = append(sentences, sentence)
	}
	return strings.Join(sentences, " "), nil
}

// paymentToRefund is the payment of which an amount goes back: one that is too many, or else the first of which so much is
// left. Empty: there is none, and the application says so best.
func paymentToRefund(o apigw.Order, amount int64) string {
	found := ""
	for _, p := range o.Payments {
		if leftOf(o, p) < amount {
			continue
		}
		if view.HasHold(o, payment.HoldKey{Reason: payment.HoldSurplus, Subject: p.ID}) {
			return p.ID
		}
		if found == "" {
			found = p.ID
		}
	}
	return found
}

// leftOf is what may still be refunded of a payment, as far as the order shows.
func leftOf(o apigw.Order, p apigw.Payment) int64 {
	if !p.Captured {
		return 0
	}
	left := p.Amount
	for _, f := range o.Refunds {
		if f.PaymentID == p.ID && f.Status != payment.RefundFailed {
			left -= f.Amount
		}
	}
	return max(0, left)
}

func rupees(paise int64) string {
	return "₹" + strings.TrimSuffix(payment.Money{Amount: paise, Currency: "INR"}.String(), " INR")
}
