package shared_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/metrics"
)

type alarm struct {
	Name         reference   `yaml:"AlarmName"`
	Description  string      `yaml:"AlarmDescription"`
	Namespace    reference   `yaml:"Namespace"`
	MetricName   string      `yaml:"MetricName"`
	Dimensions   []dimension `yaml:"Dimensions"`
	AlarmActions []reference `yaml:"AlarmActions"`
}

type dimension struct {
	Name  string    `yaml:"Name"`
	Value reference `yaml:"Value"`
}

// ofAWS are metrics that AWS writes, by namespace and name, with the one dimension under which they are looked at here.
var ofAWS = map[string]map[string]string{
	"AWS/SQS": { // SQS Developer Guide, "Available CloudWatch metrics for Amazon SQS"
		"ApproximateNumberOfMessagesVisible": "QueueName",
		"ApproximateAgeOfOldestMessage":      "QueueName",
	},
	"AWS/Lambda": { // Lambda Developer Guide, "Types of metrics for Lambda functions"
		"Invocations":            "FunctionName",
		"Errors":                 "FunctionName",
		"Throttles":              "FunctionName",
		"Duration":               "FunctionName",
		"IteratorAge":            "FunctionName",
		"FailedInvokeEventCount": "EventSourceMappingUUID",
	},
	"AWS/ApiGateway": { // API Gateway Developer Guide, "Work with metrics for HTTP APIs"
		"Count": "ApiId",
		"4xx":   "ApiId",
		"5xx":   "ApiId",
	},
}

// carriers are the types of resources whose names are values of AWS's dimensions, and how a template says that name.
var carriers = map[string]struct{ resource, function, attribute string }{
	"QueueName":    {"AWS::SQS::Queue", "!GetAtt", ".QueueName"},
	"FunctionName": {"AWS::Serverless::Function", "!Ref", ""},
	"ApiId":        {"AWS::Serverless::HttpApi", "!Ref", ""},
}

// wrongMetric says why nobody writes a metric with these dimensions, or "" if somebody does.
func (s sheet) wrongMetric(namespace, name string, dimensions []dimension) string {
	if namespace == metrics.Namespace {
		known := slices.ContainsFunc(metrics.All(), func(m metrics.Metric) bool { return m.Name == name })
		ours := []dimension{{metrics.StackDimension, reference{"!Ref", "AWS::StackName"}}}
		switch {
		case !known:
			return "no function writes it"
		case !slices.Equal(dimensions, ours):
			return "functions write it of the stack"
		}
		return ""
	}
	by, known := ofAWS[namespace][name]
	switch {
	case !known:
		return "this test knows no such metric: look it up, and add it"
	case len(dimensions) != 1 || dimensions[0].Name != by:
		return "AWS writes it by " + by
	}
	value := dimensions[0].Value
	if by == "EventSourceMappingUUID" { // SAM's own resource, named after the function and its event
		for id, r := range s.Resources {
			var f function
			if r.Type != "AWS::Serverless::Function" || r.Properties.Decode(&f) != nil {
				continue
			}
			for event, source := range f.Events {
				if value == (reference{"!Ref", id + event}) && source.Type == "SQS" {
					return ""
				}
			}
		}
		return "no function has an event source of that name"
	}
	carrier := carriers[by]
	id, found := strings.CutSuffix(value.to, carrier.attribute)
	if !found || value.function != carrier.function || s.Resources[id].Type != carrier.resource {
		return "its " + by + " is that of no " + carrier.resource
	}
	return ""
}

// filtered reports whether a metric filter of the template writes the alarm's metric.
func (s sheet) filtered(t *testing.T, a alarm) bool {
	type filter struct {
		Transformations []struct {
			Namespace reference `yaml:"MetricNamespace"`
			Name      string    `yaml:"MetricName"`
		} `yaml:"MetricTransformations"`
	}
	for _, f := range ofType[filter](t, s, "AWS::Logs::MetricFilter") {
		for _, made := range f.Transformations {
			if made.Namespace == a.Namespace && made.Name == a.MetricName && len(a.Dimensions) == 0 {
				return true
			}
		}
	}
	return false
}

// An alarm on what nobody writes is OK for ever.
func TestAlarmsWatchWhatIsWritten(t *testing.T) {
	s := template(t)
	for id, a := range ofType[alarm](t, s, "AWS::CloudWatch::Alarm") {
		if why := s.wrongMetric(a.Namespace.to, a.MetricName, a.Dimensions); why != "" && !s.filtered(t, a) {
			t.Errorf("%s: %s %s %v: %s", id, a.Namespace.to, a.MetricName, a.Dimensions, why)
		}
	}
}

// runbook is docs/runbook.md: its anchors, and the text of each section below "Alarms".
func runbook(t *testing.T) (text string, anchors map[string]bool, alarms map[string]string) {
	t.Helper()
	read, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	anchors, alarms = map[string]bool{}, map[string]string{}
	heading, inCode := regexp.MustCompile(`^(#+) (.+)$`), false
	chapter, section := "", ""
	for line := range strings.Lines(string(read)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
		}
		match := heading.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil || inCode {
			if chapter == "alarms" && section != "" {
				alarms[section] += line
			}
			continue
		}
		anchor := anchorOf(match[2])
		if anchors[anchor] {
			t.Errorf("two sections are called %q, and links lead to the first", match[2])
		}
		anchors[anchor] = true
		switch len(match[1]) {
		case 1, 2:
			chapter, section = anchor, ""
		case 3:
			section = anchor
			if chapter == "alarms" {
				alarms[section] = ""
			}
		}
	}
	return string(read), anchors, alarms
}

// anchorOf is how GitHub names a heading: lower case, hyphens for spaces, nothing of the rest.
func anchorOf(heading string) string {
	kept := func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_ ", r) {
			return r
		}
		return -1
	}
	return strings.ReplaceAll(strings.Map(kept, strings.ToLower(heading)), " ", "-")
}

// parts are what a person who is woken wants to know, as the sections of alarms name it, in bold at the beginning of a line.
var parts = []string{"meaning", "the customer", "first", "cure", "over"}

// Each alarm leads to its section, and each section of an alarm belongs to one and says all that it should.
func TestRunbookAnswersEveryAlarm(t *testing.T) {
	_, _, sections := runbook(t)
	rings := map[string]bool{}
	for id, a := range ofType[alarm](t, template(t), "AWS::CloudWatch::Alarm") {
		anchor, named := strings.CutPrefix(a.Name.to, "${AWS::StackName}-")
		rings[anchor] = true
		switch _, found := sections[anchor]; {
		case !named || a.Name.function != "!Sub":
			t.Errorf("%s is named %v; want the stack's name first", id, a.Name)
		case !strings.HasSuffix(a.Description, ". See docs/runbook.md#"+anchor):
			t.Errorf("%s: description %q; want the way to #%s at its end", id, a.Description, anchor)
		case !found:
			t.Errorf("%s: the runbook's chapter on alarms has no section %q", id, anchor)
		}
	}
	lead := regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*`)
	for anchor, text := range sections {
		if !rings[anchor] {
			t.Errorf("section %q: no alarm is called so", anchor)
		}
		var said strings.Builder
		for _, match := range lead.FindAllStringSubmatch(text, -1) {
			said.WriteString(strings.ToLower(match[1]) + "\n")
		}
		for _, part := range parts {
			if !regexp.MustCompile(`\b` + part + `\b`).MatchString(said.String()) {
				t.Errorf("section %q has no %q", anchor, part)
			}
		}
	}
}

func TestRunbookLinksLeadSomewhere(t *testing.T) {
	text, anchors, _ := runbook(t)
	for _, link := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		if !anchors[link[1]] {
			t.Errorf("a link leads to #%s, which is not there", link[1])
		}
	}
}

// shown is one line of a widget: a metric, or all those of a name, by the values of its further dimension.
type shown struct {
	namespace, name string
	dimensions      []dimension
	by              string
}

var search = regexp.MustCompile(`^SEARCH\('\{paidonce,(\w+),Stack\} MetricName="(\w+)" Stack="\$\{AWS::StackName\}"', '(Sum|Maximum)', \d+\)$`)

// dashboard reads what the dashboard shows: its metrics, and its alarms by logical id.
func dashboard(t *testing.T, s sheet) (lines []shown, alarms []string) {
	t.Helper()
	type properties struct {
		Body reference `yaml:"DashboardBody"`
	}
	var body struct {
		Widgets []struct {
			Properties struct {
				Metrics [][]any
				Alarms  []string
			}
		}
	}
	for _, d := range ofType[properties](t, s, "AWS::CloudWatch::Dashboard") {
		if err := json.Unmarshal([]byte(d.Body.to), &body); err != nil || d.Body.function != "!Sub" {
			t.Fatalf("the dashboard's body: %v", err)
		}
	}
	for _, w := range body.Widgets {
		for _, arn := range w.Properties.Alarms {
			alarms = append(alarms, strings.TrimSuffix(strings.TrimPrefix(arn, "${"), ".Arn}"))
		}
		for _, m := range w.Properties.Metrics {
			lines = append(lines, line(t, m))
		}
	}
	return lines, alarms
}

// line reads a line as CloudWatch writes it (CloudWatch API Reference, "Dashboard body structure and syntax").
func line(t *testing.T, metric []any) (s shown) {
	t.Helper()
	var texts []string
	for _, part := range metric {
		if text, isText := part.(string); isText {
			texts = append(texts, text)
			continue
		}
		options := part.(map[string]any)
		if expression, found := options["expression"].(string); found {
			match := search.FindStringSubmatch(expression)
			if match == nil {
				t.Fatalf("expression %q is none of %s", expression, search)
			}
			return shown{namespace: metrics.Namespace, by: match[1], name: match[2]}
		}
	}
	if len(texts) < 2 || len(texts)%2 != 0 {
		t.Fatalf("line %v: want namespace, name, and dimensions with their values", metric)
	}
	s.namespace, s.name = texts[0], texts[1]
	for pair := range slices.Chunk(texts[2:], 2) {
		to := reference{"!Ref", strings.TrimSuffix(strings.TrimPrefix(pair[1], "${"), "}")}
		if strings.Contains(to.to, ".") {
			to.function = "!GetAtt"
		}
		s.dimensions = append(s.dimensions, dimension{pair[0], to})
	}
	return s
}

func TestDashboardShowsWhatIsWritten(t *testing.T) {
	s := template(t)
	lines, alarms := dashboard(t, s)
	seen := map[string]bool{}
	for _, l := range lines {
		if l.by == "" {
			if why := s.wrongMetric(l.namespace, l.name, l.dimensions); why != "" {
				t.Errorf("%s %s %v: %s", l.namespace, l.name, l.dimensions, why)
			}
		} else if !slices.ContainsFunc(metrics.All(), func(m metrics.Metric) bool { return m.Name == l.name && m.By == l.by }) {
			t.Errorf("no function writes %s by %s", l.name, l.by)
		}
		if l.namespace == metrics.Namespace {
			seen[l.name] = true
		}
	}
	var tell []string
	for id, a := range ofType[alarm](t, s, "AWS::CloudWatch::Alarm") {
		if len(a.AlarmActions) > 0 {
			tell = append(tell, id)
		}
		if a.Namespace.to == metrics.Namespace {
			seen[a.MetricName] = true
		}
	}
	slices.Sort(tell)
	slices.Sort(alarms)
	if diff := cmp.Diff(tell, alarms); diff != "" {
		t.Errorf("alarms on the dashboard (-that tell somebody +shown):\n%s", diff)
	}
	for _, m := range metrics.All() {
		if !seen[m.Name] {
			t.Errorf("%s is written, at $0.30 a month, and is on no dashboard and in no alarm", m.Name)
		}
	}
}

// All of the metrics are known to whoever looks at [metrics.All].
func TestMetricsAlarmsCanNameAreAll(t *testing.T) {
	tree, err := parser.ParseFile(token.NewFileSet(), "metrics/written.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var declared, all []string
	ast.Inspect(tree, func(n ast.Node) bool {
		literal, isLiteral := n.(*ast.CompositeLit)
		if !isLiteral {
			return true
		}
		if of, isName := literal.Type.(*ast.Ident); isName && of.Name == "Metric" {
			name, err := strconv.Unquote(literal.Elts[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, name)
		}
		return true
	})
	names := map[string]bool{}
	for _, m := range metrics.All() {
		all = append(all, m.Name)
		names[m.Name] = true
	}
	if len(names) != len(all) {
		t.Errorf("a name is there twice: %q", all)
	}
	slices.Sort(declared)
	if diff := cmp.Diff(declared, slices.Sorted(maps.Keys(names))); diff != "" {
		t.Errorf("metrics (-declared +in All):\n%s", diff)
	}
}
