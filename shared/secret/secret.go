// Package secret reads secrets from AWS Secrets Manager by name and keeps them for a while.
package secret

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

const (
	// lifetime is how long a value is used before it is read again, so that a revoked secret goes within it. At one
	// read per five minutes, 100 warm functions cost about $4 a month ($0.05 per 10,000 calls).
	lifetime = 5 * time.Minute
	// refreshPause is the least time between two reads that unmatched signatures ask for: anyone can send rubbish.
	refreshPause = time.Minute
)

// client is what reading needs of a *secretsmanager.Client.
type client interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// Secret is one secret, parsed. Its methods may be called concurrently.
type Secret[T any] struct {
	client client
	name   string
	parse  func([]byte) (T, error)
	now    func() time.Time
	pause  time.Duration // between two reads that unmatched signatures ask for

	mu        sync.Mutex
	value     T
	fetchedAt time.Time // zero: never
	askedAt   time.Time
}

// Open reads the named secret and fails if it cannot be read or parse refuses it: a function without its secret must
// not start. The error holds nothing of the value, given that parse's errors don't.
func Open[T any](ctx context.Context, c client, name string, parse func([]byte) (T, error), now func() time.Time) (*Secret[T], error) {
	s := &Secret[T]{client: c, name: name, parse: parse, now: now, pause: refreshPause}
	if err := s.fetch(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// WithRefreshPause sets how long after a read [Secret.Refresh] reads again, instead of a minute, before the secret is in use. It
// returns the secret.
func (s *Secret[T]) WithRefreshPause(pause time.Duration) *Secret[T] {
	s.pause = pause
	return s
}

// Value returns the secret, read again if it is older than five minutes. If that fails the last good value serves.
func (s *Secret[T]) Value(ctx context.Context) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.Sub(s.fetchedAt) >= lifetime && now.Sub(s.askedAt) >= refreshPause {
		if err := s.fetch(ctx); err != nil {
			// The last good value serves; the next call after the pause tries again.
			slog.WarnContext(ctx, "secret not read again", "error", err.Error())
		}
	}
	return s.value
}

// Refresh reads the secret again because the one at hand matched nothing, at most once in a pause of a minute. It reports whether
// it read a value.
func (s *Secret[T]) Refresh(ctx context.Context) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Sub(s.askedAt) < s.pause {
		return s.value, false
	}
	err := s.fetch(ctx)
	return s.value, err == nil
}

func (s *Secret[T]) fetch(ctx context.Context) error {
	s.askedAt = s.now()
	out, err := s.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &s.name})
	if err != nil {
		return fmt.Errorf("secret: read %s: %w", s.name, err)
	}
	document := []byte(aws.ToString(out.SecretString))
	if out.SecretString == nil {
		document = out.SecretBinary
	}
	value, err := s.parse(document)
	if err != nil {
		return fmt.Errorf("secret: %s: %w", s.name, err)
	}
	s.value, s.fetchedAt = value, s.askedAt
	return nil
}
