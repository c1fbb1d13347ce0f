package main

import "time"

// settings is the function's environment; template.yaml says what each is for.
type settings struct {
	StackName          string        `env:"STACK_NAME,notEmpty"`
	TableName          string        `env:"TABLE_NAME,notEmpty"`
	EventsQueueURL     string        `env:"EVENTS_QUEUE_URL,notEmpty"`
	RazorpaySecretName string        `env:"RAZORPAY_WEBHOOK_SECRET_NAME,notEmpty"`
	AttemptTimeout     time.Duration `env:"ATTEMPT_TIMEOUT,notEmpty"`
	RetryMinute        time.Duration `env:"RETRY_MINUTE,notEmpty"`
	EventRetentionDays int           `env:"EVENT_RETENTION_DAYS,notEmpty"`
	LogLevel           string        `env:"LOG_LEVEL"`
}

func (s settings) eventRetention() time.Duration {
	return time.Duration(s.EventRetentionDays) * 24 * time.Hour
}
