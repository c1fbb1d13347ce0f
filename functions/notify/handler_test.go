package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/announce"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

var (
	written = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	price   = payment.Money{Amount: 49900, Currency: "INR"}
)

// fakeBus keeps what was published, by key.
type fakeBus struct {
	published map[string][]payment.Announcement
	refused   map[string]bool // by key
	largest   int             // call
	takes     time.Duration
}

func (b *fakeBus) Publish(ctx context.Context, announcements []payment.Announcement) []error {
	b.largest = max(b.largest, len(announcements))
	if b.takes > 0 { // in a synctest bubble, so it takes no time
		select {
		case <-time.After(b.takes):
		case <-ctx.Done():
		}
	}
	results := make([]error, len(announcements))
	for i, a := range announcements {
		key := a.Key.String()
		if b.refused[key] {
			results[i] = errors.New("refused")
			continue
		}
		b.published[key] = append(b.published[key], a)
	}
	return results
}

func (b *fakeBus) times(k payment.OutboxKey) int { return len(b.published[k.String()]) }

type bundle struct {
	*handler
	memory *storetest.Memory
	bus    *fakeBus
	at     time.Time
}

func setup() *bundle {
	b := &bundle{memory: storetest.NewMemory(), bus: &fakeBus{published: map[string][]payment.Announcement{}, refused: map[string]bool{}}, at: written}
	b.handler = &handler{
		announcer: announce.Announcer{Store: b.memory, Bus: b.bus, Now: func() time.Time { return b.at }}, log: logs.New(io.Discard, "ERROR"),
	}
	return b
}

// write stores so many fulfilled orders and returns their announcements.
func (b *bundle) write(t *testing.T, n int) []payment.OutboxKey {
	t.Helper()
	var keys []payment.OutboxKey
	for i := range n {
		o := payment.NewOrder(fmt.Sprintf("o%02d", i), price, "razorpay", payment.Test, written)
		if err := b.memory.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{payment.Fulfilment{Captured: price}}}); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, payment.OutboxKey{OrderID: o.ID, Name: "FULFILMENT"})
	}
	return keys
}

// inserted are the stream's records of the announcements, with the sequence numbers s0, s1, ...
func inserted(keys ...payment.OutboxKey) []events.DynamoDBEventRecord {
	var records []events.DynamoDBEventRecord
	for i, k := range keys {
		records = append(records, record("INSERT", fmt.Sprint("s", i), "ORDER#"+k.OrderID, k.Name))
	}
	return records
}

func record(name, sequence, pk, sk string) events.DynamoDBEventRecord {
	return events.DynamoDBEventRecord{EventName: name, Change: events.DynamoDBStreamRecord{
		SequenceNumber: sequence,
		Keys:           map[string]events.DynamoDBAttributeValue{"pk": events.NewStringAttribute(pk), "sk": events.NewStringAttribute(sk)},
	}}
}

// handle returns from which record the stream has to come again; empty: from none.
func (b *bundle) handle(t *testing.T, ctx context.Context, records []events.DynamoDBEventRecord) string {
	t.Helper()
	response, err := b.Handle(ctx, events.DynamoDBEvent{Records: records})
	switch {
	case err != nil:
		t.Fatal(err)
	case len(response.BatchItemFailures) > 1:
		t.Fatalf("reported %v, want the first alone", response.BatchItemFailures)
	case len(response.BatchItemFailures) == 0:
		return ""
	}
	return response.BatchItemFailures[0].ItemIdentifier
}

// wantOnce asserts that each was published once.
func (b *bundle) wantOnce(t *testing.T, keys ...payment.OutboxKey) {
	t.Helper()
	for _, k := range keys {
		if n := b.bus.times(k); n != 1 {
			t.Errorf("%s was published %d times, want once", k, n)
		}
	}
}

func TestALargeBatchIsPublishedTenAtATime(t *testing.T) {
	b := setup()
	keys := b.write(t, 25)
	if first := b.handle(t, t.Context(), inserted(keys...)); first != "" {
		t.Errorf("reported %s", first)
	}
	b.wantOnce(t, keys...)
	if b.bus.largest != 10 {
		t.Errorf("the largest call had %d entries, EventBridge takes 10", b.bus.largest)
	}
	b.handle(t, t.Context(), inserted(keys...)) // once more, as streams do
	b.wantOnce(t, keys...)
}

func TestTheFirstThatFailedIsReported(t *testing.T) {
	for _, c := range []struct {
		name    string
		refused []int
		first   string
	}{
		{"the first of all", []int{0}, "s0"},
		{"several", []int{3, 7, 17, 24}, "s3"},
		{"in a later call", []int{14, 12}, "s12"},
		{"the last", []int{24}, "s24"},
		{"a whole call", []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, "s10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup()
			keys := b.write(t, 25)
			for _, i := range c.refused {
				b.bus.refused[keys[i].String()] = true
			}
			first := b.handle(t, t.Context(), inserted(keys...))
			if first != c.first {
				t.Fatalf("reported %q, want %q", first, c.first)
			}
			for i, k := range keys { // whatever comes after does not wait for it
				if n := b.bus.times(k); b.bus.refused[k.String()] && n != 0 || !b.bus.refused[k.String()] && n != 1 {
					t.Errorf("record %d was published %d times", i, n)
				}
			}
			clear(b.bus.refused)
			records := inserted(keys...)
			for records[0].Change.SequenceNumber != first { // the stream comes again from there
				records = records[1:]
			}
			if again := b.handle(t, t.Context(), records); again != "" {
				t.Errorf("then reported %q", again)
			}
			b.wantOnce(t, keys...)
		})
	}
}

func TestRowsThatCannotBeReadAreReportedFromTheFirst(t *testing.T) {
	b := setup()
	keys := b.write(t, 3)
	b.memory.Faults = func(string) storetest.Fault { return storetest.NotDone }
	if first := b.handle(t, t.Context(), inserted(keys...)); first != "s0" || len(b.bus.published) > 0 {
		t.Errorf("reported %q, published %v", first, b.bus.published)
	}
}

func TestWhatIsNoNewAnnouncementIsPassedOver(t *testing.T) {
	b := setup()
	b.write(t, 1)
	noKeys, binary := record("INSERT", "s7", "", ""), record("INSERT", "s8", "ORDER#o00", "")
	noKeys.Change.Keys = nil
	binary.Change.Keys["sk"] = events.NewBinaryAttribute([]byte("FULFILMENT"))
	if first := b.handle(t, t.Context(), []events.DynamoDBEventRecord{
		record("MODIFY", "s0", "ORDER#o00", "FULFILMENT"), record("REMOVE", "s1", "ORDER#o00", "FULFILMENT"),
		record("INSERT", "s2", "ORDER#o00", "ORDER"), record("INSERT", "s3", "ORDER#o00", "LEDGER#pay_1#captured"),
		record("INSERT", "s4", "EVENT#razorpay#evt_1", "EVENT"), record("INSERT", "s5", "ORDER#unknown", "FULFILMENT"),
		record("INSERT", "s6", "GATEWAY#razorpay#pay_1", "FULFILMENT"), noKeys, binary,
	}); first != "" {
		t.Errorf("reported %s", first)
	}
	if len(b.bus.published) > 0 {
		t.Errorf("published %v", b.bus.published)
	}
}

func TestARepetitionInABatchIsPublishedOnce(t *testing.T) {
	b := setup()
	keys := b.write(t, 12)
	twice := append(append(inserted(keys[:2]...), inserted(keys...)...), inserted(keys...)...)
	for i := range twice {
		twice[i].Change.SequenceNumber = fmt.Sprint("s", i)
	}
	b.bus.refused[keys[1].String()] = true
	if first := b.handle(t, t.Context(), twice); first != "s1" {
		t.Errorf("reported %q, want the first record of the two", first)
	}
	b.wantOnce(t, append(keys[2:], keys[0])...)
}

// AWS takes a missing or null list for success as well, but other engines do not.
func TestNothingFailedIsAnEmptyList(t *testing.T) {
	for _, event := range []string{`{"Records":[]}`, `{}`} {
		answer, err := lambda.NewHandler(setup().Handle).Invoke(t.Context(), []byte(event))
		if err != nil || string(answer) != `{"batchItemFailures":[]}` {
			t.Errorf("%s is answered %s, %v", event, answer, err)
		}
	}
}

func TestNothingBeginsWithLittleTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup()
		keys := b.write(t, 25)
		b.bus.takes = 13 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if first := b.handle(t, ctx, inserted(keys...)); first != "s20" { // the second call ends with 4 s left
			t.Errorf("reported %q, want s20", first)
		}
		ctx, cancel = context.WithTimeout(t.Context(), reserve-time.Second)
		defer cancel()
		if first := b.handle(t, ctx, inserted(keys[20:]...)); first != "s0" {
			t.Errorf("with little time reported %q, want s0", first)
		}
		for _, k := range keys[20:] {
			if b.bus.times(k) > 0 {
				t.Errorf("%s was published", k)
			}
		}
		b.handle(t, t.Context(), inserted(keys[20:]...))
		b.wantOnce(t, keys[20:]...)
	})
}

func TestTheLogSaysWhatBecameOfEach(t *testing.T) {
	b := setup()
	keys := b.write(t, 2)
	b.bus.refused[keys[1].String()] = true
	var log bytes.Buffer
	b.log = logs.New(&log, "INFO")
	b.handle(t, t.Context(), inserted(keys...))
	for _, want := range []string{
		`"order":"o00","announcement":"FULFILMENT","outcome":"published, or sent before"`,
		`"order":"o01","announcement":"FULFILMENT","outcome":"failed"`, `"msg":"not announced","error":"o01#FULFILMENT: refused"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
	if diff := cmp.Diff(3, strings.Count(log.String(), "\n")); diff != "" {
		t.Errorf("lines (-want +got)\n%s", diff)
	}
}
