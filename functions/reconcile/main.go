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
	events "paidonce/shared/queue"
	"paidonce/shared/razorpay"
	"paidonce/shared/secret"
	"paidonce/shared/telemetry"
)

func main() {
	cfg := env.Must(env.Load[settings]())
	aws := env.Must(awsclient.Config(context.Background(), cfg.AttemptTimeout))
	tell := telemetry.New(os.Stdout, cfg.LogLevel, cfg.StackName, time.Now)
	parse := razorpay.ParseClient(cfg.RazorpayAPIURL, razorpay.WithRate(cfg.CallsPerSecond), razorpay.WithWatch(tell.GatewayCall))
	key := env.Must(secret.Open(context.Background(), secretsmanager.NewFromConfig(aws), cfg.RazorpayKeyName, parse, time.Now))
	table := dynamo.New(dynamodb.NewFromConfig(aws), cfg.TableName)
	h := &handler{
		store: table, queue: events.New(sqs.NewFromConfig(aws), cfg.EventsQueueURL), gateways: []string{"razorpay"},
		announcer: announce.Announcer{Store: table, Bus: bus.New(eventbridge.NewFromConfig(aws), cfg.BusName), Now: time.Now},
		metrics:   tell.Metrics, pace: cfg.Rules().Pace, log: tell.Log, now: time.Now,
	}
	h.reconciler, h.refunder = cfg.work(table, key.Value, tell)
	lambda.Start(h.Handle)
}
