package razorpaytest

import (
	"net/http"
	"slices"
)

// Settings say how the gateway treats refunds, where its documentation leaves that open or lets it depend.
type Settings struct {
	// RefundStatus is what becomes of a new refund at once: processed (as in the documentation's samples), pending, or
	// failed.
	RefundStatus string `json:"refund_status"`

	// RefundTakes is how long a refund request of the API is in progress, in seconds on the gateway's clock: only then
	// is it done and answered, whether the caller still waits or not. Until then the same idempotency key is answered
	// with 409, and other operations on the payment with 400. 0: it is done at once.
	RefundTakes int64 `json:"refund_takes_seconds"`

	// KeyConflict is the HTTP status that answers another request under an idempotency key in use: 400, or 409. The
	// documentation says both.
	KeyConflict int `json:"key_conflict"`

	// KeepFailed lets a payment go on to show a refund that failed as refunded, as the documentation's sample of
	// refund.failed does. The money may be refunded again in either case.
	KeepFailed bool `json:"keep_failed"`

	// AutoRefundSurplus refunds a payment at once that becomes authorized when its order is paid already, as the
	// documentation says. Without it such a payment can be captured, as happens when two attempts race.
	AutoRefundSurplus bool `json:"auto_refund_surplus"`

	// Balance is the merchant's money in minor units, of whatever currency, out of which captured payments are refunded.
	// Captures do not add to it: they are settled later. -1: there is always enough.
	Balance int64 `json:"balance"`
}

var defaultSettings = Settings{RefundStatus: processed, KeyConflict: http.StatusBadRequest, Balance: -1}

// SettingsChange changes those settings that are not nil.
type SettingsChange struct {
	RefundStatus      *string `json:"refund_status"`
	RefundTakes       *int64  `json:"refund_takes_seconds"`
	KeyConflict       *int    `json:"key_conflict"`
	KeepFailed        *bool   `json:"keep_failed"`
	AutoRefundSurplus *bool   `json:"auto_refund_surplus"`
	Balance           *int64  `json:"balance"`
}

// ChangeSettings changes how refunds are treated from now on and returns the settings.
func (g *Gateway) ChangeSettings(change SettingsChange) (Settings, error) {
	settings, refused := g.changeSettings(change)
	if refused != nil {
		return settings, refused
	}
	return settings, nil
}

func (g *Gateway) changeSettings(change SettingsChange) (Settings, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Settings{
		RefundStatus:      value(change.RefundStatus, g.settings.RefundStatus),
		RefundTakes:       value(change.RefundTakes, g.settings.RefundTakes),
		KeyConflict:       value(change.KeyConflict, g.settings.KeyConflict),
		KeepFailed:        value(change.KeepFailed, g.settings.KeepFailed),
		AutoRefundSurplus: value(change.AutoRefundSurplus, g.settings.AutoRefundSurplus),
		Balance:           value(change.Balance, g.settings.Balance),
	}
	switch {
	case !isRefundStatus(s.RefundStatus):
		return Settings{}, badRequest("refund_status", "The refund_status must be pending, processed or failed.")
	case s.RefundTakes < 0 || s.RefundTakes > 1e9:
		return Settings{}, badRequest("refund_takes_seconds", "The refund_takes_seconds must be a number from 0 to 1e9.")
	case s.KeyConflict != http.StatusBadRequest && s.KeyConflict != http.StatusConflict:
		return Settings{}, badRequest("key_conflict", "The key_conflict must be 400 or 409.")
	case s.Balance < -1 || s.Balance > maxAmount:
		return Settings{}, badRequest("balance", "The balance is out of range.")
	}
	g.settings = s
	return s, nil
}

func isRefundStatus(status string) bool {
	return slices.Contains([]string{pending, processed, failed}, status)
}
