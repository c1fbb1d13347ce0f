// Package metrics writes CloudWatch metrics as log lines in the Embedded Metric Format: no call, no time, no permission, and the
// numbers are there if the line is.
//
// A name with one set of dimensions' values is one metric, and costs $0.30 for a month in which it is written every hour
// (CloudWatch pricing, 2026). A metric has the dimension Stack, and at most one more with few values.
package metrics

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Namespace is where the metrics are found in CloudWatch.
const Namespace = "paidonce"

// StackDimension is the dimension that all metrics have: the stack's name.
const StackDimension = "Stack"

// Unit is a metric's unit, as CloudWatch knows it.
type Unit string

// The units in use.
const (
	Count   Unit = "Count"
	Seconds Unit = "Seconds"
)

// A Metric is one that the functions write.
type Metric struct {
	Name string
	Unit Unit
	// By is a further dimension. The metric is written with and without it: as a whole, and by its values.
	By string
}

// A Sample is what was measured of a metric at one time.
type Sample struct {
	metric Metric
	by     string // value of the dimension By
	values []float64
}

// Of is a sample of the values; none at all is not written, a zero is.
func (m Metric) Of(values ...float64) Sample { return Sample{metric: m, values: values} }

// Add is a sample of things that happened n times. Nothing is written for none.
func (m Metric) Add(n int) Sample {
	if n == 0 {
		return m.Of()
	}
	return m.Of(float64(n))
}

// By is the sample with a value of the metric's further dimension.
func (s Sample) By(value string) Sample {
	s.by = value
	return s
}

// Writer writes metrics. It is safe for concurrent use. A nil Writer writes none.
type Writer struct {
	out   io.Writer
	stack string
	now   func() time.Time

	mu sync.Mutex
}

// New returns a writer of the stack's metrics.
func New(out io.Writer, stack string, now func() time.Time) *Writer {
	return &Writer{out: out, stack: stack, now: now}
}

// Put writes samples, on one line as far as they fit together (CloudWatch, "Embedded metric format specification": a line has one
// value of each dimension, and up to 100 of each metric).
func (w *Writer) Put(samples ...Sample) {
	if w == nil {
		return
	}
	lines := []*line{}
	for _, s := range samples {
		for len(s.values) > 0 {
			part := s
			n := min(len(s.values), maxValues)
			part.values, s.values = s.values[:n], s.values[n:]
			lines = place(lines, part)
		}
	}
	for _, l := range lines {
		w.write(l)
	}
}

// maxValues is how many values of a metric a line may have.
const maxValues = 100

// line is one line of metrics: those without a further dimension, and those with one value of one.
type line struct {
	by, value string // the further dimension, if there is one
	samples   []Sample
}

// place adds the sample to the first line that can have it, or to a new one.
func place(lines []*line, s Sample) []*line {
	for _, l := range lines {
		if l.takes(s) {
			l.add(s)
			return lines
		}
	}
	l := &line{}
	l.add(s)
	return append(lines, l)
}

func (l *line) takes(s Sample) bool {
	for _, other := range l.samples {
		if other.metric.Name == s.metric.Name {
			return false
		}
	}
	return s.metric.By == "" || l.by == "" || l.by == s.metric.By && l.value == s.by
}

func (l *line) add(s Sample) {
	if s.metric.By != "" {
		l.by, l.value = s.metric.By, s.by
	}
	l.samples = append(l.samples, s)
}

type directive struct {
	Namespace  string       `json:"Namespace"`
	Dimensions [][]string   `json:"Dimensions"`
	Metrics    []definition `json:"Metrics"`
}

type definition struct {
	Name string `json:"Name"`
	Unit Unit   `json:"Unit"`
}

func (w *Writer) write(l *line) {
	text := map[string]any{StackDimension: w.stack}
	plain := directive{Namespace: Namespace, Dimensions: [][]string{{StackDimension}}}
	split := directive{Namespace: Namespace, Dimensions: [][]string{{StackDimension}, {StackDimension, l.by}}}
	for _, s := range l.samples {
		d := &plain
		if s.metric.By != "" {
			d = &split
			text[l.by] = l.value
		}
		d.Metrics = append(d.Metrics, definition{s.metric.Name, s.metric.Unit})
		text[s.metric.Name] = s.values
		if len(s.values) == 1 {
			text[s.metric.Name] = s.values[0]
		}
	}
	var directives []directive
	for _, d := range []directive{plain, split} {
		if len(d.Metrics) > 0 {
			directives = append(directives, d)
		}
	}
	text["_aws"] = map[string]any{"Timestamp": w.now().UnixMilli(), "CloudWatchMetrics": directives}
	encoded, err := json.Marshal(text)
	if err != nil {
		return // numbers and names: it cannot fail, unless for an infinite value, which is none
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.out.Write(append(encoded, '\n')) // as for a log line, there is nobody to tell
}
