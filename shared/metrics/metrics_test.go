package metrics_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/metrics"
)

var (
	found = metrics.Metric{Name: "Found", Unit: metrics.Count}
	took  = metrics.Metric{Name: "Took", Unit: metrics.Seconds}
	heard = metrics.Metric{Name: "Heard", Unit: metrics.Count, By: "Secret"}
)

type object = map[string]any

// directive is what CloudWatch is told of metrics of one set of dimensions.
func directive(dimensions []any, defined ...any) object {
	return object{"Namespace": "paidonce", "Dimensions": dimensions, "Metrics": defined}
}

func defined(name, unit string) object { return object{"Name": name, "Unit": unit} }

var (
	byStack  = []any{[]any{"Stack"}}
	bySecret = []any{[]any{"Stack"}, []any{"Stack", "Secret"}}
)

func TestALineIsWhatCloudWatchReads(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_123)
	line := func(values object, directives ...any) object {
		values["Stack"] = "paidonce-dev"
		values["_aws"] = object{"Timestamp": 1_800_000_000_123.0, "CloudWatchMetrics": directives}
		return values
	}
	for _, c := range []struct {
		name    string
		samples []metrics.Sample
		want    []object
	}{
		{"one", []metrics.Sample{found.Add(2)}, []object{line(object{"Found": 2.0}, directive(byStack, defined("Found", "Count")))}},
		{"a zero that is measured", []metrics.Sample{found.Of(0)}, []object{line(object{"Found": 0.0}, directive(byStack, defined("Found", "Count")))}},
		{"none", []metrics.Sample{found.Add(0), took.Of()}, nil},
		{"of two units, and several values", []metrics.Sample{found.Add(1), took.Of(1.5, 2)},
			[]object{line(object{"Found": 1.0, "Took": []any{1.5, 2.0}}, directive(byStack, defined("Found", "Count"), defined("Took", "Seconds")))}},
		{"by a further dimension", []metrics.Sample{found.Add(1), heard.Add(1).By("razorpay/test_current")},
			[]object{line(object{"Found": 1.0, "Heard": 1.0, "Secret": "razorpay/test_current"},
				directive(byStack, defined("Found", "Count")), directive(bySecret, defined("Heard", "Count")))}},
		{"by two values of it", []metrics.Sample{heard.Add(1).By("a"), heard.Add(2).By("b"), found.Add(3)},
			[]object{
				line(object{"Heard": 1.0, "Secret": "a", "Found": 3.0}, directive(byStack, defined("Found", "Count")), directive(bySecret, defined("Heard", "Count"))),
				line(object{"Heard": 2.0, "Secret": "b"}, directive(bySecret, defined("Heard", "Count"))),
			}},
		{"twice the same", []metrics.Sample{found.Add(1), found.Add(2)},
			[]object{line(object{"Found": 1.0}, directive(byStack, defined("Found", "Count"))), line(object{"Found": 2.0}, directive(byStack, defined("Found", "Count")))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			metrics.New(&out, "paidonce-dev", func() time.Time { return at }).Put(c.samples...)
			if diff := cmp.Diff(c.want, written(t, &out)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// written are the lines that were written, each of which must be a JSON object of its own.
func written(t *testing.T, out *bytes.Buffer) []object {
	t.Helper()
	var lines []object
	for text := range bytes.Lines(out.Bytes()) {
		var l object
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// CloudWatch drops the whole line if a metric has more than 100 values.
func TestManyValuesAreSeveralLines(t *testing.T) {
	var out bytes.Buffer
	values := make([]float64, 250)
	for i := range values {
		values[i] = float64(i)
	}
	metrics.New(&out, "s", time.Now).Put(took.Of(values...))
	var got []float64
	for _, l := range written(t, &out) {
		part := l["Took"].([]any)
		if len(part) > 100 {
			t.Errorf("%d values on a line", len(part))
		}
		for _, v := range part {
			got = append(got, v.(float64))
		}
	}
	if !slices.Equal(got, values) {
		t.Errorf("wrote %v", got)
	}
}

func TestANilWriterWritesNothing(t *testing.T) {
	(*metrics.Writer)(nil).Put(found.Add(1)) // and does not panic
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range metrics.All() {
		if seen[m.Name] || m.Name == "" || m.Unit == "" {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
	}
}
