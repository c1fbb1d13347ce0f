package dynamo_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"paidonce/shared/dynamo"
	"paidonce/shared/localaws"
	"paidonce/shared/storetest"
)

const table = "conformance"

var engine *localaws.Engine

func TestMain(m *testing.M) {
	code, err := withTable(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withTable runs the tests against the table of template.yaml on an engine of their own.
func withTable(run func() int) (int, error) {
	ctx := context.Background()
	var err error
	if engine, err = localaws.StartEngine(ctx, localaws.EngineOptions{}); err != nil {
		return 1, err
	}
	defer engine.Close()
	if err := localaws.CreateTable(ctx, engine.Config(), "", table); err != nil {
		return 1, err
	}
	return run(), nil
}

func TestStore(t *testing.T) {
	store := dynamo.New(dynamodb.NewFromConfig(engine.Config()), table)
	storetest.Run(t, func(*testing.T) storetest.Store { return store })
}
