package apigw

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"paidonce/shared/payment"
)

// Order is the order as every answer shows it. Amounts are integers in minor units, of Currency unless a hold
// says otherwise; times are UTC to the
// millisecond, as they are stored, and absent ones null.
type Order struct {
	ID             string         `json:"id"`
	Status         payment.Status `json:"status"`
	Derived        payment.Status `json:"derived"`
	Holds          []Hold         `json:"holds"`
	Amount         int64          `json:"amount"`
	AmountPaid     int64          `json:"amount_paid"`
	AmountRefunded int64          `json:"amount_refunded"`
	Currency       string         `json:"currency"`
	Mode           payment.Mode   `json:"mode"`
	Gateway        string         `json:"gateway"`
	GatewayOrderID *string        `json:"gateway_order_id"` // null until the gateway has the order
	Payments       []Payment      `json:"payments"`
	Refunds        []Refund       `json:"refunds"`
	FailedAttempts int            `json:"failed_attempts"`
	FulfilledAt    *time.Time     `json:"fulfilled_at"`
	ClosedAt       *time.Time     `json:"closed_at"`
	Version        int64          `json:"version"`
	CreatedAt      time.Time      `json:"created_at"`
	UpdatedAt      time.Time      `json:"updated_at"`
}

// Hold is a hold that stands now.
type Hold struct {
	Reason       payment.HoldReason `json:"reason"`
	Subject      string             `json:"subject"` // the payment, refund or dispute; empty: the order itself
	Detail       string             `json:"detail"`  // what may get worse: "lost in phase chargeback", "499.00 INR"
	Blocking     bool               `json:"blocking"`
	Since        *time.Time         `json:"since"`
	Acknowledged bool               `json:"acknowledged"`
}

// Payment is one payment of the order.
type Payment struct {
	ID       string                `json:"id"`
	Status   payment.PaymentStatus `json:"status"` // "failed" for an attempt that failed and got no further
	Amount   int64                 `json:"amount"`
	Captured bool                  `json:"captured"`
}

// Refund is one refund of the order.
type Refund struct {
	ID        string               `json:"id"`
	Status    payment.RefundStatus `json:"status"`
	Amount    int64                `json:"amount"`
	PaymentID string               `json:"payment_id"`
}

// ShowOrder is o as answers show it, under the shop's rules.
func ShowOrder(o payment.Order, r payment.Rules) Order {
	d := o.Derive(r)
	shown := Order{
		ID: o.ID, Status: o.Status, Derived: d.Status, Holds: []Hold{}, Amount: o.Amount.Amount,
		AmountPaid: d.Captured, AmountRefunded: d.Refunded, Currency: o.Amount.Currency, Mode: o.Mode,
		Gateway: o.Gateway, Payments: []Payment{}, Refunds: []Refund{}, FailedAttempts: o.FailedAttempts(),
		FulfilledAt: timeOrNull(o.FulfilledAt), ClosedAt: timeOrNull(o.ClosedAt), Version: o.Version,
		CreatedAt: shownTime(o.CreatedAt), UpdatedAt: shownTime(o.UpdatedAt),
	}
	if o.GatewayOrderID != "" {
		shown.GatewayOrderID = &o.GatewayOrderID
	}
	for _, h := range d.Holds {
		history := o.Holds[h.HoldKey]
		shown.Holds = append(shown.Holds, Hold{
			Reason: h.Reason, Subject: h.Subject, Detail: h.Detail, Blocking: h.Reason.Blocking(),
			Since: timeOrNull(history.Since), Acknowledged: o.Acknowledged(h),
		})
	}
	for _, p := range o.Payments {
		status := p.Status
		if p.Failed && status == payment.PaymentCreated {
			status = "failed" // the gateway's own word for it
		}
		shown.Payments = append(shown.Payments, Payment{p.ID, status, p.Amount.Amount, p.IsCaptured()})
	}
	for _, f := range o.Refunds {
		shown.Refunds = append(shown.Refunds, Refund{f.ID, f.Status(), f.Amount.Amount, f.PaymentID})
	}
	slices.SortFunc(shown.Payments, func(a, b Payment) int {
		return cmp.Or(o.Payments[a.ID].CreatedAt.Compare(o.Payments[b.ID].CreatedAt), strings.Compare(a.ID, b.ID))
	})
	slices.SortFunc(shown.Refunds, func(a, b Refund) int { return strings.Compare(a.ID, b.ID) })
	return shown
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = shownTime(t)
	return &t
}

func shownTime(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
