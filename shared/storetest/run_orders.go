package storetest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/shared/payment"
)

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
			Conflict: true, Confirmed: true, Claim: 5, OtherID: "other", CreatedAt: at, Pointed: true, Booked: rupees,
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
	o.Reserved = map[string]payment.Reservation{"po_2": {RequestID: "r2", PaymentID: "pay_1" + id, Amount: rupees}}
	o.ActiveAt, o.DueAt = at.Add(2*time.Second), at.Add(3*time.Hour)
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
