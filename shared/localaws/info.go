package localaws

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Info is what a client of the running local stack has to know. It is the
// content of .local/stack.json. Its secrets are made up and open nothing else.
type Info struct {
	APIURL                string `json:"api_url"`      // plain http, reaches the HTTP API
	AWSEndpoint           string `json:"aws_endpoint"` // for AWS_ENDPOINT_URL; credentials may be any
	Region                string `json:"region"`
	StackName             string `json:"stack_name"`
	Table                 string `json:"table"`
	EventsQueueURL        string `json:"events_queue_url"`
	EventsDlqURL          string `json:"events_dlq_url"`
	AsyncDlqURL           string `json:"async_dlq_url"`
	AlarmTopicARN         string `json:"alarm_topic_arn"`
	GatewayURL            string `json:"gateway_url"` // of the simulated gateway; whoever starts it sets this
	WebhookSecret         string `json:"webhook_secret"`
	PreviousWebhookSecret string `json:"previous_webhook_secret"`
	KeyID                 string `json:"key_id"`
	KeySecret             string `json:"key_secret"`
	AccountID             string `json:"account_id"` // the gateway's; empty: facts of any account count
	PID                   int    `json:"pid"`        // of the process that runs the stack
}

func infoPath(checkout string) string { return filepath.Join(checkout, ".local", "stack.json") }

// WriteInfo writes the checkout's .local/stack.json, readable by its owner only
// and complete at every moment.
func WriteInfo(checkout string, info Info) error {
	path := infoPath(checkout)
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return fmt.Errorf("localaws: write %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("localaws: write %s: %w", path, err)
	}
	partial, err := os.CreateTemp(filepath.Dir(path), "stack-")
	if err != nil {
		return fmt.Errorf("localaws: write %s: %w", path, err)
	}
	defer os.Remove(partial.Name()) // fails once renamed, as it should
	_, err = partial.Write(append(text, '\n'))
	if err := errors.Join(err, partial.Close()); err != nil {
		return fmt.Errorf("localaws: write %s: %w", path, err)
	}
	if err := os.Rename(partial.Name(), path); err != nil {
		return fmt.Errorf("localaws: write %s: %w", path, err)
	}
	return nil
}

// ReadInfo reads what a running stack wrote. Where none runs the error matches
// fs.ErrNotExist.
func ReadInfo(checkout string) (Info, error) {
	var info Info
	text, err := os.ReadFile(infoPath(checkout))
	if err != nil {
		return info, fmt.Errorf("localaws: read stack: %w", err)
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return info, fmt.Errorf("localaws: read %s: %w", infoPath(checkout), err)
	}
	return info, nil
}

// RemoveInfo removes .local/stack.json, if it is there.
func RemoveInfo(checkout string) error {
	if err := os.Remove(infoPath(checkout)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("localaws: remove stack: %w", err)
	}
	return nil
}
