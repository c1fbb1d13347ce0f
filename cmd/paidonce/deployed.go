package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// deployed is a stack as CloudFormation knows it, in AWS or on the local emulator.
type deployed struct {
	cfg   aws.Config
	stack string
}

// parts are a stack's outputs and parameters by their keys, and the physical ids of its resources by their logical ids.
type parts struct{ outputs, parameters, resources map[string]string }

// parts reads what the stack is made of. [errNoSuchStack] if there is none of that name.
func (d deployed) parts(ctx context.Context) (parts, error) {
	client := cloudformation.NewFromConfig(d.cfg)
	described, err := describeStack(ctx, client, d.stack)
	if err != nil {
		return parts{}, err
	}
	found := partsOf(described)
	pages := cloudformation.NewListStackResourcesPaginator(client, &cloudformation.ListStackResourcesInput{StackName: &d.stack})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return parts{}, fmt.Errorf("list the resources of stack %s: %w", d.stack, err)
		}
		for _, r := range page.StackResourceSummaries {
			found.resources[aws.ToString(r.LogicalResourceId)] = aws.ToString(r.PhysicalResourceId)
		}
	}
	return found, nil
}

// partsOf are the parts that the stack's description names: all but the resources.
func partsOf(described types.Stack) parts {
	found := parts{map[string]string{}, map[string]string{}, map[string]string{}}
	for _, o := range described.Outputs {
		found.outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	for _, p := range described.Parameters {
		found.parameters[aws.ToString(p.ParameterKey)] = aws.ToString(p.ParameterValue)
	}
	return found
}
