package main

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/apigw"
)

// maxBody is far above what a checkout sends: three short fields, or a failure with its description.
const maxBody = 64 << 10

var (
	// fitOrderID is what an order id looks like, of the shop's own orders and of adopted ones.
	fitOrderID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)
	// fitPaymentID is what a payment id looks like. It comes from the browser and becomes part of a key and of a URL.
	fitPaymentID = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
)

// callback is what the checkout says through the browser. Its order id is left alone: it is the browser's word.
type callback struct {
	paymentID string // empty unless there is one that looks like one
	signature string // empty unless there is one
	failed    bool   // it tells of a failure, and brings no signature
}

// readCallback reads the body, whose fields are named as Razorpay names them. A field that comes twice is none: two
// readers could take two different ones. Errors are those of [apigw.Fields].
func readCallback(r events.APIGatewayV2HTTPRequest) (callback, error) {
	fields, err := apigw.Fields(r, maxBody)
	if err != nil {
		return callback{}, err
	}
	c := callback{paymentID: fit(fitPaymentID, only(fields, "razorpay_payment_id")), signature: only(fields, "razorpay_signature")}
	for name := range fields { // "error[code]" in a form, "error" in JSON
		if !fields.Has("razorpay_signature") && (name == "error" || strings.HasPrefix(name, "error[")) {
			c.failed = true
		}
	}
	return c, nil
}

func only(fields url.Values, name string) string {
	if values := fields[name]; len(values) == 1 {
		return values[0]
	}
	return ""
}

func fit(shape *regexp.Regexp, id string) string {
	if shape.MatchString(id) {
		return id
	}
	return ""
}
