package payment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// History is everything that is kept about an order beside the order itself.
type History struct {
	Events  []Event // APPLIED, IGNORED or FAILED for the order, without their bodies
	Changes []Change
	Effects []DatedEffect
	Refunds []RefundRequest
	// Callbacks are the browser's, as far as their signatures were good.
	Callbacks []Callback
}

// DatedEffect is an effect and when it was written.
type DatedEffect struct {
	Effect Effect
	At     time.Time
}

// The sources of an entry that no fact brought.
const (
	entryEffect = "effect" // a row that the order's change brought with it
	entryHold   = "hold"   // a hold that appeared or was acknowledged
	entryRefund = "refund" // what was done about a refund request
)

// Entry is one line of an order's timeline.
type Entry struct {
	At         time.Time
	Source     string // webhook, callback, sweep, api; effect; hold; refund
	What       string // "payment.captured", "ledger: captured pay_1 499.00 INR"
	Verdict    string // of an event: what it taught, or why it changed nothing
	EventID    string
	Status     EventStatus
	VerifiedBy string // label of the secret that verified the event
}

// Timeline tells an order's history in the order of time.
func Timeline(o Order, h History) []Entry {
	l := []Entry{{At: o.CreatedAt, Source: string(SourceAPI), What: fmt.Sprintf("order created: %s by %s", o.Amount, o.Gateway)}}
	for _, e := range h.Events {
		l = append(l, Entry{
			At: e.ReceivedAt, Source: string(SourceWebhook), What: e.Type, Verdict: e.Verdict, EventID: e.Key.ID,
			Status: e.Status, VerifiedBy: e.VerifiedBy,
		})
	}
	for _, c := range h.Changes {
		l = append(l, Entry{At: c.At, Source: string(c.Source), What: c.What})
	}
	for _, e := range h.Effects {
		if what := describe(e.Effect); what != "" {
			l = append(l, Entry{At: e.At, Source: entryEffect, What: what})
		}
	}
	for _, r := range h.Refunds {
		for _, step := range r.Steps {
			l = append(l, Entry{At: step.At, Source: entryRefund, What: fmt.Sprintf("refund request %s: %s", r.ID, step.What)})
		}
	}
	for _, c := range h.Callbacks {
		what := fmt.Sprintf("the customer's browser came back with payment %s", c.PaymentID)
		l = append(l, Entry{At: c.At, Source: string(SourceCallback), What: what})
	}
	byName := func(a, b HoldKey) int { return cmp.Compare(a.String(), b.String()) }
	for _, k := range slices.SortedFunc(maps.Keys(o.Holds), byName) {
		hold := o.Holds[k]
		l = append(l, Entry{At: hold.Since, Source: entryHold, What: "held: " + k.String()})
		if a := hold.Acknowledged; a != nil {
			l = append(l, Entry{At: a.At, Source: entryHold, What: fmt.Sprintf("%s acknowledged by %s: %s", k, a.By, a.Why)})
		}
	}
	slices.SortStableFunc(l, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(sourceRank[a.Source], sourceRank[b.Source]))
	})
	return l
}

// sourceRank puts what caused a change before what came of it, where both have the same time.
var sourceRank = map[string]int{entryHold: 1, entryEffect: 2}

// describe says in words what an effect is, or "" for one that nobody need read of.
func describe(e Effect) string {
	switch e := e.(type) {
	case Fulfilment:
		return fmt.Sprintf("fulfilled, with %s captured", e.Captured)
	case LedgerEntry:
		return fmt.Sprintf("ledger: %s %s %s", e.Type, e.SubjectID, e.Amount)
	case Notification:
		return "notification: " + e.Key
	case CountedAttempt:
		return fmt.Sprintf("failed attempt %s counted", e.PaymentID)
	}
	return ""
}
