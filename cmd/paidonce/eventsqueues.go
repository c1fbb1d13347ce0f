package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

// eventsTarget is the stack that a command is about, with its queues.
type eventsTarget struct {
	target
	queues func(context.Context) (eventQueues, error)
}

// eventsConnector finds the stack that the options name.
type eventsConnector func(context.Context, targetOptions) (eventsTarget, error)

// withQueues opens the queues of the stack that is found, once they are needed.
func withQueues(find connector) eventsConnector {
	return func(ctx context.Context, o targetOptions) (eventsTarget, error) {
		t, err := find(ctx, o)
		return eventsTarget{t, func(ctx context.Context) (eventQueues, error) { return openQueues(ctx, t.stack) }}, err
	}
}

// eventQueues are a stack's queue of events and its dead letter queue.
type eventQueues struct {
	events *queue.Queue
	dead   *queue.DeadLetters
}

func openQueues(ctx context.Context, d deployed) (eventQueues, error) {
	eventsURL, deadURL, err := queueURLs(ctx, cloudformation.NewFromConfig(d.cfg), d.stack)
	if err != nil {
		return eventQueues{}, err
	}
	client := sqs.NewFromConfig(d.cfg)
	events := queue.New(client, eventsURL)
	return eventQueues{events, queue.NewDeadLetters(client, deadURL, events, time.Now)}, nil
}

func queueURLs(ctx context.Context, c stackDescriber, stack string) (events, dead string, err error) {
	described, err := describeStack(ctx, c, stack)
	if err != nil {
		return "", "", err
	}
	outputs := partsOf(described).outputs
	events, dead = outputs["EventsQueueUrl"], outputs["EventsDlqUrl"]
	if events == "" || dead == "" {
		return "", "", fmt.Errorf("stack %s has no outputs EventsQueueUrl and EventsDlqUrl: it is of another release, use the paidonce of that one", stack)
	}
	return events, dead, nil
}

// What the commands need to be allowed.
const (
	mayLook    = "cloudformation:DescribeStacks, dynamodb:GetItem on the table, and sqs:GetQueueAttributes, ReceiveMessage and ChangeMessageVisibility on the dead letter queue"
	mayRedrive = mayLook + "; to redrive also sqs:DeleteMessage there and SendMessage on the events queue"
	mayDrop    = mayLook + "; to drop also sqs:DeleteMessage there"
	mayList    = "cloudformation:DescribeStacks, and dynamodb:Query on the table and its index, GetItem and BatchGetItem"
	mayReplay  = mayList + "; to replay also sqs:SendMessage on the events queue"
)

// cureEvents is cure for what goes wrong between the queues and the table.
func (t eventsTarget) cureEvents(err error, needs string) error {
	switch code := codeOf(err); {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case code == "QueueDoesNotExist" || code == "AWS.SimpleQueueService.NonExistentQueue":
		return fmt.Errorf("%s has lost a queue that its outputs name (%s): deploy it again", t.name, code)
	case errors.Is(err, payment.ErrNewerVersion):
		return errors.New("a row was written by a newer release: use the paidonce of that one")
	}
	return t.cureFor(err, needs)
}
