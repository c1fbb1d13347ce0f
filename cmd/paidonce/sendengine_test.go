package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"paidonce/shared/localaws"
	"paidonce/shared/razorpay"
)

// TestLogsAndSecretsOnTheEmulator finds a stack's real log groups and webhook secrets, and reads them.
func TestLogsAndSecretsOnTheEmulator(t *testing.T) {
	engine, err := localaws.StartEngine(t.Context(), localaws.EngineOptions{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	resources := map[string]any{}
	for _, g := range logGroupIDs {
		resources[g.logicalID] = map[string]any{"Type": "AWS::Logs::LogGroup"}
	}
	template, err := json.Marshal(map[string]any{
		"Parameters": map[string]any{webhookSecretParameter: map[string]string{"Type": "String"}, "RazorpayAccountId": map[string]string{"Type": "String"}},
		"Resources":  resources,
	})
	if err != nil {
		t.Fatal(err)
	}
	stacks := cloudformation.NewFromConfig(engine.Config())
	_, err = stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{
		StackName: aws.String("s"), TemplateBody: aws.String(string(template)), Parameters: []cfn.Parameter{
			{ParameterKey: aws.String(webhookSecretParameter), ParameterValue: aws.String("the/secret")},
			{ParameterKey: aws.String("RazorpayAccountId"), ParameterValue: aws.String("acc_1")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := cloudformation.NewStackCreateCompleteWaiter(stacks, func(o *cloudformation.StackCreateCompleteWaiterOptions) {
		o.MinDelay = 100 * time.Millisecond
	}).Wait(t.Context(), &cloudformation.DescribeStacksInput{StackName: aws.String("s")}, time.Minute); err != nil {
		t.Fatal(err)
	}
	d := deployed{engine.Config(), "s"}
	on := newTarget("the emulator", "", "s", "http://127.0.0.1:1", "table", engine.Config())

	_, err = on.signing(t.Context())
	if err == nil || err.Error() != "the secret the/secret does not exist, or has no value" {
		t.Errorf("without a secret: %v", err)
	}
	secrets := secretsmanager.NewFromConfig(engine.Config())
	if _, err := secrets.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String("the/secret"), SecretString: aws.String(`{"test_current":"one","test_previous":"two"}`),
	}); err != nil {
		t.Fatal(err)
	}
	s, err := on.signing(t.Context())
	want := []razorpay.Secret{{Label: "test_current", Value: "one"}, {Label: "test_previous", Value: "two"}}
	if err != nil || !slices.Equal(s.secrets, want) || s.account != "acc_1" {
		t.Errorf("%d secrets, account %q, %v", len(s.secrets), s.account, err)
	}
	if _, err := secrets.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: aws.String("the/secret"), SecretString: aws.String(`{"a-secret-the-wrong-way-round":"test_current"}`),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := on.signing(t.Context()); err == nil || strings.Contains(err.Error(), "wrong-way") {
		t.Errorf("a document that is wrong: %v", err)
	}

	found, err := d.parts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logs := cloudwatchlogs.NewFromConfig(engine.Config())
	for id, line := range map[string]string{
		"WebhookLogGroup": `{"level":"INFO","msg":"webhook","event":"razorpay/evt_1","invocation":"call-1"}`,
		"WorkerLogGroup":  `{"level":"ERROR","msg":"message","event":"razorpay/evt_1","order":"o1","error":"no luck"}`,
		"NotifyLogGroup":  `{"level":"INFO","msg":"announcement","order":"o1"}`,
		"OrdersLogGroup":  `{"level":"INFO","msg":"orders","order":"o10"}`,
	} {
		group := found.resources[id]
		if _, err := logs.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: aws.String("x")}); err != nil {
			t.Fatal(err)
		}
		if _, err := logs.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{
			LogGroupName: &group, LogStreamName: aws.String("x"),
			LogEvents: []types.InputLogEvent{{Timestamp: aws.Int64(time.Now().UnixMilli()), Message: &line}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{"logs evt_1": "notify webhook worker", "logs --errors": "worker", "logs --function orders,notify": "notify orders"} {
		out, _, err := run(t, on, append(strings.Fields(args), "--json")...)
		if err != nil {
			t.Fatal(args, err)
		}
		var from []string
		for line := range strings.Lines(out) {
			var l shownLogLine
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			from = append(from, l.Function)
		}
		slices.Sort(from)
		if got := strings.Join(from, " "); got != want {
			t.Errorf("%s: lines of %s, want %s", args, got, want)
		}
	}
}
