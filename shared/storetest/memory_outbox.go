package storetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"paidonce/shared/payment"
)

// outbox is what is known of an announcement beside its effect.
type outbox struct {
	orderVersion int64
	dueAt        time.Time
	sentAt       time.Time // zero: not sent
}

// Unsent implements [Store].
func (m *Memory) Unsent(ctx context.Context, keys []payment.OutboxKey) (unsent []payment.Announcement, err error) {
	err = m.call(ctx, "Unsent", func() error {
		for _, k := range keys {
			row := effectKey{k.OrderID, k.Name}
			sent := m.outbox[row]
			a, ok := payment.Announce(k, m.effects[row], sent.orderVersion, m.written[row])
			if ok && sent.sentAt.IsZero() {
				unsent = append(unsent, a)
			}
		}
		return nil
	})
	return unsent, err
}

// MarkSent implements [Store].
func (m *Memory) MarkSent(ctx context.Context, k payment.OutboxKey, at time.Time) error {
	return m.updateOutbox(ctx, "MarkSent", k, func(o *outbox) { o.sentAt = at })
}

// PostponeAnnouncement implements [Store].
func (m *Memory) PostponeAnnouncement(ctx context.Context, k payment.OutboxKey, at time.Time) error {
	return m.updateOutbox(ctx, "PostponeAnnouncement", k, func(o *outbox) { o.dueAt = at })
}

func (m *Memory) updateOutbox(ctx context.Context, method string, k payment.OutboxKey, update func(*outbox)) error {
	return m.call(ctx, method, func() error {
		row := effectKey{k.OrderID, k.Name}
		if o, ok := m.outbox[row]; ok && o.sentAt.IsZero() {
			update(&o)
			m.outbox[row] = o
		}
		return nil
	})
}

// DueAnnouncements implements [Store].
func (m *Memory) DueAnnouncements(ctx context.Context, before time.Time, found func(payment.OutboxKey) bool) error {
	type dueAt struct {
		key payment.OutboxKey
		at  time.Time
	}
	var due []dueAt
	err := m.call(ctx, "DueAnnouncements", func() error {
		for row, o := range m.outbox {
			if o.sentAt.IsZero() && o.dueAt.Before(before) {
				due = append(due, dueAt{payment.OutboxKey{OrderID: row.orderID, Name: row.key}, o.dueAt})
			}
		}
		return nil
	})
	slices.SortFunc(due, func(a, b dueAt) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.key.String(), b.key.String())) })
	for _, d := range due { // outside of the lock: found may call the store
		if !found(d.key) {
			break
		}
	}
	return err
}
