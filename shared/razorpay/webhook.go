package razorpay

import (
	"context"

	"paidonce/shared/payment"
)

// Webhook verifies deliveries. Where the secrets come from is the caller's affair.
type Webhook struct {
	// Secrets returns the live webhook secrets.
	Secrets func(context.Context) []Secret
	// Refresh reads them again, because none matched, and reports whether it did. It limits its own rate.
	Refresh func(context.Context) ([]Secret, bool)
}

// Verify says which secret signed the body, or false if none did. When none matches, the secrets are read again: they
// may just have been rotated.
func (w Webhook) Verify(ctx context.Context, header func(name string) string, body []byte) (payment.Verified, bool) {
	signature := header(HeaderSignature)
	label, ok := Verify(body, signature, w.Secrets(ctx))
	if !ok && signature != "" {
		if secrets, read := w.Refresh(ctx); read {
			label, ok = Verify(body, signature, secrets)
		}
	}
	if !ok {
		return payment.Verified{Unsigned: signature == ""}, false
	}
	mode, ok := ModeOf(label)
	return payment.Verified{By: label, Mode: mode, EventID: header(HeaderEventID)}, ok
}

// Reduce is the function [Reduce].
func (w Webhook) Reduce(body []byte) ([]byte, error) { return Reduce(body) }
