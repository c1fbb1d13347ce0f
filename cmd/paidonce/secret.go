package main

import (
	"fmt"
	"regexp"
	"strings"

	"paidonce/shared/razorpay"
)

// The parameters that name the secrets.
const (
	webhookSecretParameter = "RazorpayWebhookSecretName"
	apiKeyParameter        = "RazorpayApiKeySecretName"
)

// faultySecret is a secret that no function can use.
type faultySecret struct{ parameter, name, why string }

func (f *faultySecret) Error() string { return fmt.Sprintf("the secret %s %s", f.name, f.why) }

func (f *faultySecret) cure() string {
	section := "rotate-the-webhook-secret"
	if f.parameter == apiKeyParameter {
		section = "rotate-the-api-key"
	}
	return fmt.Sprintf("correct the secret, or the parameter %s: docs/runbook.md#%s", f.parameter, section)
}

// quoted is a name that an error repeats from a secret's document.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// withoutNames leaves out what an error repeats of a document, unless it is a name that belongs there: in a document that is the
// wrong way round the names are the secrets.
func withoutNames(err error) string {
	return quoted.ReplaceAllStringFunc(err.Error(), func(name string) string {
		bare := strings.Trim(name, `"`)
		if _, isLabel := razorpay.ModeOf(bare); isLabel || bare == "key_id" || bare == "key_secret" {
			return bare
		}
		return "(a name that is not shown)"
	})
}
