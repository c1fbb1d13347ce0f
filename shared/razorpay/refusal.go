package razorpay

import (
	"errors"
	"regexp"
	"strings"

	"paidonce/shared/payment"
)

// Nearly every refusal has the code BAD_REQUEST_ERROR and no reason, so that only the gateway's text tells them apart.
// The texts are those of its documentation (Razorpay, "Create a normal refund", "... (idempotent request)", "Capture a
// payment"; errors) and some seen elsewhere. They are matched loosely: they vary in case, dots and wording.
var (
	// inProgress: the same call, or another on the same payment, is under way. It comes with 400 as well as with 409.
	inProgress = regexp.MustCompile(`(?i)in progress|being processed|under process`)

	// passing: trouble that passes, said with a status that is none of trouble's.
	passing = regexp.MustCompile(`(?i)try again|retry|timed? ?out|trouble|temporar|technical|server error|unavailable`)

	// keyUsed: the key or the receipt came with another call, or this very call came to its end before.
	keyUsed = regexp.MustCompile(`(?i)(different|already).*idempoten|idempoten.*(different|already)|duplicate receipt|refund has already been processed`)

	// aboutKey: anything else about the key is not understood, and proves nothing.
	aboutKey = regexp.MustCompile(`(?i)idempoten`)

	noSuchID = regexp.MustCompile(`(?i)\b(\w+_)?ids?\b.*does not exist|not a valid id`)
)

// refusals tells why a refund is refused. The first that matches counts.
var refusals = []struct {
	text   *regexp.Regexp
	reason payment.RefusalReason
}{
	{noSuchID, payment.RefusedUnknownID},
	{regexp.MustCompile(`(?i)fully refunded|already (been )?refunded`), payment.RefusedAlready},
	{regexp.MustCompile(`(?i)(enough|sufficient|\blow)\b.*\b(balance|funds|credits)|\b(balance|funds|credits)\b.*(enough|sufficient|\blow(er)?)\b`),
		payment.RefusedBalance},
	{regexp.MustCompile(`(?i)\b(6|six) months?\b|\b180 days\b|\bold(er)?\b`), payment.RefusedTooOld},
	{regexp.MustCompile(`(?i)\bdispute`), payment.RefusedDisputed},
	{regexp.MustCompile(`(?i)amount.*(greater|more|higher|larger|exceed)|(exceed|greater|more than).*amount`), payment.RefusedAmount},
	{regexp.MustCompile(`(?i)status.*captured|not (been |yet )*captured|only .*captured|void is not supported`), payment.RefusedNotCaptured},
}

// text is what an error says in words, on one line.
func (e *Error) text() string {
	return strings.Join(strings.Fields(e.Description+" "+strings.ReplaceAll(e.Reason, "_", " ")), " ")
}

// refundError translates the failure of a refund call.
func refundError(op string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return callError(op, payment.ErrOutcomeUnknown, err)
	}
	text := e.text()
	switch {
	case inProgress.MatchString(text):
		return callError(op, payment.ErrOutcomeUnknown, err)
	case e.HTTPStatus/100 == 4 && keyUsed.MatchString(text):
		return callError(op, payment.ErrKeyUsed, err)
	case !Refused(err) || aboutKey.MatchString(text):
		return callError(op, payment.ErrOutcomeUnknown, err)
	}
	reason := payment.RefusedOther
	for _, r := range refusals {
		if r.text.MatchString(text) {
			reason = r.reason
			break
		}
	}
	return &payment.Refusal{Reason: reason, Cause: opError(op, err)}
}
