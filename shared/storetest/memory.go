package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"paidonce/shared/payment"
)

// Fault is what goes wrong with one call.
type Fault int

// The faults.
const (
	None       Fault = iota
	NotDone          // the call fails and nothing was written
	DoneUnsaid       // the call fails although it was done: the answer was lost
)

// ErrFault is what a call with a fault returns.
var ErrFault = errors.New("storetest: injected fault")

// Memory is a store in memory, with the same conditions as the table. Its methods may be called concurrently.
type Memory struct {
	// Faults, if set, is asked at each call, by the method's name.
	Faults func(method string) Fault

	mu       sync.Mutex
	events   map[payment.EventKey]payment.Event
	orders   map[string]payment.Order
	effects  map[effectKey]payment.Effect
	written  map[effectKey]time.Time
	pointers map[pointerKey]string
	changes  map[string][]payment.Change

	outbox    map[effectKey]outbox
	cursors   map[cursorKey]payment.Cursor
	lease     lease
	refunds   map[requestKey]payment.RefundRequest
	callbacks map[string][]payment.Callback
}

type requestKey struct{ orderID, id string }

type effectKey struct{ orderID, key string }

type pointerKey struct{ gateway, id string }

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		events:   map[payment.EventKey]payment.Event{},
		orders:   map[string]payment.Order{},
		effects:  map[effectKey]payment.Effect{},
		written:  map[effectKey]time.Time{},
		pointers: map[pointerKey]string{},
		changes:  map[string][]payment.Change{},

		outbox:    map[effectKey]outbox{},
		cursors:   map[cursorKey]payment.Cursor{},
		refunds:   map[requestKey]payment.RefundRequest{},
		callbacks: map[string][]payment.Callback{},
	}
}

// call runs do under the lock, with whatever fault is due.
func (m *Memory) call(ctx context.Context, method string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fault := None
	if m.Faults != nil {
		fault = m.Faults(method)
	}
	if fault == NotDone {
		return ErrFault
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	err := do()
	if fault == DoneUnsaid {
		return ErrFault
	}
	return err
}

// PutEvent implements [Store].
func (m *Memory) PutEvent(ctx context.Context, e payment.Event) (stored payment.Event, err error) {
	err = m.call(ctx, "PutEvent", func() error {
		if there, ok := m.events[e.Key]; ok {
			stored = there
			return payment.ErrEventExists
		}
		m.events[e.Key] = e
		return nil
	})
	return stored, err
}

// Event implements [Store].
func (m *Memory) Event(ctx context.Context, k payment.EventKey) (e payment.Event, err error) {
	err = m.call(ctx, "Event", func() error {
		var ok bool
		if e, ok = m.events[k]; !ok {
			return payment.ErrNotFound
		}
		return nil
	})
	return e, err
}

// SettleEvent implements [Store].
func (m *Memory) SettleEvent(ctx context.Context, s payment.Settlement) error {
	return m.call(ctx, "SettleEvent", func() error {
		if err := m.mayBeSettled(s.Key); err != nil {
			return err
		}
		m.settle(s)
		return nil
	})
}

// listedAt is when an event is listed as due; after everything else, if it waits for a person.
func listedAt(e payment.Event) time.Time {
	switch {
	case e.Status == payment.EventFailed:
		return e.ReceivedAt
	case e.NextAt.IsZero():
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return e.NextAt
}

// DueEvents implements [Store].
func (m *Memory) DueEvents(ctx context.Context, status payment.EventStatus, before time.Time, found func(payment.EventKey) bool) error {
	var due []payment.Event
	err := m.call(ctx, "DueEvents", func() error {
		for _, e := range m.events {
			if e.Status == status && listedAt(e).Before(before) {
				due = append(due, e)
			}
		}
		return nil
	})
	slices.SortFunc(due, func(a, b payment.Event) int {
		return cmp.Or(listedAt(a).Compare(listedAt(b)), cmp.Compare(a.Key.ID, b.Key.ID))
	})
	for _, e := range due { // outside of the lock: found may call the store
		if !found(e.Key) {
			break
		}
	}
	return err
}

func (m *Memory) mayBeSettled(k payment.EventKey) error {
	e, ok := m.events[k]
	switch {
	case !ok:
		return payment.ErrNotFound
	case e.Status == payment.EventApplied:
		return payment.ErrEventApplied
	}
	return nil
}

func (m *Memory) mayAllBeSettled(settlements []payment.Settlement) error {
	applied := &payment.AppliedError{}
	for _, s := range settlements {
		switch err := m.mayBeSettled(s.Key); {
		case errors.Is(err, payment.ErrEventApplied):
			applied.Keys = append(applied.Keys, s.Key)
		case err != nil:
			return err
		}
	}
	if len(applied.Keys) > 0 {
		return applied
	}
	return nil
}

func (m *Memory) settle(s payment.Settlement) {
	e := m.events[s.Key]
	e.Status, e.Verdict, e.NextAt = s.Status, s.Verdict, s.NextAt
	e.Type, e.OrderID = cmp.Or(s.Type, e.Type), cmp.Or(s.OrderID, e.OrderID)
	e.Attempts++
	m.events[s.Key] = e
}

// CreateOrder implements [Store].
func (m *Memory) CreateOrder(ctx context.Context, o payment.Order) (stored payment.Order, err error) {
	err = m.call(ctx, "CreateOrder", func() error {
		if there, ok := m.orders[o.ID]; ok {
			stored = there
			return payment.ErrOrderExists
		}
		o.Version = 1
		m.orders[o.ID], stored = o, o
		return nil
	})
	return stored, err
}

// DeleteOrder implements [Store].
func (m *Memory) DeleteOrder(ctx context.Context, o payment.Order) error {
	return m.call(ctx, "DeleteOrder", func() error {
		if !m.unchanged(o) || m.orders[o.ID].GatewayOrderID != "" {
			return payment.ErrVersionConflict
		}
		delete(m.orders, o.ID)
		return nil
	})
}

// Order implements [Store].
func (m *Memory) Order(ctx context.Context, id string) (o payment.Order, err error) {
	err = m.call(ctx, "Order", func() error {
		var ok bool
		if o, ok = m.orders[id]; !ok {
			return payment.ErrNotFound
		}
		return nil
	})
	return o, err
}

// OrderID implements [Store].
func (m *Memory) OrderID(ctx context.Context, gateway string, ref payment.Ref) (id string, err error) {
	err = m.call(ctx, "OrderID", func() error {
		var ok bool
		if id, ok = m.pointers[pointerKey{gateway, cmp.Or(ref.GatewayOrderID, ref.PaymentID)}]; !ok {
			return payment.ErrNotFound
		}
		return nil
	})
	return id, err
}

// Effects implements [Store].
func (m *Memory) Effects(ctx context.Context, orderID string) (effects []payment.Effect, err error) {
	err = m.call(ctx, "Effects", func() error {
		keys := slices.SortedFunc(maps.Keys(m.effects), func(a, b effectKey) int { return cmp.Compare(a.key, b.key) })
		for _, k := range keys {
			if k.orderID == orderID {
				effects = append(effects, m.effects[k])
			}
		}
		return nil
	})
	return effects, err
}

// History implements [Store].
func (m *Memory) History(ctx context.Context, orderID string) (h payment.History, err error) {
	effects, err := m.Effects(ctx, orderID)
	if err != nil {
		return h, err
	}
	err = m.call(ctx, "History", func() error {
		for _, e := range effects {
			h.Effects = append(h.Effects, payment.DatedEffect{Effect: e, At: m.written[m.key(orderID, e)]})
		}
		h.Changes = m.changes[orderID]
		h.Callbacks = m.callbacks[orderID]
		for k, r := range m.refunds {
			if k.orderID == orderID {
				h.Refunds = append(h.Refunds, r)
			}
		}
		slices.SortFunc(h.Refunds, func(a, b payment.RefundRequest) int { return cmp.Compare(a.ID, b.ID) })
		for _, e := range m.events {
			if e.OrderID == orderID && (e.Status == payment.EventApplied || e.Status == payment.EventIgnored || e.Status == payment.EventFailed) {
				e.Body, e.NextAt, e.KeepUntil = nil, time.Time{}, time.Time{}
				h.Events = append(h.Events, e)
			}
		}
		slices.SortFunc(h.Events, func(a, b payment.Event) int {
			return cmp.Or(a.ReceivedAt.Compare(b.ReceivedAt), cmp.Compare(a.Key.ID, b.Key.ID))
		})
		return nil
	})
	return h, err
}

// Commit implements [Store].
func (m *Memory) Commit(ctx context.Context, c payment.Commit) error {
	return m.call(ctx, "Commit", func() error {
		if err := m.oneTransaction(c); err != nil {
			return err
		}
		if err := m.mayAllBeSettled(c.Events); err != nil {
			return err
		}
		if !m.unchanged(c.Order) {
			return payment.ErrVersionConflict
		}
		if err := m.conflicts(c); err != nil {
			return err
		}
		if c.Refund != nil {
			if !m.refundUnchanged(*c.Refund) {
				return payment.ErrRefundChanged
			}
			m.putRefund(*c.Refund)
		}
		for _, e := range c.Effects {
			m.write(c.Order, e)
		}
		for _, s := range c.Events {
			m.settle(s)
		}
		if c.Change != nil {
			m.changes[c.Order.ID] = append(m.changes[c.Order.ID], *c.Change)
		}
		c.Order.Version++
		m.orders[c.Order.ID] = c.Order
		return nil
	})
}

// unchanged reports whether the order is stored as it was read, or not stored if it is new.
func (m *Memory) unchanged(o payment.Order) bool {
	there, ok := m.orders[o.ID]
	if !ok || o.Version == 0 {
		return !ok && o.Version == 0
	}
	return there.Version == o.Version && there.CreatedAt.Equal(o.CreatedAt)
}

// maxActions is what DynamoDB takes in one transaction (TransactWriteItems).
const maxActions = 100

// oneTransaction refuses what DynamoDB refuses: too many actions, or two on one row.
func (m *Memory) oneTransaction(c payment.Commit) error {
	rows := map[any]bool{}
	for _, e := range c.Effects {
		switch e := e.(type) {
		case payment.PaymentPointer:
			rows[pointerKey{c.Order.Gateway, e.PaymentID}] = true
		case payment.OrderPointer:
			rows[pointerKey{c.Order.Gateway, e.GatewayOrderID}] = true
		default:
			rows[m.key(c.Order.ID, e)] = true
		}
	}
	for _, s := range c.Events {
		rows[s.Key] = true
	}
	if n := len(c.Effects) + len(c.Events); len(rows) < n || n > maxActions-2 {
		return fmt.Errorf("storetest: a transaction of %d effects and events on %d rows", n, len(rows))
	}
	return nil
}

// conflicts says what the table knows better than the commit, or that an effect is there with other content.
func (m *Memory) conflicts(c payment.Commit) error {
	correction := &payment.CorrectionError{}
	for _, e := range c.Effects {
		switch e := e.(type) {
		case payment.PaymentPointer:
			if owner, ok := m.pointers[pointerKey{c.Order.Gateway, e.PaymentID}]; ok && owner != c.Order.ID {
				correction.Facts = append(correction.Facts, payment.ForeignPaymentFact{PaymentID: e.PaymentID, OrderID: owner})
			}
		case payment.OrderPointer:
			if owner, ok := m.pointers[pointerKey{c.Order.Gateway, e.GatewayOrderID}]; ok && owner != c.Order.ID {
				return fmt.Errorf("gateway order belongs to order %s: %w", owner, payment.ErrEffectConflict)
			}
		case payment.CountedAttempt:
			if _, ok := m.effects[m.key(c.Order.ID, e)]; ok {
				correction.Facts = append(correction.Facts, payment.CountedAttemptFact(e))
			}
		case payment.LedgerEntry:
			if there, ok := m.effects[m.key(c.Order.ID, e)]; ok && there != payment.Effect(e) {
				return fmt.Errorf("LEDGER %s: %w", e.SubjectID, payment.ErrEffectConflict)
			}
		}
	}
	if len(correction.Facts) > 0 {
		return correction
	}
	return nil
}

func (m *Memory) write(o payment.Order, e payment.Effect) {
	switch e := e.(type) {
	case payment.PaymentPointer:
		m.pointers[pointerKey{o.Gateway, e.PaymentID}] = o.ID
	case payment.OrderPointer:
		m.pointers[pointerKey{o.Gateway, e.GatewayOrderID}] = o.ID
	default:
		if k := m.key(o.ID, e); m.effects[k] == nil {
			m.effects[k], m.written[k] = e, o.UpdatedAt
			if _, told := payment.Announce(payment.OutboxKey{}, e, 0, time.Time{}); told {
				m.outbox[k] = outbox{orderVersion: o.Version + 1, dueAt: o.UpdatedAt}
			}
		}
	}
}

func (m *Memory) key(orderID string, e payment.Effect) effectKey {
	switch e := e.(type) {
	case payment.Fulfilment:
		return effectKey{orderID, "FULFILMENT"}
	case payment.Notification:
		return effectKey{orderID, "OUTBOX#" + e.Key}
	case payment.LedgerEntry:
		return effectKey{orderID, fmt.Sprintf("LEDGER#%s#%s", e.SubjectID, e.Type)}
	case payment.CountedAttempt:
		return effectKey{orderID, "ATTEMPT#" + e.PaymentID}
	}
	panic(fmt.Sprintf("storetest: no key for effect %T", e))
}
