package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

func TestSampleEvent(t *testing.T) {
	paths, err := filepath.Glob("../../events/refunds-*.json")
	if err != nil || len(paths) != 1 {
		t.Fatalf("sample events %v, one expected: %v", paths, err)
	}
	text, err := os.ReadFile("../../events/refunds-create.json")
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
	b := setup(t)
	b.handle(t, r).want(t, http.StatusCreated, fields{"id": "return-7", "order": "sample-1", "amount": 19900.0})
	b.handle(t, r).want(t, http.StatusOK, fields{"id": "return-7", "status": "processed"})
}
