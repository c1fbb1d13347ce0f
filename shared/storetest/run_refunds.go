package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/shared/payment"
)

// someRequest is a refund request of the order with everything in it.
func someRequest(o payment.Order, id string) payment.RefundRequest {
	r := payment.NewRefundRequest(o, "r"+id, "pay_"+id, 100, at)
	r.Amount, r.Reason, r.Forced = rupees, "not as described", true
	r.Call = payment.RefundCall{
		Method: "POST", Path: "/v1/payments/pay_" + id + "/refund", Body: []byte("{\"₹\":\"\\u0026\\/\"}\n\x00"), Key: "po_" + id,
	}
	r.NextAt = at.Add(time.Minute)
	return r.Did(at, "asked for")
}

// reserving is a commit that makes the request.
func reserving(o payment.Order, r payment.RefundRequest) payment.Commit {
	o.Reserved = map[string]payment.Reservation{r.Call.Key: {RequestID: r.ID, PaymentID: r.PaymentID, Amount: r.Amount}}
	return payment.Commit{
		Order: o, Refund: &r, Change: &payment.Change{Source: payment.SourceAPI, What: "reserved", At: at},
		Effects: []payment.Effect{payment.Notification{Key: "refund#" + r.ID, Status: payment.Paid, About: r.ID, Amount: r.Amount}},
	}
}

// request reads a refund request that is there.
func request(t *testing.T, s Store, orderID, id string) payment.RefundRequest {
	t.Helper()
	r, err := s.RefundRequest(t.Context(), orderID, id)
	wantErr(t, err, nil)
	return r
}

func refundWhole(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	r := someRequest(o, id)
	_, err := s.RefundRequest(t.Context(), o.ID, r.ID)
	wantErr(t, err, payment.ErrNotFound)
	wantErr(t, s.Commit(t.Context(), reserving(o, r)), nil)
	r.Version = 1
	same(t, request(t, s, o.ID, r.ID), r)
	_, err = s.RefundRequest(t.Context(), "other-"+id, r.ID)
	wantErr(t, err, payment.ErrNotFound)
	_, err = s.RefundRequest(t.Context(), o.ID, "other-"+id)
	wantErr(t, err, payment.ErrNotFound)

	changed := r.Did(at.Add(time.Second), "the gateway has it")
	changed.Status, changed.RefundID, changed.Refusal, changed.KeyUsed = payment.RequestAccepted, "rfnd_1", "other", true
	changed.Attempts, changed.SentAt, changed.NextAt = 7, at.Add(time.Hour), time.Time{}
	wantErr(t, s.PutRefundRequest(t.Context(), changed), nil)
	changed.Version = 2
	same(t, request(t, s, o.ID, r.ID), changed)
}

func refundVersions(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	r := someRequest(o, id)
	missing := r
	missing.Version = 1
	wantErr(t, s.PutRefundRequest(t.Context(), missing), payment.ErrRefundChanged)
	wantErr(t, s.Commit(t.Context(), reserving(o, r)), nil)
	for _, version := range []int64{0, 2} {
		stale := r
		stale.Version, stale.Attempts = version, 9
		wantErr(t, s.PutRefundRequest(t.Context(), stale), payment.ErrRefundChanged)
	}
	r.Version = 1
	same(t, request(t, s, o.ID, r.ID), r)
	got, err := s.Order(t.Context(), o.ID)
	wantErr(t, err, nil)
	if got.Version != 2 {
		t.Errorf("the order is at version %d, want 2: a refund request has its own", got.Version)
	}
}

// refundTogether: reservation and request are written together, or neither is.
func refundTogether(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	r := someRequest(o, id)
	unchanged := func(version int64, effects int) {
		t.Helper()
		got, err := s.Order(t.Context(), o.ID)
		wantErr(t, err, nil)
		h, err := s.History(t.Context(), o.ID)
		wantErr(t, err, nil)
		if got.Version != version || len(h.Effects) != effects || len(h.Changes) != effects || len(h.Refunds) != effects {
			t.Errorf("order at version %d, %d effects, %d changes, %d refund requests; want %d and %d of each",
				got.Version, len(h.Effects), len(h.Changes), len(h.Refunds), version, effects)
		}
	}
	stale := o
	stale.Version = 7
	wantErr(t, s.Commit(t.Context(), reserving(stale, r)), payment.ErrVersionConflict)
	unchanged(1, 0)
	never := r
	never.Version = 1
	wantErr(t, s.Commit(t.Context(), reserving(o, never)), payment.ErrRefundChanged)
	unchanged(1, 0)

	wantErr(t, s.Commit(t.Context(), reserving(o, r)), nil)
	unchanged(2, 1)
	o, err := s.Order(t.Context(), o.ID)
	wantErr(t, err, nil)
	if _, there := o.Reserved[r.Call.Key]; !there {
		t.Error("the reservation is not kept")
	}
	again := reserving(o, r) // the request is there: it is not made anew
	again.Effects, again.Change = nil, nil
	wantErr(t, s.Commit(t.Context(), again), payment.ErrRefundChanged)
	unchanged(2, 1)

	// Released with the request's failure.
	failed := r
	failed.Version, failed.Status, failed.Refusal, failed.NextAt = 1, payment.RequestFailed, "other", time.Time{}
	release := o
	release.Reserved = nil
	lost := release
	lost.Version--
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: lost, Refund: &failed}), payment.ErrVersionConflict)
	same(t, request(t, s, o.ID, r.ID).Status, payment.RequestOpen)
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: release, Refund: &failed}), nil)
	same(t, request(t, s, o.ID, r.ID).Status, payment.RequestFailed)
	o, err = s.Order(t.Context(), o.ID)
	wantErr(t, err, nil)
	if len(o.Reserved) > 0 {
		t.Errorf("still reserved: %v", o.Reserved)
	}
}

// refundOnce: of calls that make one request at the same time one succeeds, whichever of the two conditions stops the others.
func refundOnce(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	var made atomic.Int64
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			switch err := s.Commit(t.Context(), reserving(o, someRequest(o, id))); {
			case err == nil:
				made.Add(1)
			case errors.Is(err, payment.ErrVersionConflict), errors.Is(err, payment.ErrRefundChanged):
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times, want once", made.Load())
	}
	r := request(t, s, o.ID, "r"+id)
	var put atomic.Int64
	for range 10 {
		wg.Go(func() {
			switch err := s.PutRefundRequest(t.Context(), r.Did(at, "sent again")); {
			case err == nil:
				put.Add(1)
			case !errors.Is(err, payment.ErrRefundChanged):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if after := request(t, s, o.ID, r.ID); put.Load() != 1 || after.Version != r.Version+1 || len(after.Steps) != 2 {
		t.Errorf("written %d times, to version %d with %d steps; want once", put.Load(), after.Version, len(after.Steps))
	}
}

// dueBy lists what found is called with before the time, sorted, until it is as wanted: an index lags behind its table.
func dueBy(t *testing.T, list func(found func(string) bool) error, want ...string) {
	t.Helper()
	var got []string
	deadline := time.Now().Add(10 * time.Second)
	for {
		got = nil
		wantErr(t, list(func(id string) bool {
			got = append(got, id)
			return true
		}), nil)
		slices.Sort(got)
		if slices.Equal(got, want) || time.Now().After(deadline) {
			break
		}
		runtime.Gosched()
	}
	same(t, got, want)
}

func refundsDue(t *testing.T, s Store, id string) {
	// The suite's other tests leave rows too: this one's are of another year.
	year := at.AddDate(-20, 0, 0)
	o := create(t, s, someOrder(id))
	var all []payment.RefundRequest
	for i, next := range []time.Time{year.Add(time.Minute), year.Add(time.Hour), {}} {
		r := someRequest(o, fmt.Sprint(id, "due", i))
		r.NextAt = next
		wantErr(t, s.Commit(t.Context(), payment.Commit{Order: o, Refund: &r}), nil)
		o.Version, r.Version = o.Version+1, 1
		all = append(all, r)
	}
	before := func(when time.Time) func(func(string) bool) error {
		return func(found func(string) bool) error {
			return s.DueRefunds(t.Context(), when, func(orderID, id string) bool { return found(orderID + " " + id) })
		}
	}
	name := func(i int) string { return o.ID + " " + all[i].ID }
	dueBy(t, before(year.Add(time.Minute))) // due later than that
	dueBy(t, before(year.Add(2*time.Minute)), name(0))
	dueBy(t, before(year.Add(2*time.Hour)), name(0), name(1))

	all[0].NextAt, all[2].NextAt = time.Time{}, year.Add(time.Minute)
	wantErr(t, s.PutRefundRequest(t.Context(), all[0]), nil)
	wantErr(t, s.PutRefundRequest(t.Context(), all[2]), nil)
	dueBy(t, before(year.Add(2*time.Hour)), name(1), name(2))
	n := 0
	wantErr(t, s.DueRefunds(t.Context(), year.Add(2*time.Hour), func(string, string) bool {
		n++
		return false
	}), nil)
	if n != 1 {
		t.Errorf("went on to %d requests after the first, want to stop", n)
	}
}

func ordersDue(t *testing.T, s Store, id string) {
	year := at.AddDate(-30, 0, 0)
	before := func(when time.Time) func(func(string) bool) error {
		return func(found func(string) bool) error { return s.DueOrders(t.Context(), when, found) }
	}
	var all []payment.Order
	for i, next := range []time.Time{year.Add(time.Minute), year.Add(time.Hour), {}} {
		o := someOrder(fmt.Sprint(id, "due", i))
		o.DueAt = next
		all = append(all, create(t, s, o))
	}
	dueBy(t, before(year.Add(time.Minute)))
	dueBy(t, before(year.Add(2*time.Minute)), all[0].ID)
	dueBy(t, before(year.Add(2*time.Hour)), all[0].ID, all[1].ID)

	// A commit moves it, and so does a postponement, which changes nothing else.
	moved := all[2]
	moved.DueAt = year.Add(90 * time.Minute)
	wantErr(t, s.Commit(t.Context(), payment.Commit{Order: moved}), nil)
	later := year.Add(100 * time.Minute)
	wantErr(t, s.PostponeOrder(t.Context(), all[0], later), nil)
	dueBy(t, before(year.Add(95*time.Minute)), all[1].ID, all[2].ID)
	dueBy(t, before(year.Add(2*time.Hour)), all[0].ID, all[1].ID, all[2].ID)
	got, err := s.Order(t.Context(), all[0].ID)
	wantErr(t, err, nil)
	all[0].DueAt = later
	same(t, got, all[0])

	// It is out of the list, and comes back.
	wantErr(t, s.PostponeOrder(t.Context(), all[0], time.Time{}), nil)
	dueBy(t, before(year.Add(2*time.Hour)), all[1].ID, all[2].ID)
	wantErr(t, s.PostponeOrder(t.Context(), all[0], year), payment.ErrVersionConflict) // of two at once one postpones
	all[0].DueAt = time.Time{}
	wantErr(t, s.PostponeOrder(t.Context(), all[0], year.Add(time.Minute)), nil)
	dueBy(t, before(year.Add(2*time.Hour)), all[0].ID, all[1].ID, all[2].ID)

	// Not where somebody else wrote the order since, and not where there is none.
	for name, stale := range map[string]payment.Order{
		"written since": all[2], "another under the id": {ID: all[0].ID, Version: 1, CreatedAt: at.Add(time.Second)}, "gone": someOrder(id + "none"),
		"gone since": {ID: "order-gone-" + id, Version: 1, CreatedAt: at},
	} {
		if err := s.PostponeOrder(t.Context(), stale, year); !errors.Is(err, payment.ErrVersionConflict) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	_, err = s.Order(t.Context(), "order-gone-"+id)
	wantErr(t, err, payment.ErrNotFound)
	dueBy(t, before(year.Add(2*time.Hour)), all[0].ID, all[1].ID, all[2].ID)
	n := 0
	wantErr(t, s.DueOrders(t.Context(), year.Add(2*time.Hour), func(string) bool {
		n++
		return false
	}), nil)
	if n != 1 {
		t.Errorf("went on to %d orders after the first, want to stop", n)
	}
}

func callbackOnce(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	var recorded, seen atomic.Int64
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			switch err := s.RecordCallback(t.Context(), o.ID, payment.Callback{PaymentID: "pay_1", At: at}); {
			case err == nil:
				recorded.Add(1)
			case errors.Is(err, payment.ErrCallbackSeen):
				seen.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if recorded.Load() != 1 || seen.Load() != 9 {
		t.Errorf("recorded %d times, seen %d times; want 1 and 9", recorded.Load(), seen.Load())
	}
	wantErr(t, s.RecordCallback(t.Context(), o.ID, payment.Callback{PaymentID: "pay_2", At: at.Add(time.Second)}), nil)
	wantErr(t, s.RecordCallback(t.Context(), "other-"+id, payment.Callback{PaymentID: "pay_1", At: at}), nil)
	wantErr(t, s.RecordCallback(t.Context(), o.ID, payment.Callback{PaymentID: "pay_1", At: at.Add(time.Hour)}), payment.ErrCallbackSeen)
	h, err := s.History(t.Context(), o.ID)
	wantErr(t, err, nil)
	same(t, h.Callbacks, []payment.Callback{{PaymentID: "pay_1", At: at}, {PaymentID: "pay_2", At: at.Add(time.Second)}})
	got, err := s.Order(t.Context(), o.ID)
	wantErr(t, err, nil)
	same(t, got, o)
}

func refundHistory(t *testing.T, s Store, id string) {
	o := create(t, s, someOrder(id))
	var want []payment.RefundRequest
	for i := range 2 {
		r := someRequest(o, fmt.Sprint(id, i)).Did(at.Add(time.Second), "no answer: %d", i)
		wantErr(t, s.Commit(t.Context(), payment.Commit{Order: o, Refund: &r}), nil)
		o.Version, r.Version = o.Version+1, 1
		want = append(want, r)
	}
	h, err := s.History(t.Context(), o.ID)
	wantErr(t, err, nil)
	slices.SortFunc(h.Refunds, func(a, b payment.RefundRequest) int { return strings.Compare(a.ID, b.ID) })
	same(t, h, payment.History{Refunds: want})
}
