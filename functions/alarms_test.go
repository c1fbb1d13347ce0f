package functions_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/shared/localaws"
	"paidonce/shared/metrics"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

// ringing are the names of the alarms in ALARM.
func ringing(t *testing.T) (names []string) {
	t.Helper()
	described, err := cloudwatch.NewFromConfig(stack.Config()).DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{
		StateValue: cwtypes.StateValueAlarm, AlarmNamePrefix: &stack.StackName,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range described.MetricAlarms {
		names = append(names, aws.ToString(a.AlarmName))
	}
	return names
}

// deadLetters are the URLs of all dead letter queues of the stack.
func deadLetters(t *testing.T) []string {
	t.Helper()
	listed, err := queues.ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: &stack.StackName})
	if err != nil {
		t.Fatal(err)
	}
	found := slices.DeleteFunc(listed.QueueUrls, func(url string) bool { return !strings.Contains(url, "Dlq") })
	if len(found) < 3 {
		t.Fatalf("dead letter queues %v; want those of worker, notify and reconcile", found)
	}
	return found
}

// purge empties the dead letter queues of what other tests have left there.
func purge(t *testing.T) {
	t.Helper()
	for _, url := range deadLetters(t) {
		if _, err := queues.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}); err != nil {
			t.Fatal(err)
		}
	}
}

// hear waits for the notice that the alarm is in the state.
func hear(t *testing.T, inbox *localaws.AlarmInbox, alarm string, state cwtypes.StateValue) localaws.AlarmNotice {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	notice, err := inbox.Wait(ctx, alarm, state)
	if err != nil {
		t.Fatalf("never heard that %s is in %s; there are %v: %v", alarm, state, ringing(t), err)
	}
	return notice
}

// One bad event is one alarm: the right one, with the way to its cure. When it is healed a person hears that, too.
func TestAnEventThatCannotBeAppliedRingsOneAlarm(t *testing.T) {
	purge(t)
	sweep(t) // that it runs is watched, too
	eventually(t, "silent", func() bool { return len(ringing(t)) == 0 })
	inbox, err := stack.OpenAlarmInbox(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	o, id := newOrder(t), uniqueEvent()
	setRowVersion(t, o.ID, "99")
	deliver(t, id, body(o, "pay_"+id), stack.WebhookSecret)
	becomes(t, id, payment.EventFailed)
	name := stack.StackName + "-events-dlq-not-empty"
	notice := hear(t, inbox, name, cwtypes.StateValueAlarm)
	if !strings.Contains(notice.AlarmDescription, "docs/runbook.md#events-dlq-not-empty") || notice.NewStateReason == "" {
		t.Errorf("the notice leads nowhere: %+v", notice)
	}
	if got := ringing(t); !slices.Equal(got, []string{name}) {
		t.Errorf("%v ring, want %s alone", got, name)
	}

	setRowVersion(t, o.ID, "1")
	redrive(t, id)
	settled(t, id)
	paidOnce(t, o.ID)
	hear(t, inbox, name, cwtypes.StateValueOk)
	if got := ringing(t); len(got) > 0 {
		t.Errorf("%v ring although all is well", got)
	}
}

// redrive puts an event's message back on the queue.
func redrive(t *testing.T, eventID string) {
	t.Helper()
	eventually(t, "in the dead letter queue", func() bool {
		out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &stack.EventsDlqURL, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			if aws.ToString(m.Body) != queue.Encode(key(eventID)) {
				continue
			}
			if err := queue.New(queues, stack.EventsQueueURL).Send(t.Context(), key(eventID)); err != nil {
				t.Fatal(err)
			}
			_, err := queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &stack.EventsDlqURL, ReceiptHandle: m.ReceiptHandle})
			if err != nil {
				t.Fatal(err)
			}
			return true
		}
		return false
	})
}

// What a function writes as metrics, and what Lambda counts of it, can be read, each thing once and under its own dimensions.
func TestMetricsCanBeRead(t *testing.T) {
	now := time.Now()
	sum := func(namespace, name string, dimensions ...string) (total float64) {
		t.Helper()
		in := &cloudwatch.GetMetricStatisticsInput{
			Namespace: &namespace, MetricName: &name, Statistics: []cwtypes.Statistic{cwtypes.StatisticSum},
			StartTime: aws.Time(now.Add(-time.Hour)), EndTime: aws.Time(now.Add(time.Hour)), Period: aws.Int32(3600),
		}
		for i := 0; i < len(dimensions); i += 2 {
			in.Dimensions = append(in.Dimensions, cwtypes.Dimension{Name: &dimensions[i], Value: &dimensions[i+1]})
		}
		out, err := cloudwatch.NewFromConfig(stack.Config()).GetMetricStatistics(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range out.Datapoints {
			total += *p.Sum
		}
		return total
	}
	ours := func(m metrics.Metric, further ...string) float64 {
		return sum(metrics.Namespace, m.Name, append(further, metrics.StackDimension, stack.StackName)...)
	}
	lambdas := func(name string) float64 {
		return sum("AWS/Lambda", name, "FunctionName", output(t, "WebhookFunctionName"))
	}
	counts := func() map[string]float64 {
		return map[string]float64{
			"received":             ours(metrics.Received),
			"by the old secret":    ours(metrics.Received, metrics.Received.By, "razorpay/test_previous"),
			"of an unknown secret": ours(metrics.Received, metrics.Received.By, "nobody's"),
			"duplicates":           ours(metrics.Duplicate),
			"fulfilled":            ours(metrics.Fulfilled),
			"invocations":          lambdas("Invocations"),
			"errors":               lambdas("Errors"),
			"throttles":            lambdas("Throttles"),
		}
	}
	o, id := newOrder(t), uniqueEvent()
	before := counts()
	deliver(t, id, body(o, "pay_"+id), stack.PreviousWebhookSecret)
	settled(t, id)
	deliver(t, id, body(o, "pay_"+id), stack.PreviousWebhookSecret)
	want := map[string]float64{
		"received": 2, "by the old secret": 2, "of an unknown secret": 0, "duplicates": 1, "fulfilled": 1,
		"invocations": 2, "errors": 0, "throttles": 0,
	}
	more := func() map[string]float64 {
		now := counts()
		for what := range now {
			now[what] -= before[what]
		}
		return now
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("counted %v, want %v", more(), want)
		}
	})
	eventually(t, "counted", func() bool {
		return maps.EqualFunc(more(), want, func(got, least float64) bool { return got >= least })
	})
	if got := more(); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	if took := lambdas("Duration"); took <= 0 {
		t.Errorf("the webhook took %g ms", took)
	}
}
