package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/announce"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

// process is one invocation, as far as it gets.
type process struct {
	at   int  // the call of store or bus, from 1, with which something goes wrong; 0: none
	done bool // that call is done, and its answer lost
	dies bool // nothing is called after it, and nobody is answered

	calls int
	hit   string // the call that went wrong
}

var (
	errBroken = errors.New("broken")
	errKilled = errors.New("killed")
)

func (p *process) call(name string, do func() error) error {
	p.calls++
	if p.calls != p.at {
		return do()
	}
	p.hit = name
	if p.done {
		if err := do(); err != nil {
			return err
		}
	}
	if p.dies {
		panic(errKilled)
	}
	return errBroken
}

// mortalStore and mortalBus are the store and the bus as a process reaches them.
type mortalStore struct {
	*storetest.Memory
	*process
}

func (m mortalStore) Unsent(ctx context.Context, keys []payment.OutboxKey) (unsent []payment.Announcement, err error) {
	err = m.call("Unsent", func() error {
		unsent, err = m.Memory.Unsent(ctx, keys)
		return err
	})
	return unsent, err
}

func (m mortalStore) MarkSent(ctx context.Context, k payment.OutboxKey, at time.Time) error {
	return m.call("MarkSent", func() error { return m.Memory.MarkSent(ctx, k, at) })
}

type mortalBus struct {
	*fakeBus
	*process
}

func (m mortalBus) Publish(ctx context.Context, a []payment.Announcement) (results []error) {
	err := m.call("Publish", func() error {
		results = m.fakeBus.Publish(ctx, a)
		return nil
	})
	if err != nil {
		results = slices.Repeat([]error{err}, len(a))
	}
	return results
}

// invoke runs the function on the records and returns those that the stream brings again: from the first reported one on, or
// all, if the function died (AWS, "Partial batch response").
func (b *bundle) invoke(p *process, records []events.DynamoDBEventRecord) (again []events.DynamoDBEventRecord) {
	defer func() {
		if killed := recover(); killed == errKilled {
			again = records
		} else if killed != nil {
			panic(killed)
		}
	}()
	h := handler{log: logs.New(io.Discard, "ERROR"), announcer: announce.Announcer{
		Store: mortalStore{b.memory, p}, Bus: mortalBus{b.bus, p}, Now: func() time.Time { return b.at },
	}}
	response, err := h.Handle(context.Background(), events.DynamoDBEvent{Records: records})
	if err != nil {
		return records
	}
	if len(response.BatchItemFailures) == 0 {
		return nil
	}
	first := slices.IndexFunc(records, func(r events.DynamoDBEventRecord) bool {
		return r.Change.SequenceNumber == response.BatchItemFailures[0].ItemIdentifier
	})
	return records[max(first, 0):] // AWS takes a number that it does not know for a failure of all
}

// sweep publishes what is still unsent, as reconcile does; its own crashes are broken in package reconcile.
func (b *bundle) sweep(t *testing.T) {
	t.Helper()
	b.at = b.at.Add(11 * time.Minute)
	healthy := announce.Announcer{Store: b.memory, Bus: b.bus, Now: func() time.Time { return b.at }}
	if err := b.memory.DueAnnouncements(t.Context(), b.at.Add(-10*time.Minute), func(k payment.OutboxKey) bool {
		if _, err := healthy.Announce(t.Context(), []payment.OutboxKey{k}); err != nil {
			t.Error(err)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
}

// TestCrashes breaks or kills the function at every call, and lets everything happen that can come next. In the end everything
// is published and marked, and nothing more often than the crash explains.
func TestCrashes(t *testing.T) {
	sequels := []struct {
		name string
		next func(t *testing.T, b *bundle, again, all []events.DynamoDBEventRecord)
	}{
		{"the stream comes again", func(t *testing.T, b *bundle, again, _ []events.DynamoDBEventRecord) {
			if left := b.invoke(&process{}, again); len(left) > 0 {
				t.Errorf("a healthy function leaves %d records", len(left))
			}
		}},
		{"the stream brings all again", func(t *testing.T, b *bundle, again, all []events.DynamoDBEventRecord) {
			b.invoke(&process{}, again)
			b.invoke(&process{}, all)
		}},
		{"the stream dies again, and comes again", func(t *testing.T, b *bundle, again, _ []events.DynamoDBEventRecord) {
			again = b.invoke(&process{at: 1, dies: true}, again)
			b.invoke(&process{}, again)
		}},
		{"the stream has given up and the sweep comes", func(t *testing.T, b *bundle, _, _ []events.DynamoDBEventRecord) { b.sweep(t) }},
		{"the sweep comes, then the stream", func(t *testing.T, b *bundle, again, _ []events.DynamoDBEventRecord) {
			b.sweep(t)
			b.invoke(&process{}, again)
		}},
		{"the stream comes, then the sweep", func(t *testing.T, b *bundle, again, _ []events.DynamoDBEventRecord) {
			b.invoke(&process{}, again)
			b.sweep(t)
		}},
	}
	cases, published, twice, broken := 0, 0, 0, map[string]int{}
	for _, n := range []int{1, 3, 12} { // 12 take two rounds of calls
		for _, sequel := range sequels {
			calls := n + 2*((n+announce.MaxBatch-1)/announce.MaxBatch)
			for at := range calls + 1 {
				for _, way := range []process{{}, {done: true}, {dies: true}, {done: true, dies: true}} {
					way.at = at
					name := fmt.Sprintf("%d announcements, call %d (done %t, dies %t), then %s", n, way.at, way.done, way.dies, sequel.name)
					b := setup()
					keys := b.write(t, n)
					again := b.invoke(&way, inserted(keys...))
					if at > 0 && way.hit == "" {
						t.Fatalf("%s: only %d calls were made", name, way.calls)
					}
					if at == 0 && (len(again) > 0 || way.calls != calls) {
						t.Fatalf("%s: all is well, and %d records come again after %d calls", name, len(again), way.calls)
					}
					sequel.next(t, b, again, inserted(keys...))
					broken[cmp.Or(way.hit, "none")]++
					cases++
					doubled := 0
					for _, k := range keys {
						copies := b.bus.published[k.String()]
						published += len(copies)
						switch {
						case len(copies) == 0 || len(copies) > 2:
							t.Errorf("%s: %s was published %d times", name, k, len(copies))
						case len(copies) == 2:
							doubled++
							if copies[0] != copies[1] {
								t.Errorf("%s: a repetition differs: %v, %v", name, copies[0], copies[1])
							}
						}
					}
					twice += doubled
					if may := mayDouble(way, n); doubled > may {
						t.Errorf("%s: %d were published twice, the crash explains %d", name, doubled, may)
					}
					b.wantSettled(t, name, keys)
					if t.Failed() {
						t.FailNow()
					}
				}
			}
		}
	}
	t.Logf("%d ways to crash %v: %d events published, %d of them repetitions under the same id, none lost", cases, broken, published, twice)
}

// mayDouble is how many announcements are published and not marked by a process that stopped this way.
func mayDouble(p process, n int) int {
	switch {
	case p.hit == "Publish" && p.done:
		return min(n, announce.MaxBatch)
	case p.hit == "MarkSent" && p.dies:
		return min(n, announce.MaxBatch)
	case p.hit == "MarkSent" && !p.done:
		return 1
	}
	return 0
}

// wantSettled asserts that each is marked as sent and none is due.
func (b *bundle) wantSettled(t *testing.T, name string, keys []payment.OutboxKey) {
	t.Helper()
	unsent, err := b.memory.Unsent(t.Context(), keys)
	if err != nil || len(unsent) > 0 {
		t.Errorf("%s: not marked as sent: %v %v", name, unsent, err)
	}
	if err := b.memory.DueAnnouncements(t.Context(), b.at.Add(time.Hour), func(k payment.OutboxKey) bool {
		t.Errorf("%s: %s is still due", name, k)
		return true
	}); err != nil {
		t.Fatal(err)
	}
}
