package stack

import "fmt"

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
