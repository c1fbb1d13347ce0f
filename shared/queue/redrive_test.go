package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

// encoded are the messages of letters from to below to.
func encoded(from, to int) (bodies []string) {
	for i := from; i < to; i++ {
		bodies = append(bodies, queue.Encode(letterKey(i)))
	}
	return bodies
}

func (b *bench) want(where, url string, want []string) {
	b.Helper()
	if diff := cmp.Diff(want, b.bodies(url)); diff != "" {
		b.Errorf("%s (-want +got)\n%s", where, diff)
	}
}

func TestRedriveMovesWhatIsPlannedAndNothingElse(t *testing.T) {
	b := newBench(t, 250)
	ids := b.ids()[:200]
	b.sqs.Put(deadURL, queue.Encode(letterKey(999)), sentAt) // arrives after the plan
	counted := 0
	r, err := b.dead.Redrive(t.Context(), ids, func(n int) { counted += n })
	if err != nil || len(r.Moved) != 200 || counted != 200 || len(r.Twice)+len(r.Unsent)+len(r.Missing) != 0 {
		t.Errorf("%d moved, %d counted, %v", len(r.Moved), counted, err)
	}
	b.want("events", eventsURL, encoded(0, 200))
	b.want("dead letters", deadURL, append(encoded(200, 250), encoded(999, 1000)...))
	if b.hidden() != 0 {
		t.Errorf("%d are hidden", b.hidden())
	}
}

// What is planned may be moved before the queue is seen to be empty, which takes a while.
func TestRedriveEndsOnceAllIsMoved(t *testing.T) {
	b := newBench(t, 30)
	ids := b.ids()
	var counts atomic.Int64
	b.sqs.Before = func(operation string) error {
		if operation == "GetQueueAttributes" {
			counts.Add(1)
		}
		return nil
	}
	if r, err := b.dead.Redrive(t.Context(), ids, func(int) {}); err != nil || len(r.Moved) != 30 || counts.Load() != 1 {
		t.Errorf("%d moved, counted %d times, %v", len(r.Moved), counts.Load(), err)
	}
}

func TestRedriveSendsTheVeryBytes(t *testing.T) {
	b := newBench(t, 0)
	const body = "{ \"event\":\"e1\", \"gateway\":\"razorpay\",\"v\":1,\"trace\":\"x\" }"
	b.sqs.Put(deadURL, body, sentAt)
	if _, err := b.dead.Redrive(t.Context(), b.ids(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	b.want("events", eventsURL, []string{body})
}

func TestRedriveNeverTouchesWhatNamesNoEvent(t *testing.T) {
	b := newBench(t, 0)
	b.sqs.Put(deadURL, `{"v":2,"gateway":"razorpay","event":"e1"}`, sentAt)
	b.sqs.Put(deadURL, "hello", sentAt)
	ids := b.ids()
	r, err := b.dead.Redrive(t.Context(), ids, func(int) {})
	if err != nil || len(r.Moved) != 0 || len(r.Missing) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	b.want("events", eventsURL, nil)
	b.want("dead letters", deadURL, []string{"hello", `{"v":2,"gateway":"razorpay","event":"e1"}`})
}

// TestRedriveIsResumed interrupts a redrive at each of its calls, and crashes it there: the rest is done by the next one, and
// nothing is lost. What is sent twice is still among the dead letters after the crash.
func TestRedriveIsResumed(t *testing.T) {
	const letters = 35
	crash := errors.New("crash")
	for _, operation := range []string{"GetQueueAttributes", "ReceiveMessage", "SendMessageBatch", "DeleteMessageBatch"} {
		for _, crashes := range []bool{false, true} {
			for at := 1; at <= 6; at++ {
				b := newBench(t, letters)
				ids := b.ids()
				ctx, cancel := context.WithCancel(t.Context())
				var calls atomic.Int64
				b.sqs.Before = func(o string) error {
					if o != operation || int(calls.Add(1)) != at {
						return nil
					}
					if crashes {
						return crash
					}
					cancel()
					return nil
				}
				first, err := b.dead.Redrive(ctx, ids, func(int) {})
				cancel()
				b.sqs.Before = nil
				if b.hidden() != 0 {
					t.Errorf("%s %d: %d are hidden", operation, at, b.hidden())
				}
				moved, _ := b.sqs.Bodies(eventsURL)
				left, _ := b.sqs.Bodies(deadURL)
				if want := len(first.Moved) + len(first.Twice); len(moved) != want || len(first.Moved)+len(left) != letters {
					t.Errorf("%s %d: %d are on the events queue, %d said to be; %d left", operation, at, len(moved), want, len(left))
				}
				if len(first.Moved) < letters && err == nil {
					t.Errorf("%s %d: %d of %d moved without an error", operation, at, len(first.Moved), letters)
				}
				if !crashes && len(first.Twice) > 0 {
					t.Errorf("%s %d: what was in hand was not finished", operation, at)
				}
				second, err := b.dead.Redrive(t.Context(), b.ids(), func(int) {})
				if err != nil || len(first.Moved)+len(second.Moved) != letters {
					t.Errorf("%s %d: %d moved, then %d, %v", operation, at, len(first.Moved), len(second.Moved), err)
				}
				b.want("dead letters", deadURL, nil)
				if got := slices.Compact(b.bodies(eventsURL)); !slices.Equal(got, encoded(0, letters)) {
					t.Errorf("%s %d: the events are %q", operation, at, got)
				}
			}
		}
	}
}

func TestRedriveBesideSomebodyElse(t *testing.T) {
	b := newBench(t, 60)
	ids := b.ids()
	results := make(chan queue.Redriven, 2)
	for range 2 {
		go func() {
			r, err := b.dead.Redrive(t.Context(), ids, func(int) {})
			if err != nil {
				t.Error(err)
			}
			results <- r
		}()
	}
	one, other := <-results, <-results
	if len(one.Moved)+len(other.Moved) != 60 || len(one.Moved)+len(one.Missing) != 60 || len(other.Moved)+len(other.Missing) != 60 {
		t.Errorf("%d moved and %d missing, %d and %d", len(one.Moved), len(one.Missing), len(other.Moved), len(other.Missing))
	}
	b.want("events", eventsURL, encoded(0, 60))
	b.want("dead letters", deadURL, nil)
}

func TestARefusedEntryKeepsNoOthersFromMoving(t *testing.T) {
	for _, c := range []struct {
		operation           string
		moved, twice, stays int
	}{{"SendMessageBatch", 24, 0, 1}, {"DeleteMessageBatch", 24, 1, 0}} {
		b := newBench(t, 25)
		b.sqs.Refuse = func(operation, body string) string {
			if operation == c.operation && strings.Contains(body, "e00003") {
				return "InternalError"
			}
			return ""
		}
		r, err := b.dead.Redrive(t.Context(), b.ids(), func(int) {})
		if err == nil || !strings.Contains(err.Error(), "SQS: InternalError") {
			t.Errorf("%s: %v", c.operation, err)
		}
		if len(r.Moved) != c.moved || len(r.Twice) != c.twice || len(r.Unsent) != c.stays || b.hidden() != 0 {
			t.Errorf("%s: %d moved, %d twice, %d unsent, %d hidden", c.operation, len(r.Moved), len(r.Twice), len(r.Unsent), b.hidden())
		}
		b.want("dead letters", deadURL, encoded(3, 4))
	}
}

func TestSendAll(t *testing.T) {
	keys := make([]payment.EventKey, 1003)
	for i := range keys {
		keys[i] = letterKey(i)
	}
	b := newBench(t, 0)
	counted := 0
	sent, err := queue.New(b.sqs, eventsURL).SendAll(t.Context(), keys, func(n int) { counted += n })
	if err != nil || len(sent) != len(keys) || counted != len(keys) {
		t.Errorf("%d sent, %d counted, %v", len(sent), counted, err)
	}
	b.want("events", eventsURL, encoded(0, len(keys)))

	b = newBench(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	b.sqs.Before = func(string) error { cancel(); return nil }
	sent, err = queue.New(b.sqs, eventsURL).SendAll(ctx, keys, func(int) {})
	there, _ := b.sqs.Bodies(eventsURL)
	if !errors.Is(err, context.Canceled) || len(sent) != len(there) || len(sent) == 0 || len(sent) > 200 { // 8 calls of 10 at a time
		t.Errorf("interrupted: %d said to be sent, %d are, %v", len(sent), len(there), err)
	}

	b = newBench(t, 0)
	b.sqs.Refuse = func(_, body string) string {
		if strings.Contains(body, "e00003") {
			return "InternalError"
		}
		return ""
	}
	sent, err = queue.New(b.sqs, eventsURL).SendAll(t.Context(), keys[:20], func(int) {})
	if err == nil || slices.Contains(sent, letterKey(3)) || !slices.Contains(sent, letterKey(4)) {
		t.Errorf("refused: %v sent, %v", sent, err)
	}
}
