// Package metrics writes CloudWatch metrics as log lines in the Embedded Metric Format: no call, no time, no permission, and the
// numbers are there if the line is.
package metrics

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// Namespace is where the metrics are found in CloudWatch.
const Namespace = "paidonce"

// Unit is a metric's unit, as CloudWatch knows it.
type Unit string

// The units in use.
const (
	Count   Unit = "Count"
	Seconds Unit = "Seconds"
)

// Writer writes metrics. It is safe for concurrent use. A nil Writer writes none.
type Writer struct {
	out   io.Writer
	stack string // the only dimension: each value of a dimension is a metric of its own, at $0.30 a month
	now   func() time.Time

	mu sync.Mutex
}

// New returns a writer of the stack's metrics.
func New(out io.Writer, stack string, now func() time.Time) *Writer {
	return &Writer{out: out, stack: stack, now: now}
}

type directive struct {
	Namespace  string     `json:"Namespace"`
	Dimensions [][]string `json:"Dimensions"`
	Metrics    []metric   `json:"Metrics"`
}

type metric struct {
	Name string `json:"Name"`
	Unit Unit   `json:"Unit"`
}

// Put writes one value for each of the names, all of one unit, as one line (CloudWatch, "Embedded metric format specification").
func (w *Writer) Put(unit Unit, values map[string]float64) {
	if w == nil || len(values) == 0 {
		return
	}
	d := directive{Namespace: Namespace, Dimensions: [][]string{{"Stack"}}}
	line := map[string]any{"Stack": w.stack}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		d.Metrics = append(d.Metrics, metric{name, unit})
		line[name] = values[name]
	}
	line["_aws"] = map[string]any{"Timestamp": w.now().UnixMilli(), "CloudWatchMetrics": []directive{d}}
	text, err := json.Marshal(line)
	if err != nil {
		return // numbers and names: it cannot fail, unless for an infinite value, which is none
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.out.Write(append(text, '\n')) // as for a log line, there is nobody to tell
}
