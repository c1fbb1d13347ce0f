package main

import "time"

// settings is the function's environment; template.yaml says what each is for.
type settings struct {
	TableName      string        `env:"TABLE_NAME,notEmpty"`
	EventsQueueURL string        `env:"EVENTS_QUEUE_URL,notEmpty"`
	AttemptTimeout time.Duration `env:"ATTEMPT_TIMEOUT,notEmpty"`
	RetryMinute    time.Duration `env:"RETRY_MINUTE,notEmpty"`
	LogLevel       string        `env:"LOG_LEVEL"`
}
