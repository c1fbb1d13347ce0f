package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"paidonce/shared/announce"
	"paidonce/shared/payment"
)

// run is one run of reconcile, as far as it gets with the announcements.
type run struct {
	at   int  // the call about announcements, from 1, with which something goes wrong; 0: none
	done bool // that call is done, and its answer lost
	dies bool // nothing is called after it, the lease is not given back

	calls int
	hit   string // the call that went wrong
}

var (
	errBroken = errors.New("broken")
	errKilled = errors.New("killed")
)

func (r *run) call(name string, do func() error) error {
	r.calls++
	if r.calls != r.at {
		return do()
	}
	r.hit = name
	if r.done {
		if err := do(); err != nil {
			return err
		}
	}
	if r.dies {
		panic(errKilled)
	}
	return errBroken
}

// shakyStore and shakyBus are the store and the bus as a run reaches them.
type shakyStore struct {
	store
	announcements announce.Store
	*run
}

func (s shakyStore) DueAnnouncements(ctx context.Context, before time.Time, found func(payment.OutboxKey) bool) error {
	var due []payment.OutboxKey
	if err := s.call("DueAnnouncements", func() error {
		return s.store.DueAnnouncements(ctx, before, func(k payment.OutboxKey) bool {
			due = append(due, k)
			return true
		})
	}); err != nil {
		return err
	}
	for _, k := range due {
		if !found(k) {
			break
		}
	}
	return nil
}

func (s shakyStore) PostponeAnnouncement(ctx context.Context, k payment.OutboxKey, at time.Time) error {
	return s.call("PostponeAnnouncement", func() error { return s.store.PostponeAnnouncement(ctx, k, at) })
}

func (s shakyStore) Unsent(ctx context.Context, keys []payment.OutboxKey) (unsent []payment.Announcement, err error) {
	err = s.call("Unsent", func() error {
		unsent, err = s.announcements.Unsent(ctx, keys)
		return err
	})
	return unsent, err
}

func (s shakyStore) MarkSent(ctx context.Context, k payment.OutboxKey, at time.Time) error {
	return s.call("MarkSent", func() error { return s.announcements.MarkSent(ctx, k, at) })
}

func (s shakyStore) Release(ctx context.Context, holder string) error {
	if s.dies && s.hit != "" {
		return nil // nobody is left to do it
	}
	return s.store.Release(ctx, holder)
}

type shakyBus struct {
	*fakeBus
	*run
}

func (s shakyBus) Publish(ctx context.Context, a []payment.Announcement) (results []error) {
	if err := s.call("Publish", func() error {
		results = s.fakeBus.Publish(ctx, a)
		return nil
	}); err != nil {
		results = slices.Repeat([]error{err}, len(a))
	}
	return results
}

// sweepAfter lets reconcile run, so much time after all was written.
func (b *bundle) sweepAfter(r *run, after time.Duration) (err error) {
	b.at = received.Add(after)
	h := *b.handler
	shaky := shakyStore{b.memory, b.memory, r}
	h.store, h.announcer = shaky, announce.Announcer{Store: shaky, Bus: shakyBus{b.bus, r}, Now: h.now}
	defer func() {
		if killed := recover(); killed == errKilled {
			err = errKilled
		} else if killed != nil {
			panic(killed)
		}
	}()
	return h.Handle(context.Background())
}

// announced stores fulfilled orders and returns their announcements.
func (b *bundle) announced(t *testing.T, n int) []payment.OutboxKey {
	t.Helper()
	price := payment.Money{Amount: 49900, Currency: "INR"}
	var keys []payment.OutboxKey
	for i := range n {
		o := payment.NewOrder(fmt.Sprint("o", i), price, "razorpay", payment.Test, received)
		if err := b.memory.Commit(context.Background(), payment.Commit{Order: o, Effects: []payment.Effect{payment.Fulfilment{Captured: price}}}); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, payment.OutboxKey{OrderID: o.ID, Name: "FULFILMENT"})
	}
	return keys
}

// TestCrashesOfAnnouncements breaks or kills a run at every call about announcements. In the end all are published and marked,
// and one of them twice at most.
func TestCrashesOfAnnouncements(t *testing.T) {
	const orders = 3
	const calls = 1 + orders*4 // the list; and postpone, read, publish, mark
	sequels := []struct {
		name string
		next func(b *bundle, keys []payment.OutboxKey) error
	}{
		{"reconcile runs again", func(b *bundle, _ []payment.OutboxKey) error {
			return errors.Join(b.sweepAfter(&run{}, 16*time.Minute), b.sweepAfter(&run{}, 23*time.Minute))
		}},
		{"the stream brings them", func(b *bundle, keys []payment.OutboxKey) error {
			_, err := b.handler.announcer.Announce(context.Background(), keys)
			return err
		}},
		{"the stream brings them, and reconcile runs", func(b *bundle, keys []payment.OutboxKey) error {
			_, err := b.handler.announcer.Announce(context.Background(), keys)
			return errors.Join(err, b.sweepAfter(&run{}, 23*time.Minute))
		}},
		{"the next run dies at once, and the one after comes", func(b *bundle, _ []payment.OutboxKey) error {
			if err := b.sweepAfter(&run{at: 1, dies: true}, 23*time.Minute); !errors.Is(err, errKilled) {
				return fmt.Errorf("it did not die: %w", err)
			}
			return errors.Join(b.sweepAfter(&run{}, 28*time.Minute), b.sweepAfter(&run{}, 40*time.Minute))
		}},
	}
	cases, repetitions, broken := 0, 0, map[string]int{}
	for _, sequel := range sequels {
		for at := range calls + 1 {
			for _, way := range []run{{}, {done: true}, {dies: true}, {done: true, dies: true}} {
				way.at = at
				name := fmt.Sprintf("call %d (done %t, dies %t), then %s", at, way.done, way.dies, sequel.name)
				b := setup()
				keys := b.announced(t, orders)
				if err := b.sweepAfter(&run{}, 9*time.Minute); err != nil || len(b.bus.published) > 0 {
					t.Fatalf("%s: the stream has not had its time: %v, %v", name, b.bus.published, err)
				}
				_ = b.sweepAfter(&way, 11*time.Minute) // whether it fails is another test's question
				if at > 0 && way.hit == "" || at == 0 && len(b.bus.published) != orders {
					t.Fatalf("%s: made %d calls and published %v", name, way.calls, b.bus.published)
				}
				if err := sequel.next(b, keys); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				doubled := 0
				for _, k := range keys {
					n := b.bus.published[k.String()]
					if n < 1 || n > 2 {
						t.Errorf("%s: %s was published %d times", name, k, n)
					}
					doubled += n - 1
				}
				if explained := way.hit == "Publish" && way.done || way.hit == "MarkSent" && !way.done; doubled > 1 || doubled == 1 && !explained {
					t.Errorf("%s: %d were published twice", name, doubled)
				}
				if unsent, err := b.memory.Unsent(t.Context(), keys); err != nil || len(unsent) > 0 {
					t.Errorf("%s: not marked as sent: %v %v", name, unsent, err)
				}
				if t.Failed() {
					t.FailNow()
				}
				cases++
				repetitions += doubled
				broken[cmp.Or(way.hit, "none")]++
			}
		}
	}
	t.Logf("%d ways to crash %v: %d repetitions under the same id, none lost", cases, broken, repetitions)
}

// One that the bus always refuses does not come first in every run, and the others are published.
func TestAnAnnouncementThatAlwaysFailsKeepsNobody(t *testing.T) {
	b := setup()
	keys := b.announced(t, 3)
	b.bus.refuse = keys[0].String()
	for minutes := 11; minutes <= 31; minutes += 5 {
		r := &run{}
		if err := b.sweepAfter(r, time.Duration(minutes)*time.Minute); err != nil && minutes == 11 {
			t.Errorf("one failure fails the run although others were published: %v", err)
		}
		const lists = 2                                                          // of what is due, and of what is overdue
		if tried := r.calls > lists; tried != (minutes == 11 || minutes == 26) { // at 21 its ten minutes are not over
			t.Errorf("after %d minutes: %d calls", minutes, r.calls)
		}
	}
	b.bus.refuse = ""
	if err := b.sweepAfter(&run{}, 41*time.Minute); err != nil {
		t.Error(err)
	}
	for _, k := range keys {
		if n := b.bus.published[k.String()]; n != 1 {
			t.Errorf("%s was published %d times", k, n)
		}
	}
}
