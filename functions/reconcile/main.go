// Command reconcile looks, on a schedule, after what was left open.
package main

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/shared/advance"
	"paidonce/shared/awsclient"
	"paidonce/shared/dynamo"
	"paidonce/shared/env"
	"paidonce/shared/logs"
	events "paidonce/shared/queue"
	"paidonce/shared/razorpay"
	"paidonce/shared/refund"
	"paidonce/shared/secret"
)

func main() {
	cfg := env.Must(env.Load[settings]())
	aws := env.Must(awsclient.Config(context.Background(), cfg.AttemptTimeout))
	key := env.Must(secret.Open(context.Background(), secretsmanager.NewFromConfig(aws), cfg.RazorpayKeyName, razorpay.ParseClient(cfg.RazorpayAPIURL), time.Now))
	table := dynamo.New(dynamodb.NewFromConfig(aws), cfg.TableName)
	advancer := advance.Advancer{Store: table, Rules: cfg.Rules(), Now: time.Now, Reserve: writingTime}
	refunding := map[string]func(context.Context) refund.Gateway{"razorpay": func(ctx context.Context) refund.Gateway { return key.Value(ctx) }}
	h := &handler{
		gateways: map[string]func(context.Context) gateway{"razorpay": func(ctx context.Context) gateway { return key.Value(ctx) }},
		refunder: refund.Refunder{Gateways: refunding, Store: table, Advancer: advancer, Stack: cfg.StackName, Now: time.Now},
		store:    table, queue: events.New(sqs.NewFromConfig(aws), cfg.EventsQueueURL), advancer: advancer, stack: cfg.StackName,
		log: logs.New(os.Stdout, cfg.LogLevel), now: time.Now,
	}
	lambda.Start(h.Handle)
}
