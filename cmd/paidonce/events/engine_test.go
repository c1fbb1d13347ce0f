package events

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"paidonce/cmd/paidonce/stack"
	"paidonce/shared/dynamo"
	"paidonce/shared/localaws"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

// TestDeadLettersOnTheEmulator lists and redrives real SQS messages, whose events are in a real table.
func TestDeadLettersOnTheEmulator(t *testing.T) {
	engine, err := localaws.StartEngine(t.Context(), localaws.EngineOptions{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	if err := localaws.CreateTable(t.Context(), engine.Config(), "", "table"); err != nil {
		t.Fatal(err)
	}
	queues, store := sqs.NewFromConfig(engine.Config()), dynamo.New(dynamodb.NewFromConfig(engine.Config()), "table")
	create := func(name string) string {
		out, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
		if err != nil {
			t.Fatal(err)
		}
		return *out.QueueUrl
	}
	eventsURL, deadURL := create("events"), create("dead")
	events := queue.New(queues, eventsURL)
	on := target{Target: stack.Target{Name: "the emulator", Events: store}, queues: func(context.Context) (eventQueues, error) {
		return eventQueues{events, queue.NewDeadLetters(queues, deadURL, events, time.Now)}, nil
	}}
	put := func(id string, status payment.EventStatus, next time.Time) payment.EventKey {
		e := payment.Event{
			Key: payment.EventKey{Gateway: "razorpay", ID: id}, Status: status, Type: "payment.captured", Verdict: "gave up after 5 receives: no luck",
			Body: []byte(capturedEvent), SHA256: digest(capturedEvent), VerifiedBy: "test_current", ReceivedAt: time.Now().Add(-time.Hour), NextAt: next,
		}
		if _, err := store.PutEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		return e.Key
	}
	dead := queue.New(queues, deadURL)
	var keys []payment.EventKey
	for _, id := range strings.Fields("a b c d e f g h i j k l m n o p q r s t u v w") {
		keys = append(keys, put("evt_"+id, payment.EventFailed, time.Time{}))
	}
	if sent, err := dead.SendAll(t.Context(), keys, func(int) {}); err != nil || len(sent) != len(keys) {
		t.Fatalf("%d sent, %v", len(sent), err)
	}
	put("evt_odd", payment.EventParked, time.Time{}) // it waits for a person, after everything else

	out, errOut, err := run(t, on, "dlq", "ls")
	if err != nil || errOut != "" || !strings.Contains(out, "\n23 messages:\n      23  no luck\n") {
		t.Errorf("%v %s\n%s", err, errOut, out)
	}
	if visible, hidden := depth(t, queues, deadURL); visible != "23" || hidden != "0" {
		t.Errorf("%s visible, %s hidden after a look", visible, hidden)
	}
	out, _, err = run(t, on, "dlq", "redrive", "razorpay/evt_c", "razorpay/evt_w", "--yes")
	if err != nil || !strings.HasSuffix(out, "\n2 messages sent to the worker.\n") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = run(t, on, "dlq", "redrive", "--reason", "LUCK", "--yes")
	if err != nil || !strings.HasSuffix(out, "\n21 messages sent to the worker.\n") {
		t.Errorf("%v\n%s", err, out)
	}
	for url, want := range map[string]string{deadURL: "0", eventsURL: "23"} {
		if visible, hidden := depth(t, queues, url); visible != want || hidden != "0" {
			t.Errorf("%s: %s visible, %s hidden, want %s and none", url, visible, hidden, want)
		}
	}
	if got := received(t, queues, eventsURL); !slices.Contains(got, queue.Encode(keys[0])) {
		t.Errorf("received %q", got)
	}
	out, _, err = run(t, on, "events", "ls", "--status", "parked")
	if err != nil || !strings.Contains(out, "razorpay/evt_odd") || !strings.Contains(out, "a person") {
		t.Errorf("%v\n%s", err, out)
	}
}

// depth is how many messages are visible, and how many are not.
func depth(t *testing.T, c *sqs.Client, url string) (visible, hidden string) {
	t.Helper()
	out, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes["ApproximateNumberOfMessages"], out.Attributes["ApproximateNumberOfMessagesNotVisible"]
}

// received are the bodies of all messages of a queue.
func received(t *testing.T, c *sqs.Client, url string) (bodies []string) {
	t.Helper()
	for {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return bodies
		}
		for _, m := range out.Messages {
			bodies = append(bodies, aws.ToString(m.Body))
		}
	}
}
