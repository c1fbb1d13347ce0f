// Command worker applies stored events to their orders.
package main

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"paidonce/shared/advance"
	"paidonce/shared/awsclient"
	"paidonce/shared/dynamo"
	"paidonce/shared/env"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/secret"
	"paidonce/shared/telemetry"
)

func main() {
	cfg := env.Must(env.Load[settings]())
	aws := env.Must(awsclient.Config(context.Background(), cfg.AttemptTimeout))
	tell := telemetry.New(os.Stdout, cfg.LogLevel, cfg.StackName, time.Now)
	table := dynamo.New(dynamodb.NewFromConfig(aws), cfg.TableName)
	h := &handler{
		store: table, advancer: advance.Advancer{Store: table, Rules: cfg.Rules(), Now: time.Now, Reserve: reserve, Committed: tell.Committed},
		decoders: map[string]decoder{"razorpay": razorpay.Decode}, maxReceives: cfg.MaxReceiveCount,
		stack: cfg.StackName, pace: payment.Pace(cfg.RetryMinute), log: tell.Log, metrics: tell.Metrics, now: time.Now,
	}
	if cfg.UnknownOrders == adopted || cfg.ConfirmCapture.Any() { // else it needs no key and calls no gateway
		parse := razorpay.ParseClient(cfg.RazorpayAPIURL, razorpay.WithWatch(tell.GatewayCall))
		key := env.Must(secret.Open(context.Background(), secretsmanager.NewFromConfig(aws), cfg.RazorpayKeyName, parse, time.Now))
		h.gateways = map[string]func(context.Context) gateway{"razorpay": func(ctx context.Context) gateway { return key.Value(ctx) }}
		h.adopts, h.advancer.Confirm = cfg.UnknownOrders == adopted, h.confirm
	}
	lambda.Start(h.Handle)
}
