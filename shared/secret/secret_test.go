package secret_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"paidonce/shared/secret"
)

const name = "paidonce/test/webhook"

// manager is a Secrets Manager with one secret and a clock.
type manager struct {
	mu     sync.Mutex
	text   *string
	binary []byte
	err    error
	reads  int
	names  []string
	at     time.Time
}

func newManager(text string) *manager {
	return &manager{text: &text, at: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)}
}

func (m *manager) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	m.names = append(m.names, aws.ToString(in.SecretId))
	if m.err != nil {
		return nil, m.err
	}
	return &secretsmanager.GetSecretValueOutput{SecretString: m.text, SecretBinary: m.binary}, nil
}

func (m *manager) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// change sets the secret and the error that reading it meets, after a while.
func (m *manager) change(after time.Duration, text string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.text, m.err = m.at.Add(after), &text, err
}

var (
	errDown  = errors.New("service unavailable")
	errForm  = errors.New("has no line that begins with key=")
	fromForm = func(document []byte) (string, error) {
		value, ok := strings.CutPrefix(string(document), "key=")
		if !ok {
			return "", errForm
		}
		return value, nil
	}
)

func open(t *testing.T, m *manager) *secret.Secret[string] {
	t.Helper()
	s, err := secret.Open(t.Context(), m, name, fromForm, m.now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOpen(t *testing.T) {
	whole := "key=one"
	for _, c := range []struct {
		name    string
		text    *string
		binary  []byte
		err     error
		want    string
		wantErr error
	}{
		{"text", &whole, nil, nil, "one", nil},
		{"bytes", nil, []byte("key=two"), nil, "two", nil},
		{"text before bytes", &whole, []byte("key=two"), nil, "one", nil},
		{"cannot be read", &whole, nil, errDown, "", errDown},
		{"not of the form", aws.String("hunter2"), nil, nil, "", errForm},
		{"bytes not of the form", nil, []byte("hunter2"), nil, "", errForm},
		{"empty", aws.String(""), nil, nil, "", errForm},
		{"empty text does not fall back on bytes", aws.String(""), []byte("key=two"), nil, "", errForm},
		{"neither text nor bytes", nil, nil, nil, "", errForm},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newManager("")
			m.text, m.binary, m.err = c.text, c.binary, c.err
			s, err := secret.Open(t.Context(), m, name, fromForm, m.now)
			if !errors.Is(err, c.wantErr) {
				t.Fatalf("got error %v, want %v", err, c.wantErr)
			}
			if m.reads != 1 || m.names[0] != name {
				t.Errorf("read %q, want %s once", m.names, name)
			}
			if err != nil {
				if s != nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("got %v and error %q, want nothing and an error that names the secret and hides its value", s, err)
				}
				return
			}
			if got := s.Value(t.Context()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// step is one thing that happens to a secret, and what is to be seen then.
type step struct {
	after   time.Duration // since the step before
	text    string        // of the secret in the service, from now on
	err     error         // that the service answers with, from now on
	refresh bool          // ask for a refresh; else for the value

	want     string
	wantRead bool // the service was asked
	wantOK   bool // a refresh says that it read a value
}

func TestLifetime(t *testing.T) {
	const lifetime, pause = 5 * time.Minute, time.Minute
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"a value is kept for five minutes", []step{
			{after: 0, text: "key=b", want: "a"},
			{after: lifetime - 1, text: "key=b", want: "a"},
			{after: 1, text: "key=b", want: "b", wantRead: true},
			{after: lifetime - 1, text: "key=c", want: "b"},
			{after: 1, text: "key=c", want: "c", wantRead: true},
		}},
		{"the last good value serves, with one try a minute", []step{
			{after: lifetime, text: "key=b", err: errDown, want: "a", wantRead: true},
			{after: 0, text: "key=b", want: "a"},
			{after: pause - 1, text: "key=b", err: errDown, want: "a"},
			{after: 1, text: "key=b", err: errDown, want: "a", wantRead: true},
			{after: pause, text: "key=b", want: "b", wantRead: true},
			{after: lifetime - 1, text: "key=c", want: "b"},
		}},
		{"a value that cannot be parsed does not replace a good one", []step{
			{after: lifetime, text: "nonsense", want: "a", wantRead: true},
			{after: pause, text: "key=b", want: "b", wantRead: true},
		}},
		{"a refresh waits a minute after the first read", []step{
			{after: pause - 1, text: "key=b", refresh: true, want: "a"},
			{after: 1, text: "key=b", refresh: true, want: "b", wantRead: true, wantOK: true},
			{after: 0, text: "key=c", want: "b"},
		}},
		{"a refresh comes once a minute, whether the last one failed or not", []step{
			{after: pause, text: "key=b", err: errDown, refresh: true, want: "a", wantRead: true},
			{after: pause - 1, text: "key=b", refresh: true, want: "a"},
			{after: 1, text: "nonsense", refresh: true, want: "a", wantRead: true},
			{after: pause - 1, text: "key=b", refresh: true, want: "a"},
			{after: 1, text: "key=b", refresh: true, want: "b", wantRead: true, wantOK: true},
			{after: pause - 1, text: "key=c", refresh: true, want: "b"},
		}},
		{"a refresh that finds the same is a read too", []step{
			{after: pause, text: "key=a", refresh: true, want: "a", wantRead: true, wantOK: true},
		}},
		{"a refresh starts the five minutes again", []step{
			{after: 4 * pause, text: "key=b", refresh: true, want: "b", wantRead: true, wantOK: true},
			{after: lifetime - 1, text: "key=c", want: "b"},
			{after: 1, text: "key=c", want: "c", wantRead: true},
		}},
		{"a refresh and an expiry share the one try a minute", []step{
			{after: lifetime, text: "key=b", err: errDown, want: "a", wantRead: true},
			{after: pause - 1, text: "key=b", refresh: true, want: "a"},
			{after: 1, text: "key=b", err: errDown, refresh: true, want: "a", wantRead: true},
			{after: pause - 1, text: "key=b", want: "a"},
			{after: 1, text: "key=b", want: "b", wantRead: true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newManager("key=a")
			s := open(t, m)
			for i, step := range c.steps {
				m.change(step.after, step.text, step.err)
				reads, ok := m.reads, false
				var got string
				if step.refresh {
					got, ok = s.Refresh(t.Context())
				} else {
					got = s.Value(t.Context())
				}
				if got != step.want || ok != step.wantOK || m.reads-reads > 1 || (m.reads > reads) != step.wantRead {
					t.Fatalf("step %d: got %q, %t with %d reads, want %q, %t, read %t",
						i+1, got, ok, m.reads-reads, step.want, step.wantOK, step.wantRead)
				}
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	m := newManager("key=a")
	s := open(t, m)
	m.change(time.Hour, "key=b", nil)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			got := "b"
			if i%2 == 0 {
				got, _ = s.Refresh(t.Context())
			} else {
				got = s.Value(t.Context())
			}
			if got != "b" {
				t.Errorf("got %q, want b", got)
			}
		})
	}
	wg.Wait()
	if m.reads != 2 {
		t.Errorf("%d reads, want the first and one more", m.reads)
	}
}

func TestAnotherRefreshPause(t *testing.T) {
	m := newManager("key=a")
	s := open(t, m).WithRefreshPause(time.Second)
	m.change(time.Second, "key=b", nil)
	if got, ok := s.Refresh(t.Context()); got != "b" || !ok {
		t.Errorf("got %q, %t after a second", got, ok)
	}
	m.change(time.Second-1, "key=c", nil)
	if got, ok := s.Refresh(t.Context()); got != "b" || ok {
		t.Errorf("got %q, %t before the next", got, ok)
	}
}
