package main

import (
	"time"

	"paidonce/shared/advance"
)

// settings is the function's environment; template.yaml says what each is for.
type settings struct {
	advance.Settings
	TableName       string        `env:"TABLE_NAME,notEmpty"`
	EventsQueueURL  string        `env:"EVENTS_QUEUE_URL,notEmpty"`
	StackName       string        `env:"STACK_NAME,notEmpty"`
	RazorpayAPIURL  string        `env:"RAZORPAY_API_URL,notEmpty"`
	RazorpayKeyName string        `env:"RAZORPAY_API_KEY_SECRET_NAME,notEmpty"`
	AttemptTimeout  time.Duration `env:"ATTEMPT_TIMEOUT,notEmpty"`
	LogLevel        string        `env:"LOG_LEVEL"`
}
