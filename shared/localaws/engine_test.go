package localaws

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestFindCheckout(t *testing.T) {
	root := t.TempDir()
	inner := filepath.Join(root, "functions", "webhook")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := FindCheckout(inner); err == nil {
		t.Error("FindCheckout without a template.yaml: no error")
	}
	if err := os.WriteFile(filepath.Join(root, "template.yaml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := FindCheckout(inner)
	if err != nil || got != root {
		t.Errorf("FindCheckout = %q, %v; want %q", got, err, root)
	}
}

func TestStartEngineWithoutTools(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "template.yaml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := StartEngine(t.Context(), EngineOptions{Checkout: root})
	if !errors.Is(err, ErrToolsMissing) {
		t.Errorf("StartEngine: %v, want ErrToolsMissing", err)
	}
}

func TestStartEngineOnATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = StartEngine(t.Context(), EngineOptions{Port: taken.Addr().(*net.TCPAddr).Port})
	if err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("StartEngine: %v, want an error that says the port is in use", err)
	}
}

func TestStartEngineGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := StartEngine(ctx, EngineOptions{Log: io.Discard})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("StartEngine: %v, want context.Canceled", err)
	}
}

// startEngine starts an engine that ends with the test.
func startEngine(t *testing.T) *Engine {
	t.Helper()
	engine, err := StartEngine(t.Context(), EngineOptions{Log: t.Output()})
	if err != nil {
		t.Fatalf("StartEngine: %v", err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return engine
}

func TestEngineEndsWithClose(t *testing.T) {
	engine := startEngine(t)
	if err := engine.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	<-engine.Exited()
	if response, err := http.Get(engine.URL + "/_ministack/health"); err == nil {
		response.Body.Close()
		t.Error("the engine still answers after Close")
	}
	if _, err := os.Stat(engine.tempDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("temporary folder after Close: %v, want none", err)
	}
}

func TestCreateTable(t *testing.T) {
	engine := startEngine(t)
	const name = "orders"
	if err := CreateTable(t.Context(), engine.Config(), "", name); err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	client := dynamodb.NewFromConfig(engine.Config())
	described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(name)})
	if err != nil {
		t.Fatalf("DescribeTable: %v", err)
	}
	if got := described.Table.StreamSpecification.StreamViewType; got != types.StreamViewTypeNewImage {
		t.Errorf("stream = %q, want NEW_IMAGE", got)
	}
	expiry, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(name)})
	if err != nil {
		t.Fatalf("DescribeTimeToLive: %v", err)
	}
	if got := aws.ToString(expiry.TimeToLiveDescription.AttributeName); got != "expires_at" {
		t.Errorf("expiry attribute = %q, want expires_at", got)
	}

	text := func(value string) types.AttributeValue { return &types.AttributeValueMemberS{Value: value} }
	for _, row := range []map[string]types.AttributeValue{
		{"pk": text("ORDER#1"), "sk": text("ORDER"), "gsi_pk": text("DUE#order#0"), "gsi_sk": text("2026-01-01T00:00:00Z"), "amount": text("1")},
		{"pk": text("ORDER#2"), "sk": text("ORDER"), "amount": text("2")}, // not due: not in the index
	} {
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(name), Item: row}); err != nil {
			t.Fatalf("PutItem: %v", err)
		}
	}
	due, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(name), IndexName: aws.String("index1")})
	if err != nil {
		t.Fatalf("Scan of index1: %v", err)
	}
	if len(due.Items) != 1 || len(due.Items[0]) != 4 {
		t.Errorf("index1 holds %v, want the four keys of ORDER#1 alone", due.Items)
	}
}
