package main

import (
	"context"

	"bytes"
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
)

const secretKey = "secret-key-of-the-tests"

func testConfig() aws.Config {
	return aws.Config{
		Region:      "ap-south-1",
		Credentials: credentials.NewStaticCredentialsProvider("AKIASAMPLE", secretKey, "session-token-of-the-tests"),
	}
}

// answer is what the stub of the API answers one call.
type answer struct {
	status int
	body   string
}

// stubAPI answers calls by method and path, and remembers their bodies. It takes none whose signature is wrong.
type stubAPI struct {
	*httptest.Server
	answers map[string]answer
	bodies  map[string]string
}

func newStubAPI(t *testing.T, answers map[string]answer) *stubAPI {
	t.Helper()
	s := &stubAPI{answers: answers, bodies: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if want := signature(t, r, body); r.Header.Get("Authorization") != want {
			t.Errorf("%s %s is signed\n%s, want\n%s", r.Method, r.URL, r.Header.Get("Authorization"), want)
		}
		call := r.Method + " " + r.URL.Path
		s.bodies[call] = string(body)
		a, known := s.answers[call]
		if !known {
			a = answer{http.StatusNotFound, `{"error":"not found"}`}
		}
		w.WriteHeader(a.status)
		io.WriteString(w, a.body)
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
	who, err := testConfig().Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(t.Context(), who, again, hex.EncodeToString(digest[:]), "execute-api", "ap-south-1", at); err != nil {
		t.Fatal(err)
	}
	return again.Header.Get("Authorization")
}

func (s *stubAPI) target() target {
	return target{name: "the test's stack", flags: " --stack test", api: apiClient{s.URL, testConfig()}}
}

// finds is the connector that finds a target.
func finds(on target) connector {
	return func(context.Context, targetOptions) (target, error) { return on, nil }
}
