package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/reconcile"
)

func TestSettingsAreTheStacks(t *testing.T) {
	var above payment.Confirm
	if err := above.UnmarshalText([]byte("above:500000")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change map[string]string
		want   stackSettings
	}{
		{"template.yaml's defaults", nil, stackSettings{
			Settings: advance.Settings{RetryMinute: time.Minute}, keyName: "paidonce/razorpay/api-key", apiURL: "https://api.razorpay.com",
		}},
		{"others", map[string]string{
			"AcceptOffers": "true", "FulfilWithinHours": "36", "ConfirmCapture": "above:500000", "RetryMinuteSeconds": "1",
			"RazorpayApiKeySecretName": "key", "RazorpayApiUrl": "http://127.0.0.1:1", "RazorpayAccountId": "acc_1", "UnknownOrders": "adopt",
		}, stackSettings{
			advance.Settings{AcceptOffers: true, FulfilWithin: 36 * time.Hour, ConfirmCapture: above, RetryMinute: time.Second},
			"key", "http://127.0.0.1:1", "acc_1", true,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := readSettings(t.Context(), stacktest.TemplateParameters(t, c.change), "s"); got != c.want || err != nil {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
	older := stacktest.TemplateParameters(t, nil)
	delete(older, "UnknownOrders")
	_, err := readSettings(t.Context(), older, "s")
	if err == nil || err.Error() != "stack s has no parameter UnknownOrders: it is of another release, use the paidonce of that one" {
		t.Errorf("without a parameter: %v", err)
	}
	if got, err := readSettings(t.Context(), stacktest.TemplateParameters(t, map[string]string{"ConfirmCapture": "sometimes"}), "s"); err == nil {
		t.Errorf("an odd parameter is taken for %+v", got)
	}
}

// keeper answers as Secrets Manager does.
type keeper struct {
	names []string
	text  string
	err   error
}

func (k *keeper) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	k.names = append(k.names, aws.ToString(in.SecretId))
	return &secretsmanager.GetSecretValueOutput{SecretString: &k.text}, k.err
}

func TestOpenGateway(t *testing.T) {
	on := target{Target: stack.Target{Name: "stack s"}}
	settings := stackSettings{keyName: "shop/key", apiURL: "https://api.razorpay.com"}
	good := stacktest.AsJSON(t, map[string]string{"key_id": "rzp_live_Sample", "key_secret": stacktest.SecretKey})
	refused := func(code string) error {
		return fmt.Errorf("operation error: %w", &smithy.GenericAPIError{Code: code, Message: stacktest.SecretKey + "\n"})
	}
	for _, c := range []struct {
		name string
		keeper
		want string
	}{
		{"a key", keeper{text: good}, ""},
		{"no such secret", keeper{err: refused("ResourceNotFoundException")}, "there is no secret shop/key: make it, or correct the stack's parameter RazorpayApiKeySecretName"},
		{"not allowed", keeper{err: refused("AccessDeniedException")}, "the AWS credentials do not allow this: they need cloudformation:DescribeStacks, secretsmanager:GetSecretValue on the API key, and dynamodb:Query, GetItem, BatchGetItem, PutItem and UpdateItem on the table"},
		{"expired", keeper{err: refused("ExpiredTokenException")}, "the AWS credentials have expired (ExpiredTokenException): sign in again (`aws sso login`)"},
		{"no key", keeper{text: stacktest.SecretKey}, "secret: shop/key: razorpay: API key: not a JSON object of strings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			open, err := openGateway(t.Context(), &c.keeper, settings, 5)
			if len(c.names) != 1 || c.names[0] != "shop/key" {
				t.Errorf("read %q", c.names)
			}
			if c.want == "" {
				if err != nil || open(t.Context()).Mode() != payment.Live {
					t.Errorf("got %v", err)
				}
				return
			}
			if got := on.cureReconcile(err); got == nil || got.Error() != c.want || strings.Contains(got.Error(), stacktest.SecretKey) {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

func TestCureOfWhatIsNobodysFault(t *testing.T) {
	on := target{Target: stack.Target{Name: "stack s"}}
	if err := on.cureReconcile(nil); err != nil {
		t.Error(err)
	}
	err := on.cureReconcile(fmt.Errorf("commit order o1: %w", payment.ErrNewerVersion))
	if err == nil || err.Error() != "the order was written by a newer release: use the paidonce of that one" {
		t.Error(err)
	}
	if err := on.cureReconcile(errors.New("one\n  two")); err.Error() != "one two" {
		t.Error(err)
	}
}

func TestWhatEndsAComparison(t *testing.T) {
	aws := &smithy.GenericAPIError{Code: "AccessDeniedException"}
	network := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, c := range []struct {
		name   string
		failed int
		err    error
		want   bool
	}{
		{"the lists cannot be read", 0, errors.New("HTTP 401"), true},
		{"AWS refuses every order", 2, fmt.Errorf("commit: %w", aws), true},
		{"AWS does not answer", 2, fmt.Errorf("commit: %w", network), true},
		{"the orders are odd", 2, payment.ErrEffectConflict, false},
	} {
		if got := stops(reconcile.Findings{Failed: c.failed}, c.err); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWhatADryRunOfAnAdoptingStackSays(t *testing.T) {
	for adopts, want := range map[bool]string{
		true: "of no order of ours: without --dry-run they are adopted, where that can be", false: "of no order of ours: another shop's, or made past POST /orders",
	} {
		if got := findingRows(reconcile.Findings{}, true, adopts)[4][2]; got != want {
			t.Errorf("adopts %t: %s", adopts, got)
		}
	}
}
