package razorpay

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"paidonce/shared/payment"
)

// An Error is the gateway's refusal of an API call, or the failure of a machine in front of it.
type Error struct {
	HTTPStatus  int           // such as 400; 3xx counts as an error, because no redirect is followed
	Code        string        // such as BAD_REQUEST_ERROR; empty if the answer has none
	Reason      string        // such as input_validation_failed; empty if not said, and most business errors do not
	Field       string        // the request's field at fault, if the answer names one
	Description string        // the gateway's own text: untrusted, to be shown to an operator at most
	RetryAfter  time.Duration // how long the gateway asks to wait; 0 if it does not
}

// Error returns the status, code and reason. It leaves out the gateway's own text.
func (e *Error) Error() string {
	text := "HTTP " + strconv.Itoa(e.HTTPStatus)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text
}

// Refused reports whether err says for certain that the gateway did not do what was asked, and would not do it if asked
// the same again: a 4xx answer of the gateway itself, in its own envelope, that speaks neither of our key (401, 403), nor
// of the rate (429) or the time (408, 425), nor of another call that is under way (409, and some 400), nor of trouble that passes.
func Refused(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.HTTPStatus {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly,
		http.StatusTooManyRequests:
		return false
	}
	switch e.Code {
	case "", "GATEWAY_ERROR", "SERVER_ERROR": // a machine in between; a bank's failure; the gateway's
		return false
	}
	return e.HTTPStatus >= 400 && e.HTTPStatus < 500 && !inProgress.MatchString(e.text()) && !passing.MatchString(e.text())
}

// NotDone reports whether err says for certain that the gateway did not do what was asked: it refused ([Refused]), it
// throttled the call (429) or did not accept our key (401, 403), or no connection to it came about. After every other
// error (a timeout, a broken connection, 408, 409, 425, 5xx, an unreadable answer) the outcome is unknown: read back
// before doing anything again.
func NotDone(err error) bool {
	var e *Error
	if errors.As(err, &e) && (e.HTTPStatus == http.StatusUnauthorized || e.HTTPStatus == http.StatusForbidden) {
		return true
	}
	return notTaken(err) || Refused(err)
}

// notTaken reports whether the gateway certainly did nothing about a call, and may well do it when asked again: it
// throttled the call, or no connection came about.
func notTaken(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.HTTPStatus == http.StatusTooManyRequests
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// missing reports whether the gateway says that it has nothing of the id, or nothing that it shows to us.
func missing(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.HTTPStatus == http.StatusBadRequest || e.HTTPStatus == http.StatusNotFound) &&
		noSuchID.MatchString(e.text())
}

// retryable reports whether a read that failed with err may well succeed when asked again.
func retryable(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return !errors.Is(err, ErrUndecodable) // the network's fault
	}
	switch e.HTTPStatus {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.HTTPStatus >= 500
}

// newError reads an error answer. Besides the gateway's own envelope, {"error": {"code": "...", ...}}, there is another
// in which code is a number and errors is a list, and machines in front of the gateway answer in HTML.
func newError(status int, header http.Header, body []byte) *Error {
	e := &Error{HTTPStatus: status, RetryAfter: retryAfter(header)}
	var answer struct {
		Error struct {
			Code        scalar `json:"code"`
			Reason      scalar `json:"reason"`
			Field       scalar `json:"field"`
			Description scalar `json:"description"`
			Message     scalar `json:"message"`
			Errors      []struct {
				Reason scalar `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return e
	}
	a := answer.Error
	e.Code, e.Reason, e.Field = a.Code.word(), a.Reason.word(), a.Field.word()
	if e.Reason == "" && len(a.Errors) > 0 {
		e.Reason = a.Errors[0].Reason.word()
	}
	e.Description = string(a.Description)
	if e.Description == "" {
		e.Description = string(a.Message)
	}
	return e
}

// retryAfter reads the header Retry-After where it holds seconds. An HTTP date is ignored: comparing it would trust two
// clocks.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(strings.TrimSpace(header.Get("Retry-After")), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// scalar is a JSON string or number as text. Anything else is "".
type scalar string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *scalar) UnmarshalJSON(data []byte) error {
	*s = ""
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(s))
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		*s = scalar(data)
	}
	return nil
}

// word returns s if it is a plain word. The gateway writes "NA", "null" or null for a value it does not have.
func (s scalar) word() string {
	if !word(string(s)) || s == "NA" || s == "null" {
		return ""
	}
	return string(s)
}

// opError says which call failed.
func opError(op string, err error) error { return fmt.Errorf("razorpay: %s: %w", op, err) }

// callError says which call failed, and what that comes to for the caller.
func callError(op string, meaning, err error) error {
	return fmt.Errorf("razorpay: %s: %w: %w", op, meaning, err)
}

// writeError translates the failure of a write, and nil into nil.
func writeError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case Refused(err):
		return callError(op, payment.ErrGatewayRefused, err)
	}
	return callError(op, payment.ErrOutcomeUnknown, err)
}

// readError translates the failure to read what has an id, and nil into nil.
func readError(op string, err error) error {
	if errors.Is(err, errNoID) || missing(err) {
		return callError(op, payment.ErrNotFound, err)
	}
	return listError(op, err)
}

// listError translates the failure to read a list, and nil into nil. No refusal of a list means that it is empty. A page that is
// no list is one thing that cannot be read.
func listError(op string, err error) error {
	if err == nil {
		return nil
	}
	if some := new(payment.UnreadableError); errors.Is(err, ErrUndecodable) && !errors.As(err, &some) {
		err = &payment.UnreadableError{Count: 1, Cause: err}
	}
	return callError(op, payment.ErrOutcomeUnknown, err)
}
