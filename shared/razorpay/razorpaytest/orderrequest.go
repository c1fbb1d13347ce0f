package razorpaytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
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

	manualExpiry time.Duration // 0: not said
	refundSpeed  string        // empty: not said
}

// parseOrder reads the body of POST /v1/orders, and is as strict about it as the gateway: unknown fields are refused.
func parseOrder(body []byte) (orderRequest, *refusal) {
	var (
		r       orderRequest
		partial bool
		capture captureRequest
	)
	fields, refused := parseFields(body, map[string]any{
		"amount": &r.amount, "currency": &r.currency, "receipt": &r.receipt, "notes": &r.notes,
		"partial_payment": &partial, "payment": &capture,
	})
	if refused != nil {
		return orderRequest{}, refused
	}
	if refused := r.check(); refused != nil {
		return orderRequest{}, refused
	}
	if _, there := fields["payment"]; there {
		if refused := capture.check(); refused != nil {
			return orderRequest{}, refused
		}
		if o := capture.Options; o != nil {
			r.manualExpiry, r.refundSpeed = time.Duration(value(o.Manual, 0))*time.Minute, o.RefundSpeed
		}
	}
	return r, nil
}

// parseFields reads a JSON object into variables by their names, and returns the fields that were there.
func parseFields(body []byte, into map[string]any) (map[string]json.RawMessage, *refusal) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, badRequest("", "The request body is not a JSON object.")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		variable, ok := into[name]
		switch {
		case !ok:
			return nil, unwanted(name)
		case json.Unmarshal(fields[name], variable) == nil:
		case name == "amount":
			return nil, badRequest(name, "The amount must be an integer.")
		default:
			return nil, badRequest(name, fmt.Sprintf("The %s is of the wrong type.", name))
		}
	}
	return fields, nil
}

func (r orderRequest) check() *refusal {
	if !payment.IsCurrency(r.currency) {
		return badRequest("currency", "The currency is not supported.")
	}
	if refused := checkAmount(r.amount, r.currency); refused != nil {
		return refused
	}
	return checkLabels(r.receipt, r.notes)
}

// checkAmount checks the amount of an order or a refund.
func checkAmount(amount int64, currency string) *refusal {
	switch {
	case amount < 1 || currency == "INR" && amount < 100:
		return badRequest("amount", "The amount must be at least INR 1.00")
	case amount > maxAmount:
		return badRequest("amount", "Amount exceeds maximum amount allowed.")
	case slices.Contains([]string{"KWD", "BHD", "OMR"}, currency) && amount%10 != 0:
		return badRequest("amount", "The last digit of the amount must be 0 for a currency of three decimals.")
	}
	return nil
}

// checkLabels checks what an order or a refund is called, apart from its amount.
func checkLabels(receipt *string, notes pairs) *refusal {
	if receipt != nil && utf8.RuneCountInString(*receipt) > 40 {
		return badRequest("receipt", "The receipt may not be greater than 40 characters.")
	}
	if len(notes) > 15 {
		return badRequest("notes", "Number of fields in notes should be less than or equal to 15")
	}
	for name, value := range notes {
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
