package advance

import (
	"time"

	"paidonce/shared/payment"
)

// Settings are the shop's choices, as a function that decides takes them from its environment. All such functions must have
// the same.
type Settings struct {
	AcceptOffers   bool            `env:"ACCEPT_OFFERS,notEmpty"`
	FulfilWithin   time.Duration   `env:"FULFIL_WITHIN,notEmpty"`
	ConfirmCapture payment.Confirm `env:"CONFIRM_CAPTURE,notEmpty"`
	RetryMinute    time.Duration   `env:"RETRY_MINUTE,notEmpty"`
}

// Rules returns the choices as package payment takes them.
func (s Settings) Rules() payment.Rules {
	return payment.Rules{
		AcceptOffers: s.AcceptOffers, FulfilWithin: s.FulfilWithin, Confirm: s.ConfirmCapture, Pace: payment.Pace(s.RetryMinute),
	}
}
