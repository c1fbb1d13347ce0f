package awsclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/shared/awsclient"
)

const region = "ap-south-1"

// environment leaves the test nothing of this machine's own AWS settings.
func environment(t *testing.T, endpoint string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": region, "AWS_ENDPOINT_URL": endpoint,
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none,
	} {
		t.Setenv(name, value)
	}
}

// service answers SQS requests, after those that it hangs on.
type service struct {
	hangs    int64 // requests that get no answer
	status   int   // of the others
	requests atomic.Int64
	signed   atomic.Value // the Authorization of the last request
}

func (s *service) start(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.signed.Store(r.Header.Get("Authorization"))
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client hangs up
		if s.requests.Add(1) <= s.hangs {
			<-r.Context().Done() // until the client gives up
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(s.status)
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func send(ctx context.Context, cfg aws.Config) error {
	_, err := sqs.NewFromConfig(cfg).SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String("https://sqs.ap-south-1.amazonaws.com/123456789012/events"), MessageBody: aws.String("{}"),
	})
	return err
}

func TestConfig(t *testing.T) {
	const patient = 10 * time.Second // for attempts that are answered, however busy the machine is
	for _, c := range []struct {
		name           string
		service        *service
		attemptTimeout time.Duration
		maxAttempts    string // of the environment: it does not count
		wantRequests   int64
		wantErr        bool
	}{
		{"an answer", &service{status: 200}, patient, "", 1, false},
		{"the first attempt hangs, the second is answered", &service{hangs: 1, status: 200}, 500 * time.Millisecond, "", 2, false},
		{"both attempts hang", &service{hangs: 99}, 50 * time.Millisecond, "", 2, true},
		{"every attempt fails", &service{status: 503}, patient, "", 2, true},
		{"the environment asks for more attempts", &service{status: 503}, patient, "7", 2, true},
		{"what is refused is not sent again", &service{status: 400}, patient, "", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment(t, c.service.start(t))
			t.Setenv("AWS_MAX_ATTEMPTS", c.maxAttempts)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a test that would hang for ever
			defer cancel()
			cfg, err := awsclient.Config(ctx, c.attemptTimeout)
			if err != nil {
				t.Fatal(err)
			}
			err = send(ctx, cfg)
			if (err != nil) != c.wantErr || ctx.Err() != nil {
				t.Errorf("got error %v, want one: %t", err, c.wantErr)
			}
			if got := c.service.requests.Load(); got != c.wantRequests {
				t.Errorf("%d requests, want %d", got, c.wantRequests)
			}
			if signed, _ := c.service.signed.Load().(string); !strings.Contains(signed, "/"+region+"/sqs/") {
				t.Errorf("signed %q, want it for region %s", signed, region)
			}
		})
	}
}

func TestConfigThatCannotBeLoaded(t *testing.T) {
	environment(t, "http://127.0.0.1:1")
	t.Setenv("AWS_PROFILE", "missing")
	_, err := awsclient.Config(t.Context(), time.Second)
	if err == nil || !strings.HasPrefix(err.Error(), "awsclient: load configuration: ") || errors.Unwrap(err) == nil {
		t.Errorf("got error %v, want a wrapped one", err)
	}
}
