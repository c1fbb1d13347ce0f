package localaws

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// every calls do at each tick until stop, which waits for the call under way. What fails is made up for by the next call.
func every(interval time.Duration, do func(ctx context.Context, now time.Time) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				_ = do(ctx, now)
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// queueMetrics does what SQS does by itself on AWS and the engine does not:
// it reports the depth and age of queues to CloudWatch, so that their alarms
// work here, too.
type queueMetrics struct {
	engine *Engine
	client *cloudwatch.Client
}

func (m *queueMetrics) publish(ctx context.Context, now time.Time) error {
	queues, err := m.peek(ctx)
	if err != nil {
		return err
	}
	var data []types.MetricDatum
	for url, messages := range queues {
		var visible, oldest float64
		for _, message := range messages {
			if message.IsVisible {
				visible++
			}
			oldest = max(oldest, now.Sub(time.Unix(message.SentTimestamp, 0)).Seconds())
		}
		dimensions := []types.Dimension{{Name: aws.String("QueueName"), Value: aws.String(path.Base(url))}}
		data = append(data,
			types.MetricDatum{
				MetricName: aws.String("ApproximateNumberOfMessagesVisible"), Unit: types.StandardUnitCount,
				Dimensions: dimensions, Timestamp: aws.Time(now), Value: aws.Float64(visible),
			},
			types.MetricDatum{
				MetricName: aws.String("ApproximateAgeOfOldestMessage"), Unit: types.StandardUnitSeconds,
				Dimensions: dimensions, Timestamp: aws.Time(now), Value: aws.Float64(oldest),
			})
	}
	if len(data) == 0 {
		return nil
	}
	_, err = m.client.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: aws.String("AWS/SQS"), MetricData: data})
	return err
}

type queuedMessage struct {
	SentTimestamp int64 // Unix seconds
	IsVisible     bool
}

// peek returns the messages of every queue by its URL, without receiving them:
// a page of the engine's own, not of AWS.
func (m *queueMetrics) peek(ctx context.Context) (map[string][]queuedMessage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.engine.URL+"/_ministack/sqs/messages?region="+m.engine.Region, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("peek at the queues: %s", response.Status)
	}
	var page struct {
		Messages map[string]map[string]map[string][]queuedMessage // by account, region and queue URL
	}
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return nil, fmt.Errorf("peek at the queues: %w", err)
	}
	queues := map[string][]queuedMessage{}
	for _, regions := range page.Messages {
		for url, messages := range regions[m.engine.Region] {
			queues[url] = messages
		}
	}
	return queues, nil
}
