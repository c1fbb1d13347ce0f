package doctor

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
)

// metricReader is what is needed of a *cloudwatch.Client.
type metricReader interface {
	cloudwatch.DescribeAlarmsAPIClient
	cloudwatch.GetMetricDataAPIClient
}

// subscriptionLister is what is needed of a *sns.Client.
type subscriptionLister = sns.ListSubscriptionsByTopicAPIClient

// maxAlarmNames is how many alarms can be asked for by name (CloudWatch, "DescribeAlarms").
const maxAlarmNames = 100

// onlyRollsBack begins the logical ids of the alarms that stop a gradual deployment and, by the template, tell nobody.
const onlyRollsBack = "Rollback"

// readAlarms reads the stack's alarms, and says of which it has names but no alarm.
func (d *doctor) readAlarms(ctx context.Context) (alarms []types.MetricAlarm, missing []string, err error) {
	ids, err := d.stack.ofKind("AWS::CloudWatch::Alarm")
	if err != nil {
		return nil, nil, err
	}
	maps.DeleteFunc(ids, func(logicalID, _ string) bool { return strings.HasPrefix(logicalID, onlyRollsBack) })
	names := slices.Sorted(maps.Values(ids))
	for chunk := range slices.Chunk(names, maxAlarmNames) {
		pages := cloudwatch.NewDescribeAlarmsPaginator(d.metrics, &cloudwatch.DescribeAlarmsInput{AlarmNames: chunk})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, nil, called("cloudwatch:DescribeAlarms", err)
			}
			alarms = append(alarms, page.MetricAlarms...)
		}
	}
	for _, a := range alarms {
		names = slices.DeleteFunc(names, func(name string) bool { return name == aws.ToString(a.AlarmName) })
	}
	return alarms, names, nil
}

func (d *doctor) alarms(ctx context.Context) finding {
	topic, err := d.stack.resource("AlarmTopic")
	if err != nil {
		return trouble(err)
	}
	alarms, missing, err := d.readAlarms(ctx)
	if err != nil {
		return trouble(err)
	}
	var mute, elsewhere []string
	for _, a := range alarms {
		name := aws.ToString(a.AlarmName)
		switch {
		case !aws.ToBool(a.ActionsEnabled):
			mute = append(mute, name)
		case !slices.Contains(a.AlarmActions, topic):
			elsewhere = append(elsewhere, name)
		}
	}
	var wrong []finding
	add := func(names []string, what, cure string) {
		if len(names) > 0 {
			wrong = append(wrong, finding{broken, what + ": " + strings.Join(names, ", "), cure})
		}
	}
	add(missing, "gone", revertDrift)
	add(mute, "switched off", "aws cloudwatch enable-alarm-actions --alarm-names "+strings.Join(mute, " "))
	add(elsewhere, "not telling the stack's topic", revertDrift)
	if len(wrong) > 0 {
		return worst(wrong...)
	}
	return isFine("all %d are there, switched on, and tell the topic", len(alarms))
}

// runbookLink is where an alarm's description says to read on.
var runbookLink = regexp.MustCompile(`docs/runbook\.md#[a-z0-9-]+`)

func (d *doctor) ringing(ctx context.Context) finding {
	alarms, _, err := d.readAlarms(ctx)
	if err != nil {
		return trouble(err)
	}
	var ringing, links []string
	waiting := 0
	for _, a := range alarms {
		switch a.StateValue {
		case types.StateValueAlarm:
			ringing = append(ringing, fmt.Sprintf("%s since %s", aws.ToString(a.AlarmName), terminal.Moment(aws.ToTime(a.StateUpdatedTimestamp))))
			links = append(links, runbookLink.FindAllString(aws.ToString(a.AlarmDescription), -1)...)
		case types.StateValueInsufficientData:
			waiting++
		}
	}
	switch {
	case len(ringing) > 0:
		if len(links) == 0 { // not as the template describes them
			links = []string{"docs/runbook.md#alarms"}
		}
		return finding{warning, strings.Join(ringing, ", "), strings.Join(links, ", ")}
	case waiting > 0:
		return isFine("none, and %d of %d have no numbers yet", waiting, len(alarms))
	}
	return isFine("none of %d", len(alarms))
}

func (d *doctor) subscribers(ctx context.Context) finding {
	if d.local {
		return onlyOnAWS("it mails nobody")
	}
	topic, err := d.stack.resource("AlarmTopic")
	if err != nil {
		return trouble(err)
	}
	confirmed, pending := 0, 0
	pages := sns.NewListSubscriptionsByTopicPaginator(d.topics, &sns.ListSubscriptionsByTopicInput{TopicArn: &topic})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if code := stack.CodeOf(err); code == "NotFound" || code == "NotFoundException" {
			return finding{broken, "the topic is gone: nobody hears an alarm", revertDrift}
		}
		if err != nil {
			return trouble(called("sns:ListSubscriptionsByTopic", err))
		}
		for _, s := range page.Subscriptions {
			switch arn := aws.ToString(s.SubscriptionArn); {
			case strings.HasPrefix(arn, "arn:"):
				confirmed++
			case arn == "PendingConfirmation":
				pending++
			}
		}
	}
	if confirmed > 0 {
		return isFine("%d confirmed, %d pending", confirmed, pending)
	}
	result := warning
	if d.stack.isProd() {
		result = broken
	}
	if pending > 0 {
		return finding{result, fmt.Sprintf("none confirmed, %d pending: nobody hears an alarm", pending), "follow the link in the mail of SNS to the address in the parameter AlarmEmail, within 3 days; after that deploy another address and back"}
	}
	return finding{result, "none: nobody hears an alarm", "set the parameter AlarmEmail and confirm by the mail of SNS, or subscribe something to the stack's output AlarmTopicArn"}
}
