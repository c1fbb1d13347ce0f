package stacktest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"paidonce/cmd/paidonce/stack"
	"paidonce/shared/localaws"
)

// Emulated is a stack on the local emulator, with parameters and with resources of a type by their logical ids.
func Emulated(t *testing.T, parameters map[string]string, kind string, logicalIDs ...string) stack.Deployed {
	t.Helper()
	engine, err := localaws.StartEngine(t.Context(), localaws.EngineOptions{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	declared, resources := map[string]any{}, map[string]any{}
	var values []cfn.Parameter
	for key, value := range parameters {
		declared[key] = map[string]string{"Type": "String"}
		values = append(values, cfn.Parameter{ParameterKey: &key, ParameterValue: &value})
	}
	for _, id := range logicalIDs {
		resources[id] = map[string]string{"Type": kind}
	}
	template, err := json.Marshal(map[string]any{"Parameters": declared, "Resources": resources})
	if err != nil {
		t.Fatal(err)
	}
	d := stack.Deployed{Config: engine.Config(), Name: "s"}
	stacks := cloudformation.NewFromConfig(d.Config)
	if _, err := stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{
		StackName: &d.Name, TemplateBody: aws.String(string(template)), Parameters: values,
	}); err != nil {
		t.Fatal(err)
	}
	if err := cloudformation.NewStackCreateCompleteWaiter(stacks, func(o *cloudformation.StackCreateCompleteWaiterOptions) {
		o.MinDelay = 100 * time.Millisecond
	}).Wait(t.Context(), &cloudformation.DescribeStacksInput{StackName: &d.Name}, time.Minute); err != nil {
		t.Fatal(err)
	}
	return d
}
