// Package env reads a function's environment into a struct and ends the process when something it needs is missing.
package env

import (
	"fmt"
	"log"

	"github.com/caarlos0/env/v11"
)

// Load fills a T from the environment, by the tags of its fields: `env:"TABLE_NAME,notEmpty"`. Durations are written
// with their unit ("700ms").
func Load[T any]() (T, error) {
	settings, err := env.ParseAs[T]()
	if err != nil {
		return settings, fmt.Errorf("env: %w", err)
	}
	return settings, nil
}

// Must returns v, or ends the process with err: a function that cannot start must not answer. Lambda then answers 5xx
// in its place and the caller comes again.
func Must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
