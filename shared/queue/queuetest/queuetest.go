// Package queuetest is SQS in memory, as far as standard queues are used here: messages are hidden while somebody has
// them, come back when their time is up, and are deleted by the receipt of their last receive.
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// SQS holds queues by their URLs. Its methods take the place of an *sqs.Client's and may be called concurrently. No call
// waits: a receive that finds nothing returns at once.
type SQS struct {
	Now func() time.Time

	// Before, if set, is asked before each call, by the name of the operation; an error is the call's. It is called
	// outside of the lock, so that it may call the queues itself.
	Before func(operation string) error
	// Refuse, if set, is asked for each entry of a batch, by the operation and the message's body: a code refuses the entry.
	Refuse func(operation, body string) (code string)
	// GivesTwice gives each message to the first two who ask, as SQS may.
	GivesTwice bool
	// Lag is what the counts of visible messages are wrong by.
	Lag int

	mu     sync.Mutex
	queues map[string][]*message
	made   int
}

type message struct {
	id, body, receipt string
	sent, hiddenUntil time.Time
	receives          int
}

// Put puts a message on a queue, as sent at this time, and returns its id.
func (s *SQS) Put(url, body string, sent time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(url, body, sent)
}

func (s *SQS) put(url, body string, sent time.Time) string {
	if s.queues == nil {
		s.queues = map[string][]*message{}
	}
	s.made++
	m := &message{id: fmt.Sprintf("message-%d", s.made), body: body, sent: sent}
	s.queues[url] = append(s.queues[url], m)
	return m.id
}

// Bodies are the bodies on a queue, in the order in which they were sent, and how many of them are hidden.
func (s *SQS) Bodies(url string) (bodies []string, hidden int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.queues[url] {
		bodies = append(bodies, m.body)
		if s.isHidden(m) {
			hidden++
		}
	}
	return bodies, hidden
}

func (s *SQS) isHidden(m *message) bool { return s.Now().Before(m.hiddenUntil) }

// begin is what each call begins with. A context that ends does not keep SQS from doing what it was asked: only the answer is
// lost.
func (s *SQS) begin(operation string) error {
	if s.Before == nil {
		return nil
	}
	return s.Before(operation)
}

// GetQueueAttributes counts the messages.
func (s *SQS) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if err := s.begin("GetQueueAttributes"); err != nil {
		return nil, err
	}
	bodies, hidden := s.Bodies(*in.QueueUrl)
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{
		"ApproximateNumberOfMessages":           strconv.Itoa(len(bodies) - hidden + s.Lag),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(hidden),
	}}, ctx.Err()
}

// ReceiveMessage hides and returns what is visible. One that does not wait asks servers that have nothing.
func (s *SQS) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if err := s.begin("ReceiveMessage"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &sqs.ReceiveMessageOutput{}
	if in.WaitTimeSeconds == 0 {
		return out, ctx.Err()
	}
	for _, m := range s.queues[*in.QueueUrl] {
		if s.isHidden(m) || len(out.Messages) == int(in.MaxNumberOfMessages) {
			continue
		}
		m.receives++
		m.receipt = fmt.Sprintf("%s/%d", m.id, m.receives)
		if m.receives > 1 || !s.GivesTwice {
			m.hiddenUntil = s.Now().Add(time.Duration(in.VisibilityTimeout) * time.Second)
		}
		out.Messages = append(out.Messages, types.Message{
			MessageId: aws.String(m.id), Body: aws.String(m.body), ReceiptHandle: aws.String(m.receipt),
			Attributes: s.attributes(m, in.MessageSystemAttributeNames),
		})
	}
	return out, ctx.Err()
}

func (s *SQS) attributes(m *message, names []types.MessageSystemAttributeName) map[string]string {
	attributes := map[string]string{}
	for _, name := range names {
		switch name {
		case types.MessageSystemAttributeNameSentTimestamp:
			attributes[string(name)] = strconv.FormatInt(m.sent.UnixMilli(), 10)
		case types.MessageSystemAttributeNameApproximateReceiveCount:
			attributes[string(name)] = strconv.Itoa(m.receives)
		}
	}
	return attributes
}

// SendMessage puts a message on a queue.
func (s *SQS) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if err := s.begin("SendMessage"); err != nil {
		return nil, err
	}
	return &sqs.SendMessageOutput{MessageId: aws.String(s.Put(*in.QueueUrl, *in.MessageBody, s.Now()))}, ctx.Err()
}

// SendMessageBatch puts messages on a queue.
func (s *SQS) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	if err := s.begin("SendMessageBatch"); err != nil {
		return nil, err
	}
	out := &sqs.SendMessageBatchOutput{}
	failed, err := batch(ctx, len(in.Entries), func(i int) (*string, string) {
		e := in.Entries[i]
		if code := s.refused("SendMessageBatch", *e.MessageBody); code != "" {
			return e.Id, code
		}
		s.Put(*in.QueueUrl, *e.MessageBody, s.Now())
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
		return e.Id, ""
	})
	out.Failed = failed
	return out, err
}

// DeleteMessageBatch deletes messages by their receipts.
func (s *SQS) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if err := s.begin("DeleteMessageBatch"); err != nil {
		return nil, err
	}
	out := &sqs.DeleteMessageBatchOutput{}
	failed, err := batch(ctx, len(in.Entries), func(i int) (*string, string) {
		e := in.Entries[i]
		code := s.with(*in.QueueUrl, *e.ReceiptHandle, "DeleteMessageBatch", func(messages []*message, at int) []*message {
			return append(messages[:at:at], messages[at+1:]...)
		})
		if code == "" {
			out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: e.Id})
		}
		return e.Id, code
	})
	out.Failed = failed
	return out, err
}

// ChangeMessageVisibilityBatch changes until when messages are hidden.
func (s *SQS) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if err := s.begin("ChangeMessageVisibilityBatch"); err != nil {
		return nil, err
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	failed, err := batch(ctx, len(in.Entries), func(i int) (*string, string) {
		e := in.Entries[i]
		code := s.with(*in.QueueUrl, *e.ReceiptHandle, "ChangeMessageVisibilityBatch", func(messages []*message, at int) []*message {
			messages[at].hiddenUntil = s.Now().Add(time.Duration(e.VisibilityTimeout) * time.Second)
			return messages
		})
		if code == "" {
			out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
		}
		return e.Id, code
	})
	out.Failed = failed
	return out, err
}

// batch does each entry and collects those that were refused. A batch has 1 to 10 entries (AWS, SendMessageBatch).
func batch(ctx context.Context, n int, do func(i int) (id *string, code string)) (failed []types.BatchResultErrorEntry, err error) {
	if n < 1 || n > 10 {
		return nil, errors.New("queuetest: a batch has 1 to 10 entries")
	}
	for i := range n {
		if id, code := do(i); code != "" {
			failed = append(failed, types.BatchResultErrorEntry{Id: id, Code: &code})
		}
	}
	return failed, ctx.Err()
}

func (s *SQS) refused(operation, body string) string {
	if s.Refuse == nil {
		return ""
	}
	return s.Refuse(operation, body)
}

// with changes a queue's messages by the one that has the receipt, and returns the code with which that was refused.
func (s *SQS) with(url, receipt, operation string, change func(messages []*message, at int) []*message) (code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.queues[url] {
		if m.receipt != receipt {
			continue
		}
		if !s.isHidden(m) {
			return "MessageNotInflight"
		}
		if code := s.refused(operation, m.body); code != "" {
			return code
		}
		s.queues[url] = change(s.queues[url], i)
		return ""
	}
	return "ReceiptHandleIsInvalid"
}
