package localaws

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInfoFile(t *testing.T) {
	checkout := t.TempDir()
	if _, err := ReadInfo(checkout); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadInfo before any stack: %v, want fs.ErrNotExist", err)
	}
	want := Info{APIURL: "http://127.0.0.1:1", StackName: "s", WebhookSecret: "w", PID: 42}
	for range 2 { // the second time over the first
		if err := WriteInfo(checkout, want); err != nil {
			t.Fatalf("WriteInfo: %v", err)
		}
	}
	got, err := ReadInfo(checkout)
	if err != nil {
		t.Fatalf("ReadInfo: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadInfo (-want +got):\n%s", diff)
	}
	file, err := os.Stat(infoPath(checkout))
	if err != nil {
		t.Fatal(err)
	}
	if file.Mode().Perm() != 0o600 {
		t.Errorf("mode of %s = %v, want 0600: it holds secrets", file.Name(), file.Mode().Perm())
	}
	for range 2 { // the second time there is none
		if err := RemoveInfo(checkout); err != nil {
			t.Errorf("RemoveInfo: %v", err)
		}
	}
}

// Other programs read the file: its keys are an interface.
func TestInfoKeys(t *testing.T) {
	text, err := json.Marshal(Info{})
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"account_id", "alarm_topic_arn", "api_url", "async_dlq_url", "aws_endpoint", "events_dlq_url", "events_queue_url", "gateway_url",
		"key_id", "key_secret", "pid", "previous_webhook_secret", "region", "stack_name", "table", "webhook_secret",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(keys))); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
