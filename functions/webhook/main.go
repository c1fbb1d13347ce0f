// Command webhook receives a payment gateway's webhooks: verify, store, hand over. It decides nothing.
package main

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/shared/awsclient"
	"paidonce/shared/dynamo"
	"paidonce/shared/env"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
	"paidonce/shared/razorpay"
	"paidonce/shared/secret"
	"paidonce/shared/telemetry"
)

func main() {
	ctx := context.Background()
	cfg := env.Must(env.Load[settings]())
	aws := env.Must(awsclient.Config(ctx, cfg.AttemptTimeout))
	secrets := env.Must(secret.Open(ctx, secretsmanager.NewFromConfig(aws), cfg.RazorpaySecretName, razorpay.ParseSecrets, time.Now)).
		WithRefreshPause(cfg.RetryMinute)
	tell := telemetry.New(os.Stdout, cfg.LogLevel, cfg.StackName, time.Now)
	h := &handler{
		gateways: map[string]gateway{"razorpay": razorpay.Webhook{Secrets: secrets.Value, Refresh: secrets.Refresh}},
		store:    dynamo.New(dynamodb.NewFromConfig(aws), cfg.TableName),
		queue:    queue.New(sqs.NewFromConfig(aws), cfg.EventsQueueURL),
		log:      tell.Log, metrics: tell.Metrics, now: time.Now,
		retention: cfg.eventRetention(),
		pace:      payment.Pace(cfg.RetryMinute),
	}
	lambda.Start(h.Handle)
}
