// Command checkout serves the browser's way back from the checkout: verify, read the payment, send the customer on.
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
		gateways: map[string]access{"razorpay": {
			current: func(ctx context.Context) gateway { return client.Value(ctx) },
			refresh: func(ctx context.Context) (gateway, bool) { return client.Refresh(ctx) },
		}},
		store: table, advancer: advance.Advancer{Store: table, Rules: cfg.Rules(), Now: time.Now, Reserve: reserve, Committed: tell.Committed},
		returnTo: cfg.ReturnURL,
		log:      tell.Log, now: time.Now,
	}
	lambda.Start(h.Handle)
}
