// Package announce publishes what subscribers are told, at least once: when the table's stream brings it, and again from the
// table where the stream did not.
package announce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"paidonce/shared/payment"
)

// Store is where announcements wait.
type Store interface {
	// Unsent reads those of the announcements that are not marked as sent, up to [MaxBatch].
	Unsent(ctx context.Context, keys []payment.OutboxKey) ([]payment.Announcement, error)
	// MarkSent marks one as sent, so that nobody sends it again. One that is marked already is left as it is.
	MarkSent(ctx context.Context, k payment.OutboxKey, at time.Time) error
}

// Bus takes announcements to subscribers.
type Bus interface {
	// Publish hands over announcements, up to [MaxBatch], and says of each by its position why it was not taken; nil: it was.
	Publish(ctx context.Context, a []payment.Announcement) []error
}

// MaxBatch is how many announcements are read and published at a time. EventBridge takes 10 entries (PutEvents).
const MaxBatch = 10

// Announcer publishes.
type Announcer struct {
	Store Store
	Bus   Bus
	Now   func() time.Time
}

// Announce publishes those of the announcements that are not sent yet, up to [MaxBatch], and returns the keys of those that could
// not be, with the reasons. An announcement that was published and could not be marked is among them: it is published twice.
func (a Announcer) Announce(ctx context.Context, keys []payment.OutboxKey) (failed []payment.OutboxKey, err error) {
	unsent, err := a.Store.Unsent(ctx, keys)
	if err != nil {
		return keys, err
	}
	if len(unsent) == 0 {
		return nil, nil
	}
	var reasons []error
	for i, err := range a.Bus.Publish(ctx, unsent) {
		if err == nil {
			err = a.Store.MarkSent(ctx, unsent[i].Key, a.Now())
		}
		if err != nil {
			failed = append(failed, unsent[i].Key)
			reasons = append(reasons, fmt.Errorf("%s: %w", unsent[i].Key, err))
		}
	}
	return failed, errors.Join(reasons...)
}
