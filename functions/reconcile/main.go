// Command reconcile looks, on a schedule, after what the webhook and the worker left open.
package main

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/shared/awsclient"
	"paidonce/shared/dynamo"
	"paidonce/shared/env"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	events "paidonce/shared/queue"
)

func main() {
	cfg := env.Must(env.Load[settings]())
	aws := env.Must(awsclient.Config(context.Background(), cfg.AttemptTimeout))
	h := &handler{
		store: dynamo.New(dynamodb.NewFromConfig(aws), cfg.TableName),
		queue: events.New(sqs.NewFromConfig(aws), cfg.EventsQueueURL),
		pace:  payment.Pace(cfg.RetryMinute),
		log:   logs.New(os.Stdout, cfg.LogLevel),
		now:   time.Now,
	}
	lambda.Start(h.Handle)
}
