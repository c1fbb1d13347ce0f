package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// wait is how long a receive waits for a message, in seconds. A receive that waits asks all of SQS's servers, one that
	// does not asks some (AWS, "Short and long polling").
	wait = 2

	// maxIdle is how many rounds in a row may bring nothing new although SQS counts messages, before they are given up.
	maxIdle = 4

	// longestPass ends a pass before messages that it hid come back.
	longestPass = Hidden - time.Minute
)

// pass goes once through the dead letter queue. Whatever it receives stays hidden until its end, so that it meets each
// message once; then all that is not gone is made visible again.
type pass struct {
	queue *DeadLetters
	// visit is called with messages that were not met before, and says which are gone from the queue. Several calls run
	// at a time, each under a context that does not end with the pass's.
	visit  func(ctx context.Context, fresh []DeadLetter) (gone []string, err error)
	enough func() bool // whether no more need be received; nil: never. Called under mu

	mu    sync.Mutex
	held  map[string]DeadLetter // by id, with the last receipt
	met   map[string]bool
	until time.Time
}

func (d *DeadLetters) newPass() *pass {
	return &pass{queue: d, held: map[string]DeadLetter{}, met: map[string]bool{}, until: d.now().Add(longestPass)}
}

func (p *pass) run(ctx context.Context) (reach Reach, err error) {
	defer func() {
		reach.Stuck = p.queue.release(ctx, slices.Collect(maps.Values(p.held)))
	}()
	first, err := p.counts(ctx)
	if err != nil {
		return reach, err
	}
	for now, idle := first, 0; ; {
		before := len(p.met)
		if err := p.round(ctx, min(sideBySide, 1+now.visible/batchSize)); err != nil || p.isEnough() {
			return reach, err
		}
		if now, err = p.counts(ctx); err != nil {
			return reach, err
		}
		reach.Others = max(0, min(now.hidden-len(p.held), first.visible+first.hidden-len(p.met))) // what lags counts in one of them
		if idle++; len(p.met) > before {
			idle = 0
		}
		switch {
		case now.visible == 0: // and each reader came back with nothing
			return reach, nil
		case idle > 0 && len(p.met) >= first.visible && now.visible <= len(p.held): // the count lags by a minute or so
			return reach, nil
		case idle == maxIdle:
			reach.Left = now.visible
			return reach, nil
		}
	}
}

// counts is what SQS counts, about.
type counts struct{ visible, hidden int }

func (p *pass) counts(ctx context.Context) (counts, error) {
	n, err := count(ctx, p.queue.client, p.queue.url, visible, hidden)
	if ctx.Err() != nil {
		return counts{}, ctx.Err()
	}
	if err != nil {
		return counts{}, err
	}
	return counts{n[0], n[1]}, nil
}

// round lets readers receive side by side, each until nothing new comes.
func (p *pass) round(ctx context.Context, readers int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			if err := p.read(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// read receives until nothing new comes. A receive is never cancelled: what SQS hides for an answer that nobody hears would
// stay hidden.
func (p *pass) read(ctx context.Context) error {
	for ctx.Err() == nil && !p.isEnough() && !p.queue.now().After(p.until) {
		fresh, err := p.receive(ctx)
		if err != nil || len(fresh) == 0 {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		err = finish(ctx, func(ctx context.Context) error {
			gone, err := p.visit(ctx, fresh)
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, id := range gone {
				delete(p.held, id)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// receive hides up to batchSize messages and returns those that were not met before.
func (p *pass) receive(ctx context.Context) (fresh []DeadLetter, err error) {
	var out *sqs.ReceiveMessageOutput
	err = finish(ctx, func(ctx context.Context) (err error) {
		out, err = p.queue.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &p.queue.url, MaxNumberOfMessages: batchSize, VisibilityTimeout: int32(Hidden / time.Second), WaitTimeSeconds: wait,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{
				types.MessageSystemAttributeNameSentTimestamp, types.MessageSystemAttributeNameApproximateReceiveCount,
			},
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("queue: receive dead letters: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range out.Messages {
		letter := deadLetter(m)
		if letter.Receives >= p.held[letter.ID].Receives { // SQS may give a message twice: the last receipt counts, whoever hears of it first
			p.held[letter.ID] = letter
		}
		if !p.met[letter.ID] {
			p.met[letter.ID] = true
			fresh = append(fresh, letter)
		}
	}
	return fresh, nil
}

func (p *pass) isEnough() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.enough != nil && p.enough()
}
