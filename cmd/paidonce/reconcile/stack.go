package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/caarlos0/env/v11"

	"paidonce/cmd/paidonce/stack"
	"paidonce/shared/advance"
	"paidonce/shared/dynamo"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/reconcile"
	"paidonce/shared/secret"
)

// target is the stack that the command is about, with what reconciles it with its gateway, by so many calls a second.
type target struct {
	stack.Target
	reconciler func(ctx context.Context, perSecond int, log *slog.Logger) (reconciler, error)
}

// connector finds the stack that the options name.
type connector func(context.Context, stack.Options) (target, error)

// withReconciler opens the reconciler of the stack that is found, once it is needed.
func withReconciler(find stack.Connector) connector {
	return func(ctx context.Context, o stack.Options) (target, error) {
		t, err := find(ctx, o)
		return target{t, func(ctx context.Context, perSecond int, log *slog.Logger) (reconciler, error) {
			return openReconciler(ctx, t.Deployed.Config, t.Deployed.Name, t.Table, perSecond, log)
		}}, err
	}
}

// reconciler reconciles one stack with its gateway, in this process and with the operator's credentials.
type reconciler struct {
	reconcile.Reconciler
	history historian
}

// historian is what else is needed of the table.
type historian interface {
	// History reads everything that is kept about an order beside its own row.
	History(ctx context.Context, orderID string) (payment.History, error)
}

// openReconciler opens the reconciler of a stack, as the stack's reconcile function is configured.
func openReconciler(ctx context.Context, cfg aws.Config, name, table string, perSecond int, log *slog.Logger) (reconciler, error) {
	cfg.Retryer = func() aws.Retryer { // a single write that meets a running transaction is not tried again by the SDK itself
		return retry.AddWithErrorCodes(retry.NewStandard(), "TransactionConflictException")
	}
	settings, err := readSettings(ctx, cloudformation.NewFromConfig(cfg), name)
	if err != nil {
		return reconciler{}, err
	}
	client, err := openGateway(ctx, secretsmanager.NewFromConfig(cfg), settings, perSecond)
	if err != nil {
		return reconciler{}, err
	}
	store := dynamo.New(dynamodb.NewFromConfig(cfg), table)
	return reconciler{
		Reconciler: reconcile.Reconciler{
			Gateways: map[string]func(context.Context) reconcile.Gateway{stack.GatewayName: client},
			Store:    store, Advancer: advance.Advancer{Store: store, Rules: settings.Rules(), Now: time.Now, Committed: sayHolds(log)},
			Stack: name, Account: settings.account, Adopts: settings.adopts, Log: log, Now: time.Now,
		},
		history: store,
	}, nil
}

// sayHolds says of each hold that appears which order it is about: no metric counts what is done from here, and no alarm rings.
func sayHolds(log *slog.Logger) func(context.Context, payment.Outcome) {
	return func(ctx context.Context, out payment.Outcome) {
		for _, e := range out.Effects {
			if n, ok := e.(payment.Notification); ok && n.Hold.Reason != "" {
				log.LogAttrs(ctx, slog.LevelWarn, "held: look at it with paidonce order explain", slog.String("order", out.Order.ID), slog.String("hold", n.Hold.String()))
			}
		}
	}
}

// stackSettings are a stack's parameters that reconciling goes by; template.yaml says what each is for.
type stackSettings struct {
	advance.Settings
	keyName, apiURL, account string
	adopts                   bool
}

// readSettings reads the stack's parameters, with the same words as template.yaml makes of them for the functions.
func readSettings(ctx context.Context, c stack.Describer, name string) (stackSettings, error) {
	described, err := stack.Describe(ctx, c, name)
	if err != nil {
		return stackSettings{}, err
	}
	parameters := stack.PartsOf(described).Parameters
	for _, key := range []string{
		"RazorpayApiKeySecretName", "RazorpayApiUrl", "RazorpayAccountId", "UnknownOrders", "AcceptOffers", "FulfilWithinHours",
		"ConfirmCapture", "RetryMinuteSeconds",
	} {
		if _, there := parameters[key]; !there {
			return stackSettings{}, fmt.Errorf("stack %s has no parameter %s: it is of another release, use the paidonce of that one", name, key)
		}
	}
	choices, err := env.ParseAsWithOptions[advance.Settings](env.Options{Environment: map[string]string{
		"ACCEPT_OFFERS":   parameters["AcceptOffers"],
		"FULFIL_WITHIN":   parameters["FulfilWithinHours"] + "h",
		"CONFIRM_CAPTURE": parameters["ConfirmCapture"],
		"RETRY_MINUTE":    parameters["RetryMinuteSeconds"] + "s",
	}})
	if err != nil {
		return stackSettings{}, fmt.Errorf("the parameters of stack %s are not what this release knows, use the paidonce of that one: %w", name, err)
	}
	return stackSettings{
		Settings: choices, keyName: parameters["RazorpayApiKeySecretName"], apiURL: parameters["RazorpayApiUrl"],
		account: parameters["RazorpayAccountId"], adopts: parameters["UnknownOrders"] == "adopt",
	}, nil
}

// secretReader is what is needed of a *secretsmanager.Client.
type secretReader interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// openGateway reads the API key, and again now and then: it may be rotated during a long run.
func openGateway(ctx context.Context, c secretReader, s stackSettings, perSecond int) (func(context.Context) reconcile.Gateway, error) {
	parse := razorpay.ParseClient(s.apiURL, razorpay.WithRate(perSecond))
	key, err := secret.Open(ctx, c, s.keyName, parse, time.Now)
	if stack.CodeOf(err) == "ResourceNotFoundException" {
		return nil, fmt.Errorf("there is no secret %s: make it, or correct the stack's parameter RazorpayApiKeySecretName", s.keyName)
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) reconcile.Gateway { return key.Value(ctx) }, nil
}

// cureReconcile is cure for what goes wrong between the stack and the gateway.
func (t target) cureReconcile(err error) error {
	refused, failed := new(razorpay.Error), net.Error(nil)
	switch {
	case err == nil, errors.Is(err, context.Canceled):
	case errors.As(err, &refused):
		switch status := refused.HTTPStatus; {
		case status == http.StatusUnauthorized || status == http.StatusForbidden:
			return fmt.Errorf("the gateway does not accept the API key (%w): check the secret that the stack's parameter RazorpayApiKeySecretName names", refused)
		case status == http.StatusTooManyRequests:
			return fmt.Errorf("the gateway throttles the calls (%w): wait a while, and use a lower --rate", refused)
		case status >= http.StatusInternalServerError:
			return fmt.Errorf("the gateway is in trouble (%w): try again later", refused)
		}
	case errors.Is(err, payment.ErrOutcomeUnknown) && errors.As(err, &failed):
		return errors.New("the gateway did not answer: check the network, and try again")
	case errors.Is(err, payment.ErrNewerVersion):
		return errors.New("the order was written by a newer release: use the paidonce of that one")
	case stack.CodeOf(err) == "AccessDenied" || stack.CodeOf(err) == "AccessDeniedException":
		return errors.New("the AWS credentials do not allow this: they need cloudformation:DescribeStacks, secretsmanager:GetSecretValue on the API key, and dynamodb:Query, GetItem, BatchGetItem, PutItem and UpdateItem on the table")
	}
	return t.Cure(err)
}
