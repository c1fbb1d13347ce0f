package dev

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/shared/dynamo"
	"paidonce/shared/localaws"
)

// operator reaches the table and the queues themselves, as an operator of the stack can.
type operator struct {
	store      *dynamo.Store
	dynamodb   *dynamodb.Client
	sqs        *sqs.Client
	table      string
	events     string // queue URL
	deadLetter string // queue URL
}

func newOperator(s *localaws.Stack) operator {
	db := dynamodb.NewFromConfig(s.Config())
	return operator{
		store: dynamo.New(db, s.Table), dynamodb: db, sqs: sqs.NewFromConfig(s.Config()),
		table: s.Table, events: s.EventsQueueURL, deadLetter: s.EventsDlqURL,
	}
}

// setRowVersion makes an order's row look as if a release with that row layout had written it.
func (o operator) setRowVersion(ctx context.Context, orderID string, version int) error {
	_, err := o.dynamodb.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &o.table,
		Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "ORDER#" + orderID},
			"sk": &types.AttributeValueMemberS{Value: "ORDER"},
		},
		UpdateExpression:          aws.String("SET v = :v"),
		ConditionExpression:       aws.String("attribute_exists(pk)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: strconv.Itoa(version)}},
	})
	if err != nil {
		return fmt.Errorf("mark order %s as written by release %d: %w", orderID, version, err)
	}
	return nil
}

// deadLetter is a message of the dead letter queue.
type deadLetter struct{ body, receipt string }

// receiveDeadLetter takes one message from the dead letter queue; an empty one if there is none.
func (o operator) receiveDeadLetter(ctx context.Context) (deadLetter, error) {
	out, err := o.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &o.deadLetter})
	if err != nil || len(out.Messages) == 0 {
		return deadLetter{}, err
	}
	return deadLetter{aws.ToString(out.Messages[0].Body), aws.ToString(out.Messages[0].ReceiptHandle)}, nil
}

// redrive puts a message back on the queue: sent first, deleted then, so that it cannot be lost in between.
func (o operator) redrive(ctx context.Context, l deadLetter) error {
	if _, err := o.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &o.events, MessageBody: &l.body}); err != nil {
		return err
	}
	_, err := o.sqs.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &o.deadLetter, ReceiptHandle: &l.receipt})
	return err
}
