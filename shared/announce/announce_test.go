package announce_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/announce"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

var (
	at    = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	price = payment.Money{Amount: 49900, Currency: "INR"}
)

// bus keeps what was published, by key.
type bus struct {
	mu        sync.Mutex
	published map[string]int
	refused   map[string]bool
	broken    error
	meanwhile func() // runs after the announcements were read, before they are published
}

func (b *bus) Publish(_ context.Context, announcements []payment.Announcement) []error {
	if b.meanwhile != nil {
		b.meanwhile()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	results := make([]error, len(announcements))
	for i, a := range announcements {
		switch {
		case b.broken != nil:
			results[i] = b.broken
		case b.refused[a.Key.Name]:
			results[i] = errors.New("refused")
		default:
			b.published[a.Key.Name]++
		}
	}
	return results
}

// world is a store with one order's fulfilment and two notifications.
func world(t *testing.T) (announce.Announcer, *storetest.Memory, *bus, []payment.OutboxKey) {
	t.Helper()
	memory, b := storetest.NewMemory(), &bus{published: map[string]int{}, refused: map[string]bool{}}
	o := payment.NewOrder("o1", price, "razorpay", payment.Test, at)
	if err := memory.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{
		payment.Fulfilment{Captured: price}, payment.LedgerEntry{SubjectID: "pay_1", Type: payment.LedgerCaptured, Amount: price},
		payment.Notification{Key: "failed", Status: payment.Failed, Amount: price},
		payment.Notification{Key: "refunded", Status: payment.Refunded, Amount: price},
	}}); err != nil {
		t.Fatal(err)
	}
	var keys []payment.OutboxKey
	for _, name := range []string{"FULFILMENT", "OUTBOX#failed", "OUTBOX#refunded"} {
		keys = append(keys, payment.OutboxKey{OrderID: "o1", Name: name})
	}
	return announce.Announcer{Store: memory, Bus: b, Now: func() time.Time { return at }}, memory, b, keys
}

func names(keys []payment.OutboxKey) []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return names
}

// unsent lists what is not marked as sent.
func unsent(t *testing.T, m *storetest.Memory, keys []payment.OutboxKey) []string {
	t.Helper()
	m.Faults = nil
	all, err := m.Unsent(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range all {
		names = append(names, a.Key.Name)
	}
	return names
}

func times(published map[string]int) []string {
	var all []string
	for name, n := range published {
		all = append(all, fmt.Sprint(name, " ", n))
	}
	slices.Sort(all)
	return all
}

func TestAnnounce(t *testing.T) {
	fault := func(method string, f storetest.Fault) func(*storetest.Memory, *bus) {
		return func(m *storetest.Memory, _ *bus) {
			m.Faults = func(called string) storetest.Fault {
				if called == method {
					return f
				}
				return storetest.None
			}
		}
	}
	all := []string{"FULFILMENT", "OUTBOX#failed", "OUTBOX#refunded"}
	for _, c := range []struct {
		name      string
		breaks    func(*storetest.Memory, *bus)
		failed    []string
		published []string
		unsent    []string // afterwards
		again     []string // published in all, once all is well and they were announced again
	}{
		{"all is well", func(*storetest.Memory, *bus) {}, nil, []string{"FULFILMENT 1", "OUTBOX#failed 1", "OUTBOX#refunded 1"}, nil,
			[]string{"FULFILMENT 1", "OUTBOX#failed 1", "OUTBOX#refunded 1"}},
		{"the rows cannot be read", fault("Unsent", storetest.NotDone), all, nil, all, []string{"FULFILMENT 1", "OUTBOX#failed 1", "OUTBOX#refunded 1"}},
		{"the bus takes nothing", func(_ *storetest.Memory, b *bus) { b.broken = errors.New("throttled") }, all, nil, all,
			[]string{"FULFILMENT 1", "OUTBOX#failed 1", "OUTBOX#refunded 1"}},
		{"the bus refuses one", func(_ *storetest.Memory, b *bus) { b.refused["OUTBOX#failed"] = true }, []string{"OUTBOX#failed"},
			[]string{"FULFILMENT 1", "OUTBOX#refunded 1"}, []string{"OUTBOX#failed"}, []string{"FULFILMENT 1", "OUTBOX#failed 1", "OUTBOX#refunded 1"}},
		{"nothing can be marked", fault("MarkSent", storetest.NotDone), all, []string{"FULFILMENT 1", "OUTBOX#failed 1", "OUTBOX#refunded 1"}, all,
			[]string{"FULFILMENT 2", "OUTBOX#failed 2", "OUTBOX#refunded 2"}},
		{"the marks' answers are lost", fault("MarkSent", storetest.DoneUnsaid), all, []string{"FULFILMENT 1", "OUTBOX#failed 1", "OUTBOX#refunded 1"}, nil,
			[]string{"FULFILMENT 1", "OUTBOX#failed 1", "OUTBOX#refunded 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, memory, b, keys := world(t)
			c.breaks(memory, b)
			failed, err := a.Announce(t.Context(), keys)
			if (err == nil) != (len(failed) == 0) {
				t.Errorf("failed %v with error %v", failed, err)
			}
			for _, k := range failed {
				if !strings.Contains(err.Error(), k.String()) && !errors.Is(err, storetest.ErrFault) {
					t.Errorf("the error does not say what became of %s: %v", k, err)
				}
			}
			for what, lists := range map[string][2][]string{
				"failed":    {c.failed, names(failed)},
				"published": {c.published, times(b.published)},
				"unsent":    {c.unsent, unsent(t, memory, keys)},
			} {
				if diff := cmp.Diff(lists[0], lists[1]); diff != "" {
					t.Errorf("%s (-want +got)\n%s", what, diff)
				}
			}
			b.broken, b.refused = nil, nil
			if failed, err := a.Announce(t.Context(), keys); err != nil || len(failed) > 0 {
				t.Errorf("the next time %v failed: %v", failed, err)
			}
			if diff := cmp.Diff(c.again, times(b.published)); diff != "" {
				t.Errorf("in the end published (-want +got)\n%s", diff)
			}
			if left := unsent(t, memory, keys); len(left) > 0 {
				t.Errorf("in the end unsent: %v", left)
			}
		})
	}
}

func TestWhatTellsNothingIsPassedOver(t *testing.T) {
	a, _, b, _ := world(t)
	for name, keys := range map[string][]payment.OutboxKey{
		"nothing": nil, "an unknown order": {{OrderID: "o2", Name: "FULFILMENT"}}, "an unknown row": {{OrderID: "o1", Name: "OUTBOX#none"}},
		"a ledger entry": {{OrderID: "o1", Name: "LEDGER#pay_1#captured"}},
	} {
		if failed, err := a.Announce(t.Context(), keys); err != nil || len(failed) > 0 {
			t.Errorf("%s: %v failed: %v", name, failed, err)
		}
	}
	if len(b.published) > 0 {
		t.Errorf("published %v", b.published)
	}
}

// Stream and sweep announce the same at the same moment: each at least once, and no more often than they came.
func TestStreamAndSweepAtOnce(t *testing.T) { synctest.Test(t, streamAndSweepAtOnce) }

func streamAndSweepAtOnce(t *testing.T) {
	a, memory, b, keys := world(t)
	const atOnce = 2
	var read sync.WaitGroup // both have read before either publishes
	read.Add(atOnce)
	b.meanwhile = func() {
		read.Done()
		read.Wait()
	}
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			if failed, err := a.Announce(t.Context(), keys); err != nil {
				t.Errorf("%v failed: %v", failed, err)
			}
		})
	}
	all.Wait()
	if diff := cmp.Diff([]string{"FULFILMENT 2", "OUTBOX#failed 2", "OUTBOX#refunded 2"}, times(b.published)); diff != "" {
		t.Errorf("(-want +published)\n%s", diff)
	}
	if left := unsent(t, memory, keys); len(left) > 0 {
		t.Errorf("unsent: %v", left)
	}
	b.meanwhile = nil
	if _, err := a.Announce(t.Context(), keys); err != nil || b.published["FULFILMENT"] != 2 {
		t.Errorf("what was sent is published again: %v, %v", b.published, err)
	}
}
