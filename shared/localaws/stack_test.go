package localaws

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestStack deploys the real template with the real functions once and looks at
// what this package adds to them; what they do is tested elsewhere.
func TestStack(t *testing.T) {
	stack, err := Start(t.Context(), Options{
		Log:         t.Output(),
		EnforceIAM:  true,
		AlarmMinute: time.Second,
		Parameters:  map[string]string{"RazorpayAccountId": "", "LogLevel": "DEBUG"},
	})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := stack.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})

	t.Run("routes", func(t *testing.T) {
		tests := []struct {
			method, path string
			want         int
		}{
			{http.MethodPost, "/webhooks/razorpay", http.StatusUnauthorized}, // by the function: there is no signature
			{http.MethodPost, "/webhooks/nobody", http.StatusNotFound},
			{http.MethodPost, "/orders", http.StatusForbidden}, // by the API: the call is not signed
			{http.MethodGet, "/orders/A-1", http.StatusForbidden},
			{http.MethodGet, "/webhooks/razorpay", http.StatusNotFound},
			{http.MethodPost, "/other", http.StatusNotFound},
		}
		for _, test := range tests {
			if got, text := request(t, stack, test.method, test.path, "{}", nil); got != test.want {
				t.Errorf("%s %s = %d %s, want %d", test.method, test.path, got, text, test.want)
			}
		}
		signed := http.Header{"Authorization": {"AWS4-HMAC-SHA256 Credential=local/20260101/ap-south-1/execute-api/aws4_request"}}
		if got, text := request(t, stack, http.MethodGet, "/orders/A-1", "", signed); got != http.StatusNotFound || !strings.Contains(text, "error") {
			t.Errorf("signed GET /orders/A-1 = %d %s, want 404 from the function", got, text)
		}
	})

	t.Run("functions call through the proxy", func(t *testing.T) {
		stack.Proxy.ResetCalls()
		if got, text := webhook(t, stack, "evt_proxy"); got != http.StatusOK {
			t.Fatalf("webhook = %d %s, want 200", got, text)
		}
		for _, operation := range []string{"DynamoDB_20120810.PutItem", "AmazonSQS.SendMessage"} {
			if got := stack.Proxy.Calls()[operation]; got != 1 {
				t.Errorf("%s called %d times, want 1; all calls: %v", operation, got, stack.Proxy.Calls())
			}
		}
		refused := stack.Proxy.Inject(Fault{Kind: Refuse, Operation: "AmazonSQS.SendMessage"})
		if got, text := webhook(t, stack, "evt_refused"); got != http.StatusInternalServerError {
			t.Errorf("webhook while SQS refuses = %d %s, want 500", got, text)
		}
		refused.Remove()
		if got, text := webhook(t, stack, "evt_refused"); got != http.StatusOK {
			t.Errorf("webhook again = %d %s, want 200", got, text)
		}
	})

	t.Run("queue URLs lead to the queues", func(t *testing.T) {
		client := sqs.NewFromConfig(stack.Config())
		for _, url := range []string{stack.EventsQueueURL, stack.EventsDlqURL} {
			_, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
				QueueUrl:       aws.String(url),
				AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
			})
			if err != nil || !strings.HasPrefix(url, stack.AWSEndpoint) {
				t.Errorf("%s: %v; want a queue behind %s", url, err, stack.AWSEndpoint)
			}
		}
	})

	t.Run("alarms of queues", func(t *testing.T) {
		queues := sqs.NewFromConfig(stack.Config())
		_, err := queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(stack.EventsDlqURL), MessageBody: aws.String("given up")})
		if err != nil {
			t.Fatalf("SendMessage: %v", err)
		}
		alarms := cloudwatch.NewFromConfig(stack.Config())
		for deadline := time.Now().Add(20 * time.Second); ; {
			described, err := alarms.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{
				AlarmNames: []string{stack.StackName + "-events-dlq-not-empty"},
			})
			if err != nil || len(described.MetricAlarms) != 1 {
				t.Fatalf("DescribeAlarms = %v, %v; want one alarm", described, err)
			}
			state := described.MetricAlarms[0].StateValue
			if state == cwtypes.StateValueAlarm {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("alarm is %s with a message in the dead-letter queue, want ALARM", state)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})

	t.Run("a killed function", func(t *testing.T) {
		held := stack.Proxy.Inject(Fault{Kind: Hold, Operation: "AmazonSQS.SendMessage", Count: 1})
		answered := make(chan int, 1)
		go func() {
			status, _ := webhook(t, stack, "evt_killed")
			answered <- status
		}()
		<-held.Reached()
		killed, err := stack.KillFunction("WebhookFunction")
		if err != nil || killed == 0 {
			t.Errorf("KillFunction = %d, %v; want at least one process", killed, err)
		}
		held.Drop()
		if got := <-answered; got < 500 {
			t.Errorf("answer of the killed function = %d, want a server error", got)
		}
		if got, text := webhook(t, stack, "evt_killed"); got != http.StatusOK {
			t.Errorf("webhook afterwards = %d %s, want 200 from a new process", got, text)
		}
		if _, err := stack.KillFunction("NoFunction"); err == nil {
			t.Error("KillFunction of an unknown function: no error")
		}
	})
}

// webhook delivers an event that the gateway has signed and returns the answer.
func webhook(t *testing.T, stack *Stack, eventID string) (status int, text string) {
	t.Helper()
	body := `{"entity":"event","event":"nothing.of_concern","contains":[],"payload":{},"id":"` + eventID + `"}`
	mac := hmac.New(sha256.New, []byte(stack.WebhookSecret))
	mac.Write([]byte(body))
	return request(t, stack, http.MethodPost, "/webhooks/razorpay", body, http.Header{
		"X-Razorpay-Event-Id":  {eventID},
		"X-Razorpay-Signature": {hex.EncodeToString(mac.Sum(nil))},
	})
}

func request(t *testing.T, stack *Stack, method, path, body string, header http.Header) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, stack.APIURL+path, strings.NewReader(body))
	if err != nil {
		t.Errorf("NewRequest: %v", err)
		return 0, ""
	}
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[name] = values
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return 0, ""
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
	}
	return response.StatusCode, string(answer)
}
