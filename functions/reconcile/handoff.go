package main

import (
	"context"
	"errors"
	"fmt"

	"paidonce/shared/payment"
)

// backlog is the number of waiting messages from which events are not handed over again: the worker is behind, and nothing is
// lost.
const backlog = 1000

// queue hands events to the worker.
type queue interface {
	Send(ctx context.Context, k payment.EventKey) error
	// Waiting is about how many messages wait.
	Waiting(ctx context.Context) (int, error)
}

// handOffs hands events to the worker again that nobody settled (their message was lost) or whose order was not known. It
// returns how many messages, or events without one, wait for the worker.
func (s *sweep) handOffs(ctx context.Context) (waiting int, err error) {
	waiting, err = s.queue.Waiting(ctx)
	if err != nil {
		return backlog, fmt.Errorf("reconcile: %w", err)
	}
	s.waiting = waiting
	statuses := []payment.EventStatus{payment.EventReceived, payment.EventParked} // ours before what may be another shop's
	if waiting >= backlog {
		statuses = statuses[1:]
	}
	var errs []error
	for _, status := range statuses {
		w := s.walk(fmt.Sprintf("%s events handed over", status))
		err := s.store.DueEvents(ctx, status, s.now(), func(k payment.EventKey) bool {
			return w.visit(ctx, k.String(), func(ctx context.Context) (bool, error) { return s.sendAgain(ctx, status, k) })
		})
		errs = append(errs, w.end(err))
		if status == payment.EventReceived {
			waiting += w.done + w.failed
		}
	}
	return waiting, errors.Join(errs...)
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
