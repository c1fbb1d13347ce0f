// Package logs writes structured JSON lines that hold nothing they should not. Attributes pass by an allow-list: one
// that is not on it keeps its name and loses its value.
package logs

import (
	"io"
	"log/slog"
	"strings"
)

// allowed are the attributes whose values may be written: ids, counts, statuses, and sentences of our own.
var allowed = map[string]bool{
	slog.TimeKey: true, slog.LevelKey: true, slog.MessageKey: true,
	"attempt": true, "batch": true, "bytes": true, "duplicate": true, "event": true, "event_type": true,
	"failed": true, "gateway": true, "message_id": true, "mode": true, "order": true, "outcome": true,
	"receive_count": true, "request_id": true, "resent": true, "status": true, "verdict": true, "verified_by": true,
	"error": true, "took_ms": true, "version": true, "gateway_order": true, "route": true,
}

// New returns a logger that writes JSON lines to w. Level is DEBUG, INFO, WARN or ERROR; anything else is INFO.
func New(w io.Writer, level string) *slog.Logger {
	var min slog.Level
	if err := min.UnmarshalText([]byte(strings.ToUpper(level))); err != nil {
		min = slog.LevelInfo
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level: min,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) > 0 || !allowed[a.Key] {
				return slog.String(a.Key, "REDACTED")
			}
			return a
		},
	}))
}
