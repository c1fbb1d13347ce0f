package main

import (
	"testing"

	"paidonce/shared/env"
)

func TestTheReturnURLInTheEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"STACK_NAME": "stack", "TABLE_NAME": "table", "RAZORPAY_API_URL": "https://api.example", "RAZORPAY_API_KEY_SECRET_NAME": "key", "ATTEMPT_TIMEOUT": "700ms",
		"ACCEPT_OFFERS": "false", "FULFIL_WITHIN": "0h", "CONFIRM_CAPTURE": "never", "RETRY_MINUTE": "1m",
	} {
		t.Setenv(name, value)
	}
	for value, want := range map[string]struct{ set, starts bool }{
		"":                           {false, true},
		"https://shop.example/?from": {true, true},
		"http://shop.example/":       {false, false},
	} {
		t.Setenv("RETURN_URL", value)
		cfg, err := env.Load[settings]()
		if (err == nil) != want.starts || cfg.ReturnURL.set() != want.set {
			t.Errorf("%q: set %t, %v; want %t and started %t", value, cfg.ReturnURL.set(), err, want.set, want.starts)
		}
	}
}
