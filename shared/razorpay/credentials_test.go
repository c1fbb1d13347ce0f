package razorpay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

func TestParseSecrets(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     []Secret
	}{
		"one": {`{"test_current":"s1"}`, []Secret{{"test_current", "s1"}}},
		"all, in the order of trying": {
			`{"test_previous":"s4","test_current":"s3","live_previous":"s2","live_current":"s1"}`,
			[]Secret{{"live_current", "s1"}, {"live_previous", "s2"}, {"test_current", "s3"}, {"test_previous", "s4"}},
		},
		"rotation not begun": {
			`{"live_current":"s1","live_previous":"s1"}`, []Secret{{"live_current", "s1"}, {"live_previous", "s1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSecrets([]byte(test.document))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("secrets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseSecretsRefuses(t *testing.T) {
	for name, test := range map[string]struct{ document, names string }{
		"none":                {`{}`, "none is set"},
		"empty document":      {``, "not a JSON object"},
		"bare secret":         {`hunter2`, "not a JSON object"},
		"quoted secret":       {`"hunter2"`, "not a JSON object"},
		"array":               {`["hunter2"]`, "not a JSON object"},
		"cut off":             {`{"live_current":"hunter2"`, "not a JSON object"},
		"something after it":  {`{"live_current":"hunter2"} hunter2`, "not a JSON object"},
		"unknown label":       {`{"live_current":"hunter2","live_next":"hunter2"}`, "unknown label (a name that is not shown)"},
		"wrong way round":     {`{"hunter2":"live_current"}`, "unknown label (a name that is not shown)"},
		"a secret twice":      {`{"hunter2":"live_current","hunter2":"x"}`, "(a name that is not shown) is there twice"},
		"a secret of a list":  {`{"hunter2":["live_current"]}`, "(a name that is not shown) is not a string"},
		"a secret of nothing": {`{"hunter2":null}`, "(a name that is not shown) is not a string"},
		"label in upper case": {`{"LIVE_CURRENT":"hunter2"}`, "unknown label"},
		"empty value":         {`{"live_current":"","live_previous":"hunter2"}`, "live_current"},
		"blank value":         {`{"live_current":" \n","live_previous":"hunter2"}`, "live_current"},
		"number":              {`{"live_current":20001}`, "live_current"},
		"null":                {`{"live_current":null}`, "live_current"},
		"object":              {`{"live_current":{"value":"hunter2"}}`, "live_current"},
		"label twice":         {`{"live_current":"hunter2","live_current":"x"}`, "live_current"},
		"same in both modes":  {`{"live_previous":"hunter2","test_current":"hunter2"}`, "live_previous and test_current"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSecrets([]byte(test.document))
			if err == nil {
				t.Fatalf("no error, got %v", got)
			}
			if !strings.Contains(err.Error(), test.names) {
				t.Errorf("error %q does not say %q", err, test.names)
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "20001") {
				t.Errorf("error %q shows the secret", err)
			}
		})
	}
}

func TestModeOf(t *testing.T) {
	for label, want := range map[string]payment.Mode{
		"live_current": payment.Live, "live_previous": payment.Live, "test_current": payment.Test, "test_previous": payment.Test,
		"": "", "live": "", "live_": "", "live_next": "", "Live_current": "",
	} {
		if mode, ok := ModeOf(label); mode != want || ok != (want != "") {
			t.Errorf("ModeOf(%q) = %q, %t, want %q", label, mode, ok, want)
		}
	}
}

func TestParseKey(t *testing.T) {
	for document, want := range map[string]Key{
		`{"key_id":"rzp_test_1","key_secret":"s"}`: {ID: "rzp_test_1", Secret: "s", Mode: payment.Test},
		`{"key_secret":"s","key_id":"rzp_live_1"}`: {ID: "rzp_live_1", Secret: "s", Mode: payment.Live},
	} {
		got, err := ParseKey([]byte(document))
		if err != nil {
			t.Errorf("%s: %v", document, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: key (-want +got):\n%s", document, diff)
		}
	}
	for _, document := range []string{
		``, `null`, `hunter2`, `{}`, `{"key_id":"rzp_test_1"}`, `{"key_id":"rzp_test_1","key_secret":""}`,
		`{"key_id":"","key_secret":"hunter2"}`, `{"key_id":"rzp_demo_1","key_secret":"hunter2"}`,
		`{"key_id":"hunter2","key_secret":"rzp_test_1"}`, `{"key_id":"rzp_test_1","key_secret":1}`,
		`{"key_id":"rzp_test_1","key_secret":"hunter2","more":"x"}`,
	} {
		if _, err := ParseKey([]byte(document)); err == nil {
			t.Errorf("%s: no error", document)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the secret: %v", document, err)
		}
	}
}

// TestSecretsStayOutOfText tries the usual ways in which a value gets into a log line.
func TestSecretsStayOutOfText(t *testing.T) {
	secret := Secret{Label: "live_current", Value: "hunter2"}
	key := Key{ID: "rzp_test_1", Secret: "hunter2", Mode: payment.Test}
	var text strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&text, verb+verb+verb+"\n", secret, key, []Secret{secret})
	}
	logger := slog.New(slog.NewJSONHandler(&text, nil))
	logger.Info("x", "secret", secret, "key", key, "all", []Secret{secret})
	encoded, err := json.Marshal(map[string]any{"secret": secret, "key": key})
	if err != nil {
		t.Fatal(err)
	}
	text.Write(bytes.TrimSpace(encoded))
	if strings.Contains(text.String(), "hunter2") {
		t.Errorf("the secret shows:\n%s", &text)
	}
	if !strings.Contains(text.String(), "live_current") || !strings.Contains(text.String(), "rzp_test_1") {
		t.Errorf("neither label nor id shows:\n%s", &text)
	}
}
