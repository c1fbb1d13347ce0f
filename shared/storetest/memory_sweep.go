package storetest

import (
	"context"
	"time"

	"paidonce/shared/payment"
)

type cursorKey struct{ gateway, scan string }

// lease is who may sweep.
type lease struct {
	holder string
	until  time.Time
}

// Cursor implements [Store].
func (m *Memory) Cursor(ctx context.Context, gateway, scan string) (c payment.Cursor, err error) {
	err = m.call(ctx, "Cursor", func() error {
		c = m.cursors[cursorKey{gateway, scan}]
		return nil
	})
	return c, err
}

// PutCursor implements [Store].
func (m *Memory) PutCursor(ctx context.Context, gateway, scan string, c payment.Cursor) error {
	return m.call(ctx, "PutCursor", func() error {
		k := cursorKey{gateway, scan}
		if m.cursors[k].Version != c.Version {
			return payment.ErrVersionConflict
		}
		c.Version++
		m.cursors[k] = c
		return nil
	})
}

// Lease implements [Store].
func (m *Memory) Lease(ctx context.Context, holder string, now, until time.Time) (taken bool, err error) {
	err = m.call(ctx, "Lease", func() error {
		if taken = !now.Before(m.lease.until) || m.lease.holder == holder; taken {
			m.lease = lease{holder, until}
		}
		return nil
	})
	return taken, err
}

// Release implements [Store].
func (m *Memory) Release(ctx context.Context, holder string) error {
	return m.call(ctx, "Release", func() error {
		if m.lease.holder == holder {
			m.lease.until = time.Time{}
		}
		return nil
	})
}

// Heard implements [Store].
func (m *Memory) Heard(ctx context.Context, orderID string) (heard bool, err error) {
	err = m.call(ctx, "Heard", func() error {
		for _, e := range m.events {
			heard = heard || e.OrderID == orderID && (e.Status == payment.EventApplied || e.Status == payment.EventIgnored)
		}
		return nil
	})
	return heard, err
}

// LastFailed implements [Store].
func (m *Memory) LastFailed(ctx context.Context) (last time.Time, err error) {
	err = m.call(ctx, "LastFailed", func() error {
		for _, e := range m.events {
			if e.Status == payment.EventFailed && e.ReceivedAt.After(last) {
				last = e.ReceivedAt
			}
		}
		return nil
	})
	return last, err
}
