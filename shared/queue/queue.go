// Package queue carries events from the webhook to the worker through SQS. A message names an event and holds nothing
// of its body: what it says is read from the table, where it was verified.
package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"paidonce/shared/payment"
)

// messageVersion is the newest form of a message that this release sends and understands.
const messageVersion = 1

// maxKey is longer, in bytes, than any event's name, and shorter than what DynamoDB refuses as a key.
const maxKey = 500

// message is the form on the wire: {"v":1,"gateway":"razorpay","event":"Q2bFh..."}.
type message struct {
	Version int    `json:"v"`
	Gateway string `json:"gateway"`
	Event   string `json:"event"`
}

// client is what the queue needs of an *sqs.Client.
type client interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// Queue is the queue of events that wait for the worker.
type Queue struct {
	client client
	url    string
}

// New returns the queue at the URL.
func New(c client, url string) *Queue { return &Queue{c, url} }

// Send puts the event's key on the queue. When it fails the message may have been sent all the same.
func (q *Queue) Send(ctx context.Context, k payment.EventKey) error {
	body := Encode(k)
	if _, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body}); err != nil {
		return fmt.Errorf("queue: send event %s: %w", k, err)
	}
	return nil
}

// Waiting is about how many messages wait to be received.
func (q *Queue) Waiting(ctx context.Context) (int, error) {
	counted, err := count(ctx, q.client, q.url, visible)
	if err != nil {
		return 0, err
	}
	return counted[0], nil
}

// What SQS counts, about.
const (
	visible = types.QueueAttributeNameApproximateNumberOfMessages
	hidden  = types.QueueAttributeNameApproximateNumberOfMessagesNotVisible
)

// attributeReader is what counting needs of an *sqs.Client.
type attributeReader interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// count reads the counts of a queue, in the order in which they are named.
func count(ctx context.Context, c attributeReader, url string, names ...types.QueueAttributeName) ([]int, error) {
	out, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if err != nil {
		return nil, fmt.Errorf("queue: count messages: %w", err)
	}
	counts := make([]int, len(names))
	for i, name := range names {
		if counts[i], err = strconv.Atoi(out.Attributes[string(name)]); err != nil {
			return nil, fmt.Errorf("queue: count messages: %w", err)
		}
	}
	return counts, nil
}

// Encode returns the body of the message that names the event.
func Encode(k payment.EventKey) string {
	b, err := json.Marshal(message{messageVersion, k.Gateway, k.ID})
	if err != nil {
		panic(err) // two strings and a number
	}
	return string(b)
}

// Decode reads the body of a message. [payment.ErrNewerVersion] if a newer release sent it: it must stay on the queue
// until that release is back.
func Decode(body string) (payment.EventKey, error) {
	var m message
	err := json.Unmarshal([]byte(body), &m)
	if m.Version > messageVersion { // first: a newer release may have given the other fields another form
		return payment.EventKey{}, fmt.Errorf("queue: message has version %d: %w", m.Version, payment.ErrNewerVersion)
	}
	if err != nil {
		return payment.EventKey{}, fmt.Errorf("queue: message is not JSON of ours: %w", err)
	}
	if m.Version < 1 || m.Gateway == "" || m.Event == "" || len(m.Gateway)+len(m.Event) > maxKey {
		return payment.EventKey{}, fmt.Errorf("queue: message names no event")
	}
	return payment.EventKey{Gateway: m.Gateway, ID: m.Event}, nil
}
