package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"

	"paidonce/shared/dynamo"
	"paidonce/shared/localaws"
	"paidonce/shared/payment"
)

// target is the stack that an operator's command is about.
type target struct {
	name   string // for messages: "the local stack", "stack paidonce-prod"
	flags  string // what leads to it again, to follow a command: " --stack paidonce-prod"
	api    apiClient
	events eventReader
	table  string // its name
	stack  deployed
}

// eventReader is what is needed of the table.
type eventReader interface {
	// Event reads an event with its body. [payment.ErrNotFound] if there is none.
	Event(ctx context.Context, k payment.EventKey) (payment.Event, error)
	// DueEvents calls found with the key of each event that is listed with the status as due before the time, until it
	// returns false. The list lags: the row decides.
	DueEvents(ctx context.Context, status payment.EventStatus, before time.Time, found func(payment.EventKey) bool) error
	// History reads everything that is kept about an order beside its own row.
	History(ctx context.Context, orderID string) (payment.History, error)
}

// stackVariable names the stack where --stack does not, so that a runbook's commands need no flags.
const stackVariable = "PAIDONCE_STACK"

// gatewayName is the one that is compared with.
const gatewayName = "razorpay"

// targetOptions name a stack in AWS. Without a name it is the checkout's local stack.
type targetOptions struct{ stack, region string }

func (o *targetOptions) addTo(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&o.stack, "stack", "", "name of a stack in AWS (default: as PAIDONCE_STACK says, else the running local stack of this checkout)")
	cmd.PersistentFlags().StringVar(&o.region, "region", "", "AWS region of --stack (default: as AWS_REGION or the profile says)")
}

// connector finds the stack that the options name.
type connector func(context.Context, targetOptions) (target, error)

var (
	errNoCredentials = errors.New("no AWS credentials")
	errNoLocalStack  = errors.New("no local stack is running: start one with `make run`, or name a stack in AWS with --stack or PAIDONCE_STACK")
)

// connect is the connector of the real world.
func connect(ctx context.Context, o targetOptions) (target, error) {
	o.stack = cmp.Or(o.stack, os.Getenv(stackVariable))
	if o.stack != "" {
		return connectAWS(ctx, o)
	}
	if o.region != "" {
		return target{}, errors.New("--region says where --stack is: give both, or neither for the local stack")
	}
	checkout, err := localaws.FindCheckout("")
	if err != nil {
		return target{}, errNoLocalStack
	}
	return connectLocal(checkout)
}

func connectLocal(checkout string) (target, error) {
	info, running, err := runningStack(checkout)
	if err != nil {
		return target{}, err
	}
	if !running {
		return target{}, errNoLocalStack
	}
	cfg := aws.Config{
		Region:       info.Region,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""), // any will do
		BaseEndpoint: &info.AWSEndpoint,
	}
	return newTarget("the local stack", "", info.StackName, info.APIURL, info.Table, cfg), nil
}

func newTarget(name, flags, stack, apiURL, table string, cfg aws.Config) target {
	return target{
		name: name, flags: flags, api: apiClient{apiURL, cfg}, events: dynamo.New(dynamodb.NewFromConfig(cfg), table),
		table: table, stack: deployed{cfg, stack},
	}
}

// runningStack reads where the checkout's local stack is, and whether it still runs: one that was killed leaves its
// addresses behind.
func runningStack(checkout string) (info localaws.Info, running bool, err error) {
	info, err = localaws.ReadInfo(checkout)
	if errors.Is(err, fs.ErrNotExist) {
		return info, false, nil
	}
	if err != nil {
		return info, false, err
	}
	return info, info.PID > 0 && syscall.Kill(info.PID, 0) == nil, nil
}

// awsAttempt bounds each attempt of each call to AWS.
const awsAttempt = 10 * time.Second

func connectAWS(ctx context.Context, o targetOptions) (target, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(o.region),      // empty: whatever the environment says
		config.WithLogger(logging.Nop{}), // errors say it all, in one line
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(awsAttempt)),
	)
	if err != nil {
		return target{}, fmt.Errorf("read the AWS configuration: %w", err)
	}
	t := target{name: fmt.Sprintf("stack %s in %s", o.stack, cfg.Region), flags: " --stack " + o.stack}
	if o.region != "" {
		t.flags += " --region " + o.region
	}
	if cfg.Region == "" {
		return t, fmt.Errorf("no AWS region for stack %s: give --region, or set AWS_REGION", o.stack)
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return t, fmt.Errorf("%w: %w", errNoCredentials, err)
	}
	t.stack = deployed{cfg, o.stack} // doctor looks at a stack without outputs, too
	outputs, err := readOutputs(ctx, cloudformation.NewFromConfig(cfg), o.stack)
	if err != nil {
		return t, err
	}
	return newTarget(t.name, t.flags, o.stack, outputs.apiURL, outputs.table, cfg), nil
}

// stackDescriber is what is needed of a *cloudformation.Client.
type stackDescriber interface {
	DescribeStacks(context.Context, *cloudformation.DescribeStacksInput, ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error)
}

type stackOutputs struct{ apiURL, table string }

// errNoSuchStack: CloudFormation has no stack of that name, in the region and account that were asked.
var errNoSuchStack = errors.New("no such stack")

func describeStack(ctx context.Context, c stackDescriber, stack string) (types.Stack, error) {
	out, err := c.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if codeOf(err) == "ValidationError" || err == nil && len(out.Stacks) == 0 {
		return types.Stack{}, errNoSuchStack // which is how CloudFormation says so
	}
	if err != nil {
		return types.Stack{}, fmt.Errorf("describe stack %s: %w", stack, err)
	}
	return out.Stacks[0], nil
}

func readOutputs(ctx context.Context, c stackDescriber, stack string) (stackOutputs, error) {
	described, err := describeStack(ctx, c, stack)
	if err != nil {
		return stackOutputs{}, err
	}
	outputs := partsOf(described).outputs
	found := stackOutputs{strings.TrimSuffix(outputs["ApiUrl"], "/"), outputs["TableName"]}
	if found.apiURL == "" || found.table == "" {
		return stackOutputs{}, fmt.Errorf("stack %s has no outputs ApiUrl and TableName: it is not paidonce's, or its deployment has not finished", stack)
	}
	return found, nil
}

// codeOf is the code of an error that AWS answered, or "".
func codeOf(err error) string {
	var answered interface {
		error
		ErrorCode() string
	}
	if !errors.As(err, &answered) {
		return ""
	}
	return answered.ErrorCode()
}

// statusOf is the status of an answer that the API refused with, or 0.
func statusOf(err error) int {
	if r := new(refusal); errors.As(err, &r) {
		return r.status
	}
	return 0
}

// isGone reports whether an answer says that our own code found nothing. API Gateway's own 404 has no message of ours.
func isGone(err error) bool {
	r := new(refusal)
	return errors.As(err, &r) && r.status == http.StatusNotFound && r.message == payment.ErrNotFound.Error()
}
