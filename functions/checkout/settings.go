package main

import (
	"time"

	"paidonce/shared/advance"
)

// reserve is the time before the function's own end at which a lost race is not run again.
const reserve = 2 * time.Second

// settings is the function's environment; template.yaml says what each is for.
type settings struct {
	advance.Settings
	StackName       string        `env:"STACK_NAME,notEmpty"`
	TableName       string        `env:"TABLE_NAME,notEmpty"`
	RazorpayAPIURL  string        `env:"RAZORPAY_API_URL,notEmpty"`
	RazorpayKeyName string        `env:"RAZORPAY_API_KEY_SECRET_NAME,notEmpty"`
	ReturnURL       returnURL     `env:"RETURN_URL"`
	AttemptTimeout  time.Duration `env:"ATTEMPT_TIMEOUT,notEmpty"`
	LogLevel        string        `env:"LOG_LEVEL"`
}
