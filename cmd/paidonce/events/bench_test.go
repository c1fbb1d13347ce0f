package events

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
	"paidonce/shared/queue/queuetest"
	"paidonce/shared/storetest"
)

const (
	benchEvents = "https://sqs/events"
	benchDead   = "https://sqs/dead"
)

// queueBench is a stack with its queues and its table in memory, on a clock that the test moves.
type queueBench struct {
	*testing.T
	sqs    *queuetest.SQS
	memory *storetest.Memory
	table  stack.EventKeeper // memory, unless a test knows better
	clock  atomic.Pointer[time.Time]
	asks   bool   // somebody sits in front
	answer string // what he types
	slept  func() // what happens while a command waits
	opened int    // how often the queues were
}

// day is when the tests look.
var day = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newQueueBench(t *testing.T) *queueBench {
	t.Helper()
	b := &queueBench{T: t, memory: storetest.NewMemory()}
	b.at(0)
	b.sqs, b.table = &queuetest.SQS{Now: b.now}, b.memory
	return b
}

func (b *queueBench) now() time.Time { return *b.clock.Load() }

func (b *queueBench) at(after time.Duration) {
	at := day.Add(after)
	b.clock.Store(&at)
}

// letter stores an event that failed two hours ago and its dead letter, changed.
func (b *queueBench) letter(id string, change func(*payment.Event)) payment.EventKey {
	b.Helper()
	k := b.event(id, change)
	b.sqs.Put(benchDead, queue.Encode(k), day.Add(-2*time.Hour))
	return k
}

// event stores an event that failed two hours ago, changed.
func (b *queueBench) event(id string, change func(*payment.Event)) payment.EventKey {
	b.Helper()
	e := payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: id}, Status: payment.EventFailed, Type: "payment.captured", OrderID: "o1",
		Verdict: "gave up after 5 receives: dynamo: commit order o1: order was changed by somebody else",
		Body:    []byte(capturedEvent), SHA256: digest(capturedEvent), VerifiedBy: "test_current", Mode: payment.Test,
		Attempts: 1, ReceivedAt: day.Add(-2 * time.Hour),
	}
	if change != nil {
		change(&e)
	}
	if _, err := b.memory.PutEvent(b.Context(), e); err != nil {
		b.Fatal(err)
	}
	return e.Key
}

// settle settles an event as the worker does.
func (b *queueBench) settle(k payment.EventKey, status payment.EventStatus, why string) {
	e, err := b.memory.Event(context.Background(), k)
	if err == nil {
		err = b.memory.SettleEvent(context.Background(), e.Settle(status, e.Type, e.OrderID, why))
	}
	if err != nil {
		b.Error(err)
	}
}

func (b *queueBench) surroundings() terminal.Surroundings {
	return terminal.Surroundings{
		Now: b.now,
		Sleep: func(ctx context.Context, d time.Duration) error {
			now := b.now().Add(d)
			b.clock.Store(&now)
			if b.slept != nil {
				b.slept()
			}
			return ctx.Err()
		},
		Asks: func(*cobra.Command) bool { return b.asks },
	}
}

// run runs a command, as the command line does.
func (b *queueBench) run(args ...string) (stdout, stderr string, err error) {
	return b.runContext(b.Context(), args...)
}

func (b *queueBench) runContext(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	on := target{Target: stack.Target{Name: "the test's stack", Flags: " --stack test", Events: b.table}}
	on.queues = func(context.Context) (eventQueues, error) {
		b.opened++
		events := queue.New(b.sqs, benchEvents)
		return eventQueues{events, queue.NewDeadLetters(b.sqs, benchDead, events, b.now)}, nil
	}
	find := func(context.Context, stack.Options) (target, error) { return on, nil }
	root := &cobra.Command{Use: "paidonce", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(dlqCommand(find, b.surroundings()), eventsCommand(find, b.surroundings()))
	var out, errOut bytes.Buffer
	root.SetArgs(args)
	root.SetIn(strings.NewReader(b.answer))
	root.SetOut(&out)
	root.SetErr(&errOut)
	err = root.ExecuteContext(ctx)
	return out.String(), errOut.String(), err
}

// want compares what is on the queues, and that no dead letter is hidden.
func (b *queueBench) want(events, dead []payment.EventKey) {
	b.Helper()
	for _, q := range []struct {
		url  string
		want []payment.EventKey
	}{{benchEvents, events}, {benchDead, dead}} {
		bodies, hidden := b.sqs.Bodies(q.url)
		var got []string
		for _, body := range bodies {
			k, err := queue.Decode(body)
			if err != nil {
				got = append(got, body)
				continue
			}
			got = append(got, k.String())
		}
		var want []string
		for _, k := range q.want {
			want = append(want, k.String())
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" || hidden > 0 {
			b.Errorf("%s: %d hidden (-want +got)\n%s", q.url, hidden, diff)
		}
	}
}

// failed stores so many failed events with dead letters.
func (b *queueBench) failed(n int) (keys []payment.EventKey) {
	b.Helper()
	for i := range n {
		keys = append(keys, b.letter(fmt.Sprintf("evt_%03d", i), nil))
	}
	return keys
}

// each is one message of each kind that a dead letter queue can have.
func (b *queueBench) each() map[string]payment.EventKey {
	b.Helper()
	keys := map[string]payment.EventKey{
		"race":    b.letter("evt_race1", nil),
		"race2":   b.letter("evt_race2", func(e *payment.Event) { e.OrderID, e.Verdict = "o2", strings.ReplaceAll(e.Verdict, "o1", "o2") }),
		"young":   b.letter("evt_young", func(e *payment.Event) { e.Type, e.ReceivedAt = "refund.processed", day.Add(-5*time.Minute) }),
		"applied": b.letter("evt_applied", func(e *payment.Event) { e.Status, e.Verdict = payment.EventApplied, "fulfilled" }),
		"unsaid":  b.letter("evt_unsaid", func(e *payment.Event) { e.Status, e.Verdict = payment.EventReceived, "waiting for the worker" }),
		"aws": b.letter("evt_aws", func(e *payment.Event) {
			e.Verdict = "gave up after 5 receives: dynamo: read event razorpay/evt_aws: operation error DynamoDB: GetItem, StatusCode: 400, RequestID: 7UB5-A, ThrottlingException: red \x1b[31m"
		}),
		"no row": {Gateway: "razorpay", ID: "evt_gone"},
	}
	b.sqs.Put(benchDead, queue.Encode(keys["no row"]), day.Add(-14*24*time.Hour))
	b.sqs.Put(benchDead, "asha.rao@example.com", day.Add(-time.Minute))
	b.sqs.Put(benchDead, `{"v":2,"gateway":"razorpay","event":"evt_new"}`, day.Add(-30*time.Second))
	return keys
}

// oddTable is a table whose rows of some events a newer release wrote, and whose index still lists events that it should not.
type oddTable struct {
	stack.EventKeeper
	newer, stale payment.EventKey
}

func (t oddTable) Event(ctx context.Context, k payment.EventKey) (payment.Event, error) {
	if k == t.newer {
		return payment.Event{}, fmt.Errorf("read event: %w", payment.ErrNewerVersion)
	}
	return t.EventKeeper.Event(ctx, k)
}

func (t oddTable) DueEvents(ctx context.Context, s payment.EventStatus, before time.Time, found func(payment.EventKey) bool) error {
	if t.stale.ID != "" && !found(t.stale) {
		return nil
	}
	return t.EventKeeper.DueEvents(ctx, s, before, found)
}

// interrupt ends a context at the n-th call of an operation.
func (b *queueBench) interrupt(operation string, at int) context.Context {
	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)
	var mu sync.Mutex
	calls := 0
	b.sqs.Before = func(o string) error {
		mu.Lock()
		defer mu.Unlock()
		if o == operation {
			if calls++; calls == at {
				cancel()
			}
		}
		return nil
	}
	return ctx
}
