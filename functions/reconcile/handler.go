package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"paidonce/shared/logs"
	"paidonce/shared/metrics"
	"paidonce/shared/payment"
	"paidonce/shared/reconcile"
)

const (
	// itemTime is how long one item may take: a question that a slow gateway answers, and the writing down.
	itemTime = 14 * time.Second
	// reserve is the time before the function's own end at which no further item begins.
	reserve = itemTime + time.Second
	// writingTime is the time before an item's end at which a lost race is not run again.
	writingTime = 2 * time.Second
	// leaseTime outlasts the longest run, so that two never work at a time unless one was cut off.
	leaseTime = 3 * time.Minute
)

// store is where events, orders, refund requests and announcements are kept. What it lists as due lags behind: the row itself
// decides.
type store interface {
	// Lease takes the sweep's lease, and reports false if somebody else has it. Release gives it back.
	Lease(ctx context.Context, holder string, now, until time.Time) (bool, error)
	Release(ctx context.Context, holder string) error
	// DueEvents calls found with each event that is listed with the status as due before the time, soonest first within each
	// shard, until found returns false. DueOrders, DueRefunds and DueAnnouncements do the same.
	DueEvents(ctx context.Context, status payment.EventStatus, before time.Time, found func(payment.EventKey) bool) error
	DueOrders(ctx context.Context, before time.Time, found func(orderID string) bool) error
	DueRefunds(ctx context.Context, before time.Time, found func(orderID, id string) bool) error
	DueAnnouncements(ctx context.Context, before time.Time, found func(payment.OutboxKey) bool) error
	// Event reads an event as it is now. [payment.ErrNotFound] if there is none.
	Event(ctx context.Context, k payment.EventKey) (payment.Event, error)
	// SettleEvent writes what became of an event. [payment.ErrEventApplied] if it is APPLIED already.
	SettleEvent(ctx context.Context, s payment.Settlement) error
	// PostponeAnnouncement lists an announcement as due again from this time.
	PostponeAnnouncement(ctx context.Context, k payment.OutboxKey, at time.Time) error
}

// refunder takes a refund request that is due one step further, and reports false if there was nothing to do.
type refunder interface {
	Pursue(ctx context.Context, orderID, id string) (bool, error)
}

// announcer publishes announcements that are not sent.
type announcer interface {
	Announce(ctx context.Context, keys []payment.OutboxKey) (failed []payment.OutboxKey, err error)
}

// reconciler compares with the gateway; see [reconcile.Reconciler].
type reconciler interface {
	Ask(ctx context.Context, orderID string) (bool, error)
	Scan(ctx context.Context, gateway string, scan payment.Scan, more func() bool) (found reconcile.Findings, silent int, err error)
}

type handler struct {
	store      store
	queue      queue
	refunder   refunder
	announcer  announcer
	reconciler reconciler
	gateways   []string // that are scanned
	pace       payment.Pace
	metrics    *metrics.Writer
	log        *slog.Logger
	now        func() time.Time
}

// Handle looks after what is due: events that nobody settled, refunds whose outcome is open, announcements that were not sent,
// orders about which the gateway may know more; and then goes through what the gateway has. It fails if it could not do one of
// these jobs; one item's failure never keeps it from the next. Of two runs at a time one does nothing.
func (h *handler) Handle(ctx context.Context) (err error) {
	s := &sweep{handler: h, begun: h.now()}
	holder := "local"
	if invocation, ok := lambdacontext.FromContext(ctx); ok {
		holder = invocation.AwsRequestID
	}
	taken, err := h.store.Lease(ctx, holder, h.now(), h.now().Add(leaseTime))
	if err != nil {
		return fmt.Errorf("reconcile: %w", err)
	}
	if !taken {
		h.log.LogAttrs(ctx, slog.LevelInfo, "sweep", slog.String("outcome", "none: another run is under way"))
		return nil
	}
	defer func() { err = errors.Join(err, h.store.Release(ctx, holder)) }()
	defer func() { s.report(ctx, err) }()
	waiting, err := s.handOffs(ctx)
	errs := []error{err}
	parts := []func(context.Context) error{
		s.refunds, s.announcements, s.questions, func(ctx context.Context) error { return s.scans(ctx, waiting) },
	}
	first := int(h.now().UnixMilli()) % len(parts) // any, so that none can take all the time of the others for ever
	for i := range parts {
		errs = append(errs, parts[(first+i)%len(parts)](ctx))
	}
	return errors.Join(append(errs, s.measureOverdue(ctx))...)
}

// sweep is one run, and what its line will say.
type sweep struct {
	*handler
	begun        time.Time
	waiting      int      // messages for the worker
	parts        []string // how far each came that had something to do
	done, failed int
	overdue      int
	unfinished   bool
}

// report writes the one line about a run.
func (s *sweep) report(ctx context.Context, err error) {
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("parts", strings.Join(s.parts, "; ")), slog.Int("done", s.done), slog.Int("failed", s.failed),
		slog.Bool("finished", !s.unfinished), slog.Int("waiting", s.waiting), slog.Int("overdue", s.overdue),
		slog.Int64("took_ms", s.now().Sub(s.begun).Milliseconds()),
	}
	if err != nil {
		level = slog.LevelError
		attributes = append(attributes, slog.String("error", err.Error()))
	}
	s.log.LogAttrs(ctx, level, "sweep", attributes...)
}

// questions asks the gateway about the orders that are due.
func (s *sweep) questions(ctx context.Context) error {
	w := s.walk("orders asked about")
	err := s.store.DueOrders(ctx, s.now(), func(orderID string) bool {
		return w.visit(ctx, orderID, func(ctx context.Context) (bool, error) { return s.reconciler.Ask(ctx, orderID) })
	})
	return w.end(err)
}

// refunds looks after the refund requests that are due.
func (s *sweep) refunds(ctx context.Context) error {
	w := s.walk("refunds looked after")
	err := s.store.DueRefunds(ctx, s.now(), func(orderID, id string) bool {
		return w.visit(ctx, orderID, func(ctx context.Context) (bool, error) { return s.refunder.Pursue(ctx, orderID, id) })
	})
	return w.end(err)
}

// walk goes through what is due, as far as the time reaches. The next run does the rest.
type walk struct {
	*sweep
	part         string
	done, failed int
	unfinished   bool
}

func (s *sweep) walk(part string) *walk { return &walk{sweep: s, part: part} }

// timeLeft reports whether another item may begin.
func timeLeft(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) >= reserve
}

// half is the context in which half of the time that is left for items may be used.
func half(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-max(0, time.Until(deadline)-reserve)/2))
}

// visit does the work on one item. It reports false if there is no time for more.
func (w *walk) visit(ctx context.Context, item string, work func(context.Context) (bool, error)) bool {
	if !timeLeft(ctx) {
		w.unfinished = true
		return false
	}
	ctx, cancel := context.WithTimeout(logs.With(ctx, slog.String("item", item)), itemTime)
	defer cancel()
	done, err := work(ctx)
	switch {
	case err != nil:
		w.failed++
		w.log.LogAttrs(ctx, slog.LevelError, "not done", slog.String("part", w.part), slog.String("error", err.Error()))
	case done:
		w.done++
	}
	return true
}

// end tells the run how far the walk came. It fails if the list could not be read, or no item could be done: a single one that failed is on record
// and comes again by its schedule.
func (w *walk) end(err error) error {
	s := w.sweep
	s.done, s.failed, s.unfinished = s.done+w.done, s.failed+w.failed, s.unfinished || w.unfinished
	if w.done+w.failed > 0 || w.unfinished {
		came := fmt.Sprintf("%s: %d done, %d failed", w.part, w.done, w.failed)
		if w.unfinished {
			came += ", not finished"
		}
		s.parts = append(s.parts, came)
	}
	if w.failed > 0 && w.done == 0 {
		err = errors.Join(err, fmt.Errorf("none of %d could be done", w.failed))
	}
	if err != nil {
		return fmt.Errorf("reconcile: %s: %w", w.part, err)
	}
	return nil
}
