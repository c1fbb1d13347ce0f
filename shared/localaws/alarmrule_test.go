package localaws

import (
	"math"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

const (
	ok           = types.StateValueOk
	alarm        = types.StateValueAlarm
	insufficient = types.StateValueInsufficientData
	asItWas      = types.StateValue("as it was")
)

// TestAlarmRule holds the examples of "Configuring how CloudWatch alarms treat missing data", with those that are left out there.
func TestAlarmRule(t *testing.T) {
	treatments := []string{treatAsMissing, keepState, treatAsBreaching, treatAsNotBreaching}
	tests := []struct {
		m, n   int
		points string // oldest first: X breaches, 0 does not, - is missing
		want   []types.StateValue
	}{
		{3, 3, "0 - X - X", []types.StateValue{ok, ok, ok, ok}},
		{3, 3, "- - - - 0", []types.StateValue{ok, ok, ok, ok}},
		{3, 3, "- - - - -", []types.StateValue{insufficient, asItWas, alarm, ok}},
		{3, 3, "0 X X - X", []types.StateValue{alarm, alarm, alarm, alarm}},
		{3, 3, "- - X - -", []types.StateValue{alarm, asItWas, alarm, ok}},
		{3, 3, "- - - - X", []types.StateValue{ok, ok, alarm, ok}}, // too young to ring before its time
		{2, 3, "0 - X - X", []types.StateValue{alarm, alarm, alarm, alarm}},
		{2, 3, "0 0 X 0 X", []types.StateValue{alarm, alarm, alarm, alarm}},
		{2, 3, "0 - X - -", []types.StateValue{ok, ok, alarm, ok}},
		{2, 3, "- - - - 0", []types.StateValue{ok, ok, alarm, ok}},
		{2, 3, "- - - X -", []types.StateValue{alarm, asItWas, alarm, ok}},
		{2, 3, "X X 0 0 X", []types.StateValue{ok, ok, ok, ok}}, // what is older than three periods with data counts no more
		{2, 3, "X - - - X", []types.StateValue{alarm, alarm, alarm, alarm}},
		{1, 1, "X X 0", []types.StateValue{ok, ok, ok, ok}},
		{1, 1, "0 0 X", []types.StateValue{alarm, alarm, alarm, alarm}},
		{1, 1, "- X -", []types.StateValue{alarm, alarm, alarm, alarm}},
		{1, 1, "- - -", []types.StateValue{insufficient, asItWas, alarm, ok}},
		{1, 2, "0 X 0 0", []types.StateValue{ok, ok, ok, ok}},
		{1, 2, "0 0 X 0", []types.StateValue{alarm, alarm, alarm, alarm}},
	}
	for _, test := range tests {
		var points []*float64
		for mark := range strings.FieldsSeq(test.points) {
			values := map[string]*float64{"X": new(1.0), "0": new(0.0), "-": nil}
			points = append(points, values[mark])
		}
		for i, treatment := range treatments {
			r := rule{n: test.n, m: test.m, missing: treatment, breaches: func(value float64) bool { return value > 0 }}
			if len(points) != r.reach() {
				t.Fatalf("%s: %d periods, want the reach of %d", test.points, len(points), r.reach())
			}
			if got := r.state(points, asItWas); got != test.want[i] {
				t.Errorf("%d of %d, %s, missing data are %s: %s, want %s", test.m, test.n, test.points, treatment, got, test.want[i])
			}
		}
	}
}

func TestComparison(t *testing.T) {
	tests := []struct {
		operator            types.ComparisonOperator
		below, equal, above bool
	}{
		{types.ComparisonOperatorGreaterThanThreshold, false, false, true},
		{types.ComparisonOperatorGreaterThanOrEqualToThreshold, false, true, true},
		{types.ComparisonOperatorLessThanThreshold, true, false, false},
		{types.ComparisonOperatorLessThanOrEqualToThreshold, true, true, false},
	}
	const threshold = 2.5
	for _, test := range tests {
		breaches := comparison(test.operator)
		for value, want := range map[float64]bool{math.Nextafter(threshold, 0): test.below, threshold: test.equal, 3: test.above} {
			if got := breaches(value, threshold); got != want {
				t.Errorf("%g %s %g: %t", value, test.operator, threshold, got)
			}
		}
	}
	if comparison(types.ComparisonOperatorGreaterThanUpperThreshold) != nil {
		t.Error("an operator of anomaly detection is compared with a threshold that it does not have")
	}
}
