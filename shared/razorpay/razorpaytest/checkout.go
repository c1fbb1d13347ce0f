package razorpaytest

import (
	"encoding/json"
	"net/url"

	"paidonce/shared/razorpay"
)

// Checkout returns the form that the checkout makes the customer's browser post to the merchant's callback URL. For a
// payment that is authorized or captured, or was until it was refunded, it is razorpay_payment_id and, if it is of an
// order, razorpay_order_id and razorpay_signature. For a failed one it is error[code], error[description],
// error[source], error[step], error[reason] and error[metadata], a JSON object with payment_id and order_id. While the
// customer is still at it there is none, and an error is returned.
func (g *Gateway) Checkout(paymentID string) (url.Values, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.payments.get(paymentID)
	if p == nil {
		return nil, errNoSuchID
	}
	switch p.Status {
	case created:
		return nil, badRequest("status", "The payment has neither succeeded nor failed.")
	case failed:
		metadata, err := json.Marshal(struct {
			PaymentID string  `json:"payment_id"`
			OrderID   *string `json:"order_id,omitempty"`
		}{p.ID, p.OrderID})
		if err != nil {
			return nil, err
		}
		return url.Values{
			"error[code]": {*p.ErrorCode}, "error[description]": {*p.ErrorDescription}, "error[source]": {*p.ErrorSource},
			"error[step]": {*p.ErrorStep}, "error[reason]": {*p.ErrorReason}, "error[metadata]": {string(metadata)},
		}, nil
	}
	fields := url.Values{"razorpay_payment_id": {p.ID}}
	if p.OrderID != nil {
		fields.Set("razorpay_order_id", *p.OrderID)
		fields.Set("razorpay_signature", razorpay.SignCheckout(*p.OrderID, p.ID, g.config.KeySecret))
	}
	return fields, nil
}
