package main

import (
	"context"
	"fmt"
	"time"

	"paidonce/shared/metrics"
	"paidonce/shared/payment"
)

// unsentMinutes is how long, in minutes, an announcement is the stream's before it is published from here.
const unsentMinutes = 10

// announcements publishes what the stream did not.
func (s *sweep) announcements(ctx context.Context) error {
	w := s.walk("announcements published")
	err := s.store.DueAnnouncements(ctx, s.now().Add(-s.minutes(unsentMinutes)), func(k payment.OutboxKey) bool {
		return w.visit(ctx, k.String(), func(ctx context.Context) (bool, error) {
			if err := s.store.PostponeAnnouncement(ctx, k, s.now()); err != nil { // one that always fails must not come first again
				return false, err
			}
			_, err := s.announcer.Announce(ctx, []payment.OutboxKey{k})
			return true, err
		})
	})
	return w.end(err)
}

// overdueMinutes is how long, in minutes, something may have been due before it counts as overdue: several runs were its chance.
const overdueMinutes = 30

// maxOverdue is how many are counted: more say nothing new.
const maxOverdue = 1000

// measureOverdue counts what has been due for long.
func (s *sweep) measureOverdue(ctx context.Context) error {
	n := 0
	count := func() bool {
		n++
		return n < maxOverdue
	}
	before := s.now().Add(-s.minutes(overdueMinutes))
	for _, list := range []func() error{
		func() error {
			return s.store.DueEvents(ctx, payment.EventReceived, before, func(payment.EventKey) bool { return count() })
		},
		func() error {
			return s.store.DueEvents(ctx, payment.EventParked, before, func(payment.EventKey) bool { return count() })
		},
		func() error { return s.store.DueOrders(ctx, before, func(string) bool { return count() }) },
		func() error { return s.store.DueRefunds(ctx, before, func(string, string) bool { return count() }) },
		func() error {
			return s.store.DueAnnouncements(ctx, before.Add(-s.minutes(unsentMinutes)), func(payment.OutboxKey) bool { return count() })
		},
	} {
		if err := list(); err != nil {
			return fmt.Errorf("reconcile: overdue: %w", err)
		}
	}
	s.overdue = n
	s.metrics.Put(metrics.Overdue.Of(float64(n)))
	return nil
}

func (h *handler) minutes(n int) time.Duration { return h.pace.Minutes(n) }
