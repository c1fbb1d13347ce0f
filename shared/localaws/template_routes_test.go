package localaws

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// publicRoutes are open to everybody; each proves by a signature who is calling.
var publicRoutes = map[string]bool{
	"POST /webhooks/{gateway}":         true,
	"POST /checkout/{gateway}/{order}": true,
}

// transform is what CloudFormation does with a template of SAM, by the library that does it there (it comes with the SAM
// CLI). It runs in the checkout and prints the processed template.
const transform = `
import json, sys
from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform

class NoManagedPolicies:
    def load(self):
        return {}

template = yaml_parse(open("template.yaml").read())
for resource in template["Resources"].values():
    if resource["Type"] == "AWS::Serverless::Function":
        resource["Properties"]["CodeUri"] = "s3://bucket/key"  # as an upload leaves it
json.dump(transform(template, {}, NoManagedPolicies()), sys.stdout)
`

// processed returns template.yaml as CloudFormation deploys it.
func (d deployed) processed() template {
	d.Helper()
	tools, err := findTools(d.checkout)
	if err != nil {
		d.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(tools.sam), "python"), "-c", transform)
	cmd.Dir = d.checkout
	cmd.Env = environment("AWS_DEFAULT_REGION=ap-south-1") // any will do
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		d.Fatalf("transform the template: %v\n%s", err, complaint.Bytes())
	}
	parsed, err := parseTemplate(text)
	if err != nil {
		d.Fatal(err)
	}
	return parsed
}

// Whoever adds a route decides who may call it. This reads what SAM made of the template, so that neither a default nor a
// misspelt property opens one.
func TestRoutesNeedIAM(t *testing.T) {
	d := readDeployed(t)
	processed := d.processed()
	routes := 0
	for id, resource := range processed.Resources {
		switch resource.Type {
		case "AWS::ApiGatewayV2::Api":
			routes += checkRoutes(t, id, resource)
		case "AWS::ApiGatewayV2::Stage": // has no routes
		default: // a function's URL, a REST API, routes or authorizations beside the API's document
			if resource.Type == "AWS::Lambda::Url" || strings.HasPrefix(resource.Type, "AWS::ApiGateway") {
				t.Errorf("%s, a %s, is a way in that this test does not look at", id, resource.Type)
			}
		}
	}
	inTemplate := 0
	for _, function := range d.ofType("AWS::Serverless::Function") {
		events, _ := function.Properties["Events"].(map[string]any)
		for _, event := range events {
			if at(event, "Type") == "HttpApi" {
				inTemplate++
			}
		}
	}
	if routes == 0 || routes != inTemplate {
		t.Errorf("%d routes in the processed template, %d in template.yaml", routes, inTemplate)
	}
}

// checkRoutes returns how many routes the API has.
func checkRoutes(t *testing.T, id string, api resource) (routes int) {
	t.Helper()
	body := api.Properties["Body"]
	// The only scheme that a route names must be IAM's, whatever it is called.
	wantScheme := map[string]any{"AWS_IAM": map[string]any{
		"type": "apiKey", "name": "Authorization", "in": "header", "x-amazon-apigateway-authtype": "awsSigv4",
	}}
	if diff := cmp.Diff(any(wantScheme), at(body, "components", "securitySchemes")); diff != "" {
		t.Errorf("%s: schemes (-want +got):\n%s", id, diff)
	}
	needsIAM := []any{map[string]any{"AWS_IAM": []any{}}} // and no alternative to it
	paths, _ := at(body, "paths").(map[string]any)
	for path, operations := range paths {
		for method, operation := range operations.(map[string]any) {
			routes++
			route := strings.ToUpper(method) + " " + path
			security := at(operation, "security")
			switch {
			case publicRoutes[route] && security != nil:
				t.Errorf("%s wants %v, which its callers do not have", route, security)
			case !publicRoutes[route] && !cmp.Equal(any(needsIAM), security):
				t.Errorf("%s is open: security is %v, want AWS_IAM", route, security)
			}
		}
	}
	return routes
}
