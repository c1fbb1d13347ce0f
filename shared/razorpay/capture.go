package razorpay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"paidonce/shared/payment"
)

// alreadyCaptured matches the refusal of a payment that is captured (seen as "This payment has already been captured").
var alreadyCaptured = regexp.MustCompile(`(?i)already (been )?captured`)

// Capture takes the money of an authorized payment, all of it (Razorpay, "Capture a payment"), and returns the payment as
// the gateway shows it. After every answer but a plain success the payment is read, and if it is captured, whoever did
// it, that is a success. A payment that was captured and refunded since counts as captured.
//
// Errors wrap [payment.ErrGatewayRefused] if the gateway refused and the payment is not captured; otherwise
// [payment.ErrOutcomeUnknown]. Calling it again is safe: the gateway captures a payment once.
func (c *Client) Capture(ctx context.Context, paymentID string, amount payment.Money) (payment.PaymentFact, error) {
	op := "capture payment " + shown(paymentID)
	if !word(paymentID) {
		return payment.PaymentFact{}, callError(op, payment.ErrGatewayRefused, errNoID)
	}
	if err := checkAmount(amount); err != nil {
		return payment.PaymentFact{}, callError(op, payment.ErrGatewayRefused, err)
	}
	fact, err := c.sendCapture(ctx, paymentID, amount)
	if err == nil {
		return fact, nil
	}
	fact, readErr := c.readPayment(ctx, paymentID)
	switch {
	case readErr == nil && captured(fact):
		return fact, nil
	case readErr != nil && !missing(readErr):
		return payment.PaymentFact{}, callError(op, payment.ErrOutcomeUnknown, fmt.Errorf("%w; and then its reading: %v", err, readErr))
	case saysCaptured(err): // and what was read is older than that
		return payment.PaymentFact{}, callError(op, payment.ErrOutcomeUnknown, err)
	}
	return payment.PaymentFact{}, writeError(op, err)
}

// sendCapture fails unless the answer is that the very payment is captured with the very amount.
func (c *Client) sendCapture(ctx context.Context, paymentID string, amount payment.Money) (payment.PaymentFact, error) {
	body, err := json.Marshal(struct {
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
	}{amount.Amount, amount.Currency})
	if err != nil {
		return payment.PaymentFact{}, err
	}
	var answer paymentEntity
	if err := c.post(ctx, request{path: "payments/" + paymentID + "/capture", body: body}, &answer); err != nil {
		return payment.PaymentFact{}, err
	}
	fact, err := decoded(answer.confirmed)
	switch {
	case err != nil:
		return payment.PaymentFact{}, err
	case fact.ID != paymentID:
		return payment.PaymentFact{}, errOther
	case !captured(fact) || fact.Amount != amount:
		return payment.PaymentFact{}, errors.New("the answer does not show it captured with this amount")
	}
	return fact, nil
}

// captured reports whether money was taken, whatever became of it.
func captured(f payment.PaymentFact) bool {
	return f.Status == payment.PaymentCaptured || f.Status == payment.PaymentRefunded && f.Captured
}

func saysCaptured(err error) bool {
	var e *Error
	return errors.As(err, &e) && alreadyCaptured.MatchString(e.Description)
}
