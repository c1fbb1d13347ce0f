package localaws

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// AlarmNotice is the message about an alarm that whoever subscribes to the alarm topic gets, an e-mail address among
// them. AWS's own has further fields.
type AlarmNotice struct {
	AlarmName        string
	AlarmDescription string
	OldStateValue    types.StateValue
	NewStateValue    types.StateValue
	NewStateReason   string
}

// AlarmInbox is a queue that is subscribed to the alarm topic, in the place of a person's mailbox.
type AlarmInbox struct {
	client *sqs.Client
	queue  string // URL
}

// OpenAlarmInbox subscribes a new inbox, which gets the notices from now on. It ends with the stack.
func (s *Stack) OpenAlarmInbox(ctx context.Context) (*AlarmInbox, error) {
	cfg := s.Engine.Config() // past the Proxy: what it counts and breaks is the application's
	client := sqs.NewFromConfig(cfg)
	created, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("alarm-inbox-" + rand.Text())})
	if err != nil {
		return nil, fmt.Errorf("localaws: open alarm inbox: %w", err)
	}
	attributes, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: created.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return nil, fmt.Errorf("localaws: open alarm inbox: %w", err)
	}
	_, err = sns.NewFromConfig(cfg).Subscribe(ctx, &sns.SubscribeInput{
		TopicArn: &s.AlarmTopicARN, Protocol: aws.String("sqs"), Endpoint: aws.String(attributes.Attributes["QueueArn"]),
		Attributes: map[string]string{"RawMessageDelivery": "true"},
	})
	if err != nil {
		return nil, fmt.Errorf("localaws: open alarm inbox: %w", err)
	}
	return &AlarmInbox{client, *created.QueueUrl}, nil
}

// Wait returns the next notice that the alarm of that name is in the state, and drops those before it. It waits as long
// as the context does.
func (i *AlarmInbox) Wait(ctx context.Context, alarm string, state types.StateValue) (AlarmNotice, error) {
	for {
		received, err := i.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &i.queue, WaitTimeSeconds: 1})
		if err != nil {
			return AlarmNotice{}, fmt.Errorf("localaws: wait for %s of %s: %w", state, alarm, err)
		}
		for _, m := range received.Messages {
			var n AlarmNotice
			if err := json.Unmarshal([]byte(aws.ToString(m.Body)), &n); err != nil {
				return n, fmt.Errorf("localaws: notice %s: %w", *m.Body, err)
			}
			if _, err := i.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &i.queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
				return n, fmt.Errorf("localaws: delete notice: %w", err)
			}
			if n.AlarmName == alarm && n.NewStateValue == state {
				return n, nil
			}
		}
	}
}
