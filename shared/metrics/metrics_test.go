package metrics_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/metrics"
)

func TestALineIsWhatCloudWatchReads(t *testing.T) {
	var out bytes.Buffer
	at := time.UnixMilli(1_800_000_000_123)
	w := metrics.New(&out, "paidonce-dev", func() time.Time { return at })
	w.Put(metrics.Count, map[string]float64{"Stuck": 2, "Matched": 300})
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"Stack": "paidonce-dev", "Stuck": 2.0, "Matched": 300.0,
		"_aws": map[string]any{
			"Timestamp": 1_800_000_000_123.0,
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace": "paidonce", "Dimensions": []any{[]any{"Stack"}},
				"Metrics": []any{map[string]any{"Name": "Matched", "Unit": "Count"}, map[string]any{"Name": "Stuck", "Unit": "Count"}},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Error("not one line")
	}
}

func TestNothingIsWrittenForNothing(t *testing.T) {
	var out bytes.Buffer
	metrics.New(&out, "s", time.Now).Put(metrics.Count, nil)
	(*metrics.Writer)(nil).Put(metrics.Count, map[string]float64{"Stuck": 1})
	if out.Len() > 0 {
		t.Errorf("wrote %s", out.String())
	}
}
