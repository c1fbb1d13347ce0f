package apigw

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/payment"
)

// ReadJSON reads the request's body, which must be one JSON object with known fields only. fields names them for the
// caller. Errors are [*FieldError].
func ReadJSON(r events.APIGatewayV2HTTPRequest, into any, fields string) error {
	body, err := Body(r)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) && wrong.Field != "" {
			return &FieldError{Field: wrong.Field, Problem: "must be a " + wrong.Type.String() + ", not a " + wrong.Value}
		}
		return &FieldError{Field: "body", Problem: "must be a JSON object with " + fields}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &FieldError{Field: "body", Problem: "has something after the JSON object"}
	}
	return nil
}

// MinorUnits is a whole number above 0 and up to [payment.MaxAmount]; 0 if the JSON holds anything else.
type MinorUnits int64

// AmountForm says what [MinorUnits] must be, for the caller.
const AmountForm = "must be a whole number of minor units above 0 and at most 1000000000000000"

// UnmarshalJSON implements [json.Unmarshaler].
func (m *MinorUnits) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 || n > payment.MaxAmount {
		n = 0
	}
	*m = MinorUnits(n)
	return nil
}

// IDForm says what an id of the shop's must look like, for the caller.
const IDForm = "must be 1 to 40 letters, digits, _ . or -, and begin with a letter or digit"

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$`)

// IsID reports whether an id of the shop's is fit to use. An order's is the gateway's receipt too, which holds 40 characters.
func IsID(id string) bool { return idPattern.MatchString(id) }

// MaxWords is the longest text, in characters, that a person may leave with an order.
const MaxWords = 500

// CheckWords refuses a text of a person that is blank or too long, with a [*FieldError].
func CheckWords(field, text string) error {
	if strings.TrimSpace(text) == "" {
		return &FieldError{Field: field, Problem: "is missing"}
	}
	return CheckLength(field, text)
}

// CheckLength refuses a text of a person that is too long, with a [*FieldError].
func CheckLength(field, text string) error {
	if utf8.RuneCountInString(text) > MaxWords {
		return &FieldError{Field: field, Problem: "is too long"}
	}
	return nil
}

// orderPattern is what ids of orders look like, those of adopted orders included. It leaves out what could be a person's address,
// since the id is in log lines, and is shorter than what DynamoDB refuses as a key.
var orderPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)

// OrderID is the order that the path names, as {id}; empty on a route that names none. [payment.ErrNotFound] if no order can have
// such an id.
func OrderID(r events.APIGatewayV2HTTPRequest) (string, error) {
	id, named := r.PathParameters["id"]
	if named && !orderPattern.MatchString(id) {
		return "", payment.ErrNotFound
	}
	return id, nil
}
