// Package telemetry tells a function's operator what it does: a wide log line for each thing, and the metrics of it.
package telemetry

import (
	"context"
	"io"
	"log/slog"
	"time"

	"paidonce/shared/logs"
	"paidonce/shared/metrics"
	"paidonce/shared/payment"
)

// Telemetry is where a function writes both to.
type Telemetry struct {
	Log     *slog.Logger
	Metrics *metrics.Writer
}

// New returns the telemetry of a function of the stack. level is the least severe level of lines that are written, see [logs.New];
// metrics are written at any.
func New(out io.Writer, level, stack string, now func() time.Time) Telemetry {
	return Telemetry{logs.New(out, level), metrics.New(out, stack, now)}
}

// GatewayCall tells of a call of a gateway's API.
func (t Telemetry) GatewayCall(ctx context.Context, c payment.Call) {
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("gateway", c.Gateway), slog.String("call", c.Name), slog.Int("status", c.Status),
		slog.Int("attempts", c.Attempts), slog.Int64("took_ms", c.Took.Milliseconds()),
	}
	if c.Err != nil {
		attributes = append(attributes, slog.String("error", c.Err.Error()))
	}
	if c.Failed() {
		level = slog.LevelWarn // what comes of it, whoever made the call knows better
		t.Metrics.Put(metrics.GatewayErrors.Add(1))
	}
	t.Log.LogAttrs(ctx, level, "gateway call", attributes...)
}

// Committed tells of a change of an order that was written: a line for each hold that appeared, since somebody has to look, and the
// metrics of what it brought.
func (t Telemetry) Committed(ctx context.Context, out payment.Outcome) {
	var samples []metrics.Sample
	for _, e := range out.Effects {
		switch e := e.(type) {
		case payment.Fulfilment:
			samples = append(samples, metrics.Fulfilled.Add(1))
		case payment.Notification:
			if e.Hold.Reason != "" {
				samples = append(samples, metrics.Held.Add(1).By(string(e.Hold.Reason)))
				t.Log.LogAttrs(ctx, slog.LevelWarn, "held", slog.String("order", out.Order.ID), slog.String("outcome", e.Hold.String()))
			}
		}
	}
	t.Metrics.Put(samples...)
}
