package functions_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/shared/apigw"
	"paidonce/shared/localaws"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/storetest"
)

// examine compares an order with the gateway's books and with what it should have come to.
func (v *victim) examine(t *testing.T) {
	v.wrong, v.lost, v.doubled = nil, false, false
	o := storedOrder(t, v.ID)
	if o.Status != v.status || o.FulfilledAt.IsZero() == v.fulfilled {
		v.problem("%s, fulfilled at %s", o.Status, o.FulfilledAt)
	}
	h, err := table.History(t.Context(), v.ID)
	if err != nil {
		t.Error(err)
	}
	moved := 0
	for _, c := range h.Changes {
		moved += strings.Count(c.What, "; fulfilled")
		v.bySweep = v.bySweep || c.Source == payment.SourceSweep && strings.Contains(c.What, "; fulfilled")
	}
	for _, e := range h.Events {
		moved += strings.Count(e.Verdict, "; fulfilled")
		if e.Status != payment.EventApplied {
			v.problem("event %s is %s: %s", e.Key, e.Status, e.Verdict)
		}
	}
	var booked books
	fulfilments := 0
	for _, e := range h.Effects {
		switch e := e.Effect.(type) {
		case payment.Fulfilment:
			fulfilments++
		case payment.LedgerEntry:
			booked.add(e)
		}
	}
	if want := map[bool]int{true: 1}[v.fulfilled]; fulfilments != want || moved != want {
		v.problem("fulfilled %d times, by %d changes", fulfilments, moved)
		v.lost, v.doubled = v.lost || fulfilments < want, v.doubled || fulfilments > want || moved > want
	}
	if shown := booksOf(t, v.Order); booked != shown {
		v.problem("booked %+v, and the gateway has %+v", booked, shown)
		v.lost = v.lost || booked.captured < shown.captured || booked.refunded < shown.refunded
		v.doubled = v.doubled || booked.captured > shown.captured || booked.refunded > shown.refunded
	}
	unsent, err := table.Unsent(t.Context(), owed(t, v.ID))
	if err != nil {
		t.Error(err)
	}
	if len(unsent) > 0 {
		v.problem("%d announcements are unsent", len(unsent))
	}
}

// books are sums in minor units.
type books struct{ captured, refunded int64 }

func (b *books) add(e payment.LedgerEntry) {
	switch e.Type {
	case payment.LedgerCaptured:
		b.captured += e.Amount.Amount
	case payment.LedgerRefunded:
		b.refunded += e.Amount.Amount
	}
}

// booksOf is what the gateway itself says of an order.
func booksOf(t *testing.T, o apigw.Order) (b books) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/orders/"+*o.GatewayOrderID+"/payments", nil)
	r.SetBasicAuth(localaws.SampleSecrets.KeyID, localaws.SampleSecrets.KeySecret)
	w := httptest.NewRecorder()
	gateway.ServeHTTP(w, r)
	var shown struct {
		Items []struct {
			Amount   int64 `json:"amount"`
			Captured bool  `json:"captured"`
			Refunded int64 `json:"amount_refunded"`
		} `json:"items"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &shown); w.Code != http.StatusOK || err != nil {
		t.Errorf("the gateway answered %d %s", w.Code, w.Body)
	}
	for _, p := range shown.Items {
		if p.Captured {
			b.captured += p.Amount
			b.refunded += p.Refunded
		}
	}
	return b
}

// finish asserts what costs too much time to look at again and again.
func (d *drill) finish(deliveries []razorpaytest.Delivery, lastRun time.Time) {
	d.t.Helper()
	mine := map[string]*victim{}
	for _, v := range d.orders {
		mine[v.ID] = v
		announced, keys := told(d.t, v.ID), owed(d.t, v.ID)
		for _, k := range keys {
			if len(announced[k.String()]) == 0 {
				v.problem("subscribers were never told %s", k)
				v.lost = true
			}
		}
		if len(announced) > len(keys) {
			v.problem("subscribers were told %d things, and %d are true", len(announced), len(keys))
			v.doubled = true
		}
		for _, copies := range announced {
			v.told += len(copies)
			v.repeated += len(copies) - 1
		}
	}
	atOnce(d.orders, func(v *victim) {
		for _, broken := range (&storetest.Checker{Store: table}).Broken(d.t.Context(), v.ID) {
			v.problem("%s", broken)
		}
	})
	atOnce(deliveries, func(w razorpaytest.Delivery) {
		if e := event(d.t, w.EventID); w.Status == http.StatusOK && e.Status != payment.EventApplied {
			d.t.Errorf("event %s of order %s was acknowledged and is %s: %s", w.EventID, w.OrderID, e.Status, e.Verdict)
		}
	})
	if err := table.DueOrders(d.t.Context(), lastRun, func(id string) bool {
		if v := mine[id]; v != nil {
			v.problem("it was due before the last run and still is")
		}
		return true
	}); err != nil {
		d.t.Error(err)
	}
	if err := table.DueRefunds(d.t.Context(), lastRun, func(id, request string) bool {
		if v := mine[id]; v != nil {
			v.problem("its refund request %s was due before the last run and still is", request)
		}
		return true
	}); err != nil {
		d.t.Error(err)
	}
	if keys := gateway.ReusedKeys(); len(keys) > 0 {
		d.t.Errorf("idempotency keys %v came with more than one body", keys)
	}
	for _, v := range d.orders {
		for _, wrong := range v.wrong {
			d.t.Errorf("order %s, %s: %s", v.ID, v.name, wrong)
		}
	}
}

// travels is what became of the webhooks.
type travels struct{ events, lost, whileOff, twice, reordered, attempts int }

// stages are the events of one payment in the order in which they happen.
var stages = []string{"payment.failed", "payment.authorized", "payment.captured", "order.paid", "refund.created", "refund.processed"}

func travelled(deliveries []razorpaytest.Delivery) (w travels) {
	seen, attempts, furthest := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, d := range deliveries {
		if !seen[d.EventID] {
			seen[d.EventID] = true
			w.events++
		}
		stage := slices.Index(stages, d.Event)
		switch {
		case d.Attempt == 0 && d.Error == "dropped":
			w.lost++
		case d.Attempt == 0:
			w.whileOff++
		case attempts[d.EventID] == 1:
			w.twice++
		case attempts[d.EventID] == 0 && stage < furthest[d.PaymentID]:
			w.reordered++
		}
		if d.Attempt > 0 {
			w.attempts++
			attempts[d.EventID]++
			furthest[d.PaymentID] = max(stage, furthest[d.PaymentID])
		}
	}
	return w
}

// table prints what was done and what came of it, beside what shops without all this report.
func (d *drill) table(w travels, missed int, stoppedFor, took time.Duration) {
	d.t.Helper()
	var bySweep, lost, doubled, told, repeated int
	for _, v := range d.orders {
		told, repeated = told+v.told, repeated+v.repeated
		for n, is := range map[*int]bool{&bySweep: v.bySweep, &lost: v.lost, &doubled: v.doubled} {
			if is {
				*n++
			}
		}
	}
	share := func(n, of int) string { return fmt.Sprintf("%5d  (%d %%)", n, 100*n/max(of, 1)) }
	sent := w.events - w.whileOff
	arrived := sent - w.lost
	var b strings.Builder
	for _, line := range [][2]string{
		{"orders", fmt.Sprintf("%5d", len(d.orders))},
		{"webhooks due", fmt.Sprintf("%5d", w.events)},
		{"  while the webhook was switched off", share(w.whileOff, w.events)},
		{"  lost on the way", share(w.lost, sent)},
		{"  sent twice", share(w.twice, arrived)},
		{"  overtaken by a later one", share(w.reordered, arrived)},
		{"webhooks received, repetitions included", fmt.Sprintf("%5d", w.attempts)},
		{"worker killed", fmt.Sprintf("%5d  times", 2)},
		{"notifications stopped", fmt.Sprintf("%5d  minutes, a second each", int(stoppedFor.Seconds()))},
		{"orders paid that no webhook had told of", fmt.Sprintf("%5d", missed)},
		{"  fulfilled by reconcile", fmt.Sprintf("%5d", bySweep)},
		{"notifications sent", fmt.Sprintf("%5d  (%d of them repetitions, with the same id)", told, repeated)},
		{"lost", fmt.Sprintf("%5d  (reported elsewhere: 3 of 305 missing; 4 to 5 %% stuck)", lost)},
		{"doubled", fmt.Sprintf("%5d  (reported elsewhere: 6 of 305)", doubled)},
		{"took", fmt.Sprintf("%5d  seconds", int(took.Seconds()))},
	} {
		fmt.Fprintf(&b, "\n  %-42s %s", line[0], line[1])
	}
	d.t.Log(b.String())
	for what, count := range map[string][2]int{
		"webhooks were lost": {w.lost, sent}, "webhooks came twice": {w.twice, arrived}, "webhooks were overtaken": {w.reordered, arrived},
		"webhooks were lost while it was off": {w.whileOff, w.events}, "orders were made good": {bySweep, len(d.orders)},
	} {
		if 10*count[0] < count[1] {
			d.t.Errorf("that was no drill: only %d of %d %s", count[0], count[1], what)
		}
	}
}
