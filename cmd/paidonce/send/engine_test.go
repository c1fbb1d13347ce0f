package send

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/shared/razorpay"
)

// TestSecretsOnTheEmulator finds a stack's real webhook secrets, and reads them.
func TestSecretsOnTheEmulator(t *testing.T) {
	d := stacktest.Emulated(t, map[string]string{stack.WebhookSecretParameter: "the/secret", "RazorpayAccountId": "acc_1"}, "AWS::Logs::LogGroup", "WebhookLogGroup")
	on, err := withSigning(stacktest.Finds(stack.Target{Name: "the emulator", Deployed: d}))(t.Context(), stack.Options{})
	if err != nil {
		t.Fatal(err)
	}

	_, err = on.signing(t.Context())
	if err == nil || err.Error() != "the secret the/secret does not exist, or has no value" {
		t.Errorf("without a secret: %v", err)
	}
	secrets := secretsmanager.NewFromConfig(d.Config)
	if _, err := secrets.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String("the/secret"), SecretString: aws.String(`{"test_current":"one","test_previous":"two"}`),
	}); err != nil {
		t.Fatal(err)
	}
	s, err := on.signing(t.Context())
	want := []razorpay.Secret{{Label: "test_current", Value: "one"}, {Label: "test_previous", Value: "two"}}
	if err != nil || !slices.Equal(s.secrets, want) || s.account != "acc_1" {
		t.Errorf("%d secrets, account %q, %v", len(s.secrets), s.account, err)
	}
	if _, err := secrets.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: aws.String("the/secret"), SecretString: aws.String(`{"a-secret-the-wrong-way-round":"test_current"}`),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := on.signing(t.Context()); err == nil || strings.Contains(err.Error(), "wrong-way") {
		t.Errorf("a document that is wrong: %v", err)
	}
}
