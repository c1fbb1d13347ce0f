package stacktest

import (
	"context"
	"maps"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"go.yaml.in/yaml/v3"
)

// Parameterized answers as CloudFormation does of a stack with parameters.
type Parameterized map[string]string

// DescribeStacks implements [stack.Describer].
func (p Parameterized) DescribeStacks(context.Context, *cloudformation.DescribeStacksInput, ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	var stack types.Stack
	for k, v := range p {
		stack.Parameters = append(stack.Parameters, types.Parameter{ParameterKey: aws.String(k), ParameterValue: aws.String(v)})
	}
	return &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{stack}}, nil
}

// TemplateParameters are the parameters of template.yaml with their defaults, changed, for the test of a command.
func TemplateParameters(t *testing.T, change map[string]string) Parameterized {
	t.Helper()
	text, err := os.ReadFile("../../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Parameters map[string]struct {
			Default yaml.Node `yaml:"Default"`
		} `yaml:"Parameters"`
	}
	if err := yaml.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	p := Parameterized{}
	for name, parameter := range template.Parameters {
		p[name] = parameter.Default.Value
	}
	maps.Copy(p, change)
	return p
}
