// Package reconcile compares what we know with what the gateway shows: order by order for those that are not paid, and slice by
// slice for everything that the gateway has. What it learns goes through the same function as a webhook's body.
package reconcile

import (
	"context"
	"log/slog"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
)

// Gateway is what reconciling needs of a payment gateway. Errors wrap [payment.ErrGatewayRefused], [payment.ErrNotFound] or
// [payment.ErrOutcomeUnknown].
type Gateway interface {
	// Mode is the mode of the API key.
	Mode() payment.Mode
	// FindOrder looks for the gateway's order of o by its note. [payment.ErrNotFound] if there is none.
	FindOrder(ctx context.Context, o payment.Order, note string) (string, error)
	// GatewayOrder reads an order, whoever made it.
	GatewayOrder(ctx context.Context, id string) (payment.GatewayOrder, error)
	// OrderPayments reads all payments of an order, Refunds all refunds of a payment.
	OrderPayments(ctx context.Context, gatewayOrderID string) ([]payment.PaymentFact, error)
	Refunds(ctx context.Context, paymentID string) ([]payment.RefundFact, error)
	// Capture takes the money of an authorized payment. One that is captured already is a success.
	Capture(ctx context.Context, paymentID string, amount payment.Money) (payment.PaymentFact, error)
	// Payments reads all payments created from one time to another, RefundsBetween all refunds. What cannot be read among them
	// comes as a [*payment.UnreadableError] beside the rest.
	Payments(ctx context.Context, from, to time.Time) ([]payment.PaymentFact, error)
	RefundsBetween(ctx context.Context, from, to time.Time) ([]payment.RefundFact, error)
}

// Store is where orders and cursors are kept.
type Store interface {
	// Order reads an order as it is now. [payment.ErrNotFound] if there is none.
	Order(ctx context.Context, id string) (payment.Order, error)
	// OrderID finds our order for a gateway's. [payment.ErrNotFound] if it is none of ours.
	OrderID(ctx context.Context, gateway string, ref payment.Ref) (string, error)
	// PostponeOrder changes when the gateway is asked about an order. [payment.ErrVersionConflict] if the order has changed.
	PostponeOrder(ctx context.Context, o payment.Order, next time.Time) error
	// Commit writes a change of an order whole or not at all.
	Commit(ctx context.Context, c payment.Commit) error
	// Cursor reads how far a scan has come, PutCursor writes it; [payment.ErrVersionConflict] if somebody else moved it.
	Cursor(ctx context.Context, gateway, scan string) (payment.Cursor, error)
	PutCursor(ctx context.Context, gateway, scan string, c payment.Cursor) error
	// Heard reports whether any webhook about the order was settled.
	Heard(ctx context.Context, orderID string) (bool, error)
	// LastFailed is when the latest of the FAILED events was received; zero if there is none.
	LastFailed(ctx context.Context) (time.Time, error)
}

// Reconciler reconciles.
type Reconciler struct {
	Gateways map[string]func(context.Context) Gateway // by name; asked anew each time, since keys are rotated
	Store    Store
	Advancer advance.Advancer
	Stack    string // distinguishes our orders at the gateway from another deployment's
	Account  string // the gateway account that adopted orders belong to; empty: not compared
	Adopts   bool   // orders that we don't know become ours
	Log      *slog.Logger
	Now      func() time.Time
}
