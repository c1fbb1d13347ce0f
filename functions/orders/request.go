package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

const (
	// maxNotes leaves room for our own among the 15 that Razorpay takes, of maxNote characters each ("Create an order").
	maxNotes = 14
	maxNote  = 256
	// ownNote is the note that we find an order of ours by.
	ownNote = "paidonce"
)

// fitOrderID is what an order id must look like: it is the gateway's receipt too, which holds 40 characters.
var fitOrderID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$`)

// request is the body of POST /orders.
type request struct {
	ID       string            `json:"id"`
	Amount   minorUnits        `json:"amount"`
	Currency string            `json:"currency"`
	Gateway  string            `json:"gateway"`
	Partial  bool              `json:"partial"`
	Notes    map[string]string `json:"notes"`
}

func (r request) money() payment.Money {
	return payment.Money{Amount: int64(r.Amount), Currency: r.Currency}
}

// minorUnits is a whole number above 0 and up to [payment.MaxAmount]; 0 if the JSON holds anything else.
type minorUnits int64

// UnmarshalJSON implements [json.Unmarshaler].
func (m *minorUnits) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n > payment.MaxAmount {
		n = 0
	}
	*m = minorUnits(n)
	return nil
}

// readRequest reads and checks the body. Errors are [*apigw.FieldError].
func readRequest(r events.APIGatewayV2HTTPRequest, gateways map[string]func(context.Context) gateway) (request, error) {
	var q request
	err := readJSON(r, &q, "id, amount, currency, gateway and perhaps partial and notes")
	if err != nil {
		return q, err
	}
	if !fitOrderID.MatchString(q.ID) {
		return q, &apigw.FieldError{Field: "id", Problem: "must be 1 to 40 letters, digits, _ . or -, and begin with a letter or digit"}
	}
	if q.Amount <= 0 {
		return q, &apigw.FieldError{Field: "amount", Problem: "must be a whole number of minor units above 0 and at most 1000000000000000"}
	}
	if !payment.IsCurrency(q.Currency) {
		return q, &apigw.FieldError{Field: "currency", Problem: "must be an ISO 4217 code in upper case"}
	}
	if _, known := gateways[q.Gateway]; !known {
		return q, &apigw.FieldError{Field: "gateway", Problem: "is not one that this deployment has"}
	}
	return q, checkNotes(q.Notes)
}

func checkNotes(notes map[string]string) error {
	if len(notes) > maxNotes {
		return &apigw.FieldError{Field: "notes", Problem: fmt.Sprintf("must be at most %d", maxNotes)}
	}
	for k, v := range notes {
		if k == ownNote {
			return &apigw.FieldError{Field: "notes", Problem: "must not have the key " + ownNote}
		}
		if k == "" || utf8.RuneCountInString(k) > maxNote || utf8.RuneCountInString(v) > maxNote {
			return &apigw.FieldError{Field: "notes", Problem: fmt.Sprintf("must have keys and values of at most %d characters", maxNote)}
		}
	}
	return nil
}

// readJSON reads the request's body, which must be one JSON object with known fields only. fields names them for the
// caller. Errors are [*apigw.FieldError].
func readJSON(r events.APIGatewayV2HTTPRequest, into any, fields string) error {
	body, err := apigw.Body(r)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) && wrong.Field != "" {
			return &apigw.FieldError{Field: wrong.Field, Problem: "must be a " + wrong.Type.String() + ", not a " + wrong.Value}
		}
		return &apigw.FieldError{Field: "body", Problem: "must be a JSON object with " + fields}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &apigw.FieldError{Field: "body", Problem: "has something after the JSON object"}
	}
	return nil
}
