package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// TestSampleEvents creates the sample order and then looks at it.
func TestSampleEvents(t *testing.T) {
	paths, err := filepath.Glob("../../events/orders-*.json") // create comes before get
	if err != nil || len(paths) != 2 {
		t.Fatalf("%d sample events, 2 expected: %v", len(paths), err)
	}
	b := setup()
	for i, status := range []int{201, 200} {
		t.Run(filepath.Base(paths[i]), func(t *testing.T) {
			text, err := os.ReadFile(paths[i])
			if err != nil {
				t.Fatal(err)
			}
			var r events.APIGatewayV2HTTPRequest
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			if r.RequestContext.Authorizer == nil || r.RequestContext.Authorizer.IAM == nil {
				t.Error("the sample is not of a caller with AWS credentials")
			}
			response, err := b.Handle(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			var answer struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal([]byte(response.Body), &answer); err != nil || response.StatusCode != status || answer.ID != "sample-1" {
				t.Errorf("answered %d %s, want %d", response.StatusCode, response.Body, status)
			}
		})
	}
}
