package logs

import (
	"context"
	"log/slog"
	"slices"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

type contextKey struct{}

// With returns a context whose lines carry the attributes, whoever writes them: a call of the gateway names the order that it was
// made for. A line that has an attribute of the same name keeps its own.
func With(ctx context.Context, attributes ...slog.Attr) context.Context {
	return context.WithValue(ctx, contextKey{}, append(slices.Clip(carried(ctx)), attributes...))
}

func carried(ctx context.Context) []slog.Attr {
	attributes, _ := ctx.Value(contextKey{}).([]slog.Attr)
	return attributes
}

// correlating adds what a line's context carries, and the id of the function's invocation, as Lambda's own lines name it.
type correlating struct{ slog.Handler }

// Handle implements [slog.Handler].
func (c correlating) Handle(ctx context.Context, r slog.Record) error {
	own := map[string]bool{}
	r.Attrs(func(a slog.Attr) bool {
		own[a.Key] = true
		return true
	})
	attributes := carried(ctx)
	if invocation, ok := lambdacontext.FromContext(ctx); ok {
		attributes = append(slices.Clip(attributes), slog.String("invocation", invocation.AwsRequestID))
	}
	for i, a := range attributes {
		later := func(other slog.Attr) bool { return other.Key == a.Key }
		if !own[a.Key] && !slices.ContainsFunc(attributes[i+1:], later) { // the innermost counts
			r.AddAttrs(a)
		}
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (c correlating) WithAttrs(attributes []slog.Attr) slog.Handler {
	return correlating{c.Handler.WithAttrs(attributes)}
}

// WithGroup implements [slog.Handler].
func (c correlating) WithGroup(name string) slog.Handler {
	return correlating{c.Handler.WithGroup(name)}
}
