package razorpaytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"paidonce/shared/payment"
)

// maxAmount keeps sums of amounts far from overflowing.
const maxAmount = 1 << 59

// orderRequest is a checked request for an order.
type orderRequest struct {
	id       string // empty: made up
	amount   int64
	currency string
	receipt  *string
	notes    pairs
}

// parseOrder reads the body of POST /v1/orders, and is as strict about it as the gateway: unknown fields are refused.
func parseOrder(body []byte) (orderRequest, *refusal) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return orderRequest{}, badRequest("", "The request body is not a JSON object.")
	}
	var (
		r       orderRequest
		partial bool
		capture captureRequest
	)
	known := map[string]any{
		"amount": &r.amount, "currency": &r.currency, "receipt": &r.receipt, "notes": &r.notes,
		"partial_payment": &partial, "payment": &capture,
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		into, ok := known[name]
		if !ok {
			return orderRequest{}, unwanted(name)
		}
		if name == "notes" && string(fields[name]) == "[]" {
			continue
		}
		if json.Unmarshal(fields[name], into) != nil {
			return orderRequest{}, badRequest(name, fmt.Sprintf("The %s is of the wrong type.", name))
		}
	}
	if refused := r.check(); refused != nil {
		return orderRequest{}, refused
	}
	if _, there := fields["payment"]; there {
		if refused := capture.check(); refused != nil {
			return orderRequest{}, refused
		}
	}
	return r, nil
}

func (r orderRequest) check() *refusal {
	switch {
	case !payment.IsCurrency(r.currency):
		return badRequest("currency", "The currency is not supported.")
	case r.amount < 1 || r.currency == "INR" && r.amount < 100:
		return badRequest("amount", "The amount must be at least INR 1.00")
	case r.amount > maxAmount:
		return badRequest("amount", "Amount exceeds maximum amount allowed.")
	case slices.Contains([]string{"KWD", "BHD", "OMR"}, r.currency) && r.amount%10 != 0:
		return badRequest("amount", "The last digit of the amount must be 0 for a currency of three decimals.")
	}
	return r.checkLabels()
}

// checkLabels checks what an order is called, apart from what it costs.
func (r orderRequest) checkLabels() *refusal {
	if r.receipt != nil && utf8.RuneCountInString(*r.receipt) > 40 {
		return badRequest("receipt", "The receipt may not be greater than 40 characters.")
	}
	if len(r.notes) > 15 {
		return badRequest("notes", "Number of fields in notes should be less than or equal to 15")
	}
	for name, value := range r.notes {
		if utf8.RuneCountInString(name) > 256 || utf8.RuneCountInString(value) > 256 {
			return badRequest("notes", "A note may not be longer than 256 characters.")
		}
	}
	return nil
}

// captureRequest says when payments of an order are captured. The periods are minutes.
type captureRequest struct {
	Capture string `json:"capture"`
	Options *struct {
		Automatic   *int   `json:"automatic_expiry_period"`
		Manual      *int   `json:"manual_expiry_period"`
		RefundSpeed string `json:"refund_speed"`
	} `json:"capture_options"`
}

func (c captureRequest) check() *refusal {
	if c.Capture != "automatic" && c.Capture != "manual" {
		return badRequest("payment.capture", "The capture must be automatic or manual.")
	}
	if c.Options == nil {
		return nil
	}
	o := c.Options
	for _, period := range []*int{o.Automatic, o.Manual} {
		if period != nil && (*period < 12 || *period > 7200) {
			return badRequest("payment.capture_options", "An expiry period must be 12 to 7200 minutes.")
		}
	}
	if o.Automatic != nil && o.Manual != nil && *o.Manual < *o.Automatic {
		return badRequest("payment.capture_options", "The manual expiry period must not end before the automatic one.")
	}
	if !slices.Contains([]string{"", "normal", "optimum"}, o.RefundSpeed) {
		return badRequest("payment.capture_options", "The refund speed must be normal or optimum.")
	}
	return nil
}

func unwanted(field string) *refusal {
	return badRequest(field, field+" is/are not required and should not be sent")
}
