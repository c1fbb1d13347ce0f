package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
)

// queueReader is what is needed of a *sqs.Client.
type queueReader interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// dueReader is what is needed of the table.
type dueReader interface {
	// DueEvents lists the events of a status that are due before a time, until found returns false.
	DueEvents(ctx context.Context, status payment.EventStatus, before time.Time, found func(payment.EventKey) bool) error
	// Cursor reads how far a scan of the gateway has come; zero for one that never ran.
	Cursor(ctx context.Context, gateway, scan string) (payment.Cursor, error)
}

// depth is how many messages wait in the queue of that logical id, and how many are being worked on.
func (d *doctor) depth(ctx context.Context, logicalID string) (waiting, inHand int, err error) {
	url, err := d.stack.resource(logicalID)
	if err != nil {
		return 0, 0, err
	}
	out, err := d.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	}})
	if code := stack.CodeOf(err); strings.Contains(code, "NonExistentQueue") || code == "QueueDoesNotExist" {
		return 0, 0, lostPart("the queue " + logicalID)
	}
	if err != nil {
		return 0, 0, called("sqs:GetQueueAttributes", err)
	}
	number := func(name types.QueueAttributeName) int {
		n, numberErr := strconv.Atoi(out.Attributes[string(name)])
		if numberErr != nil && err == nil {
			err = called("sqs:GetQueueAttributes", numberErr)
		}
		return n
	}
	waiting = number(types.QueueAttributeNameApproximateNumberOfMessages)
	inHand = number(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)
	return waiting, inHand, err
}

// standing is the age from which the oldest event says that the queue does not move: its alarm's.
const standing = 5 * time.Minute

func (d *doctor) eventsQueue(ctx context.Context) finding {
	waiting, inHand, err := d.depth(ctx, "EventsQueue")
	if err != nil {
		return trouble(err)
	}
	if waiting+inHand == 0 {
		return isFine("empty")
	}
	url := d.stack.Resources["EventsQueue"]
	ages, err := d.points(ctx, d.now().Add(-10*time.Minute), series{
		namespace: "AWS/SQS", name: "ApproximateAgeOfOldestMessage", stat: "Maximum", period: time.Minute,
		dimensions: map[string]string{"QueueName": url[strings.LastIndex(url, "/")+1:]},
	})
	seen := fmt.Sprintf("%d wait, %d in work", waiting, inHand)
	if err != nil {
		f := trouble(err)
		f.Seen = seen + ", age unknown: " + f.Seen
		return f
	}
	var age time.Duration
	if n := len(ages[0]); n > 0 {
		age = time.Duration(ages[0][n-1].value) * time.Second
	}
	seen += fmt.Sprintf(", the oldest for %s", age)
	if age >= standing {
		return finding{warning, seen + ": paid orders are late", "docs/runbook.md#events-backlog-age"}
	}
	return isFine("%s", seen)
}

func (d *doctor) deadLetters(ctx context.Context) finding {
	var found []finding
	for _, q := range []struct {
		name, logicalID string
		result          verdict
		cure            string
	}{
		{"events", "EventsDlq", broken, "docs/runbook.md#events-dlq-not-empty"}, // orders may be paid and not fulfilled
		{"runs of reconcile", "AsyncDlq", warning, "docs/runbook.md#async-dlq-not-empty"},
		{"notifications", "NotifyDlq", warning, "docs/runbook.md#notify-dlq-not-empty"},
	} {
		switch waiting, inHand, err := d.depth(ctx, q.logicalID); {
		case err != nil:
			found = append(found, trouble(err))
		case waiting+inHand > 0:
			found = append(found, finding{q.result, fmt.Sprintf("%s: %d", q.name, waiting+inHand), q.cure})
		}
	}
	if len(found) > 0 {
		return worst(found...)
	}
	return isFine("all three are empty")
}

const (
	// maxCounted is how many events of one kind are counted.
	maxCounted = 1000
	// overdueAfter is how long something may be due before its alarm counts it.
	overdueAfter = 30 * time.Minute
)

// endOfTime is after everything that is due some day, and before what waits for a person, which is due at the end of 9999.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// count counts the events of a status that are due before a time. Of many it says "1000 or more".
func (d *doctor) count(ctx context.Context, status payment.EventStatus, before time.Time) (n int, shown string, err error) {
	err = d.store.DueEvents(ctx, status, before, func(payment.EventKey) bool {
		n++
		return n < maxCounted
	})
	shown = strconv.Itoa(n)
	if n == maxCounted {
		shown += " or more"
	}
	return n, shown, called("dynamodb:Query", err)
}

// events counts what somebody has to look at. PARKED events whose order is unknown need nobody: another shop's may be among them.
func (d *doctor) events(ctx context.Context) finding {
	now := d.now()
	kinds := []struct {
		status payment.EventStatus
		before time.Time
		result verdict // of one that there is
		seen   string
		cure   string
	}{
		{payment.EventFailed, endOfTime, broken, "%s FAILED", "docs/runbook.md#heal-a-failed-event"},
		{payment.EventReceived, now.Add(-overdueAfter), warning, "%s RECEIVED and due for over 30 minutes", "docs/runbook.md#overdue"},
		{payment.EventParked, now.Add(-overdueAfter), warning, "%s PARKED and due for over 30 minutes", "docs/runbook.md#overdue"},
	}
	var found []finding
	for _, k := range kinds {
		n, shown, err := d.count(ctx, k.status, k.before)
		switch {
		case err != nil:
			return trouble(err)
		case n > 0:
			found = append(found, finding{k.result, fmt.Sprintf(k.seen, shown), k.cure})
		}
	}
	retried, shown, err := d.count(ctx, payment.EventParked, endOfTime)
	if err != nil {
		return trouble(err)
	}
	all, _, err := d.count(ctx, payment.EventParked, endOfTime.AddDate(1, 0, 0))
	if err != nil {
		return trouble(err)
	}
	if n := all - retried; n > 0 {
		found = append(found, finding{warning, fmt.Sprintf("%d PARKED that nobody could decode", n), "docs/runbook.md#undecodable"})
	}
	if len(found) > 0 {
		return worst(found...)
	}
	return isFine("none FAILED, none overdue; %s PARKED until their orders are known", shown)
}

// gatewayScan looks when reconcile last began to go through the gateway's lists. It moves only if the gateway answers.
func (d *doctor) gatewayScan(ctx context.Context) finding {
	cursor, err := d.store.Cursor(ctx, stack.GatewayName, payment.HourlyScan.Name)
	if err != nil {
		return trouble(called("dynamodb:GetItem", err))
	}
	const cure = "docs/runbook.md#reconcile-errors"
	switch age := d.now().Sub(cursor.BeganAt); {
	case cursor.BeganAt.IsZero() && d.now().Sub(d.stack.created) < scanSilence:
		return notChecked("not begun in this new stack yet, ask again later")
	case cursor.BeganAt.IsZero():
		return finding{warning, "never begun: payments without a webhook are found late", cure}
	case age >= scanSilence:
		return finding{warning, fmt.Sprintf("the last began %s, done up to %s: payments without a webhook are found late", terminal.Moment(cursor.BeganAt), terminal.Moment(cursor.Next)), cure}
	}
	return isFine("the last began %s, done up to %s", terminal.Moment(cursor.BeganAt), terminal.Moment(cursor.Next))
}
