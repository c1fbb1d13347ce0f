package main

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

// parameterized answers as CloudFormation does of a stack with parameters.
type parameterized map[string]string

func (p parameterized) DescribeStacks(context.Context, *cloudformation.DescribeStacksInput, ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	var stack types.Stack
	for k, v := range p {
		stack.Parameters = append(stack.Parameters, types.Parameter{ParameterKey: aws.String(k), ParameterValue: aws.String(v)})
	}
	return &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{stack}}, nil
}

// templateParameters are the parameters of template.yaml with their defaults, changed.
func templateParameters(t *testing.T, change map[string]string) parameterized {
	t.Helper()
	text, err := os.ReadFile("../../template.yaml")
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
	p := parameterized{}
	for name, parameter := range template.Parameters {
		p[name] = parameter.Default.Value
	}
	maps.Copy(p, change)
	return p
}
