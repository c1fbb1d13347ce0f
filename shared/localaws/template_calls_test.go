package localaws

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// actionsOf names the IAM actions of what does not need the one of its own name.
var actionsOf = map[string][]string{
	"dynamodb:TransactWriteItems": nil, // needs those of its parts (AWS, "Using IAM with DynamoDB transactions")

	"dynamodb/types.Put":            {"dynamodb:PutItem"},
	"dynamodb/types.Update":         {"dynamodb:UpdateItem"},
	"dynamodb/types.Delete":         {"dynamodb:DeleteItem"},
	"dynamodb/types.ConditionCheck": {"dynamodb:ConditionCheckItem"},

	"dynamodb:TransactGetItems":          {"dynamodb:GetItem"},
	"eventbridge:PutEvents":              {"events:PutEvents"},
	"sqs:SendMessageBatch":               {"sqs:SendMessage"},
	"sqs:DeleteMessageBatch":             {"sqs:DeleteMessage"},
	"sqs:ChangeMessageVisibilityBatch":   {"sqs:ChangeMessageVisibility"},
	"secretsmanager:BatchGetSecretValue": {"secretsmanager:BatchGetSecretValue", "secretsmanager:GetSecretValue"},
}

// actionsOfLambda are what Lambda itself does in the function's name, and why.
func actionsOfLambda(function resource) map[string]string {
	does := map[string]string{}
	if function.Properties["LoggingConfig"] != nil {
		does["logs:CreateLogStream"], does["logs:PutLogEvents"] = "Lambda writes the log", "Lambda writes the log"
	}
	events, _ := function.Properties["Events"].(map[string]any)
	for _, event := range events {
		if at(event, "Type") == "DynamoDB" {
			for _, action := range []string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"} {
				does[action] = "Lambda reads the stream"
			}
			if at(event, "Properties", "DestinationConfig", "OnFailure", "Type") == "SQS" {
				does["sqs:SendMessage"] = "Lambda reports records that failed"
			}
		}
		if at(event, "Type") == "SQS" {
			for _, action := range []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"} {
				does[action] = "Lambda polls the queue"
			}
		}
	}
	if at(function.Properties, "EventInvokeConfig", "DestinationConfig", "OnFailure", "Type") == "SQS" {
		does["sqs:SendMessage"] = "Lambda reports failed runs"
	}
	return does
}

// Each function's role allows what its code can call, and nothing else. A function that lacks an action fails in
// production only, on the path that needs it; one that is left over waits for whoever breaks in.
func TestRolesAllowWhatTheCodeCalls(t *testing.T) {
	d := readDeployed(t)
	functions := map[string]string{} // logical id by folder
	for name, function := range d.ofType("AWS::Serverless::Function") {
		functions[path.Clean(function.Properties["CodeUri"].(string))] = name
	}
	mains, err := filepath.Glob(filepath.Join(d.checkout, "functions", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for _, main := range mains {
		folder := "functions/" + filepath.Base(filepath.Dir(main))
		if functions[folder] == "" {
			t.Errorf("%s is no function of the template", folder)
		}
		patterns = append(patterns, "./"+folder)
	}
	programs := loadPrograms(t, d.checkout, patterns)
	for folder, name := range functions {
		t.Run(path.Base(folder), func(t *testing.T) {
			main := programs.mains["paidonce/"+folder]
			if main == nil {
				t.Fatalf("%s: no program in %s", name, folder)
			}
			needed := actionsOfLambda(d.Resources[name])
			for operation, way := range programs.operations(main) {
				actions, differ := actionsOf[operation]
				if !differ && strings.Contains(operation, ":") {
					actions = []string{operation}
				}
				for _, action := range actions {
					needed[action] = way
				}
			}
			allowed := deployed{t, d.template, d.checkout}.permissions(name, d.Resources[name])
			for _, action := range slices.Sorted(maps.Keys(needed)) {
				if allowed[action] == "" {
					t.Errorf("the role does not allow %s: %s", action, needed[action])
				}
			}
			for _, action := range slices.Sorted(maps.Keys(allowed)) {
				if needed[action] == "" {
					t.Errorf("the role allows %s, which nothing calls", action)
				}
			}
		})
	}
}
