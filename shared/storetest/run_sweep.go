package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/shared/payment"
)

// someCursor is a cursor with everything in it.
func someCursor() payment.Cursor {
	c := payment.Cursor{Next: at.Add(-time.Hour).Truncate(time.Second), Until: at.Truncate(time.Second), BeganAt: at}
	for i := range 100 {
		c.Silent = append(c.Silent, payment.Unheard{
			OrderID: fmt.Sprint("Orders/₹#", i), PaymentID: fmt.Sprint("pay_", i), CreatedAt: at.Add(-time.Duration(i) * time.Second).Truncate(time.Second),
		})
	}
	return c
}

func cursorWhole(t *testing.T, s Store, id string) {
	gateway := "gateway" + id
	read := func(scan string) payment.Cursor {
		t.Helper()
		c, err := s.Cursor(t.Context(), gateway, scan)
		wantErr(t, err, nil)
		return c
	}
	same(t, read("hourly"), payment.Cursor{})
	c := someCursor()
	wantErr(t, s.PutCursor(t.Context(), gateway, "hourly", c), nil)
	c.Version = 1
	same(t, read("hourly"), c)
	same(t, read("daily"), payment.Cursor{})
	other, err := s.Cursor(t.Context(), "other"+gateway, "hourly")
	wantErr(t, err, nil)
	same(t, other, payment.Cursor{})

	c.Next, c.Silent = c.Next.Add(time.Minute), nil
	wantErr(t, s.PutCursor(t.Context(), gateway, "hourly", c), nil)
	c.Version = 2
	same(t, read("hourly"), c)
}

func cursorVersions(t *testing.T, s Store, id string) {
	gateway := "gateway" + id
	c := someCursor()
	missing := c
	missing.Version = 1
	wantErr(t, s.PutCursor(t.Context(), gateway, "daily", missing), payment.ErrVersionConflict)
	wantErr(t, s.PutCursor(t.Context(), gateway, "daily", c), nil)
	for _, version := range []int64{0, 2} {
		stale := c
		stale.Version, stale.Next = version, at.Add(time.Hour)
		wantErr(t, s.PutCursor(t.Context(), gateway, "daily", stale), payment.ErrVersionConflict)
	}
	c.Version = 1
	got, err := s.Cursor(t.Context(), gateway, "daily")
	wantErr(t, err, nil)
	same(t, got, c)

	var moved atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			switch err := s.PutCursor(t.Context(), gateway, "daily", c); {
			case err == nil:
				moved.Add(1)
			case !errors.Is(err, payment.ErrVersionConflict):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if moved.Load() != 1 {
		t.Errorf("moved %d times from one version, want once", moved.Load())
	}
}

// leaseHeld goes through the life of the one lease. The times are the callers': the store has no clock.
func leaseHeld(t *testing.T, s Store, id string) {
	now := at.AddDate(int(testNumber.Add(1)), 0, 0) // later than any lease that another run of the suite left behind
	a, b := "a"+id, "b"+id
	take := func(holder string, after time.Duration, want bool) {
		t.Helper()
		taken, err := s.Lease(t.Context(), holder, now.Add(after), now.Add(after).Add(time.Minute))
		wantErr(t, err, nil)
		if taken != want {
			t.Errorf("%s takes the lease after %s: %t, want %t", holder, after, taken, want)
		}
	}
	release := func(holder string) {
		t.Helper()
		wantErr(t, s.Release(t.Context(), holder), nil)
	}
	release(a) // never had it
	take(a, 0, true)
	take(b, time.Second, false)
	take(b, time.Minute-time.Millisecond, false)
	take(b, time.Minute, true) // a died
	release(a)
	take(a, time.Minute+time.Second, false) // a gave back what it no longer had
	take(b, 2*time.Minute-time.Second, true)
	take(a, 3*time.Minute-2*time.Second, false) // b has prolonged it
	release(b)
	take(a, 3*time.Minute-2*time.Second, true) // at once
	release(a)
	release(a)
}

func leaseOnce(t *testing.T, s Store, id string) {
	now := at.AddDate(int(testNumber.Add(1)), 0, 0)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			ok, err := s.Lease(t.Context(), fmt.Sprint(id, i), now, now.Add(time.Minute))
			wantErr(t, err, nil)
			if ok {
				taken.Add(1)
			}
		})
	}
	wg.Wait()
	if taken.Load() != 1 {
		t.Errorf("taken by %d at a time, want one", taken.Load())
	}
}

// leases tests the one lease that all of a table's users share.
func leases(t *testing.T, s Store, id string) {
	leaseHeld(t, s, id)
	leaseOnce(t, s, id)
}

func heard(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	hears := func(orderID string) bool {
		t.Helper()
		yes, err := s.Heard(t.Context(), orderID)
		wantErr(t, err, nil)
		return yes
	}
	eventually := func(what string, orderID string) {
		t.Helper()
		deadline := time.Now().Add(10 * time.Second)
		for !hears(orderID) && time.Now().Before(deadline) { // the index lags behind the table
			runtime.Gosched()
		}
		if !hears(orderID) {
			t.Errorf("%s is not heard", what)
		}
	}
	never := func(what string, orderID string) {
		t.Helper()
		if hears(orderID) {
			t.Errorf("%s is heard", what)
		}
	}
	never("nothing at all", o.ID)
	wantErr(t, s.RecordCallback(t.Context(), o.ID, payment.Callback{PaymentID: "pay_" + id, At: at}), nil)
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: o, Change: &payment.Change{Source: payment.SourceCallback, What: "paid", At: at}}), nil)
	never("a callback", o.ID)

	e := someEvent(id)
	put(t, s, e)
	never("an event of which nobody knows the order", o.ID)
	for _, status := range []payment.EventStatus{payment.EventReceived, payment.EventParked, payment.EventFailed} {
		wantErr(t, s.SettleEvent(t.Context(), e.Settle(status, "payment.captured", o.ID, "because")), nil)
		never("an event that is "+string(status), o.ID)
	}
	wantErr(t, s.SettleEvent(t.Context(), e.Settle(payment.EventApplied, "payment.captured", o.ID, "done")), nil)
	eventually("an event that is applied", o.ID)
	never("another order's event", o.ID+"0")
	never("another order's event", o.ID[:len(o.ID)-1])

	ignored := someEvent(id + "ignored")
	put(t, s, ignored)
	wantErr(t, s.SettleEvent(t.Context(), ignored.Settle(payment.EventIgnored, "payment.captured", "order-ignored"+id, "of another mode")), nil)
	eventually("an event that is ignored", "order-ignored"+id)
}

// lastFailed has events that nobody else's are later than.
func lastFailed(t *testing.T, s Store, id string) {
	future := at.AddDate(1000, 0, 0)
	last := func() time.Time {
		t.Helper()
		got, err := s.LastFailed(t.Context())
		wantErr(t, err, nil)
		return got
	}
	var events []payment.Event
	for i := range 8 { // in several shards
		e := someEvent(fmt.Sprint(id, "failed", i))
		e.ReceivedAt = future.Add(time.Duration(i*5%8) * time.Hour)
		put(t, s, e)
		events = append(events, e)
	}
	if got := last(); !got.Before(future) {
		t.Errorf("the last that failed is of %s: none has", got)
	}
	latest := time.Time{}
	for _, e := range events {
		wantErr(t, s.SettleEvent(t.Context(), e.Settle(payment.EventFailed, "", "", "gave up")), nil)
		if e.ReceivedAt.After(latest) {
			latest = e.ReceivedAt
		}
		deadline := time.Now().Add(10 * time.Second)
		for !last().Equal(latest) && time.Now().Before(deadline) { // the index lags behind the table
			runtime.Gosched()
		}
		if got := last(); !got.Equal(latest) {
			t.Errorf("the last that failed is of %s, want %s", got, latest)
		}
	}
	for _, e := range events {
		wantErr(t, s.SettleEvent(t.Context(), e.Settle(payment.EventApplied, "", "", "redriven")), nil)
	}
}
