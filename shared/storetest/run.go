package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

// at is when everything in the suite happens. Stores keep milliseconds.
var at = time.Date(2026, 11, 30, 10, 0, 0, 123_000_000, time.UTC)

var rupees = payment.Money{Amount: 49900, Currency: "INR"}

// Run tests that a store keeps the contracts. open returns a store, which may hold rows of other tests: every test uses
// ids of its own.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Store, string)
	}{
		{"an event is stored once, byte for byte", eventOnce},
		{"concurrent copies of an event are stored once", eventOnceConcurrently},
		{"only APPLIED is final", appliedIsFinal},
		{"a settlement needs an event", settleNeedsEvent},
		{"events are listed when they are due", eventsDue},
		{"an order's id is taken once", orderOnce},
		{"everything of an order is kept", orderWhole},
		{"an order with a gateway order is not deleted", deleteOnlyUnopened},
		{"another order under the same id is another order", anotherOrderUnderTheID},
		{"a commit writes order, effects and event together", commitTogether},
		{"a stale commit writes nothing", commitStale},
		{"a commit for an applied event writes nothing", commitApplied},
		{"an effect that is there already does not stop a commit", effectThere},
		{"a ledger entry with another amount stops a commit", effectOther},
		{"a payment belongs to one order", paymentOnce},
		{"a gateway order belongs to one order", gatewayOrderOnce},
		{"a counted attempt is counted once", attemptOnce},
		{"of concurrent commits one wins", commitConcurrently},
		{"an order has a history", orderHistory},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t), fmt.Sprintf("t%d", testNumber.Add(1)))
		})
	}
}

var testNumber atomic.Int64

func someEvent(id string) payment.Event {
	return payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: "evt_" + id}, Status: payment.EventReceived,
		Verdict: "waiting", Body: []byte("{\"₹\":\"\\u0026\\/\"}\n"), SHA256: "ab" + id, VerifiedBy: "test_current",
		Mode: payment.Test, Delivery: "req-1", ReceivedAt: at, NextAt: at.Add(time.Minute), KeepUntil: at.Add(time.Hour).Truncate(time.Second),
	}
}

func someOrder(id string) payment.Order {
	return payment.NewOrder("order-"+id, rupees, "razorpay", payment.Test, at)
}

func put(t *testing.T, s Store, e payment.Event) {
	t.Helper()
	if _, err := s.PutEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, s Store, o payment.Order) payment.Order {
	t.Helper()
	o, err := s.CreateOrder(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// same compares values as a store keeps them: an empty map is no map, and a time is an instant.
func same(t *testing.T, got, want any) {
	t.Helper()
	emptyIsNil := cmp.FilterValues(func(a, b map[string]string) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
	if diff := cmp.Diff(want, got, emptyIsNil, emptyMap[string, payment.Payment](), emptyMap[string, payment.Refund](),
		emptyMap[string, payment.Dispute](), emptyMap[payment.HoldKey, payment.HoldHistory]()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func emptyMap[K comparable, V any]() cmp.Option {
	return cmp.FilterValues(func(a, b map[K]V) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
}

func eventOnce(t *testing.T, s Store, id string) {
	e := someEvent(id)
	put(t, s, e)
	got, err := s.Event(t.Context(), e.Key)
	wantErr(t, err, nil)
	same(t, got, e)

	again := e
	again.Body, again.SHA256 = []byte("other"), "cd"
	stored, err := s.PutEvent(t.Context(), again)
	wantErr(t, err, payment.ErrEventExists)
	same(t, stored, e)

	_, err = s.Event(t.Context(), payment.EventKey{Gateway: "razorpay", ID: "none" + id})
	wantErr(t, err, payment.ErrNotFound)
}

func eventOnceConcurrently(t *testing.T, s Store, id string) {
	var stored, met atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			switch _, err := s.PutEvent(t.Context(), someEvent(id)); {
			case err == nil:
				stored.Add(1)
			case errors.Is(err, payment.ErrEventExists):
				met.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if stored.Load() != 1 || met.Load() != 19 {
		t.Errorf("stored %d times, met %d times; want 1 and 19", stored.Load(), met.Load())
	}
}

func appliedIsFinal(t *testing.T, s Store, id string) {
	e := someEvent(id)
	put(t, s, e)
	for i, status := range []payment.EventStatus{
		payment.EventParked, payment.EventFailed, payment.EventIgnored, payment.EventReceived, payment.EventApplied,
	} {
		st := e.Settle(status, "payment.captured", "order-"+id, "because")
		st.NextAt = at.Add(time.Duration(i) * time.Hour)
		wantErr(t, s.SettleEvent(t.Context(), st), nil)
		got, err := s.Event(t.Context(), e.Key)
		wantErr(t, err, nil)
		want := e
		want.Status, want.Verdict, want.Type, want.OrderID = status, "because", "payment.captured", "order-"+id
		want.NextAt, want.Attempts = st.NextAt, i+1
		same(t, got, want)
	}
	before, err := s.Event(t.Context(), e.Key)
	wantErr(t, err, nil)
	wantErr(t, s.SettleEvent(t.Context(), e.Settle(payment.EventFailed, "", "", "too late")), payment.ErrEventApplied)
	after, err := s.Event(t.Context(), e.Key)
	wantErr(t, err, nil)
	same(t, after, before)
}

func settleNeedsEvent(t *testing.T, s Store, id string) {
	e := someEvent(id)
	wantErr(t, s.SettleEvent(t.Context(), e.Settle(payment.EventApplied, "", "", "")), payment.ErrNotFound)
	o := create(t, s, someOrder(id))
	st := e.Settle(payment.EventApplied, "", "", "")
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: o, Events: []payment.Settlement{st}}), payment.ErrNotFound)
	_, err := s.Event(t.Context(), e.Key)
	wantErr(t, err, payment.ErrNotFound)
}

func eventsDue(t *testing.T, s Store, id string) {
	// The suite's other tests leave rows too: this one's are of another year.
	year := at.AddDate(-10, 0, 0)
	var all []payment.Event
	for i, next := range []time.Time{year.Add(time.Minute), year.Add(time.Hour), year.Add(24 * time.Hour), {}} {
		e := someEvent(fmt.Sprint(id, "due", i))
		e.ReceivedAt, e.NextAt = year, next
		put(t, s, e)
		all = append(all, e)
	}
	listed := func(status payment.EventStatus, before time.Time) []string {
		var ids []string
		wantErr(t, s.DueEvents(t.Context(), status, before, func(k payment.EventKey) bool {
			ids = append(ids, k.ID)
			return true
		}), nil)
		slices.Sort(ids)
		return ids
	}
	eventually := func(status payment.EventStatus, before time.Time, want ...payment.Event) {
		t.Helper()
		var ids []string
		for _, e := range want {
			ids = append(ids, e.Key.ID)
		}
		deadline := time.Now().Add(10 * time.Second)
		for !slices.Equal(listed(status, before), ids) && time.Now().Before(deadline) { // the index lags behind the table
			runtime.Gosched()
		}
		same(t, listed(status, before), ids)
	}
	eventually(payment.EventReceived, year.Add(2*time.Hour), all[0], all[1])
	eventually(payment.EventParked, year.Add(2*time.Hour))

	parked := all[0].Settle(payment.EventParked, "", "", "unknown")
	parked.NextAt = year.Add(90 * time.Minute)
	wantErr(t, s.SettleEvent(t.Context(), parked), nil)
	wantErr(t, s.SettleEvent(t.Context(), all[1].Settle(payment.EventApplied, "", "order-"+id, "done")), nil)
	wantErr(t, s.SettleEvent(t.Context(), all[2].Settle(payment.EventFailed, "", "", "gave up")), nil)
	wantErr(t, s.SettleEvent(t.Context(), all[3].Settle(payment.EventParked, "", "", "cannot be decoded")), nil)
	eventually(payment.EventReceived, at.AddDate(-5, 0, 0))
	eventually(payment.EventParked, at.AddDate(-5, 0, 0), all[0])
	eventually(payment.EventFailed, at.AddDate(-5, 0, 0), all[2])

	n := 0
	wantErr(t, s.DueEvents(t.Context(), payment.EventParked, at.AddDate(-5, 0, 0), func(payment.EventKey) bool {
		n++
		return false
	}), nil)
	if n != 1 {
		t.Errorf("went on to %d events after the first, want to stop", n)
	}
}

func orderOnce(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	if o.Version != 1 {
		t.Errorf("new order has version %d, want 1", o.Version)
	}
	other := someOrder(id)
	other.Amount.Amount = 1
	stored, err := s.CreateOrder(t.Context(), other)
	wantErr(t, err, payment.ErrOrderExists)
	same(t, stored, o)
	_, err = s.Order(t.Context(), "none-"+id)
	wantErr(t, err, payment.ErrNotFound)
}

func orderWhole(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	o.Account, o.GatewayOrderID, o.Partial = "acc_1", "order_gw"+id, true
	o.Notes = map[string]string{"cart": "7"}
	o.Payments = map[string]payment.Payment{
		"pay_1" + id: {
			ID: "pay_1" + id, Status: payment.PaymentRefunded, Failed: true, Voided: true, Amount: rupees, Captured: rupees,
			Conflict: true, Claim: 5, OtherID: "other", CreatedAt: at, Pointed: true, Booked: rupees,
		},
		"pay_2" + id: {ID: "pay_2" + id, Status: payment.PaymentCreated, Amount: rupees},
	}
	o.Refunds = map[string]payment.Refund{"rfnd_1": {
		ID: "rfnd_1", PaymentID: "pay_1" + id, Amount: rupees, Receipt: "po_1", Conflict: true, Booked: rupees, Reversed: rupees,
		Seen: payment.RefundStates{Pending: true, Processed: true, Failed: true}, Told: payment.RefundStates{Processed: true},
	}}
	o.Disputes = map[string]payment.Dispute{"disp_1": {
		ID: "disp_1", PaymentID: "pay_1" + id, Status: payment.DisputeLost, Phase: payment.PhaseArbitration,
		Amount: rupees, Deducted: 7, EverLost: true, Booked: rupees,
	}}
	o.GatewayPaid, o.CountedAttempts, o.Status = true, 3, payment.PartiallyRefunded
	o.Holds = map[payment.HoldKey]payment.HoldHistory{
		{Reason: payment.HoldConflict, Subject: "pay_1"}: {Since: at, Told: true},
		{Reason: payment.HoldShort}:                      {Since: at, Acknowledged: &payment.Acknowledgement{By: "ann", Why: "called", At: at, Detail: "499.00 INR"}},
	}
	o.PaidAt, o.FulfilledAt, o.ClosedAt, o.CloseReason = at, at.Add(time.Second), at.Add(time.Minute), "out of stock"
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: o}), nil)
	got, err := s.Order(t.Context(), o.ID)
	wantErr(t, err, nil)
	o.Version++
	same(t, got, o)
}

func deleteOnlyUnopened(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	stale := o
	stale.Version++
	wantErr(t, s.DeleteOrder(t.Context(), stale), payment.ErrVersionConflict)
	wantErr(t, s.DeleteOrder(t.Context(), o), nil)
	_, err := s.Order(t.Context(), o.ID)
	wantErr(t, err, payment.ErrNotFound)
	wantErr(t, s.DeleteOrder(t.Context(), o), payment.ErrVersionConflict)

	opened := create(t, s, someOrder(id))
	opened.GatewayOrderID = "order_gw" + id
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: opened}), nil)
	opened.Version++
	wantErr(t, s.DeleteOrder(t.Context(), opened), payment.ErrVersionConflict)
}

// An id that was freed may be taken by another request, which starts at version 1 as well.
func anotherOrderUnderTheID(t *testing.T, s Store, id string) {
	before := create(t, s, someOrder(id))
	wantErr(t, s.DeleteOrder(t.Context(), before), nil)
	later := someOrder(id)
	later.Amount.Amount, later.CreatedAt = 1, at.Add(time.Second)
	later = create(t, s, later)
	before.GatewayOrderID = "order_gw" + id
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: before}), payment.ErrVersionConflict)
	wantErr(t, s.DeleteOrder(t.Context(), before), payment.ErrVersionConflict)
	got, err := s.Order(t.Context(), later.ID)
	wantErr(t, err, nil)
	same(t, got, later)
}

// captured is a commit as a captured payment brings it.
func captured(o payment.Order, e payment.Event, id string) payment.Commit {
	o.Status = payment.Paid
	st := e.Settle(payment.EventApplied, "payment.captured", o.ID, "paid")
	return payment.Commit{Order: o, Events: []payment.Settlement{st}, Effects: []payment.Effect{
		payment.PaymentPointer{PaymentID: "pay_" + id},
		payment.Fulfilment{Captured: rupees},
		payment.LedgerEntry{SubjectID: "pay_" + id, Type: payment.LedgerCaptured, PaymentID: "pay_" + id, Amount: rupees},
		payment.Notification{Key: "hold#over#", Status: payment.Paid, Amount: rupees, Hold: payment.HoldKey{Reason: payment.HoldOver}},
	}}
}

func commitTogether(t *testing.T, s Store, id string) {
	e, o := someEvent(id), create(t, s, someOrder(id))
	put(t, s, e)
	c := captured(o, e, id)
	wantErr(t, s.Commit(t.Context(), c), nil)

	got, err := s.Order(t.Context(), o.ID)
	wantErr(t, err, nil)
	if got.Version != o.Version+1 || got.Status != payment.Paid {
		t.Errorf("order is %s at version %d, want paid at %d", got.Status, got.Version, o.Version+1)
	}
	event, err := s.Event(t.Context(), e.Key)
	wantErr(t, err, nil)
	if event.Status != payment.EventApplied || event.OrderID != o.ID || !bytes.Equal(event.Body, e.Body) {
		t.Errorf("event is %s of order %q with body %q", event.Status, event.OrderID, event.Body)
	}
	owner, err := s.OrderID(t.Context(), "razorpay", payment.Ref{PaymentID: "pay_" + id})
	wantErr(t, err, nil)
	same(t, owner, o.ID)
	_, err = s.OrderID(t.Context(), "razorpay", payment.Ref{GatewayOrderID: "order_unknown" + id, PaymentID: "pay_" + id})
	wantErr(t, err, payment.ErrNotFound)
	effects, err := s.Effects(t.Context(), o.ID)
	wantErr(t, err, nil)
	same(t, effects, []payment.Effect{c.Effects[1], c.Effects[2], c.Effects[3]})
}

// nothingWritten asserts that order and event are as they were and that there are n effects.
func nothingWritten(t *testing.T, s Store, o payment.Order, e payment.Event, n int) {
	t.Helper()
	got, err := s.Order(t.Context(), o.ID)
	wantErr(t, err, nil)
	same(t, got, o)
	event, err := s.Event(t.Context(), e.Key)
	wantErr(t, err, nil)
	same(t, event, e)
	effects, err := s.Effects(t.Context(), o.ID)
	wantErr(t, err, nil)
	if len(effects) != n {
		t.Errorf("%d effects, want %d", len(effects), n)
	}
}

func commitStale(t *testing.T, s Store, id string) {
	e, o := someEvent(id), create(t, s, someOrder(id))
	put(t, s, e)
	stale := o
	stale.Version--
	wantErr(t, s.Commit(t.Context(), captured(stale, e, id)), payment.ErrVersionConflict)
	nothingWritten(t, s, o, e, 0)
}

func commitApplied(t *testing.T, s Store, id string) {
	e, o := someEvent(id), create(t, s, someOrder(id))
	put(t, s, e)
	wantErr(t, s.SettleEvent(t.Context(), e.Settle(payment.EventApplied, "", o.ID, "before")), nil)
	e, err := s.Event(t.Context(), e.Key)
	wantErr(t, err, nil)
	fresh := someEvent(id + "fresh")
	put(t, s, fresh)
	c := captured(o, e, id)
	c.Events = append(c.Events, fresh.Settle(payment.EventApplied, "payment.captured", o.ID, "paid"))
	err = s.Commit(t.Context(), c)
	wantErr(t, err, payment.ErrEventApplied)
	applied := new(payment.AppliedError)
	if !errors.As(err, &applied) || len(applied.Keys) != 1 || applied.Keys[0] != e.Key {
		t.Errorf("applied events %v, want %s alone", applied.Keys, e.Key)
	}
	nothingWritten(t, s, o, e, 0)
	nothingWritten(t, s, o, fresh, 0)
}

// An order restored from a backup may have forgotten effects that are still there.
func effectThere(t *testing.T, s Store, id string) {
	e, o := someEvent(id), create(t, s, someOrder(id))
	put(t, s, e)
	first := captured(o, e, id)
	first.Events = nil
	wantErr(t, s.Commit(t.Context(), first), nil)
	forgetful := captured(o, e, id)
	forgetful.Order.Version++
	wantErr(t, s.Commit(t.Context(), forgetful), nil)
	effects, err := s.Effects(t.Context(), o.ID)
	wantErr(t, err, nil)
	same(t, effects, []payment.Effect{first.Effects[1], first.Effects[2], first.Effects[3]})
	event, err := s.Event(t.Context(), e.Key)
	wantErr(t, err, nil)
	same(t, event.Status, payment.EventApplied)
}

func effectOther(t *testing.T, s Store, id string) {
	e, o := someEvent(id), create(t, s, someOrder(id))
	put(t, s, e)
	first := captured(o, e, id)
	first.Events = nil
	wantErr(t, s.Commit(t.Context(), first), nil)
	o, err := s.Order(t.Context(), o.ID)
	wantErr(t, err, nil)
	other := captured(o, e, id)
	other.Effects[2] = payment.LedgerEntry{
		SubjectID: "pay_" + id, Type: payment.LedgerCaptured, PaymentID: "pay_" + id, Amount: payment.Money{Amount: 1, Currency: "INR"},
	}
	wantErr(t, s.Commit(t.Context(), other), payment.ErrEffectConflict)
	nothingWritten(t, s, o, e, 3)
}

func paymentOnce(t *testing.T, s Store, id string) {
	e := someEvent(id)
	put(t, s, e)
	first := captured(create(t, s, someOrder(id+"a")), e, id)
	first.Events = nil
	wantErr(t, s.Commit(t.Context(), first), nil)
	second := create(t, s, someOrder(id+"b"))
	err := s.Commit(t.Context(), captured(second, e, id))
	correction := new(payment.CorrectionError)
	if !errors.As(err, &correction) {
		t.Fatalf("got error %v, want a correction", err)
	}
	same(t, correction.Facts, []payment.Fact{payment.ForeignPaymentFact{PaymentID: "pay_" + id, OrderID: first.Order.ID}})
	nothingWritten(t, s, second, e, 0)
}

func gatewayOrderOnce(t *testing.T, s Store, id string) {
	open := func(o payment.Order) error {
		o.GatewayOrderID = "order_gw" + id
		return s.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{
			payment.OrderPointer{GatewayOrderID: o.GatewayOrderID},
		}})
	}
	a, b := create(t, s, someOrder(id+"a")), create(t, s, someOrder(id+"b"))
	wantErr(t, open(a), nil)
	wantErr(t, open(b), payment.ErrEffectConflict)
	owner, err := s.OrderID(t.Context(), "razorpay", payment.Ref{GatewayOrderID: "order_gw" + id})
	wantErr(t, err, nil)
	same(t, owner, a.ID)
}

func attemptOnce(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	count := payment.Commit{Order: o, Effects: []payment.Effect{payment.CountedAttempt{PaymentID: "pay_" + id}}}
	wantErr(t, s.Commit(t.Context(), count), nil)
	count.Order.Version++
	correction := new(payment.CorrectionError)
	if err := s.Commit(t.Context(), count); !errors.As(err, &correction) {
		t.Fatalf("got error %v, want a correction", err)
	}
	same(t, correction.Facts, []payment.Fact{payment.CountedAttemptFact{PaymentID: "pay_" + id}})
}

func commitConcurrently(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	var won, lost atomic.Int64
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			mine := o
			mine.CountedAttempts = i
			switch err := s.Commit(t.Context(), payment.Commit{Order: mine}); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, payment.ErrVersionConflict):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 9 {
		t.Errorf("%d won and %d lost, want 1 and 9", won.Load(), lost.Load())
	}
}

func orderHistory(t *testing.T, s Store, id string) {
	applied, ignored, failed, parked := someEvent(id+"a"), someEvent(id+"b"), someEvent(id+"c"), someEvent(id+"d")
	o := create(t, s, someOrder(id))
	for _, e := range []payment.Event{applied, ignored, failed, parked} {
		put(t, s, e)
	}
	change := payment.Change{Source: payment.SourceAPI, What: "created", At: at}
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: o, Change: &change}), nil)
	o.Version++
	c := captured(o, applied, id)
	wantErr(t, s.Commit(t.Context(), c), nil)
	wantErr(t, s.SettleEvent(t.Context(), ignored.Settle(payment.EventIgnored, "order.paid", o.ID, "not ours")), nil)
	wantErr(t, s.SettleEvent(t.Context(), failed.Settle(payment.EventFailed, "order.paid", o.ID, "gave up")), nil)
	wantErr(t, s.SettleEvent(t.Context(), parked.Settle(payment.EventParked, "order.paid", "", "unknown")), nil)

	var got payment.History
	deadline := time.Now().Add(10 * time.Second)
	for len(got.Events) < 3 && time.Now().Before(deadline) { // the index lags behind the table
		var err error
		got, err = s.History(t.Context(), o.ID)
		wantErr(t, err, nil)
	}
	kept := func(e payment.Event, status payment.EventStatus, kind, verdict string) payment.Event {
		e.Status, e.Type, e.Verdict, e.OrderID, e.Attempts = status, kind, verdict, o.ID, 1
		e.Body, e.NextAt, e.KeepUntil = nil, time.Time{}, time.Time{}
		return e
	}
	slices.SortFunc(got.Events, func(a, b payment.Event) int { return strings.Compare(a.Key.ID, b.Key.ID) })
	same(t, got, payment.History{
		Events: []payment.Event{
			kept(applied, payment.EventApplied, "payment.captured", "paid"), kept(ignored, payment.EventIgnored, "order.paid", "not ours"),
			kept(failed, payment.EventFailed, "order.paid", "gave up"),
		},
		Changes: []payment.Change{change},
		Effects: []payment.DatedEffect{{Effect: c.Effects[1], At: at}, {Effect: c.Effects[2], At: at}, {Effect: c.Effects[3], At: at}},
	})
}
