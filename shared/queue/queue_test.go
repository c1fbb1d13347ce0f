package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		name string
		key  payment.EventKey
		want string
	}{
		{"an event id", payment.EventKey{Gateway: "razorpay", ID: "Q2bFh_-9"}, `{"v":1,"gateway":"razorpay","event":"Q2bFh_-9"}`},
		{"a digest", payment.EventKey{Gateway: "razorpay", ID: "sha256:ab01"}, `{"v":1,"gateway":"razorpay","event":"sha256:ab01"}`},
		{"an id with another body", payment.EventKey{Gateway: "stripe", ID: "evt_1!ab01"}, `{"v":1,"gateway":"stripe","event":"evt_1!ab01"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := queue.Encode(c.key)
			if body != c.want {
				t.Errorf("encoded as %s, want %s", body, c.want)
			}
			got, err := queue.Decode(body)
			if err != nil || got != c.key {
				t.Errorf("decoded as %v (%v), want %v", got, err, c.key)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	const ok, newer, bad = "ok", "newer", "bad"
	for _, c := range []struct {
		name string
		body string
		want string
	}{
		{"fields that it does not know", `{"v":1,"gateway":"razorpay","event":"e1","trace":"x"}`, ok},
		{"white space", " {\n\"v\": 1, \"gateway\": \"razorpay\", \"event\": \"e1\"}\n", ok},
		{"a newer version", `{"v":2,"gateway":"razorpay","event":"e1"}`, newer},
		{"a newer version that names no event", `{"v":9}`, newer},
		{"a newer version with fields of another form", `{"v":2,"gateway":{"name":"razorpay"},"event":["e1"]}`, newer},
		{"a newer version, said last", `{"event":7,"v":2}`, newer},
		{"version 0", `{"v":0,"gateway":"razorpay","event":"e1"}`, bad},
		{"a version below 0", `{"v":-1,"gateway":"razorpay","event":"e1"}`, bad},
		{"no version", `{"gateway":"razorpay","event":"e1"}`, bad},
		{"a version as text", `{"v":"1","gateway":"razorpay","event":"e1"}`, bad},
		{"a broken version", `{"v":1.5,"gateway":"razorpay","event":"e1"}`, bad},
		{"no gateway", `{"v":1,"event":"e1"}`, bad},
		{"an empty gateway", `{"v":1,"gateway":"","event":"e1"}`, bad},
		{"no event", `{"v":1,"gateway":"razorpay"}`, bad},
		{"an event that is null", `{"v":1,"gateway":"razorpay","event":null}`, bad},
		{"an event of another form", `{"v":1,"gateway":"razorpay","event":7}`, bad},
		{"nothing", ``, bad},
		{"null", `null`, bad},
		{"a list", `[{"v":1,"gateway":"razorpay","event":"e1"}]`, bad},
		{"text", `razorpay/e1`, bad},
		{"cut short", `{"v":1,"gateway":"razorpay","event":"e1"`, bad},
		{"cut short, of a newer version", `{"v":2,"gateway":"razorpay"`, bad},
		{"something behind it", `{"v":1,"gateway":"razorpay","event":"e1"}{}`, bad},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, err := queue.Decode(c.body)
			var want payment.EventKey
			if c.want == ok {
				want = payment.EventKey{Gateway: "razorpay", ID: "e1"}
			}
			if key != want || (err == nil) != (c.want == ok) || errors.Is(err, payment.ErrNewerVersion) != (c.want == newer) {
				t.Errorf("got %v, %v, want %s", key, err, c.want)
			}
		})
	}
}

// sender records what is sent.
type sender struct {
	sent []*sqs.SendMessageInput
	err  error
}

func (s *sender) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	s.sent = append(s.sent, in)
	return &sqs.SendMessageOutput{}, s.err
}

// SendMessageBatch is not called by Send.
func (s *sender) SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return nil, errors.New("not to be called")
}

// GetQueueAttributes is not called by Send.
func (s *sender) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return nil, errors.New("not to be called")
}

func TestSend(t *testing.T) {
	const url = "https://sqs.ap-south-1.amazonaws.com/123456789012/events"
	key := payment.EventKey{Gateway: "razorpay", ID: "e1"}
	unreachable := errors.New("unreachable")
	for _, c := range []struct {
		name string
		err  error
	}{{"taken", nil}, {"refused", unreachable}} {
		t.Run(c.name, func(t *testing.T) {
			s := &sender{err: c.err}
			err := queue.New(s, url).Send(t.Context(), key)
			if !errors.Is(err, c.err) {
				t.Errorf("got error %v, want %v", err, c.err)
			}
			if err != nil && !strings.Contains(err.Error(), "queue: send event razorpay/e1") {
				t.Errorf("the error does not say what failed: %v", err)
			}
			if len(s.sent) != 1 {
				t.Fatalf("%d messages sent, want 1", len(s.sent))
			}
			got := [2]string{aws.ToString(s.sent[0].QueueUrl), aws.ToString(s.sent[0].MessageBody)}
			if diff := cmp.Diff([2]string{url, queue.Encode(key)}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// counter is a queue that knows how many messages wait.
type counter struct {
	sender
	waiting string
}

func (c *counter) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"ApproximateNumberOfMessages": c.waiting}}, c.err
}

func TestWaiting(t *testing.T) {
	for _, c := range []struct {
		waiting string
		err     error
		want    int
		ok      bool
	}{{"0", nil, 0, true}, {"1204", nil, 1204, true}, {"", nil, 0, false}, {"3", errors.New("unreachable"), 0, false}} {
		got, err := queue.New(&counter{sender{err: c.err}, c.waiting}, "url").Waiting(t.Context())
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%q, %v: got %d, %v, want %d", c.waiting, c.err, got, err, c.want)
		}
	}
}

// A key that DynamoDB would refuse is no event of ours, and must not keep a command from the other messages.
func TestAMessageWithAnEndlessKeyIsNotOurs(t *testing.T) {
	body := `{"v":1,"gateway":"razorpay","event":"` + strings.Repeat("x", 3000) + `"}`
	if k, err := queue.Decode(body); err == nil || errors.Is(err, payment.ErrNewerVersion) {
		t.Errorf("decoded to %d bytes, %v", len(k.ID), err)
	}
}
