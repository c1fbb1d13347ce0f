package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/shared/payment"
)

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

	if far := listed(payment.EventParked, time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)); !slices.Contains(far, all[3].Key.ID) {
		t.Errorf("an event that waits for a person is not among %q", far)
	}

	n := 0
	wantErr(t, s.DueEvents(t.Context(), payment.EventParked, at.AddDate(-5, 0, 0), func(payment.EventKey) bool {
		n++
		return false
	}), nil)
	if n != 1 {
		t.Errorf("went on to %d events after the first, want to stop", n)
	}
}
