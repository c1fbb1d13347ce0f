package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// series is one metric of CloudWatch.
type series struct {
	namespace, name, stat string
	period                time.Duration
	dimensions            map[string]string
}

// point is what was measured in the period from a time on.
type point struct {
	at    time.Time
	value float64
}

// points reads what was measured from a time up to now, oldest first, of each of the series.
func (d *doctor) points(ctx context.Context, from time.Time, all ...series) ([][]point, error) {
	in := &cloudwatch.GetMetricDataInput{StartTime: &from, EndTime: aws.Time(d.now()), ScanBy: types.ScanByTimestampAscending}
	for i, s := range all {
		metric := &types.Metric{Namespace: aws.String(s.namespace), MetricName: aws.String(s.name)}
		for name, value := range s.dimensions {
			metric.Dimensions = append(metric.Dimensions, types.Dimension{Name: aws.String(name), Value: aws.String(value)})
		}
		in.MetricDataQueries = append(in.MetricDataQueries, types.MetricDataQuery{
			Id: aws.String(fmt.Sprint("m", i)),
			MetricStat: &types.MetricStat{
				Metric: metric, Period: aws.Int32(int32(s.period.Seconds())), Stat: aws.String(s.stat),
			},
		})
	}
	found := make([][]point, len(all))
	pages := cloudwatch.NewGetMetricDataPaginator(d.metrics, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, called("cloudwatch:GetMetricData", err)
		}
		for _, r := range page.MetricDataResults {
			i, err := strconv.Atoi(strings.TrimPrefix(aws.ToString(r.Id), "m"))
			if err != nil || i < 0 || i >= len(found) || len(r.Values) != len(r.Timestamps) {
				return nil, called("cloudwatch:GetMetricData", fmt.Errorf("an answer that was not asked for: %s", aws.ToString(r.Id)))
			}
			for n, at := range r.Timestamps {
				found[i] = append(found[i], point{at, r.Values[n]})
			}
		}
	}
	return found, nil
}

// lastAbove is the beginning of the last period with a value above that; zero if there is none.
func lastAbove(points []point, value float64) (last time.Time) {
	for _, p := range points {
		if p.value > value && p.at.After(last) {
			last = p.at
		}
	}
	return last
}
