// Command notify tells the rest of the shop what happened to its orders: from the table's stream to the bus.
package main

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"paidonce/shared/announce"
	"paidonce/shared/awsclient"
	"paidonce/shared/bus"
	"paidonce/shared/dynamo"
	"paidonce/shared/env"
	"paidonce/shared/logs"
)

func main() {
	cfg := env.Must(env.Load[settings]())
	aws := env.Must(awsclient.Config(context.Background(), cfg.AttemptTimeout))
	h := &handler{
		announcer: announce.Announcer{
			Store: dynamo.New(dynamodb.NewFromConfig(aws), cfg.TableName),
			Bus:   bus.New(eventbridge.NewFromConfig(aws), cfg.BusName),
			Now:   time.Now,
		},
		log: logs.New(os.Stdout, cfg.LogLevel),
	}
	lambda.Start(h.Handle)
}
