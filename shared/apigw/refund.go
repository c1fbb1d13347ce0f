package apigw

import (
	"cmp"
	"net/http"
	"time"

	"paidonce/shared/payment"
)

// RefundRequest is where a refund that the shop asked for stands.
type RefundRequest struct {
	ID        string    `json:"id"` // the shop's own
	Order     string    `json:"order"`
	Status    string    `json:"status"`    // unknown, pending, processed or failed
	RefundID  *string   `json:"refund_id"` // the gateway's; null until it is known
	PaymentID string    `json:"payment_id"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	Receipt   string    `json:"receipt"` // by which the gateway knows it
	CreatedAt time.Time `json:"created_at"`
}

// statusUnknown is what a refund is of which nobody knows (yet) whether the gateway has it.
const statusUnknown = "unknown"

// ShowRefundRequest is r as answers show it. f is the gateway's refund; zero if it is not known.
func ShowRefundRequest(r payment.RefundRequest, f payment.Refund) RefundRequest {
	shown := RefundRequest{
		ID: r.ID, Order: r.OrderID, Status: statusUnknown, PaymentID: r.PaymentID, Amount: r.Amount.Amount,
		Currency: r.Amount.Currency, Receipt: r.Call.Key, CreatedAt: shownTime(r.CreatedAt),
	}
	if f.ID != "" {
		shown.RefundID, shown.Status = &f.ID, string(f.Status())
	}
	return shown
}

// refusedStatus is the HTTP status of a gateway's refusal.
func refusedStatus(reason payment.RefusalReason) int {
	switch reason {
	case payment.RefusedAmount, payment.RefusedAlready: // the gateway knows of a refund that we don't
		return http.StatusUnprocessableEntity
	case payment.RefusedDisputed:
		return http.StatusConflict
	}
	return http.StatusBadGateway
}

// refusal is the answer to what a gateway refused: its reason in one of our own words, never its text.
func refusal(r *payment.Refusal) map[string]string {
	return map[string]string{"error": payment.ErrGatewayRefused.Error(), "reason": string(cmp.Or(r.Reason, payment.RefusedOther))}
}
