package localaws

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// Secrets are what the deployed functions find in Secrets Manager.
type Secrets struct {
	Webhook         string
	PreviousWebhook string
	KeyID           string
	KeySecret       string
}

// SampleSecrets are the secrets of every local stack. They are made up, open
// nothing else, and stay the same, because events/ is signed with them.
var SampleSecrets = Secrets{
	Webhook:         "paidonce-local-webhook-secret",
	PreviousWebhook: "paidonce-local-previous-secret",
	KeyID:           "rzp_test_LocalGateway01",
	KeySecret:       "paidonce-local-key-secret",
}

// deployment is what came out of deploying the template to an engine.
type deployment struct {
	outputs   map[string]string // CloudFormation outputs by key
	functions map[string]string // physical name of each function by logical id
}

// createSecrets stores the secrets under the names that the template's
// parameters give.
func createSecrets(ctx context.Context, cfg aws.Config, parsed template, opts Options) error {
	client := secretsmanager.NewFromConfig(cfg)
	values := map[string]map[string]string{
		"RazorpayWebhookSecretName": {"test_current": opts.Secrets.Webhook, "test_previous": opts.Secrets.PreviousWebhook},
		"RazorpayApiKeySecretName":  {"key_id": opts.Secrets.KeyID, "key_secret": opts.Secrets.KeySecret},
	}
	for parameter, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("localaws: create secret of %s: %w", parameter, err)
		}
		_, err = client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{
			Name:         aws.String(parsed.parameter(parameter, opts.Parameters)),
			SecretString: aws.String(string(text)),
		})
		if err != nil {
			return fmt.Errorf("localaws: create secret of %s: %w", parameter, err)
		}
	}
	return nil
}

// deploy deploys a built template with `sam deploy`, as to AWS, for the first time or onto what is there, and gives the
// API its routes.
func deploy(ctx context.Context, e *Engine, builtTemplate string, opts Options, log io.Writer) (deployment, error) {
	parameters := map[string]string{}
	maps.Copy(parameters, opts.Parameters)
	parameters["Architecture"] = hostArchitecture()
	overrides, err := json.Marshal(parameters) // as a file: on the command line an empty value cannot be given
	if err != nil {
		return deployment{}, fmt.Errorf("localaws: deploy: %w", err)
	}
	overridesFile := filepath.Join(e.tempDir, "parameters.yaml")
	if err := os.WriteFile(overridesFile, overrides, 0o600); err != nil {
		return deployment{}, fmt.Errorf("localaws: deploy: %w", err)
	}
	err = e.tools.runSAM(ctx, environment(engineCredentials(e.URL, e.Region)...), log, "deploy",
		"--template-file", builtTemplate,
		"--stack-name", opts.StackName,
		"--region", e.Region,
		"--s3-bucket", artifactBucket,
		"--capabilities", "CAPABILITY_IAM",
		"--parameter-overrides", "file://"+overridesFile,
		"--no-confirm-changeset", "--no-fail-on-empty-changeset", "--no-progressbar")
	if err != nil {
		return deployment{}, err
	}
	return describe(ctx, e, opts)
}

const artifactBucket = "paidonce-artifacts"

// createBucket makes the bucket that SAM uploads to. --resolve-s3 would do so
// too, by a stack of its own that takes seconds at each start.
func createBucket(ctx context.Context, engineURL, name string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, engineURL+"/"+name, nil)
	if err != nil {
		return fmt.Errorf("localaws: create bucket: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("localaws: create bucket: %w", err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("localaws: create bucket: %s", response.Status)
	}
	return nil
}

// describe reads back what was deployed and gives the API its routes.
func describe(ctx context.Context, e *Engine, opts Options) (deployment, error) {
	stackName := opts.StackName
	client := cloudformation.NewFromConfig(e.Config())
	stacks, err := client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: aws.String(stackName)})
	if err != nil {
		return deployment{}, fmt.Errorf("localaws: describe stack %s: %w", stackName, err)
	}
	result := deployment{outputs: map[string]string{}, functions: map[string]string{}}
	for _, output := range stacks.Stacks[0].Outputs {
		result.outputs[*output.OutputKey] = *output.OutputValue
	}
	resources, err := client.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: aws.String(stackName)})
	if err != nil {
		return deployment{}, fmt.Errorf("localaws: describe resources of %s: %w", stackName, err)
	}
	aliases := map[string]string{}
	for _, resource := range resources.StackResources {
		switch *resource.ResourceType {
		case "AWS::Lambda::Function":
			result.functions[*resource.LogicalResourceId] = *resource.PhysicalResourceId
		case "AWS::Lambda::Alias":
			aliases[*resource.LogicalResourceId] = *resource.PhysicalResourceId
		}
	}
	processed, err := client.GetTemplate(ctx, &cloudformation.GetTemplateInput{
		StackName:     aws.String(stackName),
		TemplateStage: cfntypes.TemplateStageProcessed,
	})
	if err != nil {
		return deployment{}, fmt.Errorf("localaws: processed template of %s: %w", stackName, err)
	}
	parsed, err := parseTemplate([]byte(*processed.TemplateBody))
	if err != nil {
		return deployment{}, err
	}
	body := parsed.Resources["Api"].Properties["Body"]
	routes := routeTable{
		client:     apigatewayv2.NewFromConfig(e.Config()),
		apiID:      result.outputs["ApiId"],
		aliases:    aliases,
		enforceIAM: opts.EnforceIAM,
	}
	return result, routes.update(ctx, body)
}

// through returns the queue's URL with the host of endpoint, for clients that
// take the URL itself as the place to call.
func through(endpoint, queueURL string) (string, error) {
	parsed, err := url.Parse(queueURL)
	if err != nil {
		return "", fmt.Errorf("localaws: queue URL: %w", err)
	}
	return strings.TrimSuffix(endpoint, "/") + parsed.Path, nil
}
