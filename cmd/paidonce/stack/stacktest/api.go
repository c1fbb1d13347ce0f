// Package stacktest has stacks for the tests of commands: a stub of the application's API, sample orders, and stacks on the local
// emulator.
package stacktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"paidonce/cmd/paidonce/stack"
)

// SecretKey is the AWS secret key of [Config]. Nothing may ever print it.
const SecretKey = "secret-key-of-the-tests"

// Config has AWS credentials that are of no use.
func Config() aws.Config {
	return aws.Config{
		Region:      "ap-south-1",
		Credentials: credentials.NewStaticCredentialsProvider("AKIASAMPLE", SecretKey, "session-token-of-the-tests"),
	}
}

// Answer is what the stub of the API answers one call.
type Answer struct {
	Status int
	Body   string
}

// API answers calls by method and path, and remembers their bodies. It takes none whose signature is wrong.
type API struct {
	*httptest.Server
	Answers map[string]Answer
	Bodies  map[string]string
}

// NewAPI starts an API with answers by method and path, as "GET /orders/o1". It is closed with the test.
func NewAPI(t *testing.T, answers map[string]Answer) *API {
	t.Helper()
	s := &API{Answers: answers, Bodies: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if want := signature(t, r, body); r.Header.Get("Authorization") != want {
			t.Errorf("%s %s is signed\n%s, want\n%s", r.Method, r.URL, r.Header.Get("Authorization"), want)
		}
		call := r.Method + " " + r.URL.Path
		s.Bodies[call] = string(body)
		a, known := s.Answers[call]
		if !known {
			a = Answer{http.StatusNotFound, `{"error":"not found"}`}
		}
		w.WriteHeader(a.Status)
		io.WriteString(w, a.Body)
	}))
	t.Cleanup(s.Close)
	return s
}

// signature is what the Authorization header must be.
func signature(t *testing.T, r *http.Request, body []byte) string {
	t.Helper()
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.String(), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType := r.Header.Get("Content-Type"); contentType != "" {
		again.Header.Set("Content-Type", contentType)
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Fatalf("unsigned: %v", err)
	}
	who, err := Config().Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(t.Context(), who, again, hex.EncodeToString(digest[:]), "execute-api", "ap-south-1", at); err != nil {
		t.Fatal(err)
	}
	return again.Header.Get("Authorization")
}

// Target is a stack that has this API, and nothing else.
func (s *API) Target() stack.Target {
	return stack.Target{Name: "the test's stack", Flags: " --stack test", API: stack.Client{URL: s.URL, Config: Config()}}
}

// Finds is the connector that finds a target.
func Finds(on stack.Target) stack.Connector {
	return func(context.Context, stack.Options) (stack.Target, error) { return on, nil }
}
