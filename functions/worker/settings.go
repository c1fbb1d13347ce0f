package main

import "time"

// settings is the function's environment; template.yaml says what each is for.
type settings struct {
	TableName       string        `env:"TABLE_NAME,notEmpty"`
	MaxReceiveCount int           `env:"MAX_RECEIVE_COUNT,notEmpty"`
	AcceptOffers    bool          `env:"ACCEPT_OFFERS,notEmpty"`
	FulfilWithin    time.Duration `env:"FULFIL_WITHIN,notEmpty"`
	UnknownOrders   string        `env:"UNKNOWN_ORDERS,notEmpty"`
	StackName       string        `env:"STACK_NAME,notEmpty"`
	RazorpayAPIURL  string        `env:"RAZORPAY_API_URL,notEmpty"`
	RazorpayKeyName string        `env:"RAZORPAY_API_KEY_SECRET_NAME,notEmpty"`
	AttemptTimeout  time.Duration `env:"ATTEMPT_TIMEOUT,notEmpty"`
	RetryMinute     time.Duration `env:"RETRY_MINUTE,notEmpty"`
	LogLevel        string        `env:"LOG_LEVEL"`
}
