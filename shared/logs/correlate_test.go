package logs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/logs"
)

func TestALineCarriesWhatItsContextSays(t *testing.T) {
	type attributes = map[string]any
	invoked := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "inv-1"})
	about := func(ctx context.Context, key, value string) context.Context {
		return logs.With(ctx, slog.String(key, value))
	}
	outer := about(invoked, "order", "o1")
	for _, c := range []struct {
		name string
		ctx  context.Context
		own  []slog.Attr
		want attributes
	}{
		{"nothing", t.Context(), nil, attributes{}},
		{"its invocation", invoked, nil, attributes{"invocation": "inv-1"}},
		{"an order", outer, nil, attributes{"invocation": "inv-1", "order": "o1"}},
		{"its own word counts", outer, []slog.Attr{slog.String("order", "o2")}, attributes{"invocation": "inv-1", "order": "o2"}},
		{"the innermost counts", about(outer, "order", "o3"), nil, attributes{"invocation": "inv-1", "order": "o3"}},
		{"several", about(outer, "event", "razorpay/e1"), nil, attributes{"invocation": "inv-1", "order": "o1", "event": "razorpay/e1"}},
		{"redacted like any", about(t.Context(), "email", email), nil, attributes{"email": "REDACTED"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			logs.New(&out, "INFO").With("route", "r").LogAttrs(c.ctx, slog.LevelInfo, "m", c.own...)
			got := attributes{}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			delete(got, "time")
			c.want["level"], c.want["msg"], c.want["route"] = "INFO", "m", "r"
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	// Two contexts of one parent do not write into each other's list.
	a, b := about(outer, "event", "a"), about(outer, "event", "b")
	var out bytes.Buffer
	logs.New(&out, "INFO").LogAttrs(a, slog.LevelInfo, "m")
	_ = b
	if !bytes.Contains(out.Bytes(), []byte(`"event":"a"`)) {
		t.Errorf("the first says %s", &out)
	}
}
