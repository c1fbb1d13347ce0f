package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"paidonce/shared/payment"
)

const (
	// reserve is the time before the function's own end at which nothing new begins.
	reserve = 10 * time.Second
	// backlog is the number of waiting messages from which events are not handed over again: the worker is behind, and
	// nothing is lost.
	backlog = 1000
)

// store is where events are kept.
type store interface {
	// DueEvents calls found with each event that is listed with the status as due before the time, soonest first within each shard, until
	// found returns false. The list lags: the event itself decides.
	DueEvents(ctx context.Context, status payment.EventStatus, before time.Time, found func(payment.EventKey) bool) error
	// Event reads an event as it is now. [payment.ErrNotFound] if there is none.
	Event(ctx context.Context, k payment.EventKey) (payment.Event, error)
	// SettleEvent writes what became of an event. [payment.ErrEventApplied] if it is APPLIED already.
	SettleEvent(ctx context.Context, s payment.Settlement) error
}

// queue hands events to the worker.
type queue interface {
	Send(ctx context.Context, k payment.EventKey) error
	// Waiting is about how many messages wait.
	Waiting(ctx context.Context) (int, error)
}

type handler struct {
	store store
	queue queue
	pace  payment.Pace
	log   *slog.Logger
	now   func() time.Time
}

// Handle hands events to the worker again that nobody settled (their message was lost) or whose order was not known. It
// fails if it could not do its job; one event's failure never keeps it from the next.
func (h *handler) Handle(ctx context.Context) error {
	waiting, err := h.queue.Waiting(ctx)
	if err != nil {
		return fmt.Errorf("reconcile: %w", err)
	}
	statuses := []payment.EventStatus{payment.EventReceived, payment.EventParked} // ours before what may be another shop's
	if waiting >= backlog {
		statuses = statuses[1:]
	}
	var errs []error
	for _, status := range statuses {
		sent, failed, finished, err := h.handOver(ctx, status)
		errs = append(errs, err)
		if failed > 0 {
			errs = append(errs, fmt.Errorf("reconcile: %d %s events could not be handed over", failed, status))
		}
		h.log.InfoContext(ctx, "handed over", "status", string(status), "sent", sent, "failed", failed, "waiting", waiting, "finished", finished)
	}
	return errors.Join(errs...)
}

// handOver sends the events of a status that are due, as far as the time reaches. The next run does the rest.
func (h *handler) handOver(ctx context.Context, status payment.EventStatus) (sent, failed int, finished bool, err error) {
	finished = true
	err = h.store.DueEvents(ctx, status, h.now(), func(k payment.EventKey) bool {
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < reserve {
			finished = false
			return false
		}
		done, err := h.sendAgain(ctx, status, k)
		switch {
		case err != nil:
			failed++
			h.log.ErrorContext(ctx, "not handed over", "event", k.String(), "error", err.Error())
		case done:
			sent++
		}
		return true
	})
	return sent, failed, finished, err
}

// sendAgain sends one event, if it is still due. When to look next is written first, so that an event that cannot be sent
// does not come first again and again.
func (h *handler) sendAgain(ctx context.Context, status payment.EventStatus, k payment.EventKey) (bool, error) {
	e, err := h.store.Event(ctx, k)
	if errors.Is(err, payment.ErrNotFound) {
		return false, nil // it has expired
	}
	if err != nil {
		return false, err
	}
	s, due := h.pace.SendAgain(e, h.now())
	if !due || e.Status != status {
		return false, nil
	}
	if err := h.store.SettleEvent(ctx, s); errors.Is(err, payment.ErrEventApplied) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, h.queue.Send(ctx, k)
}
