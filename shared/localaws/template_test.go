package localaws

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tests of the template look at rules that no linter knows. deployed is
// template.yaml with helpers that fail the test on what is not there.
type deployed struct {
	*testing.T
	template
	checkout string
}

func readDeployed(t *testing.T) deployed {
	t.Helper()
	checkout, err := FindCheckout("")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := readTemplate(checkout)
	if err != nil {
		t.Fatal(err)
	}
	return deployed{t, parsed, checkout}
}

// ofType returns the resources of a type by logical id; there must be some.
func (d deployed) ofType(wanted string) map[string]resource {
	d.Helper()
	found := map[string]resource{}
	for name, candidate := range d.Resources {
		if candidate.Type == wanted {
			found[name] = candidate
		}
	}
	if len(found) == 0 {
		d.Fatalf("no resource of type %s", wanted)
	}
	return found
}

// at walks down maps; what is not there is nil.
func at(value any, path ...string) any {
	for _, key := range path {
		below, _ := value.(map[string]any)
		value = below[key]
	}
	return value
}

// number returns a literal, or the default of the parameter that value refers to.
func (d deployed) number(value any) int {
	d.Helper()
	if parameter, isRef := at(value, "Ref").(string); isRef {
		value = d.Parameters[parameter]["Default"]
	}
	number, isInt := value.(int)
	if !isInt {
		d.Fatalf("%v is no number and refers to none", value)
	}
	return number
}

// arnOf is {"Fn::GetAtt": [name, "Arn"]} as a template holds it.
func arnOf(name string) map[string]any { return map[string]any{"Fn::GetAtt": []any{name, "Arn"}} }

func refTo(name string) map[string]any { return map[string]any{"Ref": name} }

func TestIntrinsicFunctions(t *testing.T) {
	parsed, err := parseTemplate([]byte(`
Resources:
  A:
    Type: X
    Properties:
      ref: !Ref B
      att: !GetAtt B.Arn
      atts: !GetAtt [B, Arn]
      sub: !Sub ${B}-x
      nested: !If [C, !Ref B, 1]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"ref":    refTo("B"),
		"att":    arnOf("B"),
		"atts":   arnOf("B"),
		"sub":    map[string]any{"Fn::Sub": "${B}-x"},
		"nested": map[string]any{"Fn::If": []any{"C", refTo("B"), 1}},
	}
	if diff := cmp.Diff(want, parsed.Resources["A"].Properties); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
}

func TestParametersExplainAndLimitThemselves(t *testing.T) {
	d := readDeployed(t)
	for name, parameter := range d.Parameters {
		if text, _ := parameter["Description"].(string); len(text) < 20 {
			t.Errorf("%s: description %q tells nothing", name, text)
		}
		value := fmt.Sprint(parameter["Default"])
		switch {
		case parameter["AllowedPattern"] != nil:
			if !regexp.MustCompile(parameter["AllowedPattern"].(string)).MatchString(value) {
				t.Errorf("%s: default %q does not match its pattern", name, value)
			}
		case parameter["AllowedValues"] != nil:
			allows := func(allowed any) bool { return fmt.Sprint(allowed) == value }
			if !slices.ContainsFunc(parameter["AllowedValues"].([]any), allows) {
				t.Errorf("%s: default %q is not among its values", name, value)
			}
		default:
			number := d.number(parameter["Default"])
			if number < d.number(parameter["MinValue"]) || number > d.number(parameter["MaxValue"]) {
				t.Errorf("%s: default %d is out of its limits", name, number)
			}
		}
	}
	if minimum := d.number(d.Parameters["EventRetentionDays"]["MinValue"]); minimum < 30 {
		t.Errorf("EventRetentionDays can be %d; a duplicate of the last 30 days must meet its first copy", minimum)
	}
}

// Beyond these an event is delivered twice at a time, lost by age, or given up
// for a reason that is not its own.
func TestTimesFitTogether(t *testing.T) {
	d := readDeployed(t)
	queue, dlq := d.Resources["EventsQueue"].Properties, d.Resources["EventsDlq"].Properties
	worker, mapping := d.Resources["WorkerFunction"].Properties, at(d.Resources["WorkerFunction"].Properties, "Events", "Events", "Properties")

	visibility, timeout := d.number(queue["VisibilityTimeout"]), d.number(worker["Timeout"])
	window := d.number(at(mapping, "MaximumBatchingWindowInSeconds"))
	if visibility < 6*timeout+window {
		t.Errorf("visibility %d s is under 6 x %d s of the worker + %d s of batching", visibility, timeout, window)
	}
	if got, atLeast := d.number(dlq["MessageRetentionPeriod"]), d.number(queue["MessageRetentionPeriod"]); got <= atLeast {
		t.Errorf("dead-letter queue keeps %d s, the queue itself %d s: a message ages from its first send", got, atLeast)
	}
	tries := d.number(at(queue, "RedrivePolicy", "maxReceiveCount"))
	if tries < 5 {
		t.Errorf("maxReceiveCount %d is under 5", tries)
	}
	if lasts := tries * visibility; lasts >= d.number(queue["MessageRetentionPeriod"]) {
		t.Errorf("all tries take %d s: the message is gone before the last", lasts)
	}
	if got := d.number(d.Resources["WebhookFunction"].Properties["Timeout"]); got > 5 {
		t.Errorf("webhook takes up to %d s, the gateway waits for 5 s", got)
	}
	if attempt := d.number(d.Parameters["AttemptTimeoutMilliseconds"]["MaxValue"]); 2*2*attempt >= 5000 {
		t.Errorf("two attempts of two calls of up to %d ms do not fit into 5 s", attempt)
	}
	for name, function := range d.ofType("AWS::Serverless::Function") {
		events, _ := function.Properties["Events"].(map[string]any)
		for event, source := range events {
			if at(source, "Type") != "HttpApi" {
				continue
			}
			integration := d.number(at(source, "Properties", "TimeoutInMillis"))
			if timeout := 1000 * d.number(function.Properties["Timeout"]); integration <= timeout || integration > 30000 {
				t.Errorf("%s %s: API waits %d ms; want more than the function's %d ms, at most 30 s", name, event, integration, timeout)
			}
		}
	}
}

func TestWorkerMapping(t *testing.T) {
	d := readDeployed(t)
	mapping := at(d.Resources["WorkerFunction"].Properties, "Events", "Events", "Properties")
	want := map[string]any{
		"Queue":                          arnOf("EventsQueue"),
		"BatchSize":                      10,
		"MaximumBatchingWindowInSeconds": 0,
		"FunctionResponseTypes":          []any{"ReportBatchItemFailures"}, // else one bad event repeats nine good ones
		"ScalingConfig":                  map[string]any{"MaximumConcurrency": 10},
		"MetricsConfig":                  map[string]any{"Metrics": []any{"EventCount"}},
	}
	if diff := cmp.Diff(any(want), mapping); diff != "" {
		t.Errorf("mapping (-want +got):\n%s", diff)
	}
}

func TestTableKeepsWhatItHolds(t *testing.T) {
	d := readDeployed(t)
	table := d.Resources["Table"]
	tests := []struct {
		what      string
		got, want any
	}{
		{"DeletionPolicy", table.DeletionPolicy, "RetainExceptOnCreate"},
		{"UpdateReplacePolicy", table.UpdateReplacePolicy, "Retain"},
		{"deletion protection", table.Properties["DeletionProtectionEnabled"], map[string]any{"Fn::If": []any{"IsProd", true, false}}},
		{"point-in-time recovery", at(table.Properties, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"), true},
		{"stream", at(table.Properties, "StreamSpecification", "StreamViewType"), "NEW_IMAGE"},
		{"expiry", table.Properties["TimeToLiveSpecification"], map[string]any{"AttributeName": "expires_at", "Enabled": true}},
		{"billing", table.Properties["BillingMode"], "PAY_PER_REQUEST"},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.what, diff)
		}
	}
	for name, queue := range d.ofType("AWS::SQS::Queue") {
		if queue.DeletionPolicy != "RetainExceptOnCreate" || queue.UpdateReplacePolicy != "Retain" {
			t.Errorf("%s is not retained", name)
		}
		if queue.Properties["SqsManagedSseEnabled"] != true {
			t.Errorf("%s is not encrypted", name)
		}
	}
}

// The environment of each function is what its code asks for: nothing missing,
// nothing left over.
func TestEnvironmentIsWhatTheFunctionsRead(t *testing.T) {
	d := readDeployed(t)
	tag := regexp.MustCompile("`env:\"([A-Z_]+)")
	for name, function := range d.ofType("AWS::Serverless::Function") {
		files, err := filepath.Glob(filepath.Join(d.checkout, function.Properties["CodeUri"].(string), "*.go"))
		files = append(files, embedded(t, d, files)...)
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no Go files in %v (%v)", name, function.Properties["CodeUri"], err)
			continue
		}
		want := map[string]bool{} // AWS_ENDPOINT_URL is given to all by Globals, and read by the SDK
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range tag.FindAllStringSubmatch(string(text), -1) {
				want[match[1]] = true
			}
		}
		got := map[string]bool{}
		variables, _ := at(function.Properties, "Environment", "Variables").(map[string]any)
		for variable := range variables {
			got[variable] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: variables (-read +given):\n%s", name, diff)
		}
	}
}

// embedded is the file of the settings that a function shares with the others that decide, if it embeds them.
func embedded(t *testing.T, d deployed, files []string) []string {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\tadvance.Settings\n") {
			return []string{filepath.Join(d.checkout, "shared/advance/settings.go")}
		}
	}
	return nil
}

func TestNoSecretValues(t *testing.T) {
	d := readDeployed(t)
	value := regexp.MustCompile(`rzp_(test|live)_\w|whsec_\w|\{\{resolve:|AKIA[0-9A-Z]{16}|NoEcho|-----BEGIN|SecretString`)
	for _, name := range []string{"template.yaml", "samconfig.toml"} {
		text, err := os.ReadFile(filepath.Join(d.checkout, name))
		if err != nil {
			t.Fatal(err)
		}
		if found := value.Find(text); found != nil {
			t.Errorf("%s holds %q: a secret's value has no place there", name, found)
		}
	}
	for name, function := range d.ofType("AWS::Serverless::Function") {
		variables, _ := at(function.Properties, "Environment", "Variables").(map[string]any)
		for variable := range variables {
			if (strings.Contains(variable, "SECRET") || strings.Contains(variable, "KEY")) && !strings.HasSuffix(variable, "_NAME") {
				t.Errorf("%s: %s looks like a secret; pass its name", name, variable)
			}
		}
	}
}

func TestAccessLogNamesNobody(t *testing.T) {
	d := readDeployed(t)
	format := at(d.Resources["Api"].Properties, "AccessLogSettings", "Format").(string)
	var fields map[string]string
	if err := json.Unmarshal([]byte(format), &fields); err != nil {
		t.Fatalf("access log is no JSON: %v", err)
	}
	personal := regexp.MustCompile(`identity|authorizer|\.path$|domainName|awsEndpoint`)
	for field, variable := range fields {
		if personal.MatchString(variable) {
			t.Errorf("access log field %s = %s can point at a person", field, variable)
		}
	}
}
