package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"paidonce/shared/payment"
)

// Checker asserts the invariants of docs/design.md on a store's orders. It remembers what it saw, so that it also
// asserts how they may change from one look to the next. It may be used by one goroutine at a time.
type Checker struct {
	Store Store
	Rules payment.Rules

	seen map[string]payment.Order
}

// Check fails the test for every invariant that one of the orders breaks.
func (c *Checker) Check(t testing.TB, orderIDs ...string) {
	t.Helper()
	for _, id := range orderIDs {
		for _, broken := range c.Broken(t.Context(), id) {
			t.Errorf("order %s: %s", id, broken)
		}
	}
}

// Broken says in words which invariants the order breaks: what Check fails the test for.
func (c *Checker) Broken(ctx context.Context, id string) []string {
	o, err := c.Store.Order(ctx, id)
	if err != nil {
		return []string{err.Error()}
	}
	effects, err := c.Store.Effects(ctx, id)
	if err != nil {
		return []string{err.Error()}
	}
	d := o.Derive(c.Rules)
	var broken []string
	broken = append(broken, fulfilledOnce(o, effects)...)
	broken = append(broken, booksAgree(o, d, effects)...)
	broken = append(broken, statusFollows(o, d)...)
	broken = append(broken, c.pointed(ctx, o)...)
	broken = append(broken, notTwice(o)...)
	if before, ok := c.seen[id]; ok {
		broken = append(broken, onlyForward(before, o)...)
		broken = append(broken, onlyWhatIsThere(before, o)...)
		if before.FulfilledAt.IsZero() && !o.FulfilledAt.IsZero() {
			broken = append(broken, mayFulfil(o, d)...)
		}
	}
	if c.seen == nil {
		c.seen = map[string]payment.Order{}
	}
	c.seen[id] = o
	return broken
}

// fulfilledOnce: an order that says it is fulfilled has its one row, and no other has one.
func fulfilledOnce(o payment.Order, effects []payment.Effect) []string {
	n := 0
	for _, e := range effects {
		if _, ok := e.(payment.Fulfilment); ok {
			n++
		}
	}
	want := 0
	if !o.FulfilledAt.IsZero() {
		want = 1
	}
	if n != want {
		return []string{fmt.Sprintf("%d fulfilments, the order says %d", n, want)}
	}
	return nil
}

// mayFulfil: the goods went out only for an order that is paid and that nothing blocks.
func mayFulfil(o payment.Order, d payment.Derivation) []string {
	var broken []string
	if o.Status != payment.Paid || d.Status != payment.Paid {
		broken = append(broken, fmt.Sprintf("fulfilled as %s, derived %s", o.Status, d.Status))
	}
	for _, h := range d.Holds {
		if h.Reason.Blocking() && !o.Acknowledged(h) {
			broken = append(broken, fmt.Sprintf("fulfilled in spite of hold %s", h.Reason))
		}
	}
	return broken
}

// booksAgree: per currency, what the ledger says was captured was captured, and what it says was refunded, reversals in
// rows of their own, was refunded.
func booksAgree(o payment.Order, d payment.Derivation, effects []payment.Effect) []string {
	captured, booked := map[string]int64{}, map[string]int64{}
	for _, p := range o.Payments {
		if p.IsCaptured() {
			captured[p.Captured.Currency] += p.Captured.Amount
		}
	}
	var refunded int64
	reversible := map[string]bool{}
	for _, e := range effects {
		entry, ok := e.(payment.LedgerEntry)
		if !ok {
			continue
		}
		switch {
		case entry.Type.Corrects() == payment.LedgerCaptured:
			booked[entry.Amount.Currency] += entry.Amount.Amount
		case entry.Type.Corrects() == payment.LedgerRefunded:
			reversible[entry.SubjectID] = true
			if entry.Amount.Currency == o.Amount.Currency && o.Payments[entry.PaymentID].Captured.Currency == o.Amount.Currency {
				refunded += entry.Amount.Amount
			}
		}
	}
	var broken []string
	maps.DeleteFunc(booked, func(_ string, amount int64) bool { return amount == 0 })
	if !maps.Equal(captured, booked) {
		broken = append(broken, fmt.Sprintf("captured %v, ledger %v", captured, booked))
	}
	if refunded != d.Refunded {
		broken = append(broken, fmt.Sprintf("refunded %d, ledger %d", d.Refunded, refunded))
	}
	for _, e := range effects {
		if entry, ok := e.(payment.LedgerEntry); ok && entry.Type == payment.LedgerReversed && !reversible[entry.SubjectID] {
			broken = append(broken, "reversal of refund "+entry.SubjectID+" that was never booked")
		}
	}
	return broken
}

// notTwice: a refund request counts as its reservation or as the gateway's refund, never as both.
func notTwice(o payment.Order) []string {
	var broken []string
	for id, r := range o.Refunds {
		if promised, both := o.Reserved[r.Receipt]; both && promised.PaymentID == r.PaymentID && promised.Amount == r.Amount {
			broken = append(broken, fmt.Sprintf("refund %s is reserved as well", id))
		}
	}
	return broken
}

// onlyWhatIsThere: money is reserved only as far as a payment was captured and is not on its way back already.
func onlyWhatIsThere(before, after payment.Order) []string {
	var broken []string
	for receipt, promised := range after.Reserved {
		if _, there := before.Reserved[receipt]; there {
			continue
		}
		var gone int64
		for _, r := range after.Refunds {
			if r.PaymentID == promised.PaymentID && !r.Seen.Failed {
				gone += r.Amount.Amount
			}
		}
		for _, r := range after.Reserved {
			if r.PaymentID == promised.PaymentID {
				gone += r.Amount.Amount
			}
		}
		if captured := after.Payments[promised.PaymentID].Captured.Amount; gone > captured {
			broken = append(broken, fmt.Sprintf("%d of payment %s refunded or reserved, %d captured", gone, promised.PaymentID, captured))
		}
	}
	return broken
}

// statusFollows: status differs from derived only where a hold says so.
func statusFollows(o payment.Order, d payment.Derivation) []string {
	behind := slices.ContainsFunc(d.Holds, func(h payment.Hold) bool { return h.Reason == payment.HoldStatusBehind })
	if (o.Status != d.Status) != behind {
		return []string{fmt.Sprintf("status %s, derived %s, hold status_behind %t", o.Status, d.Status, behind)}
	}
	return nil
}

// pointed: every captured payment leads to the order, and so does the gateway's order.
func (c *Checker) pointed(ctx context.Context, o payment.Order) []string {
	refs := []payment.Ref{}
	if o.GatewayOrderID != "" {
		refs = append(refs, payment.Ref{GatewayOrderID: o.GatewayOrderID})
	}
	for id, p := range o.Payments {
		if p.IsCaptured() {
			refs = append(refs, payment.Ref{PaymentID: id})
		}
	}
	var broken []string
	for _, ref := range refs {
		if owner, err := c.Store.OrderID(ctx, o.Gateway, ref); err != nil || owner != o.ID {
			broken = append(broken, fmt.Sprintf("%s leads to order %q (%v)", ref, owner, err))
		}
	}
	return broken
}

// forward lists what an order of each status may be at a later look.
var forward = map[payment.Status][]payment.Status{
	payment.Pending:           {payment.Failed, payment.Paid, payment.PartiallyRefunded, payment.Refunded},
	payment.Failed:            {payment.Paid, payment.PartiallyRefunded, payment.Refunded},
	payment.Paid:              {payment.PartiallyRefunded, payment.Refunded},
	payment.PartiallyRefunded: {payment.Refunded},
}

// onlyForward: status moves only along the table, versions grow, and what happened stays.
func onlyForward(before, after payment.Order) []string {
	var broken []string
	if after.Status != before.Status && !slices.Contains(forward[before.Status], after.Status) {
		broken = append(broken, fmt.Sprintf("status went from %s to %s", before.Status, after.Status))
	}
	if after.Version < before.Version {
		broken = append(broken, fmt.Sprintf("version went from %d to %d", before.Version, after.Version))
	}
	if !before.FulfilledAt.IsZero() && !after.FulfilledAt.Equal(before.FulfilledAt) {
		broken = append(broken, "fulfilled at another time than before")
	}
	for id := range before.Payments {
		if _, ok := after.Payments[id]; !ok {
			broken = append(broken, "payment "+id+" was forgotten")
		}
	}
	return broken
}
