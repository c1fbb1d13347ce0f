package queue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestDropDeletesWhatIsNamedAndSendsNothing(t *testing.T) {
	b := newBench(t, 40)
	ids := b.ids()
	r, err := b.dead.Drop(t.Context(), append(ids[:25:25], "nobody's"))
	if err != nil || r.Gone != 25 || len(r.Missing) != 1 || r.Missing[0] != "nobody's" {
		t.Errorf("%+v, %v", r, err)
	}
	b.want("dead letters", deadURL, encoded(25, 40))
	b.want("events", eventsURL, nil)
	if b.hidden() != 0 {
		t.Errorf("%d are hidden", b.hidden())
	}
}

// What a failure or an interrupt left, the same call does.
func TestDropIsResumed(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		b := newBench(t, 1000)
		ids := b.ids()
		ctx, cancel := context.WithCancel(t.Context())
		var deletes atomic.Int64
		b.sqs.Before = func(operation string) error {
			if operation != "DeleteMessageBatch" {
				return nil
			}
			if deletes.Add(1) < 3 {
				return nil
			}
			if interrupted {
				cancel()
				return nil
			}
			return errors.New("refused")
		}
		r, err := b.dead.Drop(ctx, ids)
		cancel()
		if err == nil || r.Gone == 0 || r.Gone == 1000 || b.hidden() != 0 {
			t.Errorf("interrupted %t: %d gone, %d hidden, %v", interrupted, r.Gone, b.hidden(), err)
		}
		b.sqs.Before = nil
		if again, err := b.dead.Drop(t.Context(), r.Missing); err != nil || r.Gone+again.Gone != 1000 {
			t.Errorf("interrupted %t: %d and %d gone, %v", interrupted, r.Gone, again.Gone, err)
		}
	}
}
