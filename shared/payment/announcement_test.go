package payment_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

func TestAnnounce(t *testing.T) {
	at := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	price, part := payment.Money{Amount: 49900, Currency: "INR"}, payment.Money{Amount: 100, Currency: "INR"}
	hold := payment.HoldKey{Reason: payment.HoldDispute, Subject: "disp_1"}
	key := payment.OutboxKey{OrderID: "o1", Name: "OUTBOX#any"}
	for _, c := range []struct {
		name   string
		effect payment.Effect
		want   payment.Announcement // nothing, if it has no type
	}{
		{"fulfilment", payment.Fulfilment{Captured: price}, payment.Announcement{Type: "order.paid", Status: payment.Paid, Amount: price}},
		{
			"failed", payment.Notification{Key: "failed", Status: payment.Failed, Amount: price},
			payment.Announcement{Type: "order.failed", Status: payment.Failed, Amount: price},
		},
		{
			"partially refunded", payment.Notification{Key: "partially_refunded", Status: payment.PartiallyRefunded, Amount: price},
			payment.Announcement{Type: "order.partially_refunded", Status: payment.PartiallyRefunded, Amount: price},
		},
		{
			"refunded", payment.Notification{Key: "refunded", Status: payment.Refunded, Amount: price},
			payment.Announcement{Type: "order.refunded", Status: payment.Refunded, Amount: price},
		},
		{
			"refund pending", payment.Notification{Key: "refund#rfnd_1#pending", Status: payment.Paid, About: "rfnd_1", Amount: part},
			payment.Announcement{Type: "refund.pending", Status: payment.Paid, Amount: part, RefundID: "rfnd_1"},
		},
		{
			"refund processed", payment.Notification{Key: "refund#rfnd_1#processed", Status: payment.Refunded, About: "rfnd_1", Amount: part},
			payment.Announcement{Type: "refund.processed", Status: payment.Refunded, Amount: part, RefundID: "rfnd_1"},
		},
		{
			"refund failed, with an id like a key", payment.Notification{Key: "refund#r#x#failed", Status: payment.Paid, About: "r#x", Amount: part},
			payment.Announcement{Type: "refund.failed", Status: payment.Paid, Amount: part, RefundID: "r#x"},
		},
		{
			"refund request failed", payment.Notification{Key: "refund_request#r1#failed", Status: payment.Paid, About: "r1", Amount: part},
			payment.Announcement{Type: "refund_request.failed", Status: payment.Paid, Amount: part, RequestID: "r1"},
		},
		{
			"hold", payment.Notification{Key: "hold#dispute#disp_1", Status: payment.Paid, Hold: hold, Amount: price},
			payment.Announcement{Type: "order.held", Status: payment.Paid, Amount: price, Hold: hold},
		},
		{
			"hold of the order itself", payment.Notification{Key: "hold#short#", Status: payment.Pending, Hold: payment.HoldKey{Reason: payment.HoldShort}, Amount: price},
			payment.Announcement{Type: "order.held", Status: payment.Pending, Amount: price, Hold: payment.HoldKey{Reason: payment.HoldShort}},
		},
		{"ledger entry", payment.LedgerEntry{SubjectID: "pay_1", Type: payment.LedgerCaptured, Amount: price}, payment.Announcement{}},
		{"payment pointer", payment.PaymentPointer{PaymentID: "pay_1"}, payment.Announcement{}},
		{"order pointer", payment.OrderPointer{GatewayOrderID: "order_1"}, payment.Announcement{}},
		{"counted attempt", payment.CountedAttempt{PaymentID: "pay_1"}, payment.Announcement{}},
		{"nothing", nil, payment.Announcement{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := payment.Announce(key, c.effect, 7, at)
			if c.want.Type != "" {
				c.want.Key, c.want.OrderVersion, c.want.At = key, 7, at
			}
			if diff := gocmp.Diff(c.want, got); diff != "" || ok != (c.want.Type != "") {
				t.Errorf("told: %t (-want +got)\n%s", ok, diff)
			}
		})
	}
}

// Subscribers deduplicate by the text: two announcements must never share one.
func TestOutboxKeysDiffer(t *testing.T) {
	seen := map[string]payment.OutboxKey{}
	for _, order := range []string{"o1", "o1.x", "O1"} {
		for _, name := range []string{"FULFILMENT", "OUTBOX#failed", "OUTBOX#refund#r#failed", "OUTBOX#hold#short#"} {
			k := payment.OutboxKey{OrderID: order, Name: name}
			if other, there := seen[k.String()]; there {
				t.Errorf("%v and %v are both %q", k, other, k)
			}
			seen[k.String()] = k
		}
	}
}
