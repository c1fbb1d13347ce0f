package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/cmd/paidonce/stack"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

// target is the stack that a command is about, with its queues.
type target struct {
	stack.Target
	queues func(context.Context) (eventQueues, error)
}

// connector finds the stack that the options name.
type connector func(context.Context, stack.Options) (target, error)

// withQueues opens the queues of the stack that is found, once they are needed.
func withQueues(find stack.Connector) connector {
	return func(ctx context.Context, o stack.Options) (target, error) {
		t, err := find(ctx, o)
		return target{t, func(ctx context.Context) (eventQueues, error) { return openQueues(ctx, t.Deployed) }}, err
	}
}

// eventQueues are a stack's queue of events and its dead letter queue.
type eventQueues struct {
	events *queue.Queue
	dead   *queue.DeadLetters
}

func openQueues(ctx context.Context, d stack.Deployed) (eventQueues, error) {
	eventsURL, deadURL, err := queueURLs(ctx, cloudformation.NewFromConfig(d.Config), d.Name)
	if err != nil {
		return eventQueues{}, err
	}
	client := sqs.NewFromConfig(d.Config)
	events := queue.New(client, eventsURL)
	return eventQueues{events, queue.NewDeadLetters(client, deadURL, events, time.Now)}, nil
}

func queueURLs(ctx context.Context, c stack.Describer, name string) (events, dead string, err error) {
	described, err := stack.Describe(ctx, c, name)
	if err != nil {
		return "", "", err
	}
	outputs := stack.PartsOf(described).Outputs
	events, dead = outputs["EventsQueueUrl"], outputs["EventsDlqUrl"]
	if events == "" || dead == "" {
		return "", "", fmt.Errorf("stack %s has no outputs EventsQueueUrl and EventsDlqUrl: it is of another release, use the paidonce of that one", name)
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
func (t target) cureEvents(err error, needs string) error {
	switch code := stack.CodeOf(err); {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case code == "QueueDoesNotExist" || code == "AWS.SimpleQueueService.NonExistentQueue":
		return fmt.Errorf("%s has lost a queue that its outputs name (%s): deploy it again", t.Name, code)
	case errors.Is(err, payment.ErrNewerVersion):
		return errors.New("a row was written by a newer release: use the paidonce of that one")
	}
	return t.CureFor(err, needs)
}
