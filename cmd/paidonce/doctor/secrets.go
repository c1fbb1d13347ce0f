package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/secret"
)

// secretDescriber is what is needed of a *secretsmanager.Client.
type secretDescriber interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
	DescribeSecret(context.Context, *secretsmanager.DescribeSecretInput, ...func(*secretsmanager.Options)) (*secretsmanager.DescribeSecretOutput, error)
}

// readSecret reads and parses the secret that a parameter of the stack names. A [*stack.FaultySecret] if no function could use it.
func readSecret[T any](ctx context.Context, d *doctor, parameter string, parse func([]byte) (T, error)) (value T, name string, err error) {
	if name, err = d.stack.parameter(parameter); err != nil {
		return value, name, err
	}
	opened, err := secret.Open(ctx, d.secrets, name, func(document []byte) (T, error) {
		value, err := parse(document)
		if err != nil {
			err = &stack.FaultySecret{Parameter: parameter, Name: name, Why: "is not as it should be: " + err.Error()}
		}
		return value, err
	}, d.now)
	switch code := stack.CodeOf(err); {
	case code == "ResourceNotFoundException":
		err = &stack.FaultySecret{Parameter: parameter, Name: name, Why: "does not exist, or has no value"}
	case code == "InvalidRequestException":
		err = &stack.FaultySecret{Parameter: parameter, Name: name, Why: "is marked for deletion"}
	}
	if err != nil {
		return value, name, called("secretsmanager:GetSecretValue", err)
	}
	return opened.Value(ctx), name, nil
}

func (d *doctor) readWebhookSecrets(ctx context.Context) ([]razorpay.Secret, string, error) {
	return readSecret(ctx, d, stack.WebhookSecretParameter, razorpay.ParseSecrets)
}

func (d *doctor) readKey(ctx context.Context) (razorpay.Key, string, error) {
	return readSecret(ctx, d, stack.APIKeyParameter, razorpay.ParseKey)
}

// withoutSecret is the finding of a check that needs a secret and does not get it. What is wrong with it its own check says.
func withoutSecret(err error) finding {
	if faulty := new(stack.FaultySecret); errors.As(err, &faulty) {
		return notChecked("the secret %s cannot be used", faulty.Name)
	}
	return trouble(err)
}

func (d *doctor) webhookSecret(ctx context.Context) finding {
	secrets, name, err := d.readWebhookSecrets(ctx)
	if err != nil {
		return trouble(err)
	}
	var labels []string
	for _, s := range secrets {
		labels = append(labels, s.Label)
	}
	return isFine("%s: %s", name, strings.Join(labels, ", "))
}

func (d *doctor) apiKey(ctx context.Context) finding {
	key, name, err := d.readKey(ctx)
	if err != nil {
		return trouble(err)
	}
	return isFine("%s: %s", name, key.ID)
}

// modes compares what is for test and what is for live.
func (d *doctor) modes(ctx context.Context) finding {
	key, _, err := d.readKey(ctx)
	if err != nil {
		return withoutSecret(err)
	}
	secrets, _, err := d.readWebhookSecrets(ctx)
	if err != nil {
		return withoutSecret(err)
	}
	var of []payment.Mode
	for _, s := range secrets {
		mode, _ := razorpay.ModeOf(s.Label)
		of = append(of, mode)
	}
	slices.Sort(of)
	of = slices.Compact(of)
	verified := fmt.Sprint(of[0])
	if len(of) > 1 {
		verified = "test and live"
	}
	seen := fmt.Sprintf("a %s key, %s webhooks, Stage %s", key.Mode, verified, d.stack.Parameters["Stage"])
	switch {
	case !slices.Contains(of, key.Mode):
		return finding{broken, seen + ": no webhook could pay an order that this key makes",
			fmt.Sprintf("give the webhook secret the label %s_current, or use the other mode's key: docs/runbook.md#rotate-the-webhook-secret, #rotate-the-api-key", key.Mode)}
	case d.stack.isProd() && key.Mode != payment.Live:
		return finding{warning, seen + ": no real money can come in", "store the live key and the live webhook secret: docs/runbook.md#rotate-the-api-key"}
	case !d.stack.isProd() && key.Mode == payment.Live:
		return finding{warning, seen + ": real orders in a table that nothing keeps from being deleted", "use a test key here, or deploy with Stage=prod"}
	}
	return isFine("%s", seen)
}

// gateway asks for the payments of one past second: the shortest of answers that needs the key.
func (d *doctor) gateway(ctx context.Context) finding {
	url, err := d.stack.parameter("RazorpayApiUrl")
	if err != nil {
		return trouble(err)
	}
	key, _, err := d.readKey(ctx)
	if err != nil {
		return withoutSecret(err)
	}
	client, err := razorpay.New(url, key.ID, key.Secret)
	if err != nil {
		return finding{broken, terminal.Printable(err.Error()), "correct the parameter RazorpayApiUrl"}
	}
	second := d.now().Add(-time.Minute)
	_, err = client.Payments(ctx, second, second)
	refused := new(razorpay.Error)
	switch {
	case err == nil, errors.As(err, new(*payment.UnreadableError)):
		return isFine("%s takes the key %s", url, key.ID)
	case !errors.As(err, &refused):
		return finding{warning, url + " did not answer", "check the network from here; if it stays, the gateway is down, and reconcile makes up for it later"}
	case refused.HTTPStatus == http.StatusUnauthorized, refused.HTTPStatus == http.StatusForbidden:
		return finding{broken, fmt.Sprintf("%s does not take the key %s: %s", url, key.ID, refused), "docs/runbook.md#rotate-the-api-key"}
	case refused.HTTPStatus == http.StatusTooManyRequests:
		return finding{warning, fmt.Sprintf("%s throttles: %s", url, refused), "see who calls so often, and lower the parameter GatewayCallsPerSecond"}
	}
	return finding{warning, fmt.Sprintf("%s answers %s", url, refused), "ask again later; if it stays, check the parameter RazorpayApiUrl"}
}
