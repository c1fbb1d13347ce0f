package localaws

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// All that each function may do. A new permission is a line here, too.
func TestRolesAllowTheLeast(t *testing.T) {
	const (
		table  = "Table.Arn"
		queue  = "EventsQueue.Arn"
		secret = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${%s}-??????"
	)
	want := map[string]map[string]string{ // function -> action -> resource
		"WebhookFunction": {
			"secretsmanager:GetSecretValue": fmt.Sprintf(secret, "RazorpayWebhookSecretName"),
			"dynamodb:PutItem":              table,
			"sqs:SendMessage":               queue,
			"logs:CreateLogStream":          "WebhookLogGroup.Arn",
			"logs:PutLogEvents":             "WebhookLogGroup.Arn",
		},
		"WorkerFunction": {
			"sqs:ReceiveMessage":     queue,
			"sqs:DeleteMessage":      queue,
			"sqs:GetQueueAttributes": queue,
			"dynamodb:GetItem":       table,
			"dynamodb:PutItem":       table,
			"dynamodb:UpdateItem":    table,
			"logs:CreateLogStream":   "WorkerLogGroup.Arn",
			"logs:PutLogEvents":      "WorkerLogGroup.Arn",

			"secretsmanager:GetSecretValue": fmt.Sprintf(secret, "RazorpayApiKeySecretName") + " if AsksTheGateway",
		},
		"ReconcileFunction": {
			"secretsmanager:GetSecretValue": fmt.Sprintf(secret, "RazorpayApiKeySecretName"),

			"dynamodb:Query":         "${Table.Arn}/index/index1",
			"dynamodb:GetItem":       table,
			"dynamodb:PutItem":       table,
			"dynamodb:UpdateItem":    table,
			"dynamodb:BatchGetItem":  table,
			"events:PutEvents":       "Bus.Arn",
			"sqs:SendMessage":        queue + " AsyncDlq.Arn",
			"sqs:GetQueueAttributes": queue,
			"logs:CreateLogStream":   "ReconcileLogGroup.Arn",
			"logs:PutLogEvents":      "ReconcileLogGroup.Arn",
		},
		"NotifyFunction": {
			"dynamodb:DescribeStream":   "Table.StreamArn",
			"dynamodb:GetRecords":       "Table.StreamArn",
			"dynamodb:GetShardIterator": "Table.StreamArn",
			"dynamodb:ListStreams":      "*",
			"dynamodb:BatchGetItem":     table,
			"dynamodb:UpdateItem":       table,
			"events:PutEvents":          "Bus.Arn",
			"sqs:SendMessage":           "NotifyDlq.Arn",
			"logs:CreateLogStream":      "NotifyLogGroup.Arn",
			"logs:PutLogEvents":         "NotifyLogGroup.Arn",
		},
		"CheckoutFunction": {
			"secretsmanager:GetSecretValue": fmt.Sprintf(secret, "RazorpayApiKeySecretName"),
			"dynamodb:GetItem":              table,
			"dynamodb:PutItem":              table,
			"logs:CreateLogStream":          "CheckoutLogGroup.Arn",
			"logs:PutLogEvents":             "CheckoutLogGroup.Arn",
		},
		"RefundsFunction": {
			"secretsmanager:GetSecretValue": fmt.Sprintf(secret, "RazorpayApiKeySecretName"),
			"dynamodb:GetItem":              table,
			"dynamodb:PutItem":              table,
			"logs:CreateLogStream":          "RefundsLogGroup.Arn",
			"logs:PutLogEvents":             "RefundsLogGroup.Arn",
		},
		"OrdersFunction": {
			"secretsmanager:GetSecretValue": fmt.Sprintf(secret, "RazorpayApiKeySecretName"),
			"dynamodb:GetItem":              table,
			"dynamodb:PutItem":              table,
			"dynamodb:DeleteItem":           table,
			"dynamodb:BatchGetItem":         table,
			"dynamodb:Query":                table + " ${Table.Arn}/index/index1",
			"logs:CreateLogStream":          "OrdersLogGroup.Arn",
			"logs:PutLogEvents":             "OrdersLogGroup.Arn",
		},
	}
	d := readDeployed(t)
	got := map[string]map[string]string{}
	for name, function := range d.ofType("AWS::Serverless::Function") {
		got[name] = d.permissions(name, function)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

// permissions returns what a function's own role allows, by action.
func (d deployed) permissions(name string, function resource) map[string]string {
	d.Helper()
	role := strings.TrimSuffix(name, "Function") + "Role"
	if diff := cmp.Diff(any(arnOf(role)), function.Properties["Role"]); diff != "" {
		d.Errorf("%s: role (-want +got):\n%s", name, diff)
	}
	for _, wide := range []string{"Policies", "Connectors", "Tracing"} { // SAM widens the role for these
		if function.Properties[wide] != nil {
			d.Errorf("%s: %s adds permissions of its own", name, wide)
		}
	}
	if d.Resources[role].Properties["ManagedPolicyArns"] != nil {
		d.Errorf("%s: a managed policy allows more than is listed here", role)
	}
	allowed := map[string]string{}
	policies, _ := d.Resources[role].Properties["Policies"].([]any)
	for _, policy := range policies {
		statements, _ := at(policy, "PolicyDocument", "Statement").([]any)
		for _, statement := range statements {
			condition := ""
			if branches, isIf := at(statement, "Fn::If").([]any); isIf {
				condition, statement = fmt.Sprintf(" if %v", branches[0]), branches[1]
			}
			actions, isList := at(statement, "Action").([]any)
			if !isList {
				actions = []any{at(statement, "Action")}
			}
			for _, action := range actions {
				action := action.(string)
				if allowed[action] != "" {
					d.Errorf("%s: %s is allowed twice", role, action)
				}
				allowed[action] = resourceText(at(statement, "Resource")) + condition
			}
		}
	}
	return allowed
}

// resourceText is a policy's resource in short: "Table.Arn" for !GetAtt Table.Arn.
func resourceText(resource any) string {
	if several, isList := resource.([]any); isList {
		var texts []string
		for _, one := range several {
			texts = append(texts, resourceText(one))
		}
		return strings.Join(texts, " ")
	}
	if parts, isGetAtt := at(resource, "Fn::GetAtt").([]any); isGetAtt {
		return fmt.Sprintf("%v.%v", parts...)
	}
	if pattern, isSub := at(resource, "Fn::Sub").(string); isSub {
		return pattern
	}
	return fmt.Sprint(resource)
}

func TestOnlyWhatIsSignedIsOpen(t *testing.T) {
	d := readDeployed(t)
	const open = ""
	want := map[string]string{
		"POST /webhooks/{gateway}":         open, // its signature is the proof
		"POST /checkout/{gateway}/{order}": open, // the same
		"POST /orders":                     "AWS_IAM",
		"GET /orders/{id}":                 "AWS_IAM",

		"GET /orders/{id}/timeline":                    "AWS_IAM",
		"POST /orders/{id}/close":                      "AWS_IAM",
		"POST /orders/{id}/refunds":                    "AWS_IAM",
		"POST /orders/{id}/holds/{reason}/acknowledge": "AWS_IAM",
	}
	got := map[string]string{}
	for _, function := range d.ofType("AWS::Serverless::Function") {
		events, _ := function.Properties["Events"].(map[string]any)
		for _, event := range events {
			if at(event, "Type") != "HttpApi" {
				continue
			}
			authorizer, _ := at(event, "Properties", "Auth", "Authorizer").(string)
			got[fmt.Sprintf("%v %v", at(event, "Properties", "Method"), at(event, "Properties", "Path"))] = authorizer
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("authorizer by route (-want +got):\n%s", diff)
	}
	if at(d.Resources["Api"].Properties, "Auth", "EnableIamAuthorizer") != true {
		t.Error("EnableIamAuthorizer is not on")
	}
	if at(d.Resources["Api"].Properties, "Auth", "DefaultAuthorizer") != nil {
		t.Error("a default authorizer would close the webhook")
	}
}

func TestQueuesRefusePlainHTTP(t *testing.T) {
	d := readDeployed(t)
	refused := map[string]bool{}
	for _, policy := range d.ofType("AWS::SQS::QueuePolicy") {
		for _, statement := range at(policy.Properties, "PolicyDocument").(map[string]any)["Statement"].([]any) {
			if at(statement, "Effect") != "Deny" || at(statement, "Condition", "Bool", "aws:SecureTransport") != "false" {
				continue
			}
			for name := range d.ofType("AWS::SQS::Queue") {
				for _, queue := range policy.Properties["Queues"].([]any) {
					refused[name] = refused[name] || cmp.Equal(queue, any(refTo(name)))
				}
			}
		}
	}
	for name := range d.ofType("AWS::SQS::Queue") {
		if !refused[name] {
			t.Errorf("no policy refuses plain HTTP for %s", name)
		}
	}
}

func TestLogsAreKeptAndEnd(t *testing.T) {
	d := readDeployed(t)
	for name, group := range d.ofType("AWS::Logs::LogGroup") {
		if diff := cmp.Diff(any(refTo("LogRetentionDays")), group.Properties["RetentionInDays"]); diff != "" {
			t.Errorf("%s: retention (-want +got):\n%s", name, diff)
		}
		if group.DeletionPolicy != "RetainExceptOnCreate" || group.UpdateReplacePolicy != "Retain" {
			t.Errorf("%s goes with the stack", name)
		}
	}
	for name, function := range d.ofType("AWS::Serverless::Function") {
		own := strings.TrimSuffix(name, "Function") + "LogGroup"
		if diff := cmp.Diff(any(refTo(own)), at(function.Properties, "LoggingConfig", "LogGroup")); diff != "" {
			t.Errorf("%s: log group (-want +got):\n%s", name, diff)
		}
	}
}

func TestAlarms(t *testing.T) {
	d := readDeployed(t)
	watched := map[string]bool{} // "<metric> <resource>"
	silent := map[string]bool{   // their end is not the end of what they told of, or nobody has to hear of them
		"OrdersHeldAlarm": true, "PaidNotFulfilledAlarm": true, "UndecodableAlarm": true, "SignaturesInvalidAlarm": true, // OKActions
		"RollbackWebhookAlarm": true, "RollbackWorkerAlarm": true, // either: they stop a deployment
	}
	for id, alarm := range d.ofType("AWS::CloudWatch::Alarm") {
		name, _ := at(alarm.Properties, "AlarmName", "Fn::Sub").(string)
		anchor, found := strings.CutPrefix(name, "${AWS::StackName}-")
		description, _ := alarm.Properties["AlarmDescription"].(string)
		if !found || !strings.HasSuffix(description, "See docs/runbook.md#"+anchor) {
			t.Errorf("%s: named %q, description ends in %q; want the runbook's entry of that name", id, name, description)
		}
		for _, actions := range []string{"AlarmActions", "OKActions"} {
			if alarm.Properties[actions] == nil && silent[id] {
				continue
			}
			if diff := cmp.Diff(any([]any{refTo("AlarmTopic")}), alarm.Properties[actions]); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", id, actions, diff)
			}
		}
		missing := "notBreaching"
		if id == "ReconcileSilentAlarm" {
			missing = "breaching" // a heartbeat: no number is what it waits for
		}
		if alarm.Properties["TreatMissingData"] != missing {
			t.Errorf("%s: missing data is %v, want %s, or an idle system would alarm, or a dead one would not", id, alarm.Properties["TreatMissingData"], missing)
		}
		dimensions, _ := alarm.Properties["Dimensions"].([]any)
		for _, dimension := range dimensions {
			value := at(dimension, "Value")
			subject, isRef := at(value, "Ref").(string)
			if !isRef {
				subject, _, _ = strings.Cut(resourceText(value), ".")
			}
			watched[fmt.Sprintf("%v %v", alarm.Properties["MetricName"], subject)] = true
		}
	}
	want := []string{
		"ApproximateNumberOfMessagesVisible EventsDlq", "ApproximateAgeOfOldestMessage EventsQueue",
		"FailedInvokeEventCount WorkerFunctionEvents", "5xx Api",
	}
	for name := range d.ofType("AWS::Serverless::Function") {
		want = append(want, "Errors "+name)
	}
	for _, metric := range want {
		if !watched[metric] {
			t.Errorf("no alarm on %s; there are %v", metric, watched)
		}
	}
	dlq := d.Resources["EventsDlqAlarm"].Properties
	if dlq["Threshold"] != 0 || dlq["ComparisonOperator"] != "GreaterThanThreshold" || dlq["EvaluationPeriods"] != 1 {
		t.Errorf("EventsDlqAlarm waits: %v; a single message is one too many", dlq)
	}
}

// Whoever is woken by an alarm finds its entry.
func TestRunbookHasEveryAlarm(t *testing.T) {
	d := readDeployed(t)
	text, err := os.ReadFile(filepath.Join(d.checkout, "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if title, isHeading := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); isHeading && strings.HasPrefix(line, "#") {
			headings[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-")] = true
		}
	}
	for id, alarm := range d.ofType("AWS::CloudWatch::Alarm") {
		_, anchor, _ := strings.Cut(alarm.Properties["AlarmDescription"].(string), "docs/runbook.md#")
		if !headings[anchor] {
			t.Errorf("%s points at docs/runbook.md#%s, which is not there", id, anchor)
		}
	}
}
