// Package logs writes structured JSON lines that hold nothing they should not. Attributes pass by an allow-list: one
// that is not on it keeps its name and loses its value. One that is on it shows a single value: a struct or a map
// could hold anything.
package logs

import (
	"io"
	"log/slog"
	"reflect"
	"strings"
)

// allowed are the attributes whose values may be written: ids, counts, statuses, and sentences of our own.
var allowed = map[string]bool{
	slog.TimeKey: true, slog.LevelKey: true, slog.MessageKey: true,
	"event": true, "event_type": true, "order": true, "payment": true, "refund": true, "refund_request": true,
	"duplicate": true, "resent": true, "bytes": true, "mode": true, "verified_by": true, "message_id": true, "receive_count": true,
	"announcement": true, "matched": true, "missing_webhook": true, "stuck": true, "amount_mismatch": true, "unknown_order": true,
	"refund_unknown": true, "unreadable": true,
	"part": true, "item": true, "done": true, "failed": true, "finished": true, "waiting": true,
	"request_id": true, "route": true, "status": true, "outcome": true, "took_ms": true, "error": true, "stack": true,
	"invocation": true, "gateway": true, "call": true, "attempts": true, "late_s": true,
	"parts": true, "overdue": true,
}

var redacted = slog.StringValue("REDACTED")

// New returns a logger that writes JSON lines to w. Level is DEBUG, INFO, WARN or ERROR; anything else is INFO.
func New(w io.Writer, level string) *slog.Logger {
	var min slog.Level
	if err := min.UnmarshalText([]byte(strings.ToUpper(level))); err != nil {
		min = slog.LevelInfo
	}
	return slog.New(correlating{slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level: min,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) > 0 || !allowed[a.Key] {
				return slog.Attr{Key: a.Key, Value: redacted}
			}
			return slog.Attr{Key: a.Key, Value: single(a.Value)}
		},
	})})
}

// single is v if it is one value: text, a number, a truth value, a time, or an error, of which only the text is shown.
func single(v slog.Value) slog.Value {
	if v.Kind() != slog.KindAny {
		return v
	}
	switch one := v.Any().(type) {
	case nil, slog.Level:
		return v
	case error:
		return slog.AnyValue(struct{ error }{one}) // hides every other method, such as MarshalJSON
	}
	switch r := reflect.ValueOf(v.Any()); r.Kind() { // of named types, such as payment.Status
	case reflect.String:
		return slog.StringValue(r.String())
	case reflect.Bool:
		return slog.BoolValue(r.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return slog.Int64Value(r.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return slog.Uint64Value(r.Uint())
	}
	return redacted
}
