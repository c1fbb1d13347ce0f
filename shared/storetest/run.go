package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

// at is when everything in the suite happens. Stores keep milliseconds.
var at = time.Date(2026, 11, 30, 10, 0, 0, 123_000_000, time.UTC)

var rupees = payment.Money{Amount: 49900, Currency: "INR"}

// Run tests that a store keeps the contracts. open returns a store, which may hold rows of other tests: every test uses
// ids of its own.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Store, string)
	}{
		{"an event is stored once, byte for byte", eventOnce},
		{"concurrent copies of an event are stored once", eventOnceConcurrently},
		{"only APPLIED is final", appliedIsFinal},
		{"a settlement needs an event", settleNeedsEvent},
		{"events are listed when they are due", eventsDue},
		{"an order's id is taken once", orderOnce},
		{"everything of an order is kept", orderWhole},
		{"an order with a gateway order is not deleted", deleteOnlyUnopened},
		{"another order under the same id is another order", anotherOrderUnderTheID},
		{"a commit writes order, effects and event together", commitTogether},
		{"a stale commit writes nothing", commitStale},
		{"a commit for an applied event writes nothing", commitApplied},
		{"an effect that is there already does not stop a commit", effectThere},
		{"a ledger entry with another amount stops a commit", effectOther},
		{"a payment belongs to one order", paymentOnce},
		{"a gateway order belongs to one order", gatewayOrderOnce},
		{"a counted attempt is counted once", attemptOnce},
		{"of concurrent commits one wins", commitConcurrently},
		{"an order has a history", orderHistory},
		{"everything of a refund request is kept", refundWhole},
		{"a refund request is written at its version only", refundVersions},
		{"a refund request and its reservation are written together", refundTogether},
		{"of concurrent makers of a refund request one wins", refundOnce},
		{"refund requests are listed when they are due", refundsDue},
		{"orders are listed when they are due, and postponed", ordersDue},
		{"a callback is recorded once", callbackOnce},
		{"refund requests are part of the history", refundHistory},
		{"announcements are read until they are sent", outboxUnsent},
		{"an announcement is marked as sent once", outboxSent},
		{"an announcement marked by several is sent", outboxSentConcurrently},
		{"announcements are listed when they are due, and postponed", outboxDue},
		{"a hundred announcements are read at once", outboxMany},
		{"everything of a cursor is kept", cursorWhole},
		{"a cursor is moved at its version only", cursorVersions},
		{"a lease is held by one, and waited out", leases},
		{"a webhook about an order is heard once it is settled", heard},
		{"the event that failed last is found", lastFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t), fmt.Sprintf("t%d", testNumber.Add(1)))
		})
	}
}

var testNumber atomic.Int64

func someEvent(id string) payment.Event {
	return payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: "evt_" + id}, Status: payment.EventReceived,
		Verdict: "waiting", Body: []byte("{\"₹\":\"\\u0026\\/\"}\n"), SHA256: "ab" + id, VerifiedBy: "test_current",
		Mode: payment.Test, Delivery: "req-1", ReceivedAt: at, NextAt: at.Add(time.Minute), KeepUntil: at.Add(time.Hour).Truncate(time.Second),
	}
}

func someOrder(id string) payment.Order {
	return payment.NewOrder("order-"+id, rupees, "razorpay", payment.Test, at)
}

func put(t *testing.T, s Store, e payment.Event) {
	t.Helper()
	if _, err := s.PutEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, s Store, o payment.Order) payment.Order {
	t.Helper()
	o, err := s.CreateOrder(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// same compares values as a store keeps them: an empty map is no map, and a time is an instant.
func same(t *testing.T, got, want any) {
	t.Helper()
	emptyIsNil := cmp.FilterValues(func(a, b map[string]string) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
	if diff := cmp.Diff(want, got, emptyIsNil, emptyMap[string, payment.Payment](), emptyMap[string, payment.Refund](),
		emptyMap[string, payment.Dispute](), emptyMap[payment.HoldKey, payment.HoldHistory](), emptyMap[string, payment.Reservation]()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func emptyMap[K comparable, V any]() cmp.Option {
	return cmp.FilterValues(func(a, b map[K]V) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
}
