// Package storetest tests stores of events and orders: an in-memory one with faults on demand, a conformance suite that
// every store must pass, and a checker of the invariants that must hold after every step of every test.
package storetest

import (
	"context"
	"time"

	"paidonce/shared/payment"
)

// Store is what the suite asks of a store. The contracts are those of the interfaces beside its users.
type Store interface {
	PutEvent(ctx context.Context, e payment.Event) (payment.Event, error)
	Event(ctx context.Context, k payment.EventKey) (payment.Event, error)
	SettleEvent(ctx context.Context, s payment.Settlement) error
	DueEvents(ctx context.Context, status payment.EventStatus, before time.Time, found func(payment.EventKey) bool) error
	CreateOrder(ctx context.Context, o payment.Order) (payment.Order, error)
	DeleteOrder(ctx context.Context, o payment.Order) error
	Order(ctx context.Context, id string) (payment.Order, error)
	OrderID(ctx context.Context, gateway string, ref payment.Ref) (string, error)
	Commit(ctx context.Context, c payment.Commit) error
	DueOrders(ctx context.Context, before time.Time, found func(orderID string) bool) error
	PostponeOrder(ctx context.Context, o payment.Order, next time.Time) error
	RefundRequest(ctx context.Context, orderID, id string) (payment.RefundRequest, error)
	PutRefundRequest(ctx context.Context, r payment.RefundRequest) error
	DueRefunds(ctx context.Context, before time.Time, found func(orderID, id string) bool) error
	Unsent(ctx context.Context, keys []payment.OutboxKey) ([]payment.Announcement, error)
	MarkSent(ctx context.Context, k payment.OutboxKey, at time.Time) error
	PostponeAnnouncement(ctx context.Context, k payment.OutboxKey, at time.Time) error
	DueAnnouncements(ctx context.Context, before time.Time, found func(payment.OutboxKey) bool) error
	Cursor(ctx context.Context, gateway, scan string) (payment.Cursor, error)
	PutCursor(ctx context.Context, gateway, scan string, c payment.Cursor) error
	Lease(ctx context.Context, holder string, now, until time.Time) (bool, error)
	Release(ctx context.Context, holder string) error
	Heard(ctx context.Context, orderID string) (bool, error)
	LastFailed(ctx context.Context) (time.Time, error)
	RecordCallback(ctx context.Context, orderID string, c payment.Callback) error
	Effects(ctx context.Context, orderID string) ([]payment.Effect, error)
	History(ctx context.Context, orderID string) (payment.History, error)
}
