package shared_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"paidonce/shared/metrics"
)

// sheet is what the tests of this package look at in template.yaml.
type sheet struct {
	Metadata struct {
		Interface struct {
			Groups []struct {
				Parameters []string `yaml:"Parameters"`
			} `yaml:"ParameterGroups"`
		} `yaml:"AWS::CloudFormation::Interface"`
	} `yaml:"Metadata"`
	Parameters map[string]struct {
		Default string   `yaml:"Default"`
		Allowed []string `yaml:"AllowedValues"`
	} `yaml:"Parameters"`
	Mappings map[string]map[string]map[string]string `yaml:"Mappings"`
	Globals  struct {
		Function map[string]yaml.Node `yaml:"Function"`
	} `yaml:"Globals"`
	Resources map[string]struct {
		Type       string    `yaml:"Type"`
		Condition  string    `yaml:"Condition"`
		Properties yaml.Node `yaml:"Properties"`
	} `yaml:"Resources"`
}

// reference is a scalar with the intrinsic function that it is the argument of: {"!Ref", "Table"}, {"!GetAtt", "Table.Arn"}. A plain
// one has none.
type reference struct{ function, to string }

func (r *reference) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: no scalar", node.Line)
	}
	*r = reference{to: node.Value}
	if !strings.HasPrefix(node.Tag, "!!") {
		r.function = node.Tag
	}
	return nil
}

// references are those that something in the template is made of, wherever in it they stand.
func references(node *yaml.Node) (found []reference) {
	var r reference
	if node.Kind == yaml.ScalarNode && r.UnmarshalYAML(node) == nil && r.function != "" {
		found = append(found, r)
	}
	for _, child := range node.Content {
		found = append(found, references(child)...)
	}
	return found
}

func template(t *testing.T) sheet {
	t.Helper()
	text, err := os.ReadFile("../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var s sheet
	if err := yaml.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// ofType decodes the properties of the resources of a type, by logical id; there must be some.
func ofType[P any](t *testing.T, s sheet, wanted string) map[string]P {
	t.Helper()
	found := map[string]P{}
	for id, r := range s.Resources {
		if r.Type != wanted {
			continue
		}
		var properties P
		if err := r.Properties.Decode(&properties); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		found[id] = properties
	}
	if len(found) == 0 {
		t.Fatalf("no resource of type %s", wanted)
	}
	return found
}

// Whoever deploys by the console finds each parameter in its place.
func TestParametersAreGrouped(t *testing.T) {
	s := template(t)
	var grouped []string
	for _, g := range s.Metadata.Interface.Groups {
		grouped = append(grouped, g.Parameters...)
	}
	slices.Sort(grouped)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(s.Parameters)), grouped); diff != "" {
		t.Errorf("parameters in groups (-declared +grouped):\n%s", diff)
	}
}

// SAM does not publish a version when nothing but a parameter's value has changed, and the alias would stay with the old one. The
// version's description makes up for that. CloudFormation refuses a version of a function that has not changed, so that it must not
// name any other parameter.
func TestVersionsNameTheParametersOfTheirFunction(t *testing.T) {
	s := template(t)
	parameters := func(node *yaml.Node) []string {
		var names []string
		for _, r := range references(node) {
			for _, name := range append(strings.FieldsFunc(r.to, func(c rune) bool { return strings.ContainsRune("${} ", c) }), r.to) {
				if _, declared := s.Parameters[name]; declared && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		return names
	}
	for id, properties := range ofType[map[string]yaml.Node](t, s, "AWS::Serverless::Function") {
		description := properties["VersionDescription"]
		own := yaml.Node{Kind: yaml.MappingNode}
		for _, some := range []map[string]yaml.Node{s.Globals.Function, properties} {
			for name, value := range some {
				switch name {
				case "Events", "EventInvokeConfig", "DeploymentPreference", "VersionDescription":
					continue // what a version does not hold
				}
				own.Content = append(own.Content, &value)
			}
		}
		if diff := cmp.Diff(parameters(&own), parameters(&description)); diff != "" {
			t.Errorf("%s (-its parameters +described):\n%s", id, diff)
		}
	}
}

type function struct {
	Events map[string]struct {
		Type string `yaml:"Type"`
	} `yaml:"Events"`
	Preference struct {
		Enabled *bool     `yaml:"Enabled"`
		Alarms  yaml.Node `yaml:"Alarms"`
	} `yaml:"DeploymentPreference"`
}

// A gradual deployment shifts the functions that requests and events go to, and each of them has what takes it back. Without one
// there is nothing of CodeDeploy in the stack.
func TestGradualDeployment(t *testing.T) {
	s := template(t)
	types := s.Parameters["DeploymentType"]
	if types.Default != "AllAtOnce" {
		t.Errorf("the default is %s; want the one that a local stack can deploy, and that `make lint` replaces", types.Default)
	}
	gradual := map[string]map[string]string{}
	for _, name := range types.Allowed {
		gradual[name] = map[string]string{"Gradual": fmt.Sprint(name != "AllAtOnce")}
	}
	if diff := cmp.Diff(gradual, s.Mappings["Deployments"]); diff != "" {
		t.Errorf("mapping Deployments (-want +got):\n%s", diff)
	}

	alarms := ofType[alarm](t, s, "AWS::CloudWatch::Alarm")
	stops := map[string]bool{}
	shifted := map[string]bool{}
	for id, f := range ofType[function](t, s, "AWS::Serverless::Function") {
		shifted[strings.TrimSuffix(id, "Function")] = f.Preference.Enabled == nil
		named := references(&f.Preference.Alarms)
		if off := f.Preference.Enabled != nil && !*f.Preference.Enabled; off != (len(named) == 0) {
			t.Errorf("%s: shifted without an alarm, or not shifted with one", id)
		}
		for _, r := range named {
			if _, isAlarm := alarms[r.to]; !isAlarm && r.to != "AWS::NoValue" {
				t.Errorf("%s: %v is no alarm", id, r)
			}
			stops[r.to] = true
		}
	}
	want := map[string]bool{
		"Webhook": true, "Worker": true, "Orders": true, "Checkout": true, "Refunds": true, "Notify": false, "Reconcile": false,
	}
	if diff := cmp.Diff(want, shifted); diff != "" {
		t.Errorf("shifted (-want +got):\n%s", diff)
	}
	for id, a := range alarms {
		if len(a.AlarmActions) == 0 && (!stops[id] || s.Resources[id].Condition != "IsGradual") {
			t.Errorf("%s tells nobody and stops no deployment", id)
		}
	}
}

// docs/design.md counts what watching costs.
func TestCostsAreCounted(t *testing.T) {
	text, err := os.ReadFile("../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	tell, stop := 0, 0
	for _, a := range ofType[alarm](t, template(t), "AWS::CloudWatch::Alarm") {
		if len(a.AlarmActions) > 0 {
			tell++
		} else {
			stop++
		}
	}
	for _, counted := range []string{
		fmt.Sprintf("| metrics of the functions (%d names) |", len(metrics.All())),
		fmt.Sprintf("| alarms (%d, and %d of a gradual deployment) | 0.10 | %d.%d0 | %d.%d0,", tell, stop, tell/10, tell%10, (tell+stop)/10, (tell+stop)%10),
	} {
		if !strings.Contains(string(text), counted) {
			t.Errorf("docs/design.md has no row that begins with %q: count anew, the sum too", counted)
		}
	}
}
