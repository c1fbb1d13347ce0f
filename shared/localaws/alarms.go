package localaws

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// alarmWatch evaluates the engine's alarms, as CloudWatch does with its own: each minute it looks at the last Periods of
// an alarm's one metric, and sets the alarm's state, which runs its actions. A minute can be shorter here.
//
// It evaluates alarms on one metric by sum, sample count, minimum or maximum against a fixed threshold. Others stay
// INSUFFICIENT_DATA.
type alarmWatch struct {
	client *cloudwatch.Client
	minute time.Duration // how long an alarm's minute takes: whole seconds
	began  time.Time
}

// look evaluates all alarms by the minutes that have ended by now.
func (w *alarmWatch) look(ctx context.Context, now time.Time) error {
	end := now.Truncate(w.minute)
	var watched []watchedAlarm
	pages := cloudwatch.NewDescribeAlarmsPaginator(w.client, &cloudwatch.DescribeAlarmsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("localaws: describe alarms: %w", err)
		}
		for _, described := range page.MetricAlarms {
			if a, supported := w.watched(described); supported && !(a.silenceBreaches() && end.Sub(w.began) < a.periods(a.n)) {
				watched = append(watched, a)
			}
		}
	}
	const most = 500 // queries in a call
	for some := range slices.Chunk(watched, most) {
		if err := w.evaluate(ctx, some, end); err != nil {
			return err
		}
	}
	return nil
}

// watchedAlarm is an alarm at the local pace.
type watchedAlarm struct {
	types.MetricAlarm
	rule
	period time.Duration
	merge  func(a, b float64) float64 // makes one value of the values of two minutes
}

// periods is how long n periods take.
func (a watchedAlarm) periods(n int) time.Duration { return time.Duration(n) * a.period }

// silenceBreaches: such an alarm is not evaluated before the stack is as old as what it looks at. Nothing can have
// happened in the time before.
func (a watchedAlarm) silenceBreaches() bool { return a.missing == treatAsBreaching }

func (w *alarmWatch) watched(described types.MetricAlarm) (watchedAlarm, bool) {
	a := watchedAlarm{MetricAlarm: described, merge: map[types.Statistic]func(a, b float64) float64{
		types.StatisticSum:         func(a, b float64) float64 { return a + b },
		types.StatisticSampleCount: func(a, b float64) float64 { return a + b },
		types.StatisticMinimum:     func(a, b float64) float64 { return math.Min(a, b) },
		types.StatisticMaximum:     func(a, b float64) float64 { return math.Max(a, b) },
	}[described.Statistic]}
	breaches := comparison(described.ComparisonOperator)
	if described.MetricName == nil || described.Period == nil || described.EvaluationPeriods == nil || described.Threshold == nil ||
		a.merge == nil || breaches == nil {
		return a, false
	}
	n := int(*described.EvaluationPeriods)
	a.rule = rule{
		n: n, m: cmp.Or(int(aws.ToInt32(described.DatapointsToAlarm)), n),
		breaches: func(value float64) bool { return breaches(value, *described.Threshold) },
		missing:  cmp.Or(aws.ToString(described.TreatMissingData), treatAsMissing),
	}
	a.period = max(time.Duration(*described.Period)*time.Second/(time.Minute/w.minute), w.minute).Truncate(w.minute)
	return a, true
}

// evaluate sets the state of those of the alarms whose state has changed.
func (w *alarmWatch) evaluate(ctx context.Context, alarms []watchedAlarm, end time.Time) error {
	var queries []types.MetricDataQuery
	var longest time.Duration
	for i, a := range alarms {
		longest = max(longest, a.periods(a.reach()))
		queries = append(queries, types.MetricDataQuery{
			Id: aws.String(fmt.Sprint("m", i)),
			MetricStat: &types.MetricStat{
				Metric: &types.Metric{Namespace: a.Namespace, MetricName: a.MetricName, Dimensions: a.Dimensions},
				Period: aws.Int32(int32(w.minute / time.Second)),
				Stat:   aws.String(string(a.Statistic)),
			},
		})
	}
	found, err := w.client.GetMetricData(ctx, &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(end.Add(-longest)), EndTime: aws.Time(end), MetricDataQueries: queries,
	})
	if err != nil {
		return fmt.Errorf("localaws: read the alarms' metrics: %w", err)
	}
	minutes := map[string]types.MetricDataResult{}
	for _, result := range found.MetricDataResults {
		minutes[aws.ToString(result.Id)] = result
	}
	for i, a := range alarms {
		points := a.points(minutes[*queries[i].Id], end)
		state := a.state(points, a.StateValue)
		if state == a.StateValue {
			continue
		}
		_, err := w.client.SetAlarmState(ctx, &cloudwatch.SetAlarmStateInput{
			AlarmName: a.AlarmName, StateValue: state, StateReason: aws.String(a.reason(points)),
		})
		if err != nil {
			return fmt.Errorf("localaws: set alarm %s: %w", *a.AlarmName, err)
		}
	}
	return nil
}

// points makes the values of the alarm's periods of those of the minutes: the evaluation range up to end, oldest first.
func (a watchedAlarm) points(minutes types.MetricDataResult, end time.Time) []*float64 {
	points := make([]*float64, a.reach())
	for i, start := range minutes.Timestamps {
		ago := int((end.Sub(start) - 1) / a.period)
		if start.Before(end) && ago < len(points) {
			p := &points[len(points)-1-ago]
			if *p == nil {
				*p = aws.Float64(minutes.Values[i])
			} else {
				**p = a.merge(**p, minutes.Values[i])
			}
		}
	}
	return points
}

// reason says what the alarm was decided by, as AWS does with the values of its periods.
func (a watchedAlarm) reason(points []*float64) string {
	var values []string
	for _, p := range points {
		if p == nil {
			values = append(values, "none")
		} else {
			values = append(values, fmt.Sprint(*p))
		}
	}
	return fmt.Sprintf("The last values of %s: %s. It rings at %d of %d with %s %v.",
		*a.MetricName, strings.Join(values, ", "), a.m, a.n, a.ComparisonOperator, *a.Threshold)
}
