// Command orders serves the shop's own calls: create an order, look at one, close it, let a hold pass.
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
		gateways: map[string]func(context.Context) gateway{"razorpay": func(ctx context.Context) gateway { return client.Value(ctx) }},
		store:    table,
		advancer: advance.Advancer{Store: table, Rules: cfg.Rules(), Now: time.Now, Reserve: reserve, Committed: tell.Committed},
		account:  cfg.RazorpayAccountID,
		stack:    cfg.StackName,
		log:      tell.Log,
		now:      time.Now,
	}
	lambda.Start(h.Handle)
}
