package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"paidonce/cmd/paidonce/terminal"
)

// Cure turns what went wrong with the stack into one line that says what it was and what to do. What it does not know
// stays as it is. It repeats no text of AWS's that could hold what was signed.
func (t Target) Cure(err error) error {
	if err == nil {
		return nil
	}
	if r := new(Refusal); errors.As(err, &r) {
		return t.cureRefusal(r)
	}
	if errors.Is(err, errNoCredentials) {
		return errors.New("AWS credentials are missing or have expired: sign in (`aws sso login`), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if errors.Is(err, ErrNoSuchStack) {
		return fmt.Errorf("there is no %s for these credentials: check the name, --region and AWS_PROFILE", t.Name)
	}
	switch code := CodeOf(err); code {
	case "":
	case "ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired":
		return fmt.Errorf("the AWS credentials have expired (%s): sign in again (`aws sso login`)", code)
	case "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException",
		"IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken":
		return fmt.Errorf("AWS does not accept the credentials (%s): check AWS_PROFILE, and the clock", code)
	case "AccessDenied", "AccessDeniedException":
		return errors.New("the AWS credentials do not allow this: they need cloudformation:DescribeStacks and, for events, dynamodb:GetItem on the table")
	default:
		return fmt.Errorf("AWS refused to answer for %s: %s", t.Name, code)
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	if failed := net.Error(nil); errors.As(err, &failed) {
		why := "did not answer"
		if failed.Timeout() {
			why = "did not answer in time"
		}
		return fmt.Errorf("%s %s: check that it is still there, and the network", t.Name, why)
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// CureFor is [Target.Cure] for a command that needs more permissions than that names.
func (t Target) CureFor(err error, needs string) error {
	if code := CodeOf(err); code == "AccessDenied" || code == "AccessDeniedException" {
		return fmt.Errorf("the AWS credentials do not allow this: they need %s", needs)
	}
	return t.Cure(err)
}

func (t Target) cureRefusal(r *Refusal) error {
	switch {
	case r.Field != "":
		return fmt.Errorf("%s refuses that: %s", t.Name, terminal.Printable(r.Message))
	case r.Message == "" && (r.Status == http.StatusForbidden || r.Status == http.StatusUnauthorized):
		return fmt.Errorf("%s does not let you in (%d): the AWS credentials have expired, or lack execute-api:Invoke on it", t.Name, r.Status)
	case r.Message == "" && r.Status == http.StatusNotFound:
		return fmt.Errorf("%s does not know this call: it is of an older release, deploy this one", t.Name)
	case r.Status >= http.StatusInternalServerError:
		return fmt.Errorf("%s answered %d: try again; if it stays, `paidonce logs --errors%s` says why", t.Name, r.Status, t.Flags)
	}
	return fmt.Errorf("%s answered %d %s", t.Name, r.Status, terminal.Printable(r.Message))
}
