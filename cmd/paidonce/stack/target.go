// Package stack is the stack that a command is about: which one the flags name, how it is reached, what it is made of, and what
// its errors mean in one line that says what to do.
package stack

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

// Target is the stack that an operator's command is about.
type Target struct {
	Name     string // for messages: "the local stack", "stack paidonce-prod"
	Flags    string // what leads to it again, to follow a command: " --stack paidonce-prod"
	API      Client
	Events   EventKeeper
	Table    string // its name
	Deployed Deployed
}

// EventKeeper is what is needed of the table.
type EventKeeper interface {
	// Event reads an event with its body. [payment.ErrNotFound] if there is none.
	Event(ctx context.Context, k payment.EventKey) (payment.Event, error)
	// DueEvents calls found with the key of each event that is listed with the status as due before the time, until it
	// returns false. The list lags: the row decides.
	DueEvents(ctx context.Context, status payment.EventStatus, before time.Time, found func(payment.EventKey) bool) error
	// History reads everything that is kept about an order beside its own row.
	History(ctx context.Context, orderID string) (payment.History, error)
	// SettleEvent writes what became of an event. [payment.ErrEventApplied] if it is APPLIED already.
	SettleEvent(ctx context.Context, s payment.Settlement) error
}

// stackVariable names the stack where --stack does not, so that a runbook's commands need no flags.
const stackVariable = "PAIDONCE_STACK"

// GatewayName is the gateway of every stack, as our routes and rows name it.
const GatewayName = "razorpay"

// Options name a stack in AWS. Without a name it is the checkout's local stack.
type Options struct{ stack, region string }

// AddTo adds the flags --stack and --region to a command and those below it.
func (o *Options) AddTo(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&o.stack, "stack", "", "name of a stack in AWS (default: as PAIDONCE_STACK says, else the running local stack of this checkout)")
	cmd.PersistentFlags().StringVar(&o.region, "region", "", "AWS region of --stack (default: as AWS_REGION or the profile says)")
}

// Connector finds the stack that the options name.
type Connector func(context.Context, Options) (Target, error)

var (
	errNoCredentials = errors.New("no AWS credentials")
	// ErrNoLocalStack: no stack is named, and none of this checkout runs.
	ErrNoLocalStack = errors.New("no local stack is running: start one with `make run`, or name a stack in AWS with --stack or PAIDONCE_STACK")
)

// Connect is the connector of the real world.
func Connect(ctx context.Context, o Options) (Target, error) {
	o.stack = cmp.Or(o.stack, os.Getenv(stackVariable))
	if o.stack != "" {
		return connectAWS(ctx, o)
	}
	if o.region != "" {
		return Target{}, errors.New("--region says where --stack is: give both, or neither for the local stack")
	}
	checkout, err := localaws.FindCheckout("")
	if err != nil {
		return Target{}, ErrNoLocalStack
	}
	return connectLocal(checkout)
}

func connectLocal(checkout string) (Target, error) {
	info, running, err := Running(checkout)
	if err != nil {
		return Target{}, err
	}
	if !running {
		return Target{}, ErrNoLocalStack
	}
	cfg := aws.Config{
		Region:       info.Region,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""), // any will do
		BaseEndpoint: &info.AWSEndpoint,
	}
	return newTarget("the local stack", "", info.StackName, info.APIURL, info.Table, cfg), nil
}

func newTarget(name, flags, stack, apiURL, table string, cfg aws.Config) Target {
	return Target{
		Name: name, Flags: flags, API: Client{apiURL, cfg}, Events: dynamo.New(dynamodb.NewFromConfig(cfg), table),
		Table: table, Deployed: Deployed{cfg, stack},
	}
}

// Running reads where the checkout's local stack is, and whether it still runs: one that was killed leaves its
// addresses behind.
func Running(checkout string) (info localaws.Info, running bool, err error) {
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

func connectAWS(ctx context.Context, o Options) (Target, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(o.region),      // empty: whatever the environment says
		config.WithLogger(logging.Nop{}), // errors say it all, in one line
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(awsAttempt)),
	)
	if err != nil {
		return Target{}, fmt.Errorf("read the AWS configuration: %w", err)
	}
	t := Target{Name: fmt.Sprintf("stack %s in %s", o.stack, cfg.Region), Flags: " --stack " + o.stack}
	if o.region != "" {
		t.Flags += " --region " + o.region
	}
	if cfg.Region == "" {
		return t, fmt.Errorf("no AWS region for stack %s: give --region, or set AWS_REGION", o.stack)
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return t, fmt.Errorf("%w: %w", errNoCredentials, err)
	}
	t.Deployed = Deployed{cfg, o.stack} // doctor looks at a stack without outputs, too
	outputs, err := readOutputs(ctx, cloudformation.NewFromConfig(cfg), o.stack)
	if err != nil {
		return t, err
	}
	return newTarget(t.Name, t.Flags, o.stack, outputs.apiURL, outputs.table, cfg), nil
}

// Describer is what is needed of a *cloudformation.Client.
type Describer interface {
	DescribeStacks(context.Context, *cloudformation.DescribeStacksInput, ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error)
}

type stackOutputs struct{ apiURL, table string }

// ErrNoSuchStack: CloudFormation has no stack of that name, in the region and account that were asked.
var ErrNoSuchStack = errors.New("no such stack")

// Describe reads a stack's description. [ErrNoSuchStack] if there is none of that name.
func Describe(ctx context.Context, c Describer, stack string) (types.Stack, error) {
	out, err := c.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if CodeOf(err) == "ValidationError" || err == nil && len(out.Stacks) == 0 {
		return types.Stack{}, ErrNoSuchStack // which is how CloudFormation says so
	}
	if err != nil {
		return types.Stack{}, fmt.Errorf("describe stack %s: %w", stack, err)
	}
	return out.Stacks[0], nil
}

func readOutputs(ctx context.Context, c Describer, stack string) (stackOutputs, error) {
	described, err := Describe(ctx, c, stack)
	if err != nil {
		return stackOutputs{}, err
	}
	outputs := PartsOf(described).Outputs
	found := stackOutputs{strings.TrimSuffix(outputs["ApiUrl"], "/"), outputs["TableName"]}
	if found.apiURL == "" || found.table == "" {
		return stackOutputs{}, fmt.Errorf("stack %s has no outputs ApiUrl and TableName: it is not paidonce's, or its deployment has not finished", stack)
	}
	return found, nil
}

// CodeOf is the code of an error that AWS answered, or "".
func CodeOf(err error) string {
	var answered interface {
		error
		ErrorCode() string
	}
	if !errors.As(err, &answered) {
		return ""
	}
	return answered.ErrorCode()
}

// StatusOf is the status of an answer that the API refused with, or 0.
func StatusOf(err error) int {
	if r := new(Refusal); errors.As(err, &r) {
		return r.Status
	}
	return 0
}

// IsGone reports whether an answer says that our own code found nothing. API Gateway's own 404 has no message of ours.
func IsGone(err error) bool {
	r := new(Refusal)
	return errors.As(err, &r) && r.Status == http.StatusNotFound && r.Message == payment.ErrNotFound.Error()
}
