package stack

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// Deployed is a stack as CloudFormation knows it, in AWS or on the local emulator.
type Deployed struct {
	Config aws.Config
	Name   string
}

// Parts are a stack's outputs and parameters by their keys, and the physical ids of its resources by their logical ids.
type Parts struct{ Outputs, Parameters, Resources map[string]string }

// Parts reads what the stack is made of. [ErrNoSuchStack] if there is none of that name.
func (d Deployed) Parts(ctx context.Context) (Parts, error) {
	client := cloudformation.NewFromConfig(d.Config)
	described, err := Describe(ctx, client, d.Name)
	if err != nil {
		return Parts{}, err
	}
	found := PartsOf(described)
	pages := cloudformation.NewListStackResourcesPaginator(client, &cloudformation.ListStackResourcesInput{StackName: &d.Name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return Parts{}, fmt.Errorf("list the resources of stack %s: %w", d.Name, err)
		}
		for _, r := range page.StackResourceSummaries {
			found.Resources[aws.ToString(r.LogicalResourceId)] = aws.ToString(r.PhysicalResourceId)
		}
	}
	return found, nil
}

// PartsOf are the parts that the stack's description names: all but the resources.
func PartsOf(described types.Stack) Parts {
	found := Parts{map[string]string{}, map[string]string{}, map[string]string{}}
	for _, o := range described.Outputs {
		found.Outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	for _, p := range described.Parameters {
		found.Parameters[aws.ToString(p.ParameterKey)] = aws.ToString(p.ParameterValue)
	}
	return found
}
