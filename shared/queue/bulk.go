package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"paidonce/shared/payment"
)

const (
	batchSize = 10 // the most messages that one call takes or gives (AWS, "Amazon SQS message quotas")

	// sideBySide is how many calls of a bulk operation are on their way at a time.
	sideBySide = 8

	// inHand bounds what is finished although the caller has gone.
	inHand = 30 * time.Second
)

// refused is why SQS did not do one entry of a batch.
type refused struct{ code string }

func (r refused) Error() string { return "SQS: " + r.code }

// ErrorCode is the code that SQS gave, as the SDK's own errors have it.
func (r refused) ErrorCode() string { return r.code }

func refusal(e types.BatchResultErrorEntry) error { return refused{aws.ToString(e.Code)} }

// SendAll sends the events' keys in batches, some of them side by side, and returns those that the queue took, in any
// order. step is called with how many each batch sent, never twice at a time. Where ctx ends, batches that have begun are
// finished and the error is ctx's. A key that is not among those returned may have been sent all the same.
func (q *Queue) SendAll(ctx context.Context, keys []payment.EventKey, step func(sent int)) ([]payment.EventKey, error) {
	var mu sync.Mutex
	var sent []payment.EventKey
	err := eachBatch(ctx, keys, func(ctx context.Context, batch []payment.EventKey) error {
		bodies := make([]string, len(batch))
		for i, k := range batch {
			bodies[i] = Encode(k)
		}
		taken, err := q.sendBatch(ctx, bodies)
		mu.Lock()
		defer mu.Unlock()
		for _, i := range taken {
			sent = append(sent, batch[i])
		}
		step(len(taken))
		return err
	})
	return sent, err
}

// sendBatch sends up to batchSize bodies and returns the places of those that the queue took.
func (q *Queue) sendBatch(ctx context.Context, bodies []string) (taken []int, err error) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &q.url}
	for i := range bodies {
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &bodies[i]})
	}
	out, err := q.client.SendMessageBatch(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("queue: send %d messages: %w", len(bodies), err)
	}
	for _, e := range out.Successful {
		if i, err := strconv.Atoi(aws.ToString(e.Id)); err == nil && i >= 0 && i < len(bodies) {
			taken = append(taken, i)
		}
	}
	if len(out.Failed) > 0 {
		err = fmt.Errorf("queue: send %d of %d messages: %w", len(out.Failed), len(bodies), refusal(out.Failed[0]))
	}
	return taken, err
}

// eachBatch calls do with the items, batchSize at a time and sideBySide calls at once. After the first error, or where
// ctx ends, it begins no other batch; a batch that has begun is finished under a context of its own. It returns the first
// error, or ctx's.
func eachBatch[T any](ctx context.Context, items []T, do func(context.Context, []T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan []T)
	var workers sync.WaitGroup
	for range min(sideBySide, (len(items)+batchSize-1)/batchSize) {
		workers.Go(func() {
			for batch := range batches {
				if err := finish(ctx, func(ctx context.Context) error { return do(ctx, batch) }); err != nil {
					cancel(err)
				}
			}
		})
	}
	for batch := range slices.Chunk(items, batchSize) {
		if ctx.Err() != nil {
			break
		}
		select {
		case batches <- batch:
		case <-ctx.Done():
		}
	}
	close(batches)
	workers.Wait()
	return context.Cause(ctx)
}

// finish does what must not be left halfway, although the caller may go meanwhile.
func finish(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), inHand)
	defer cancel()
	return do(ctx)
}
