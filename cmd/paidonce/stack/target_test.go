package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"paidonce/shared/localaws"
)

// endedProcess is the id of a process that is gone.
func endedProcess(t *testing.T) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestConnectLocal(t *testing.T) {
	const url = "http://127.0.0.1:1" // nobody is asked anything
	info := localaws.Info{APIURL: url, AWSEndpoint: url, Region: "ap-south-1", Table: "t", PID: os.Getpid()}
	ended := info
	ended.PID = endedProcess(t)
	for _, c := range []struct {
		name string
		info *localaws.Info
		err  error
	}{{"running", &info, nil}, {"none", nil, ErrNoLocalStack}, {"killed", &ended, ErrNoLocalStack}} {
		t.Run(c.name, func(t *testing.T) {
			checkout := t.TempDir()
			if c.info != nil {
				if err := localaws.WriteInfo(checkout, *c.info); err != nil {
					t.Fatal(err)
				}
			}
			got, err := connectLocal(checkout)
			if !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if err == nil && (got.API.URL != url || got.Name != "the local stack" || got.Events == nil) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestConnectFindsTheCheckoutAboveTheWorkingDirectory(t *testing.T) {
	checkout := t.TempDir()
	below := filepath.Join(checkout, "functions", "orders")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := localaws.WriteInfo(checkout, localaws.Info{APIURL: "http://127.0.0.1:1", PID: os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	t.Setenv(stackVariable, "")
	if _, err := Connect(t.Context(), Options{}); !errors.Is(err, ErrNoLocalStack) {
		t.Errorf("without a checkout: %v", err)
	}
	if err := os.WriteFile(filepath.Join(checkout, "template.yaml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Connect(t.Context(), Options{}); err != nil || got.API.URL != "http://127.0.0.1:1" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := Connect(t.Context(), Options{region: "eu-west-1"}); err == nil || !strings.HasPrefix(err.Error(), "--region") {
		t.Errorf("a region without a stack: %v", err)
	}
}

// withoutAWS leaves no trace of AWS in the environment.
func withoutAWS(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	missing := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", missing)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", missing)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func TestTheEnvironmentNamesTheStack(t *testing.T) {
	withoutAWS(t)
	t.Setenv(stackVariable, "paidonce-prod")
	on, err := Connect(t.Context(), Options{region: "ap-south-1"})
	if !errors.Is(err, errNoCredentials) || on.Name != "stack paidonce-prod in ap-south-1" {
		t.Errorf("looked for %q: %v", on.Name, err)
	}
}

func TestConnectAWSWithoutCredentialsOrRegion(t *testing.T) {
	withoutAWS(t)
	for _, c := range []struct{ region, want string }{
		{"", "no AWS region for stack paidonce-prod: give --region, or set AWS_REGION"},
		{"ap-south-1", "AWS credentials are missing or have expired: sign in (`aws sso login`), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
	} {
		on, err := Connect(t.Context(), Options{stack: "paidonce-prod", region: c.region})
		if got := on.Cure(err); got == nil || got.Error() != c.want {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}

// describer answers as CloudFormation does.
type describer struct {
	outputs map[string]string
	err     error
}

func (d describer) DescribeStacks(context.Context, *cloudformation.DescribeStacksInput, ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	if d.err != nil {
		return nil, d.err
	}
	var stack types.Stack
	for k, v := range d.outputs {
		stack.Outputs = append(stack.Outputs, types.Output{OutputKey: aws.String(k), OutputValue: aws.String(v)})
	}
	return &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{stack}}, nil
}

func TestReadOutputs(t *testing.T) {
	got, err := readOutputs(t.Context(), describer{outputs: map[string]string{"ApiUrl": "https://a.example/", "TableName": "T", "ApiId": "a"}}, "s")
	if want := (stackOutputs{"https://a.example", "T"}); got != want || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = readOutputs(t.Context(), describer{outputs: map[string]string{"ApiUrl": "https://a.example"}}, "s")
	if err == nil || err.Error() != "stack s has no outputs ApiUrl and TableName: it is not paidonce's, or its deployment has not finished" {
		t.Errorf("another stack: %v", err)
	}
}

// signed is what no error may repeat.
const signed = "secret-key-of-the-tests"

func TestErrorsOfAWSAreOneLineWithACure(t *testing.T) {
	on := Target{Name: "stack s in ap-south-1"}
	for code, want := range map[string]string{
		"ValidationError":       "there is no stack s in ap-south-1 for these credentials: check the name, --region and AWS_PROFILE",
		"ExpiredToken":          "the AWS credentials have expired (ExpiredToken): sign in again (`aws sso login`)",
		"SignatureDoesNotMatch": "AWS does not accept the credentials (SignatureDoesNotMatch): check AWS_PROFILE, and the clock",
		"AccessDenied":          "the AWS credentials do not allow this: they need cloudformation:DescribeStacks and, for events, dynamodb:GetItem on the table",
		"ThrottlingException":   "AWS refused to answer for stack s in ap-south-1: ThrottlingException",
	} {
		t.Run(code, func(t *testing.T) {
			answered := fmt.Errorf("operation error: %w", &smithy.GenericAPIError{Code: code, Message: "the string to sign was\n" + signed})
			_, err := readOutputs(t.Context(), describer{err: answered}, "s")
			if got := on.Cure(err); got == nil || got.Error() != want {
				t.Errorf("got %v, want %s", got, want)
			}
		})
	}
	if got := on.Cure(errors.New("one\n  two")); got.Error() != "one two" {
		t.Errorf("got %q", got)
	}
}
