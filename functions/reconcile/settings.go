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
	BusName         string        `env:"BUS_NAME,notEmpty"`
	StackName       string        `env:"STACK_NAME,notEmpty"`
	UnknownOrders   string        `env:"UNKNOWN_ORDERS,notEmpty"`
	RazorpayAPIURL  string        `env:"RAZORPAY_API_URL,notEmpty"`
	RazorpayKeyName string        `env:"RAZORPAY_API_KEY_SECRET_NAME,notEmpty"`
	RazorpayAccount string        `env:"RAZORPAY_ACCOUNT_ID"`
	CallsPerSecond  int           `env:"GATEWAY_CALLS_PER_SECOND,notEmpty"`
	AttemptTimeout  time.Duration `env:"ATTEMPT_TIMEOUT,notEmpty"`
	LogLevel        string        `env:"LOG_LEVEL"`
}
