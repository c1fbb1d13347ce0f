// Command refunds gives money back on the shop's word, once per request.
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
	"paidonce/shared/razorpay"
	"paidonce/shared/refund"
	"paidonce/shared/secret"
	"paidonce/shared/telemetry"
)

func main() {
	ctx := context.Background()
	cfg := env.Must(env.Load[settings]())
	aws := env.Must(awsclient.Config(ctx, cfg.AttemptTimeout))
	tell := telemetry.New(os.Stdout, cfg.LogLevel, cfg.StackName, time.Now)
	parse := razorpay.ParseClient(cfg.RazorpayAPIURL, razorpay.WithWatch(tell.GatewayCall))
	client := env.Must(secret.Open(ctx, secretsmanager.NewFromConfig(aws), cfg.RazorpayKeyName, parse, time.Now))
	table := dynamo.New(dynamodb.NewFromConfig(aws), cfg.TableName)
	h := &handler{
		refunder: refund.Refunder{
			Gateways: map[string]func(context.Context) refund.Gateway{"razorpay": func(ctx context.Context) refund.Gateway { return client.Value(ctx) }},
			Store:    table, Advancer: advance.Advancer{Store: table, Rules: cfg.Rules(), Now: time.Now, Reserve: reserve, Committed: tell.Committed},
			Stack: cfg.StackName, Now: time.Now,
		},
		log: tell.Log, now: time.Now,
	}
	lambda.Start(h.Handle)
}
