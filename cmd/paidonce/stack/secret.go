package stack

import (
	"fmt"
	"regexp"
	"strings"

	"paidonce/shared/razorpay"
)

// The parameters that name the secrets.
const (
	WebhookSecretParameter = "RazorpayWebhookSecretName"
	APIKeyParameter        = "RazorpayApiKeySecretName"
)

// FaultySecret is a secret that no function can use.
type FaultySecret struct{ Parameter, Name, Why string }

func (f *FaultySecret) Error() string { return fmt.Sprintf("the secret %s %s", f.Name, f.Why) }

// Cure says what to do, and where the runbook says how.
func (f *FaultySecret) Cure() string {
	section := "rotate-the-webhook-secret"
	if f.Parameter == APIKeyParameter {
		section = "rotate-the-api-key"
	}
	return fmt.Sprintf("correct the secret, or the parameter %s: docs/runbook.md#%s", f.Parameter, section)
}

// quoted is a name that an error repeats from a secret's document.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// WithoutNames leaves out what an error repeats of a document, unless it is a name that belongs there: in a document that is the
// wrong way round the names are the secrets.
func WithoutNames(err error) string {
	return quoted.ReplaceAllStringFunc(err.Error(), func(name string) string {
		bare := strings.Trim(name, `"`)
		if _, isLabel := razorpay.ModeOf(bare); isLabel || bare == "key_id" || bare == "key_secret" {
			return bare
		}
		return "(a name that is not shown)"
	})
}
