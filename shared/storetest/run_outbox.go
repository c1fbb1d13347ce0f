package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/shared/payment"
)

// announcing stores an order with a fulfilment, three notifications and what tells subscribers nothing, written at the time, and
// returns what there is to announce, by key.
func announcing(t *testing.T, s Store, id string, written time.Time) []payment.Announcement {
	t.Helper()
	o := create(t, s, someOrder(id))
	o.UpdatedAt = written
	part, hold := payment.Money{Amount: 100, Currency: "INR"}, payment.HoldKey{Reason: payment.HoldDispute, Subject: "disp_1"}
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{
		payment.Fulfilment{Captured: rupees},
		payment.LedgerEntry{SubjectID: "pay_" + id, Type: payment.LedgerCaptured, PaymentID: "pay_" + id, Amount: rupees},
		payment.PaymentPointer{PaymentID: "pay_" + id},
		payment.Notification{Key: "hold#dispute#disp_1", Status: payment.Paid, Hold: hold, Amount: rupees},
		payment.Notification{Key: "partially_refunded", Status: payment.PartiallyRefunded, Amount: rupees},
		payment.Notification{Key: "refund#rfnd_1#failed", Status: payment.PartiallyRefunded, About: "rfnd_1", Amount: part},
	}}), nil)
	key := func(name string) payment.OutboxKey { return payment.OutboxKey{OrderID: o.ID, Name: name} }
	return []payment.Announcement{
		{Key: key("FULFILMENT"), Type: "order.paid", OrderVersion: 2, At: written, Status: payment.Paid, Amount: rupees},
		{Key: key("OUTBOX#hold#dispute#disp_1"), Type: "order.held", OrderVersion: 2, At: written, Status: payment.Paid, Amount: rupees, Hold: hold},
		{Key: key("OUTBOX#partially_refunded"), Type: "order.partially_refunded", OrderVersion: 2, At: written, Status: payment.PartiallyRefunded, Amount: rupees},
		{
			Key: key("OUTBOX#refund#rfnd_1#failed"), Type: "refund.failed", OrderVersion: 2, At: written, Status: payment.PartiallyRefunded,
			Amount: part, RefundID: "rfnd_1",
		},
	}
}

func keysOf(all []payment.Announcement) []payment.OutboxKey {
	var keys []payment.OutboxKey
	for _, a := range all {
		keys = append(keys, a.Key)
	}
	return keys
}

// unsent reads which of the announcements are not sent, by key.
func unsent(t *testing.T, s Store, keys ...payment.OutboxKey) []payment.Announcement {
	t.Helper()
	all, err := s.Unsent(t.Context(), keys)
	wantErr(t, err, nil)
	slices.SortFunc(all, func(a, b payment.Announcement) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return all
}

func outboxUnsent(t *testing.T, s Store, id string) {
	want := announcing(t, s, id, at)
	keys := keysOf(want)
	same(t, unsent(t, s, keys...), want)
	same(t, unsent(t, s), []payment.Announcement(nil))

	// Rows that tell nothing, and rows that are not there, are passed over.
	orderID := want[0].Key.OrderID
	others := []payment.OutboxKey{
		{OrderID: orderID, Name: "LEDGER#pay_" + id + "#captured"}, {OrderID: orderID, Name: "OUTBOX#none"}, {OrderID: "other-" + id, Name: "FULFILMENT"},
	}
	same(t, unsent(t, s, others...), []payment.Announcement(nil))
	same(t, unsent(t, s, append(others, keys[1])...), want[1:2])

	// The version and the time are those of the change that brought an announcement, whatever came after.
	o, err := s.Order(t.Context(), orderID)
	wantErr(t, err, nil)
	o.UpdatedAt = at.Add(time.Hour)
	later := payment.Notification{Key: "refunded", Status: payment.Refunded, Amount: rupees}
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{later, payment.Fulfilment{Captured: rupees}}}), nil)
	same(t, unsent(t, s, keys...), want)
	last := payment.OutboxKey{OrderID: orderID, Name: "OUTBOX#refunded"}
	same(t, unsent(t, s, last), []payment.Announcement{
		{Key: last, Type: "order.refunded", OrderVersion: 3, At: at.Add(time.Hour), Status: payment.Refunded, Amount: rupees},
	})
}

func outboxSent(t *testing.T, s Store, id string) {
	want := announcing(t, s, id, at)
	keys := keysOf(want)
	wantErr(t, s.MarkSent(t.Context(), keys[0], at.Add(time.Minute)), nil)
	same(t, unsent(t, s, keys...), want[1:])
	wantErr(t, s.MarkSent(t.Context(), keys[0], at.Add(time.Hour)), nil) // as it is already
	wantErr(t, s.PostponeAnnouncement(t.Context(), keys[0], at), nil)    // what is sent is never due again
	same(t, unsent(t, s, keys...), want[1:])
	dueBy(t, dueOf(t, s, want[0].Key.OrderID, at.Add(time.Hour)), keys[1].Name, keys[2].Name, keys[3].Name)

	// The order and its effects are as they were.
	o, err := s.Order(t.Context(), keys[0].OrderID)
	wantErr(t, err, nil)
	effects, err := s.Effects(t.Context(), keys[0].OrderID)
	wantErr(t, err, nil)
	if o.Version != 2 || len(effects) != 5 || !slices.Contains(effects, payment.Effect(payment.Fulfilment{Captured: rupees})) {
		t.Errorf("the order is at version %d with effects %v", o.Version, effects)
	}

	// Nothing comes into being by being marked or postponed.
	for _, unknown := range []payment.OutboxKey{{OrderID: keys[0].OrderID, Name: "OUTBOX#none"}, {OrderID: "other-" + id, Name: "FULFILMENT"}} {
		wantErr(t, s.MarkSent(t.Context(), unknown, at), nil)
		wantErr(t, s.PostponeAnnouncement(t.Context(), unknown, at.AddDate(-40, 0, 0)), nil)
		same(t, unsent(t, s, unknown), []payment.Announcement(nil))
		dueBy(t, dueOf(t, s, unknown.OrderID, at.AddDate(-39, 0, 0)))
	}
	effects, err = s.Effects(t.Context(), keys[0].OrderID)
	wantErr(t, err, nil)
	if len(effects) != 5 {
		t.Errorf("now there are %d effects", len(effects))
	}
}

// outboxSentConcurrently: whoever marks an announcement, it ends up sent and not due.
func outboxSentConcurrently(t *testing.T, s Store, id string) {
	keys := keysOf(announcing(t, s, id, at))
	var wg sync.WaitGroup
	for i := range 12 {
		k := keys[i%len(keys)]
		wg.Go(func() { wantErr(t, s.PostponeAnnouncement(t.Context(), k, at.Add(time.Minute)), nil) })
		wg.Go(func() { wantErr(t, s.MarkSent(t.Context(), k, at.Add(time.Minute)), nil) })
	}
	wg.Wait()
	same(t, unsent(t, s, keys...), []payment.Announcement(nil))
	dueBy(t, dueOf(t, s, keys[0].OrderID, at.Add(time.Hour)))
}

// dueOf lists the names of an order's announcements that are due before the time.
func dueOf(t *testing.T, s Store, orderID string, before time.Time) func(func(string) bool) error {
	return func(found func(string) bool) error {
		return s.DueAnnouncements(t.Context(), before, func(k payment.OutboxKey) bool { return k.OrderID != orderID || found(k.Name) })
	}
}

func outboxDue(t *testing.T, s Store, id string) {
	// The suite's other tests leave rows too: this one's are of another year.
	year := at.AddDate(-50, 0, 0)
	first := keysOf(announcing(t, s, id+"first", year))
	second := keysOf(announcing(t, s, id+"second", year.Add(time.Hour)))
	before := func(when time.Time) func(func(string) bool) error {
		return func(found func(string) bool) error {
			return s.DueAnnouncements(t.Context(), when, func(k payment.OutboxKey) bool { return found(k.String()) })
		}
	}
	list := func(keys ...payment.OutboxKey) []string {
		var all []string
		for _, k := range keys {
			all = append(all, k.String())
		}
		slices.Sort(all)
		return all
	}
	dueBy(t, before(year)) // written later than that
	dueBy(t, before(year.Add(time.Millisecond)), list(first...)...)
	dueBy(t, before(year.Add(2*time.Hour)), list(slices.Concat(first, second)...)...)

	// One that is postponed is due later, and a postponement can come again.
	wantErr(t, s.PostponeAnnouncement(t.Context(), first[0], year.Add(90*time.Minute)), nil)
	dueBy(t, before(year.Add(80*time.Minute)), list(slices.Concat(first[1:], second)...)...)
	dueBy(t, before(year.Add(2*time.Hour)), list(slices.Concat(first, second)...)...)
	wantErr(t, s.PostponeAnnouncement(t.Context(), first[0], year.Add(3*time.Hour)), nil)
	dueBy(t, before(year.Add(2*time.Hour)), list(slices.Concat(first[1:], second)...)...)

	// It tells what it told.
	if got := unsent(t, s, first[0]); len(got) != 1 || !got[0].At.Equal(year) || got[0].OrderVersion != 2 {
		t.Errorf("postponed, it reads %v", got)
	}

	// What is sent is off the list.
	for _, k := range slices.Concat(first[:2], second[1:]) {
		wantErr(t, s.MarkSent(t.Context(), k, at), nil)
	}
	dueBy(t, before(year.Add(4*time.Hour)), list(first[2], first[3], second[0])...)
	n := 0
	wantErr(t, s.DueAnnouncements(t.Context(), year.Add(4*time.Hour), func(payment.OutboxKey) bool {
		n++
		return false
	}), nil)
	if n != 1 {
		t.Errorf("went on to %d announcements after the first, want to stop", n)
	}
	for _, k := range []payment.OutboxKey{first[2], first[3], second[0]} {
		wantErr(t, s.MarkSent(t.Context(), k, at), nil)
	}
	dueBy(t, before(year.Add(4*time.Hour)))
}

// outboxMany reads as many at once as DynamoDB takes (BatchGetItem).
func outboxMany(t *testing.T, s Store, id string) {
	const most = 100
	o := create(t, s, someOrder(id))
	var keys []payment.OutboxKey
	for len(keys) < most {
		var effects []payment.Effect
		for range 20 {
			n := payment.Notification{Key: fmt.Sprintf("refund#rfnd_%03d#pending", len(keys)), Status: payment.Paid, About: "r", Amount: rupees}
			effects = append(effects, n)
			keys = append(keys, payment.OutboxKey{OrderID: o.ID, Name: "OUTBOX#" + n.Key})
		}
		wantErr(t, s.Commit(t.Context(), payment.Commit{Order: o, Effects: effects}), nil)
		o.Version++
	}
	same(t, keysOf(unsent(t, s, keys...)), keys)
	for _, k := range keys[:most/2] {
		wantErr(t, s.MarkSent(t.Context(), k, at), nil)
	}
	same(t, keysOf(unsent(t, s, keys...)), keys[most/2:])
}
