package localaws

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// template is a CloudFormation template as plain maps, lists and scalars. The
// short form of an intrinsic function is turned into its long one: !Ref X is
// {"Ref": "X"}, !GetAtt A.B is {"Fn::GetAtt": ["A", "B"]}.
type template struct {
	Parameters map[string]map[string]any `yaml:"Parameters"`
	Globals    map[string]any            `yaml:"Globals"`
	Resources  map[string]resource       `yaml:"Resources"`
	Outputs    map[string]map[string]any `yaml:"Outputs"`
}

type resource struct {
	Type                string         `yaml:"Type"`
	DeletionPolicy      string         `yaml:"DeletionPolicy"`
	UpdateReplacePolicy string         `yaml:"UpdateReplacePolicy"`
	Properties          map[string]any `yaml:"Properties"`
}

func readTemplate(checkout string) (template, error) {
	text, err := os.ReadFile(filepath.Join(checkout, "template.yaml"))
	if err != nil {
		return template{}, fmt.Errorf("localaws: read template: %w", err)
	}
	return parseTemplate(text)
}

// parseTemplate reads YAML, and JSON with it.
func parseTemplate(text []byte) (template, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return template{}, fmt.Errorf("localaws: parse template: %w", err)
	}
	lengthen(&document)
	var parsed template
	if err := document.Decode(&parsed); err != nil {
		return template{}, fmt.Errorf("localaws: parse template: %w", err)
	}
	return parsed, nil
}

// lengthen rewrites the short forms of intrinsic functions below node.
func lengthen(node *yaml.Node) {
	for _, child := range node.Content {
		lengthen(child)
	}
	if !strings.HasPrefix(node.Tag, "!") || strings.HasPrefix(node.Tag, "!!") {
		return
	}
	function := strings.TrimPrefix(node.Tag, "!")
	argument := *node
	argument.Tag = ""
	switch function {
	case "Ref", "Condition":
	case "GetAtt":
		if node.Kind == yaml.ScalarNode {
			argument = yaml.Node{Kind: yaml.SequenceNode}
			for part := range strings.SplitSeq(node.Value, ".") {
				argument.Content = append(argument.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: part})
			}
		}
		fallthrough
	default:
		function = "Fn::" + function
	}
	*node = yaml.Node{
		Kind:    yaml.MappingNode,
		Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: function}, &argument},
	}
}

// parameter returns a parameter's value: the override, or the default as text.
func (t template) parameter(name string, overrides map[string]string) string {
	if value, found := overrides[name]; found {
		return value
	}
	return fmt.Sprint(t.Parameters[name]["Default"])
}
