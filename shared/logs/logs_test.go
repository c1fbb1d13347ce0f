package logs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/logs"
)

// What must never reach a log.
const (
	email     = "asha.rao@example.com"
	phone     = "+919876543210"
	card      = "4111111111111111"
	signature = "5f2c9e01d4b7a6"
	password  = "whsec_do_not_print"
)

var private = []string{email, phone, card, signature, password}

type customer struct {
	Email string
	Phone string
}

// talkative is an error that would show more as JSON than as text.
type talkative struct{ Item string }

func (talkative) Error() string { return "write refused" }

func (e talkative) MarshalJSON() ([]byte, error) { return json.Marshal(e.Item) }

type broken struct{}

func (broken) Error() string { panic("broken") }

// valuer resolves to whatever it holds.
type valuer struct{ v slog.Value }

func (v valuer) LogValue() slog.Value { return v.v }

type status string

type count uint16

// line logs once and returns the line that came out, without its time.
func line(t *testing.T, write func(*slog.Logger)) map[string]any {
	t.Helper()
	var out bytes.Buffer
	write(logs.New(&out, "DEBUG"))
	for _, p := range private {
		if strings.Contains(out.String(), p) {
			t.Errorf("%q is in the log: %s", p, &out)
		}
	}
	got := map[string]any{}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("not one line of JSON: %v: %s", err, &out)
	}
	if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(got["time"])); err != nil {
		t.Error(err)
	}
	delete(got, "time")
	return got
}

func TestRedaction(t *testing.T) {
	type attributes = map[string]any
	for _, c := range []struct {
		name  string
		write func(*slog.Logger)
		want  attributes
	}{
		{"unknown keys lose their values", func(l *slog.Logger) {
			l.Info("m", "email", email, "contact", phone, "card", card, "x-razorpay-signature", signature, "secret", password)
		}, attributes{"email": "REDACTED", "contact": "REDACTED", "card": "REDACTED", "x-razorpay-signature": "REDACTED", "secret": "REDACTED"}},
		{"whatever their type", func(l *slog.Logger) {
			l.Info("m", "a", []byte(password), "b", []string{email}, "c", map[string]string{"x": card},
				"d", customer{email, phone}, "e", errors.New(password), "f", 4111111111111111, "g", time.Duration(9876543210))
		}, attributes{"a": "REDACTED", "b": "REDACTED", "c": "REDACTED", "d": "REDACTED", "e": "REDACTED", "f": "REDACTED", "g": "REDACTED"}},
		{"a value without a key", func(l *slog.Logger) {
			args := []any{password} // hidden from vet, which would refuse it
			l.Info("m", args...)
		}, attributes{"!BADKEY": "REDACTED"}},
		{"keys count exactly as they are written", func(l *slog.Logger) { l.Info("m", "Order", email, "order ", email) },
			attributes{"Order": "REDACTED", "order ": "REDACTED"}},
		{"With", func(l *slog.Logger) { l.With("email", email, "order", "o1").Info("m") },
			attributes{"email": "REDACTED", "order": "o1"}},
		{"a group hides allowed keys too", func(l *slog.Logger) {
			l.Info("m", slog.Group("customer", "email", email, "order", phone, slog.Group("deep", "error", card)))
		}, attributes{"customer": attributes{"email": "REDACTED", "order": "REDACTED", "deep": attributes{"error": "REDACTED"}}}},
		{"a group with an allowed name", func(l *slog.Logger) { l.Info("m", slog.Group("order", "order", email)) },
			attributes{"order": attributes{"order": "REDACTED"}}},
		{"a group without a name is no group", func(l *slog.Logger) { l.Info("m", slog.Group("", "email", email, "order", "o1")) },
			attributes{"email": "REDACTED", "order": "o1"}},
		{"WithGroup", func(l *slog.Logger) { l.WithGroup("g").With("order", email).Info("m", "error", phone) },
			attributes{"g": attributes{"order": "REDACTED", "error": "REDACTED"}}},
		{"a group in With", func(l *slog.Logger) { l.With(slog.Group("g", "order", email)).Info("m") },
			attributes{"g": attributes{"order": "REDACTED"}}},

		{"a struct under an allowed key", func(l *slog.Logger) { l.Info("m", "error", customer{email, phone}) }, attributes{"error": "REDACTED"}},
		{"a pointer to one", func(l *slog.Logger) { l.Info("m", "event", &customer{email, phone}) }, attributes{"event": "REDACTED"}},
		{"a map", func(l *slog.Logger) { l.Info("m", "order", map[string]any{"email": email}) }, attributes{"order": "REDACTED"}},
		{"a slice", func(l *slog.Logger) { l.Info("m", "batch", []any{email}) }, attributes{"batch": "REDACTED"}},
		{"bytes", func(l *slog.Logger) { l.Info("m", "bytes", []byte(password)) }, attributes{"bytes": "REDACTED"}},
		{"raw JSON", func(l *slog.Logger) { l.Info("m", "event", json.RawMessage(`{"email":"`+email+`"}`)) }, attributes{"event": "REDACTED"}},
		{"a struct in With", func(l *slog.Logger) { l.With("error", customer{email, phone}).Info("m") }, attributes{"error": "REDACTED"}},
		{"a valuer that holds a struct", func(l *slog.Logger) {
			l.Info("m", "order", valuer{slog.AnyValue(customer{email, phone})})
		}, attributes{"order": "REDACTED"}},
		{"a valuer that holds a group", func(l *slog.Logger) {
			l.Info("m", "order", valuer{slog.GroupValue(slog.String("order", email))})
		}, attributes{"order": attributes{"order": "REDACTED"}}},
		{"an error shows its text and no more", func(l *slog.Logger) {
			l.Info("m", "error", fmt.Errorf("commit order o1: %w", talkative{email}), "outcome", talkative{card})
		}, attributes{"error": "commit order o1: write refused", "outcome": "write refused"}},
		{"a nil error", func(l *slog.Logger) { l.Info("m", "error", error(nil)) }, attributes{"error": nil}},
		{"an error that panics does not stop the line", func(l *slog.Logger) { l.Info("m", "error", broken{}, "order", "o1") },
			attributes{"error": "!PANIC: broken", "order": "o1"}},

		{"single values under allowed keys", func(l *slog.Logger) {
			l.Info("m", "order", "o1", "bytes", 12, "duplicate", true, "took_ms", int64(7), "waiting", uint64(3),
				"status", status("paid"), "receive_count", count(2), "outcome", valuer{slog.StringValue("applied")})
		}, attributes{"order": "o1", "bytes": 12.0, "duplicate": true, "took_ms": 7.0, "waiting": 3.0, "status": "paid", "receive_count": 2.0, "outcome": "applied"}},
		{"durations and times", func(l *slog.Logger) {
			l.Info("m", "took_ms", 3*time.Millisecond, "event", time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC))
		}, attributes{"took_ms": 3e6, "event": "2026-11-30T10:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want["level"], c.want["msg"] = "INFO", "m"
			if diff := cmp.Diff(c.want, line(t, c.write)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLevel(t *testing.T) {
	all := []string{"DEBUG", "INFO", "WARN", "ERROR"}
	for _, c := range []struct {
		level string
		want  []string
	}{
		{"DEBUG", all}, {"INFO", all[1:]}, {"WARN", all[2:]}, {"ERROR", all[3:]},
		{"warn", all[2:]}, {"", all[1:]}, {"LOUD", all[1:]},
	} {
		t.Run(c.level, func(t *testing.T) {
			var out bytes.Buffer
			l := logs.New(&out, c.level)
			for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
				l.Log(t.Context(), level, "m")
			}
			var got []string
			for d := json.NewDecoder(&out); d.More(); {
				var one struct{ Level string }
				if err := d.Decode(&one); err != nil {
					t.Fatal(err)
				}
				got = append(got, one.Level)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
