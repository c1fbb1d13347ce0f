package main

import "time"

// settings is the function's environment; template.yaml says what each is for.
type settings struct {
	TableName      string        `env:"TABLE_NAME,notEmpty"`
	BusName        string        `env:"BUS_NAME,notEmpty"`
	AttemptTimeout time.Duration `env:"ATTEMPT_TIMEOUT,notEmpty"`
	LogLevel       string        `env:"LOG_LEVEL"`
}
