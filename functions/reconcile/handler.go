package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
)

const (
	// itemTime is how long one item may take: a question that a slow gateway answers, and the writing down.
	itemTime = 14 * time.Second
	// reserve is the time before the function's own end at which no further item begins.
	reserve = itemTime + time.Second
	// writingTime is the time before an item's end at which a lost race is not run again.
	writingTime = 2 * time.Second
)

// store is where events, orders and refund requests are kept. What it lists as due lags behind: the row itself decides.
type store interface {
	// DueEvents calls found with each event that is listed with the status as due before the time, soonest first within each
	// shard, until found returns false. DueOrders and DueRefunds do the same.
	DueEvents(ctx context.Context, status payment.EventStatus, before time.Time, found func(payment.EventKey) bool) error
	DueOrders(ctx context.Context, before time.Time, found func(orderID string) bool) error
	DueRefunds(ctx context.Context, before time.Time, found func(orderID, id string) bool) error
	// Event reads an event as it is now, Order an order. [payment.ErrNotFound] if there is none.
	Event(ctx context.Context, k payment.EventKey) (payment.Event, error)
	Order(ctx context.Context, id string) (payment.Order, error)
	// SettleEvent writes what became of an event. [payment.ErrEventApplied] if it is APPLIED already.
	SettleEvent(ctx context.Context, s payment.Settlement) error
	// PostponeOrder changes when the gateway is asked about an order. [payment.ErrVersionConflict] if the order has changed.
	PostponeOrder(ctx context.Context, o payment.Order, next time.Time) error
	// Commit writes a change of an order whole or not at all.
	Commit(ctx context.Context, c payment.Commit) error
}

// refunder takes a refund request that is due one step further, and reports false if there was nothing to do.
type refunder interface {
	Pursue(ctx context.Context, orderID, id string) (bool, error)
}

type handler struct {
	store    store
	queue    queue
	gateways map[string]func(context.Context) gateway // by name; asked anew each time, since keys are rotated
	advancer advance.Advancer
	refunder refunder
	stack    string // distinguishes our orders at the gateway from another deployment's
	log      *slog.Logger
	now      func() time.Time
}

// Handle looks after what is due: events that nobody settled, orders about which the gateway may know more, refunds whose
// outcome is open. It fails if it could not do one of these jobs; one item's failure never keeps it from the next.
func (h *handler) Handle(ctx context.Context) error {
	return errors.Join(h.handOffs(ctx), h.questions(ctx), h.refunds(ctx))
}

// questions asks the gateway about the orders that are due.
func (h *handler) questions(ctx context.Context) error {
	w := h.walk("orders asked about")
	err := h.store.DueOrders(ctx, h.now(), func(orderID string) bool {
		return w.visit(ctx, orderID, func(ctx context.Context) (bool, error) { return h.ask(ctx, orderID) })
	})
	return w.end(ctx, err)
}

// refunds looks after the refund requests that are due.
func (h *handler) refunds(ctx context.Context) error {
	w := h.walk("refunds looked after")
	err := h.store.DueRefunds(ctx, h.now(), func(orderID, id string) bool {
		return w.visit(ctx, orderID, func(ctx context.Context) (bool, error) { return h.refunder.Pursue(ctx, orderID, id) })
	})
	return w.end(ctx, err)
}

// walk goes through what is due, as far as the time reaches. The next run does the rest.
type walk struct {
	*handler
	part         string
	done, failed int
	unfinished   bool
}

func (h *handler) walk(part string) *walk { return &walk{handler: h, part: part} }

// visit does the work on one item. It reports false if there is no time for more.
func (w *walk) visit(ctx context.Context, item string, work func(context.Context) (bool, error)) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < reserve {
		w.unfinished = true
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, itemTime)
	defer cancel()
	done, err := work(ctx)
	switch {
	case err != nil:
		w.failed++
		w.log.LogAttrs(ctx, slog.LevelError, "not done", slog.String("part", w.part), slog.String("item", item), slog.String("error", err.Error()))
	case done:
		w.done++
	}
	return true
}

// end reports the walk. It fails if the list could not be read, or no item could be done: a single one that failed is on record
// and comes again by its schedule.
func (w *walk) end(ctx context.Context, err error, more ...slog.Attr) error {
	w.log.LogAttrs(ctx, slog.LevelInfo, "reconcile", append([]slog.Attr{
		slog.String("part", w.part), slog.Int("done", w.done), slog.Int("failed", w.failed), slog.Bool("finished", !w.unfinished),
	}, more...)...)
	if w.failed > 0 && w.done == 0 {
		err = errors.Join(err, fmt.Errorf("none of %d could be done", w.failed))
	}
	if err != nil {
		return fmt.Errorf("reconcile: %s: %w", w.part, err)
	}
	return nil
}
