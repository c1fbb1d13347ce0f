// Command worker applies stored events to their orders.
package main

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"paidonce/shared/advance"
	"paidonce/shared/awsclient"
	"paidonce/shared/dynamo"
	"paidonce/shared/env"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
)

func main() {
	cfg := env.Must(env.Load[settings]())
	aws := env.Must(awsclient.Config(context.Background(), cfg.AttemptTimeout))
	table := dynamo.New(dynamodb.NewFromConfig(aws), cfg.TableName)
	rules := payment.Rules{AcceptOffers: cfg.AcceptOffers}
	h := &handler{
		store:       table,
		advancer:    advance.Advancer{Store: table, Rules: rules, Now: time.Now, Reserve: reserve},
		decoders:    map[string]decoder{"razorpay": razorpay.Decode},
		maxReceives: cfg.MaxReceiveCount,
		log:         logs.New(os.Stdout, cfg.LogLevel),
		now:         time.Now,
	}
	lambda.Start(h.Handle)
}
