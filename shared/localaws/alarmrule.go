package localaws

import "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

// What an alarm can make of a period without data: values of TreatMissingData.
const (
	treatAsMissing      = "missing"
	treatAsBreaching    = "breaching"
	treatAsNotBreaching = "notBreaching"
	keepState           = "ignore"
)

// rule is how an alarm's state follows from a metric: ALARM when m of n periods breach.
type rule struct {
	n, m     int
	breaches func(value float64) bool
	missing  string // TreatMissingData
}

// reach is the number of periods that are looked at. Where some have no data, older ones than the last n can stand in.
// CloudWatch does not say how far back it goes; in the examples of its documentation it is two more.
func (r rule) reach() int { return r.n + 2 }

// state decides by the values of the last periods, oldest first, nil where there are no data: reach of them. It follows
// "Configuring how CloudWatch alarms treat missing data" in the CloudWatch User Guide.
func (r rule) state(points []*float64, current types.StateValue) types.StateValue {
	known, breaching, oldest := 0, 0, 0 // of the last n that are known; how many periods ago the first of them began
	for ago := 1; ago <= len(points) && known < r.n; ago++ {
		p := points[len(points)-ago]
		if p == nil {
			continue
		}
		known++
		oldest = ago
		if r.breaches(*p) {
			breaching++
		}
	}
	if r.missing == treatAsBreaching {
		breaching += r.n - known
	}
	switch {
	case known == 0 && r.missing == treatAsMissing:
		return types.StateValueInsufficientData
	case known == 0 && r.missing == keepState:
		return current
	case breaching >= r.m:
		return types.StateValueAlarm
	case r.missing == treatAsBreaching || r.missing == treatAsNotBreaching:
		return types.StateValueOk
	case known < r.n && breaching == known && oldest >= r.m: // nothing good is known, since long enough
		if r.missing == keepState {
			return current
		}
		return types.StateValueAlarm
	}
	return types.StateValueOk
}

// comparison is nil for the operators of anomaly detection, which have no fixed threshold.
func comparison(operator types.ComparisonOperator) func(value, threshold float64) bool {
	switch operator {
	case types.ComparisonOperatorGreaterThanThreshold:
		return func(value, threshold float64) bool { return value > threshold }
	case types.ComparisonOperatorGreaterThanOrEqualToThreshold:
		return func(value, threshold float64) bool { return value >= threshold }
	case types.ComparisonOperatorLessThanThreshold:
		return func(value, threshold float64) bool { return value < threshold }
	case types.ComparisonOperatorLessThanOrEqualToThreshold:
		return func(value, threshold float64) bool { return value <= threshold }
	}
	return nil
}
