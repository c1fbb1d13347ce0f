package localaws

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/google/go-cmp/cmp"
)

// depths puts values of one queue's metric, so many minutes ago each.
func depths(t *testing.T, client *cloudwatch.Client, queue string, end time.Time, minutesAgo map[int]float64) {
	t.Helper()
	var data []types.MetricDatum
	for ago, value := range minutesAgo {
		data = append(data, types.MetricDatum{
			MetricName: aws.String("Depth"), Dimensions: []types.Dimension{{Name: aws.String("QueueName"), Value: &queue}},
			Timestamp: aws.Time(end.Add(-time.Duration(ago) * time.Minute)), Value: &value,
		})
	}
	if _, err := client.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("test"), MetricData: data}); err != nil {
		t.Fatal(err)
	}
}

// The engine's alarms follow their own metric and no other, by whole periods up to the end of the last minute.
func TestAlarmWatch(t *testing.T) {
	engine := startEngine(t)
	client := cloudwatch.NewFromConfig(engine.Config())
	now := time.Now()
	end := now.Truncate(time.Minute)
	put := func(name, queue string, change func(*cloudwatch.PutMetricAlarmInput)) {
		t.Helper()
		in := &cloudwatch.PutMetricAlarmInput{
			AlarmName: &name, Namespace: aws.String("test"), MetricName: aws.String("Depth"),
			Dimensions: []types.Dimension{{Name: aws.String("QueueName"), Value: &queue}},
			Statistic:  types.StatisticMaximum, Period: aws.Int32(300), EvaluationPeriods: aws.Int32(1),
			Threshold: aws.Float64(0), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
			TreatMissingData: aws.String(treatAsNotBreaching),
		}
		if change != nil {
			change(in)
		}
		if _, err := client.PutMetricAlarm(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	depths(t, client, "full", end, map[int]float64{1: 2, 2: 0, 7: 3})
	depths(t, client, "empty", end, map[int]float64{0: 9, 1: 0, 5: 0, 6: 9}) // full in this minute, which is not over, and long ago
	put("full", "full", nil)
	put("empty", "empty", nil)
	put("unknown", "unknown", nil)
	put("sum of a period", "full", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Statistic, in.Threshold = types.StatisticSum, aws.Float64(2) // 5 in ten minutes
	})
	put("sum of ten minutes", "full", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Statistic, in.Threshold, in.Period = types.StatisticSum, aws.Float64(4), aws.Int32(600)
	})
	put("one of two", "full", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Threshold, in.EvaluationPeriods, in.DatapointsToAlarm = aws.Float64(2), aws.Int32(2), aws.Int32(1)
	})
	put("two of two", "full", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Threshold, in.EvaluationPeriods = aws.Float64(2), aws.Int32(2)
	})
	silent := func(in *cloudwatch.PutMetricAlarmInput) {
		in.TreatMissingData, in.ComparisonOperator, in.Threshold = aws.String(treatAsBreaching), types.ComparisonOperatorLessThanThreshold, aws.Float64(1)
	}
	put("silent", "unknown", silent)
	put("average", "full", func(in *cloudwatch.PutMetricAlarmInput) { in.Statistic = types.StatisticAverage })

	states := func() map[string]types.StateValue {
		t.Helper()
		described, err := client.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]types.StateValue{}
		for _, a := range described.MetricAlarms {
			found[*a.AlarmName] = a.StateValue
		}
		return found
	}
	want := map[string]types.StateValue{
		"full": insufficient, "empty": insufficient, "unknown": insufficient, "silent": insufficient, "average": insufficient,
		"sum of a period": insufficient, "sum of ten minutes": insufficient, "one of two": insufficient, "two of two": insufficient,
	}
	if diff := cmp.Diff(want, states()); diff != "" {
		t.Errorf("the engine evaluates by itself (-want +got):\n%s", diff)
	}

	watch := &alarmWatch{client: client, minute: time.Minute, began: now.Add(-4 * time.Minute)}
	look := func(at time.Time) {
		t.Helper()
		if err := watch.look(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	look(now)
	want = map[string]types.StateValue{
		"full": alarm, "empty": ok, "unknown": ok, "silent": insufficient, "average": insufficient,
		"sum of a period": ok, "sum of ten minutes": alarm, "one of two": alarm, "two of two": ok,
	}
	if diff := cmp.Diff(want, states()); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	look(now.Add(2 * time.Minute)) // the stack is old enough for a silence to count
	if got := states()["silent"]; got != alarm {
		t.Errorf("silent for long is %s, want ALARM", got)
	}
	depths(t, client, "full", end, map[int]float64{-5: 0})
	look(now.Add(6 * time.Minute))
	if got := states()["full"]; got != ok {
		t.Errorf("once empty it is %s, want OK", got)
	}
}

// At a local pace all periods are shorter alike.
func TestAlarmMinutes(t *testing.T) {
	described := types.MetricAlarm{
		AlarmName: aws.String("a"), MetricName: aws.String("m"), Statistic: types.StatisticSum, EvaluationPeriods: aws.Int32(2),
		Threshold: aws.Float64(0), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
	}
	for _, test := range []struct {
		period       int32
		minute, want time.Duration
	}{
		{60, time.Minute, time.Minute},
		{60, time.Second, time.Second},
		{300, time.Second, 5 * time.Second},
		{3600, 2 * time.Second, 2 * time.Minute},
		{10, time.Second, time.Second}, // no period is shorter than a minute
	} {
		described.Period = &test.period
		a, supported := (&alarmWatch{minute: test.minute}).watched(described)
		if !supported || a.period != test.want {
			t.Errorf("a period of %d s with minutes of %s: %s, want %s", test.period, test.minute, a.period, test.want)
		}
		if a.m != 2 || a.missing != treatAsMissing {
			t.Errorf("by default %d of %d, missing data are %q; want all of them, and missing", a.m, a.n, a.missing)
		}
	}
}

func TestAlarmMinuteOfAStack(t *testing.T) {
	for text, want := range map[string]bool{"0s": true, "1s": true, "2s": true, "1m0s": true, "500ms": false, "7s": false, "2m0s": false, "-1s": false} {
		minute, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Options{AlarmMinute: minute}).setDefaults(); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Each alarm of the template is of the kind that the local stack evaluates.
func TestAlarmsOfTheTemplate(t *testing.T) {
	d := readDeployed(t)
	for name, resource := range d.ofType("AWS::CloudWatch::Alarm") {
		p := resource.Properties
		statistic, _ := p["Statistic"].(string)
		operator, _ := p["ComparisonOperator"].(string)
		metric, _ := p["MetricName"].(string)
		_, supported := (&alarmWatch{minute: time.Minute}).watched(types.MetricAlarm{
			MetricName: &metric, Statistic: types.Statistic(statistic), ComparisonOperator: types.ComparisonOperator(operator),
			Period: aws.Int32(int32(d.number(p["Period"]))), EvaluationPeriods: aws.Int32(int32(d.number(p["EvaluationPeriods"]))),
			Threshold: aws.Float64(float64(d.number(p["Threshold"]))),
		})
		if !supported || metric == "" {
			t.Errorf("%s: %s of metric %q, %s: nobody would ever see it ring here", name, statistic, metric, operator)
		}
	}
}

// A log line in the Embedded Metric Format is a metric, for each set of dimensions, each value once; a broken one is a log line.
func TestEmbeddedMetrics(t *testing.T) {
	engine := startEngine(t)
	logs, metrics := cloudwatchlogs.NewFromConfig(engine.Config()), cloudwatch.NewFromConfig(engine.Config())
	group, stream := aws.String("/test"), aws.String("one")
	if _, err := logs.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: group}); err != nil {
		t.Fatal(err)
	}
	if _, err := logs.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: group, LogStreamName: stream}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	line := fmt.Sprintf(`{"_aws":{"Timestamp":%d,"CloudWatchMetrics":[`+
		`{"Namespace":"paidonce","Dimensions":[["Stack"],["Stack","Secret"]],"Metrics":[{"Name":"Heard","Unit":"Count"}]},`+
		`{"Namespace":"paidonce","Dimensions":[["Stack"]],"Metrics":[{"Name":"Took","Unit":"Seconds"}]}]},`+
		`"Stack":"s","Secret":"current","Heard":1,"Took":[0.5,2,2]}`, now.UnixMilli())
	var events []logtypes.InputLogEvent
	for _, message := range []string{line, "START RequestId: 1", line, `{"_aws":{"CloudWatchMetrics":[{}]}}`, `{"_aws`} {
		events = append(events, logtypes.InputLogEvent{Message: &message, Timestamp: aws.Int64(now.UnixMilli())})
	}
	_, err := logs.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{LogGroupName: group, LogStreamName: stream, LogEvents: events})
	if err != nil {
		t.Fatal(err)
	}

	type statistics struct {
		Count, Sum, Minimum, Maximum float64
		Unit                         types.StandardUnit
	}
	read := func(name string, dimensions ...string) statistics {
		t.Helper()
		in := &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("paidonce"), MetricName: &name, Period: aws.Int32(3600),
			StartTime: aws.Time(now.Add(-time.Minute)), EndTime: aws.Time(now.Add(time.Minute)),
			Statistics: []types.Statistic{types.StatisticSampleCount, types.StatisticSum, types.StatisticMinimum, types.StatisticMaximum},
		}
		for i := 0; i < len(dimensions); i += 2 {
			in.Dimensions = append(in.Dimensions, types.Dimension{Name: &dimensions[i], Value: &dimensions[i+1]})
		}
		out, err := metrics.GetMetricStatistics(t.Context(), in)
		if err != nil || len(out.Datapoints) != 1 {
			t.Fatalf("%s %v: %v; want one point", name, dimensions, err)
		}
		p := out.Datapoints[0]
		return statistics{*p.SampleCount, *p.Sum, *p.Minimum, *p.Maximum, p.Unit}
	}
	heard := statistics{2, 2, 1, 1, types.StandardUnitCount}
	for _, dimensions := range [][]string{{"Stack", "s"}, {"Stack", "s", "Secret", "current"}} {
		if diff := cmp.Diff(heard, read("Heard", dimensions...)); diff != "" {
			t.Errorf("Heard %v (-want +got):\n%s", dimensions, diff)
		}
	}
	if diff := cmp.Diff(statistics{6, 9, 0.5, 2, types.StandardUnitSeconds}, read("Took", "Stack", "s")); diff != "" {
		t.Errorf("Took (-want +got):\n%s", diff)
	}
	listed, err := metrics.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{})
	if err != nil || len(listed.Metrics) != 3 {
		t.Errorf("%d metrics, %v; want three", len(listed.Metrics), err)
	}
	kept, err := logs.FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: group})
	if err != nil || len(kept.Events) != len(events) {
		t.Errorf("%d log lines, %v; want all %d", len(kept.Events), err, len(events))
	}
}
