// Command reconcile looks, on a schedule, after what was left open, and compares with what the gateway has.
package main

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/shared/announce"
	"paidonce/shared/awsclient"
	"paidonce/shared/bus"
	"paidonce/shared/dynamo"
	"paidonce/shared/env"
	"paidonce/shared/logs"
	"paidonce/shared/metrics"
	events "paidonce/shared/queue"
	"paidonce/shared/razorpay"
	"paidonce/shared/secret"
)

func main() {
	cfg := env.Must(env.Load[settings]())
	aws := env.Must(awsclient.Config(context.Background(), cfg.AttemptTimeout))
	parse := razorpay.ParseClient(cfg.RazorpayAPIURL, razorpay.WithRate(cfg.CallsPerSecond))
	key := env.Must(secret.Open(context.Background(), secretsmanager.NewFromConfig(aws), cfg.RazorpayKeyName, parse, time.Now))
	table := dynamo.New(dynamodb.NewFromConfig(aws), cfg.TableName)
	h := &handler{
		store: table, queue: events.New(sqs.NewFromConfig(aws), cfg.EventsQueueURL), gateways: []string{"razorpay"},
		announcer: announce.Announcer{Store: table, Bus: bus.New(eventbridge.NewFromConfig(aws), cfg.BusName), Now: time.Now},
		metrics:   metrics.New(os.Stdout, cfg.StackName, time.Now), pace: cfg.Rules().Pace, log: logs.New(os.Stdout, cfg.LogLevel), now: time.Now,
	}
	h.reconciler, h.refunder = cfg.work(table, key.Value, h.log)
	lambda.Start(h.Handle)
}
