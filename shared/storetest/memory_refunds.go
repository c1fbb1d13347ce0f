package storetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"paidonce/shared/payment"
)

// DueOrders implements [Store].
func (m *Memory) DueOrders(ctx context.Context, before time.Time, found func(orderID string) bool) error {
	var due []payment.Order
	err := m.call(ctx, "DueOrders", func() error {
		for _, o := range m.orders {
			if !o.DueAt.IsZero() && o.DueAt.Before(before) {
				due = append(due, o)
			}
		}
		return nil
	})
	slices.SortFunc(due, func(a, b payment.Order) int { return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID)) })
	for _, o := range due { // outside of the lock: found may call the store
		if !found(o.ID) {
			break
		}
	}
	return err
}

// PostponeOrder implements [Store].
func (m *Memory) PostponeOrder(ctx context.Context, o payment.Order, next time.Time) error {
	return m.call(ctx, "PostponeOrder", func() error {
		if o.Version == 0 || !m.unchanged(o) || !m.orders[o.ID].DueAt.Equal(o.DueAt) {
			return payment.ErrVersionConflict
		}
		there := m.orders[o.ID]
		there.DueAt = next
		m.orders[o.ID] = there
		return nil
	})
}

// RefundRequest implements [Store].
func (m *Memory) RefundRequest(ctx context.Context, orderID, id string) (r payment.RefundRequest, err error) {
	err = m.call(ctx, "RefundRequest", func() error {
		var ok bool
		if r, ok = m.refunds[requestKey{orderID, id}]; !ok {
			return payment.ErrNotFound
		}
		return nil
	})
	return r, err
}

// PutRefundRequest implements [Store].
func (m *Memory) PutRefundRequest(ctx context.Context, r payment.RefundRequest) error {
	return m.call(ctx, "PutRefundRequest", func() error {
		if !m.refundUnchanged(r) {
			return payment.ErrRefundChanged
		}
		m.putRefund(r)
		return nil
	})
}

func (m *Memory) refundUnchanged(r payment.RefundRequest) bool {
	there, ok := m.refunds[requestKey{r.OrderID, r.ID}]
	return ok == (r.Version > 0) && there.Version == r.Version
}

func (m *Memory) putRefund(r payment.RefundRequest) {
	r.Version++
	m.refunds[requestKey{r.OrderID, r.ID}] = r
}

// DueRefunds implements [Store].
func (m *Memory) DueRefunds(ctx context.Context, before time.Time, found func(orderID, id string) bool) error {
	var due []payment.RefundRequest
	err := m.call(ctx, "DueRefunds", func() error {
		for _, r := range m.refunds {
			if !r.NextAt.IsZero() && r.NextAt.Before(before) {
				due = append(due, r)
			}
		}
		return nil
	})
	slices.SortFunc(due, func(a, b payment.RefundRequest) int {
		return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.OrderID, b.OrderID), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range due {
		if !found(r.OrderID, r.ID) {
			break
		}
	}
	return err
}

// RecordCallback implements [Store].
func (m *Memory) RecordCallback(ctx context.Context, orderID string, c payment.Callback) error {
	return m.call(ctx, "RecordCallback", func() error {
		if slices.ContainsFunc(m.callbacks[orderID], func(o payment.Callback) bool { return o.PaymentID == c.PaymentID }) {
			return payment.ErrCallbackSeen
		}
		m.callbacks[orderID] = append(m.callbacks[orderID], c)
		return nil
	})
}
