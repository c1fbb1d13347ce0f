package main

import (
	"context"
	"fmt"
	"time"

	"paidonce/shared/payment"
)

// unsentMinutes is how long, in minutes, an announcement is the stream's before it is published from here.
const unsentMinutes = 10

// announcements publishes what the stream did not.
func (h *handler) announcements(ctx context.Context) error {
	w := h.walk("announcements")
	err := h.store.DueAnnouncements(ctx, h.now().Add(-h.minutes(unsentMinutes)), func(k payment.OutboxKey) bool {
		return w.visit(ctx, k.String(), func(ctx context.Context) (bool, error) {
			if err := h.store.PostponeAnnouncement(ctx, k, h.now()); err != nil { // one that always fails must not come first again
				return false, err
			}
			_, err := h.announcer.Announce(ctx, []payment.OutboxKey{k})
			return true, err
		})
	})
	return w.end(ctx, err)
}

// overdueMinutes is how long, in minutes, something may have been due before it counts as overdue: several runs were its chance.
const overdueMinutes = 30

// maxOverdue is how many are counted: more say nothing new.
const maxOverdue = 1000

// overdue measures what has been due for long.
func (h *handler) overdue(ctx context.Context) error {
	n := 0
	count := func() bool {
		n++
		return n < maxOverdue
	}
	before := h.now().Add(-h.minutes(overdueMinutes))
	for _, list := range []func() error{
		func() error {
			return h.store.DueEvents(ctx, payment.EventReceived, before, func(payment.EventKey) bool { return count() })
		},
		func() error {
			return h.store.DueEvents(ctx, payment.EventParked, before, func(payment.EventKey) bool { return count() })
		},
		func() error { return h.store.DueOrders(ctx, before, func(string) bool { return count() }) },
		func() error { return h.store.DueRefunds(ctx, before, func(string, string) bool { return count() }) },
		func() error {
			return h.store.DueAnnouncements(ctx, before.Add(-h.minutes(unsentMinutes)), func(payment.OutboxKey) bool { return count() })
		},
	} {
		if err := list(); err != nil {
			return fmt.Errorf("reconcile: overdue: %w", err)
		}
	}
	h.put(map[string]float64{"Overdue": float64(n)})
	return nil
}

func (h *handler) minutes(n int) time.Duration { return h.pace.Minutes(n) }
