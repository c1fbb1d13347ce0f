// Package metricstest reads what package metrics wrote, for tests.
package metricstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

type line struct {
	AWS *struct {
		CloudWatchMetrics []struct {
			Dimensions [][]string
			Metrics    []struct{ Name string }
		}
	} `json:"_aws"`
}

// Sums reads lines of JSON and adds up the values of each metric, by its name, and where it is split by a further dimension also
// by "name value". Other lines are passed over.
func Sums(text []byte) (map[string]float64, error) {
	sums := map[string]float64{}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err == io.EOF {
			return sums, nil
		} else if err != nil {
			return nil, fmt.Errorf("metricstest: not lines of JSON: %w", err)
		}
		var l line
		values := map[string]any{}
		if json.Unmarshal(raw, &l) != nil || l.AWS == nil || json.Unmarshal(raw, &values) != nil {
			continue
		}
		for _, d := range l.AWS.CloudWatchMetrics {
			for _, dimensions := range d.Dimensions {
				for _, m := range d.Metrics {
					name := m.Name
					for _, further := range dimensions[1:] {
						name += fmt.Sprint(" ", values[further])
					}
					sums[name] += sum(values[m.Name])
				}
			}
		}
	}
}

func sum(v any) (total float64) {
	switch v := v.(type) {
	case float64:
		return v
	case []any:
		for _, one := range v {
			total += sum(one)
		}
	}
	return total
}
