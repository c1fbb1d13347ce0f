package payment

import (
	"fmt"
	"strings"
	"time"
)

// OutboxKey names what subscribers are told of an order: its fulfilment, or one of its notifications.
type OutboxKey struct {
	OrderID string
	Name    string // unique within the order, the same for ever
}

// String is the key as it goes to subscribers, who know a repetition by it.
func (k OutboxKey) String() string { return k.OrderID + "#" + k.Name }

// Announcement is one thing that subscribers are told.
type Announcement struct {
	Key          OutboxKey
	Type         string // order.paid, order.failed, order.partially_refunded, order.refunded, order.held, refund.pending, ..., refund_request.failed
	OrderVersion int64  // of the order after the change that brought it: the larger, the later
	At           time.Time
	Status       Status // of the order then
	Amount       Money  // captured for the order (order.paid), of the refund, or the order's
	RefundID     string // refund.*
	RequestID    string // refund_request.*: the shop's own
	Hold         HoldKey
}

// Announce returns what an effect tells subscribers. It reports false for one that tells nothing.
func Announce(key OutboxKey, e Effect, orderVersion int64, at time.Time) (Announcement, bool) {
	a := Announcement{Key: key, OrderVersion: orderVersion, At: at}
	switch e := e.(type) {
	case Fulfilment:
		a.Type, a.Status, a.Amount = "order.paid", Paid, e.Captured
	case Notification:
		a.Status, a.Amount, a.Hold = e.Status, e.Amount, e.Hold
		switch {
		case strings.HasPrefix(e.Key, refundRequestKey):
			a.Type, a.RequestID = "refund_request.failed", e.About
		case e.Hold != (HoldKey{}):
			a.Type = "order.held"
		case e.About != "":
			a.RefundID = e.About
			a.Type = "refund." + e.Key[strings.LastIndex(e.Key, "#")+1:]
		default:
			a.Type = fmt.Sprintf("order.%s", e.Status)
		}
	default:
		return Announcement{}, false
	}
	return a, true
}
