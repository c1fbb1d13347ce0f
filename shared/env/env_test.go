package env_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/env"
)

// settings has a field of every form that functions use.
type settings struct {
	TableName      string        `env:"TEST_TABLE_NAME,notEmpty"`
	AcceptOffers   bool          `env:"TEST_ACCEPT_OFFERS,notEmpty"`
	RetentionDays  int           `env:"TEST_RETENTION_DAYS,notEmpty"`
	AttemptTimeout time.Duration `env:"TEST_ATTEMPT_TIMEOUT,notEmpty"`
	LogLevel       string        `env:"TEST_LOG_LEVEL"`
}

// unset stands for a variable that is not there at all.
const unset = "(unset)"

func TestLoad(t *testing.T) {
	whole := map[string]string{
		"TEST_TABLE_NAME": "orders", "TEST_ACCEPT_OFFERS": "true", "TEST_RETENTION_DAYS": "90",
		"TEST_ATTEMPT_TIMEOUT": "700ms", "TEST_LOG_LEVEL": "WARN",
	}
	for _, c := range []struct {
		name    string
		change  map[string]string
		want    settings
		wantErr []string // each is in the error's text; none: no error
	}{
		{"everything", nil, settings{"orders", true, 90, 700 * time.Millisecond, "WARN"}, nil},
		{"a duration of several units", map[string]string{"TEST_ATTEMPT_TIMEOUT": "1m30s"}, settings{"orders", true, 90, 90 * time.Second, "WARN"}, nil},
		{"an optional one is missing", map[string]string{"TEST_LOG_LEVEL": unset}, settings{"orders", true, 90, 700 * time.Millisecond, ""}, nil},
		{"an optional one is empty", map[string]string{"TEST_LOG_LEVEL": ""}, settings{"orders", true, 90, 700 * time.Millisecond, ""}, nil},
		{"one is missing", map[string]string{"TEST_TABLE_NAME": unset}, settings{}, []string{"TEST_TABLE_NAME"}},
		{"one is empty", map[string]string{"TEST_TABLE_NAME": ""}, settings{}, []string{"TEST_TABLE_NAME"}},
		{"a switch is missing", map[string]string{"TEST_ACCEPT_OFFERS": unset}, settings{}, []string{"TEST_ACCEPT_OFFERS"}},
		{"a number is empty", map[string]string{"TEST_RETENTION_DAYS": ""}, settings{}, []string{"TEST_RETENTION_DAYS"}},
		{"several are missing, all are named", map[string]string{"TEST_TABLE_NAME": unset, "TEST_ATTEMPT_TIMEOUT": unset}, settings{},
			[]string{"TEST_TABLE_NAME", "TEST_ATTEMPT_TIMEOUT"}},
		{"a duration without unit", map[string]string{"TEST_ATTEMPT_TIMEOUT": "700"}, settings{}, []string{"AttemptTimeout", "missing unit"}},
		{"a duration in words", map[string]string{"TEST_ATTEMPT_TIMEOUT": "soon"}, settings{}, []string{"AttemptTimeout"}},
		{"a number in words", map[string]string{"TEST_RETENTION_DAYS": "many"}, settings{}, []string{"RetentionDays"}},
		{"a switch that is neither", map[string]string{"TEST_ACCEPT_OFFERS": "yes please"}, settings{}, []string{"AcceptOffers"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range whole {
				if changed, ok := c.change[name]; ok {
					value = changed
				}
				t.Setenv(name, value) // also puts back what was there
				if value == unset {
					if err := os.Unsetenv(name); err != nil {
						t.Fatal(err)
					}
				}
			}
			got, err := env.Load[settings]()
			if (err != nil) != (len(c.wantErr) > 0) {
				t.Fatalf("got error %v, want one with %q", err, c.wantErr)
			}
			if err == nil {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
			for _, part := range c.wantErr {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestMust(t *testing.T) {
	if got := env.Must("value", nil); got != "value" {
		t.Errorf("got %q, want the value", got)
	}

	// Ending the process is tested in a process of its own: this one, run again.
	const again = "TEST_MUST_END"
	if os.Getenv(again) != "" {
		env.Must("value", errors.New("no table"))
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestMust$")
	child.Env = append(os.Environ(), again+"=1")
	out, err := child.CombinedOutput()
	ended := new(exec.ExitError)
	if !errors.As(err, &ended) || ended.ExitCode() != 1 || !strings.Contains(string(out), "no table") {
		t.Errorf("ended with %v, want exit status 1 and the error: %s", err, out)
	}
}
