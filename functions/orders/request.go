package main

import (
	"context"
	"fmt"
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

// request is the body of POST /orders.
type request struct {
	ID       string            `json:"id"`
	Amount   apigw.MinorUnits  `json:"amount"`
	Currency string            `json:"currency"`
	Gateway  string            `json:"gateway"`
	Partial  bool              `json:"partial"`
	Notes    map[string]string `json:"notes"`
}

func (r request) money() payment.Money {
	return payment.Money{Amount: int64(r.Amount), Currency: r.Currency}
}

// readRequest reads and checks the body. Errors are [*apigw.FieldError].
func readRequest(r events.APIGatewayV2HTTPRequest, gateways map[string]func(context.Context) gateway) (request, error) {
	var q request
	err := apigw.ReadJSON(r, &q, "id, amount, currency, gateway and perhaps partial and notes")
	if err != nil {
		return q, err
	}
	if !apigw.IsID(q.ID) {
		return q, &apigw.FieldError{Field: "id", Problem: apigw.IDForm}
	}
	if q.Amount <= 0 {
		return q, &apigw.FieldError{Field: "amount", Problem: apigw.AmountForm}
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
