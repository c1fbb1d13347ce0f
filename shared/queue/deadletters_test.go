package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
	"paidonce/shared/queue"
	"paidonce/shared/queue/queuetest"
)

const deadURL, eventsURL = "https://sqs/dead", "https://sqs/events"

var sentAt = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// bench is a dead letter queue in memory, on a clock that the test moves.
type bench struct {
	*testing.T
	sqs   *queuetest.SQS
	dead  *queue.DeadLetters
	clock atomic.Pointer[time.Time]
}

func newBench(t *testing.T, letters int) *bench {
	t.Helper()
	b := &bench{T: t}
	b.pass(0)
	now := func() time.Time { return *b.clock.Load() }
	b.sqs = &queuetest.SQS{Now: now}
	b.dead = queue.NewDeadLetters(b.sqs, deadURL, queue.New(b.sqs, eventsURL), now)
	for i := range letters {
		b.sqs.Put(deadURL, queue.Encode(letterKey(i)), sentAt.Add(time.Duration(i)*time.Second))
	}
	return b
}

func (b *bench) pass(since time.Duration) {
	at := sentAt.Add(time.Hour + since)
	b.clock.Store(&at)
}

func letterKey(i int) payment.EventKey {
	return payment.EventKey{Gateway: "razorpay", ID: fmt.Sprintf("e%05d", i)}
}

// bodies are the bodies on a queue, sorted.
func (b *bench) bodies(url string) []string {
	bodies, _ := b.sqs.Bodies(url)
	slices.Sort(bodies)
	return bodies
}

// hidden is how many dead letters are hidden.
func (b *bench) hidden() int {
	_, n := b.sqs.Bodies(deadURL)
	return n
}

func (b *bench) list() ([]queue.DeadLetter, queue.Reach) {
	b.Helper()
	all, reach, err := b.dead.List(b.Context(), func(int) {})
	if err != nil {
		b.Fatal(err)
	}
	return all, reach
}

// ids are the message ids of what a first look shows, as a plan has them.
func (b *bench) ids() (ids []string) {
	b.Helper()
	all, _ := b.list()
	for _, m := range all {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestListShowsAllAndLeavesTheQueueAsItWas(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 1234} {
		b := newBench(t, n)
		before, counted := b.bodies(deadURL), 0
		all, reach, err := b.dead.List(t.Context(), func(found int) { counted += found })
		if err != nil || len(all) != n || counted != n || !reach.Complete() {
			t.Errorf("%d messages: %d listed, %d counted, reach %+v, %v", n, len(all), counted, reach, err)
		}
		if diff := cmp.Diff(before, b.bodies(deadURL)); diff != "" || b.hidden() != 0 {
			t.Errorf("%d messages: %d are hidden (-before +after)\n%s", n, b.hidden(), diff)
		}
		for i, m := range all {
			if m.Key != letterKey(i) || m.Err != nil || !m.SentAt.Equal(sentAt.Add(time.Duration(i)*time.Second)) || m.Receives != 1 {
				t.Fatalf("letter %d is %+v", i, m)
			}
		}
	}
}

func TestListShowsWhatIsNoMessageOfOurs(t *testing.T) {
	b := newBench(t, 1)
	b.sqs.Put(deadURL, "hello", sentAt.Add(-2*time.Second))
	b.sqs.Put(deadURL, `{"v":2}`, sentAt.Add(-time.Second))
	all, _ := b.list()
	if len(all) != 3 || all[0].Err == nil || !errors.Is(all[1].Err, payment.ErrNewerVersion) || all[2].Err != nil {
		t.Errorf("listed %+v", all)
	}
}

func TestListSaysWhatItCouldNotSee(t *testing.T) {
	b := newBench(t, 25)
	if _, err := b.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(deadURL), MaxNumberOfMessages: 10, VisibilityTimeout: 60, WaitTimeSeconds: 1,
	}); err != nil {
		t.Fatal(err)
	}
	all, reach := b.list()
	if len(all) != 15 || reach != (queue.Reach{Others: 10}) {
		t.Errorf("%d listed, reach %+v", len(all), reach)
	}
	if b.hidden() != 10 {
		t.Errorf("%d are hidden: what another has is not ours to show", b.hidden())
	}
}

func TestListTrustsNoCount(t *testing.T) {
	for _, c := range []struct {
		name          string
		letters, lag  int
		want          queue.Reach
		wantsReceives int // at least
	}{
		{"messages that nobody gets", 3, 50, queue.Reach{Left: 50}, 5},
		{"a count that still has what was there", 12, 7, queue.Reach{Left: 7}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.letters)
			b.sqs.Lag = c.lag
			var receives atomic.Int64
			b.sqs.Before = func(operation string) error {
				if operation == "ReceiveMessage" {
					receives.Add(1)
				}
				return nil
			}
			all, reach := b.list()
			if len(all) != c.letters || reach != c.want || int(receives.Load()) < c.wantsReceives {
				t.Errorf("%d listed by %d receives, reach %+v", len(all), receives.Load(), reach)
			}
		})
	}
	b := newBench(t, 12)
	counted := 0
	b.sqs.Before = func(operation string) error { // as SQS does it: right at first, and then as it was a while ago
		if operation == "GetQueueAttributes" {
			if counted++; counted > 1 {
				b.sqs.Lag = 12
			}
		}
		return nil
	}
	if all, reach := b.list(); len(all) != 12 || !reach.Complete() {
		t.Errorf("%d listed, reach %+v, although all that was counted at first was seen", len(all), reach)
	}
}

func TestListGivesUpBeforeItsMessagesComeBack(t *testing.T) {
	b := newBench(t, 1000)
	var receives atomic.Int64
	b.sqs.Before = func(operation string) error {
		if operation == "ReceiveMessage" {
			b.pass(time.Duration(receives.Add(1)) * 10 * time.Second)
		}
		return nil
	}
	all, reach := b.list()
	if len(all) == 0 || len(all) == 1000 || reach.Left != 1000-len(all) {
		t.Errorf("%d listed, reach %+v", len(all), reach)
	}
	if b.hidden() != 0 {
		t.Errorf("%d are hidden", b.hidden())
	}
}

func TestWhateverEndsAListTheQueueIsAsItWas(t *testing.T) {
	gone := errors.New("gone")
	for _, c := range []struct {
		name string
		end  func(cancel func()) error
		want error
	}{
		{"interrupted", func(cancel func()) error { cancel(); return nil }, context.Canceled},
		{"refused", func(func()) error { return gone }, gone},
	} {
		for _, operation := range []string{"ReceiveMessage", "GetQueueAttributes"} {
			for at := 1; at <= 3; at++ {
				b := newBench(t, 45)
				ctx, cancel := context.WithCancel(t.Context())
				var calls atomic.Int64
				b.sqs.Before = func(o string) error {
					if o == operation && int(calls.Add(1)) == at {
						return c.end(cancel)
					}
					return nil
				}
				before := b.bodies(deadURL)
				_, reach, err := b.dead.List(ctx, func(int) {})
				if int(calls.Load()) >= at && !errors.Is(err, c.want) {
					t.Errorf("%s at %s %d: %v", c.name, operation, at, err)
				}
				if diff := cmp.Diff(before, b.bodies(deadURL)); diff != "" || b.hidden() != 0 || reach.Stuck != 0 {
					t.Errorf("%s at %s %d: %d hidden, reach %+v\n%s", c.name, operation, at, b.hidden(), reach, diff)
				}
				cancel()
			}
		}
	}
}

func TestListShowsWhatIsGivenTwiceOnce(t *testing.T) {
	b := newBench(t, 25)
	b.sqs.GivesTwice = true
	if all, reach := b.list(); len(all) != 25 || !reach.Complete() || b.hidden() != 0 {
		t.Errorf("%d listed, reach %+v, %d hidden", len(all), reach, b.hidden())
	}
}

func TestStuckMessagesAreCounted(t *testing.T) {
	b := newBench(t, 30)
	b.sqs.Refuse = func(operation, body string) string {
		if operation == "ChangeMessageVisibilityBatch" && strings.Contains(body, "e00007") {
			return "InternalError"
		}
		return ""
	}
	if _, reach := b.list(); reach.Stuck != 1 || b.hidden() != 1 {
		t.Errorf("reach %+v, %d hidden", reach, b.hidden())
	}
	b.pass(queue.Hidden)
	if b.hidden() != 0 {
		t.Error("it is hidden for ever")
	}
}
