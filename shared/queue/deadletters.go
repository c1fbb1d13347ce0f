package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"paidonce/shared/payment"
)

// Hidden is how long a message that is looked at can stay hidden from others: where whoever looks is killed before he
// could make it visible again.
const Hidden = 5 * time.Minute

// deadLetterClient is what going through the dead letter queue needs of an *sqs.Client.
type deadLetterClient interface {
	attributeReader
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// DeadLetters is the dead letter queue: the messages that the worker gave up on.
type DeadLetters struct {
	client deadLetterClient
	url    string
	events *Queue
	now    func() time.Time
}

// NewDeadLetters returns the dead letter queue at the URL, whose messages came from the queue of events.
func NewDeadLetters(c deadLetterClient, url string, events *Queue, now func() time.Time) *DeadLetters {
	return &DeadLetters{c, url, events, now}
}

// DeadLetter is a message of the dead letter queue.
type DeadLetter struct {
	ID       string           // SQS's message id, the same in each receive
	Key      payment.EventKey // of the event; zero where Err says why there is none
	Err      error            // [payment.ErrNewerVersion], or the message is none of ours
	SentAt   time.Time        // when it was first sent, to the queue of events
	Receives int              // about, this one included

	body, receipt string
}

// Reach says how much of the queue a look at it reached. SQS has no list of its messages: they are received until none comes.
type Reach struct {
	Left   int // about how many messages of the queue came to nobody, although they were waited for
	Others int // about how many somebody else has received, so that they cannot be seen
	Stuck  int // how many could not be made visible again: they are, after [Hidden] at most
}

// Complete reports whether every message was seen.
func (r Reach) Complete() bool { return r.Left == 0 && r.Others == 0 }

// List reads all messages, oldest first, and leaves the queue as it was, however it ends. step is called with how many
// each receive brought, never twice at a time. Where ctx ends the error is ctx's.
func (d *DeadLetters) List(ctx context.Context, step func(found int)) ([]DeadLetter, Reach, error) {
	var all []DeadLetter
	p := d.newPass()
	p.visit = func(_ context.Context, fresh []DeadLetter) ([]string, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		all = append(all, fresh...)
		step(len(fresh))
		return nil, nil
	}
	reach, err := p.run(ctx)
	slices.SortFunc(all, func(a, b DeadLetter) int { return a.SentAt.Compare(b.SentAt) })
	return all, reach, err
}

// Redriven is what a redrive came to.
type Redriven struct {
	Moved   []DeadLetter // sent to the queue of events, and deleted here
	Twice   []DeadLetter // sent, and not deleted here, so that they are in both queues. The worker drops the second
	Unsent  []DeadLetter // not taken by the queue of events: they stay
	Missing []string     // ids of messages that did not come: somebody else has or had them
	Reach   Reach
}

// Redrive sends the messages with the ids to the queue of events and then deletes them here; all others are left as they
// were. One that names no event is never sent. step is called with how many each batch moved, never twice at a time.
//
// Where ctx ends, or a call fails, what is in hand is finished, the rest is left as it was, and the error says why. What
// stopped between sending and deleting is in both queues. So the same call again does the rest.
func (d *DeadLetters) Redrive(ctx context.Context, ids []string, step func(moved int)) (Redriven, error) {
	open := map[string]bool{}
	for _, id := range ids {
		open[id] = true
	}
	var r Redriven
	if len(open) == 0 {
		return r, nil
	}
	var failure error // of entries: it keeps no others from being moved
	p := d.newPass()
	p.enough = func() bool { return len(open) == 0 }
	p.visit = func(ctx context.Context, fresh []DeadLetter) (gone []string, err error) {
		p.mu.Lock()
		batch := slices.DeleteFunc(fresh, func(m DeadLetter) bool { return !open[m.ID] || m.Err != nil })
		p.mu.Unlock()
		if len(batch) == 0 {
			return nil, nil
		}
		var sent, deleted []DeadLetter
		sendErr, deleteErr := error(nil), error(nil)
		if sent, sendErr = d.send(ctx, batch); len(sent) > 0 {
			deleted, deleteErr = d.delete(ctx, sent)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range batch {
			delete(open, m.ID)
		}
		r.Moved = append(r.Moved, deleted...)
		r.Twice = append(r.Twice, without(sent, deleted)...)
		r.Unsent = append(r.Unsent, without(batch, sent)...)
		step(len(deleted))
		for _, m := range deleted {
			gone = append(gone, m.ID)
		}
		if err := errors.Join(sendErr, deleteErr); err != nil && !errors.As(err, new(refused)) {
			return gone, err // of the whole call: the next one would fail as well
		} else if failure == nil {
			failure = err
		}
		return gone, nil
	}
	reach, err := p.run(ctx)
	r.Reach, r.Missing = reach, slices.Sorted(maps.Keys(open))
	return r, errors.Join(err, failure)
}

// without are the messages of all that are not among some.
func without(all, some []DeadLetter) (rest []DeadLetter) {
	for _, m := range all {
		if !slices.ContainsFunc(some, func(o DeadLetter) bool { return o.ID == m.ID }) {
			rest = append(rest, m)
		}
	}
	return rest
}

// send sends the very bytes that were received.
func (d *DeadLetters) send(ctx context.Context, batch []DeadLetter) (sent []DeadLetter, err error) {
	bodies := make([]string, len(batch))
	for i, m := range batch {
		bodies[i] = m.body
	}
	taken, err := d.events.sendBatch(ctx, bodies)
	for _, i := range taken {
		sent = append(sent, batch[i])
	}
	return sent, err
}

func (d *DeadLetters) delete(ctx context.Context, batch []DeadLetter) (deleted []DeadLetter, err error) {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &d.url}
	for i := range batch {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &batch[i].receipt})
	}
	out, err := d.client.DeleteMessageBatch(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("queue: delete %d messages: %w", len(batch), err)
	}
	for _, e := range out.Successful {
		if i, err := strconv.Atoi(aws.ToString(e.Id)); err == nil && i >= 0 && i < len(batch) {
			deleted = append(deleted, batch[i])
		}
	}
	if len(out.Failed) > 0 {
		err = fmt.Errorf("queue: delete %d of %d messages: %w", len(out.Failed), len(batch), refusal(out.Failed[0]))
	}
	return deleted, err
}

// longestRelease bounds how long a queue that does not answer is asked to make messages visible: they are, after [Hidden].
const longestRelease = time.Minute

// release makes the messages visible again and returns how many could not be.
func (d *DeadLetters) release(ctx context.Context, held []DeadLetter) (stuck int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestRelease)
	defer cancel()
	var mu sync.Mutex
	released := 0
	_ = eachBatch(ctx, held, func(ctx context.Context, batch []DeadLetter) error {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &d.url}
		for i := range batch {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &batch[i].receipt, // VisibilityTimeout: 0, at once
			})
		}
		out, err := d.client.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return nil // the next batch may fare better; these count as stuck
		}
		visibleAgain := len(out.Successful)
		for _, e := range out.Failed {
			if notHidden[aws.ToString(e.Code)] {
				visibleAgain++
			}
		}
		mu.Lock()
		released += visibleAgain
		mu.Unlock()
		return nil
	})
	return len(held) - released
}

// notHidden are the codes of a message that was visible again by itself, or is gone (AWS, ChangeMessageVisibility).
var notHidden = map[string]bool{
	"MessageNotInflight": true, "AWS.SimpleQueueService.MessageNotInflight": true,
	"ReceiptHandleIsInvalid": true, "InvalidParameterValue": true,
}

func deadLetter(m types.Message) DeadLetter {
	letter := DeadLetter{ID: aws.ToString(m.MessageId), body: aws.ToString(m.Body), receipt: aws.ToString(m.ReceiptHandle)}
	letter.Key, letter.Err = Decode(letter.body)
	if ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
		letter.SentAt = time.UnixMilli(ms).UTC()
	}
	letter.Receives, _ = strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]) // 0: not said
	return letter
}
