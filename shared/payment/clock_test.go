package payment_test

import (
	"testing"
	"time"
)

func fixed(at time.Time) func() time.Time { return func() time.Time { return at } }

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
