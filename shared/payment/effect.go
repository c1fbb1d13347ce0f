package payment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// maxEffects bounds what one transaction carries beside the order and the event. DynamoDB takes 100 actions
// (TransactWriteItems); the rest follows in the next transaction.
const maxEffects = 40

// An Effect is a row that an order's change brings with it, in the same transaction. Its key is made of business ids
// and the database refuses a second one, so that no effect happens twice. The effects are [Fulfilment],
// [LedgerEntry], [PaymentPointer], [OrderPointer], [CountedAttempt] and [Notification].
type Effect interface{ effect() }

// Fulfilment hands the goods over. There is one per order, and it is the notification that the order is paid.
type Fulfilment struct {
	Captured Money // what had been captured for the order
}

// LedgerEntry books money. There is one per subject and type.
type LedgerEntry struct {
	SubjectID string // the payment, refund or dispute
	Type      LedgerType
	PaymentID string
	Amount    Money // negative only in a correction
}

// LedgerType says what a ledger entry books.
type LedgerType string

// The ledger entry types. A correction, because the gateway named another amount later, has a type of its own that begins
// with the one it corrects; see [LedgerType.Corrects].
const (
	LedgerCaptured    LedgerType = "captured"     // subject: payment
	LedgerRefunded    LedgerType = "refunded"     // subject: refund
	LedgerReversed    LedgerType = "reversed"     // subject: refund that failed after it was booked
	LedgerDisputeLost LedgerType = "dispute_lost" // subject: dispute
)

const correctedTo = "_corrected_to_"

// Corrects is the type of the entries that t belongs to: t itself, or the one that t corrects.
func (t LedgerType) Corrects() LedgerType {
	base, _, _ := strings.Cut(string(t), correctedTo)
	return LedgerType(base)
}

// PaymentPointer claims a payment for the order, across all orders.
type PaymentPointer struct{ PaymentID string }

// OrderPointer leads from the gateway's order to ours.
type OrderPointer struct{ GatewayOrderID string }

// CountedAttempt remembers that a failed attempt which the order does not keep has been counted.
type CountedAttempt struct{ PaymentID string }

// refundRequestKey begins the keys of notifications about refund requests.
const refundRequestKey = "refund_request#"

// Notification tells subscribers one thing about the order, once.
type Notification struct {
	Key    string // unique within the order: "failed", "refund#rfnd_1#processed", "hold#short#"
	Status Status // of the order
	About  string // the refund, or the shop's refund request, that it is about; empty for a hold or the order itself
	Hold   HoldKey
	Amount Money // of the refund, or the order's
}

func (Fulfilment) effect()     {}
func (LedgerEntry) effect()    {}
func (PaymentPointer) effect() {}
func (OrderPointer) effect()   {}
func (CountedAttempt) effect() {}
func (Notification) effect()   {}

// owing collects the effects of one change and keeps them within what a transaction carries.
type owing struct {
	effects []Effect
	more    bool  // something had to wait for the next transaction
	version int64 // of the order that the change makes: what is corrected twice is corrected in two versions
}

// add takes the effects together or not at all, and reports which.
func (w *owing) add(effects ...Effect) bool {
	if len(w.effects)+len(effects) > maxEffects {
		w.more = true
		return false
	}
	w.effects = append(w.effects, effects...)
	return true
}

// addAttempt leaves room for what a decision brings: the moves' notifications and the fulfilment.
func (w *owing) addAttempt(a CountedAttempt) bool {
	if len(w.effects) >= maxEffects-len(statusRank) {
		w.more = true
		return false
	}
	return w.add(a)
}

// owe adds what o's state calls for and is not written yet, and marks it in o. Pointers come first: money counts only
// for the order whose pointer stands. Refunds come before captures, so that what is left over is never more than true.
func (w *owing) owe(o *Order, d Derivation, moves []Move, at time.Time) {
	for _, m := range moves {
		if m.To != Paid { // the fulfilment tells that
			w.add(Notification{Key: string(m.To), Status: m.To, Amount: o.Amount})
		}
	}
	payments := slices.Sorted(maps.Keys(o.Payments))
	for _, id := range payments {
		p := o.Payments[id]
		if p.OtherID == "" && !p.Pointed && paymentRank[p.Status] > 0 {
			p.Pointed = w.add(PaymentPointer{id})
			o.Payments[id] = p
		}
	}
	if o.fulfils(d) && !w.more && w.add(Fulfilment{Money{d.Captured, o.Amount.Currency}}) {
		o.FulfilledAt = at
	}
	w.oweRefunds(o)
	for _, id := range payments {
		p := o.Payments[id]
		if p.IsCaptured() && p.Pointed {
			w.book(&p.Booked, p.Captured, LedgerEntry{id, LedgerCaptured, id, p.Captured})
			o.Payments[id] = p
		}
	}
	for _, id := range slices.Sorted(maps.Keys(o.Disputes)) {
		dispute := o.Disputes[id]
		w.book(&dispute.Booked, dispute.loss(), LedgerEntry{id, LedgerDisputeLost, dispute.PaymentID, dispute.loss()})
		o.Disputes[id] = dispute
	}
	for _, h := range d.Holds {
		history := o.Holds[h.HoldKey]
		if history.Since.IsZero() {
			history.Since = at
		}
		if !history.Told && !(h.Reason.onlyGuardsTheGoods() && !o.FulfilledAt.IsZero()) {
			key := fmt.Sprintf("hold#%s#%s", h.Reason, h.Subject)
			history.Told = w.add(Notification{Key: key, Status: o.Status, Hold: h.HoldKey, Amount: o.Amount})
		}
		o.Holds[h.HoldKey] = history
	}
}

func (w *owing) oweRefunds(o *Order) {
	for _, id := range slices.Sorted(maps.Keys(o.Refunds)) {
		r := o.Refunds[id]
		p := o.Payments[r.PaymentID]
		if r.Seen.Processed && p.IsCaptured() && p.Pointed {
			w.book(&r.Booked, r.Amount, LedgerEntry{id, LedgerRefunded, r.PaymentID, r.Amount})
		}
		if r.Seen.Failed {
			w.book(&r.Reversed, r.Booked, LedgerEntry{id, LedgerReversed, r.PaymentID, r.Booked})
		}
		for _, s := range r.Seen.List() {
			if r.Told.With(s) != r.Told && w.add(Notification{
				Key: fmt.Sprintf("refund#%s#%s", id, s), Status: o.Status, About: id, Amount: r.Amount,
			}) {
				r.Told = r.Told.With(s)
			}
		}
		o.Refunds[id] = r
	}
}

// book brings the ledger from what is booked of a subject to what is true, and notes that in booked. The first entry is
// the one given; later ones correct it, so that no row ever changes and the sums agree.
func (w *owing) book(booked *Money, truth Money, first LedgerEntry) {
	if *booked == truth {
		return
	}
	entries := []Effect{first}
	if *booked != (Money{}) {
		entries = nil
		for _, change := range booked.to(truth) {
			kind := fmt.Sprintf("%s%s%d_%s_%s_v%d", first.Type, correctedTo, truth.Amount, truth.Currency, change.Currency, w.version)
			entries = append(entries, LedgerEntry{first.SubjectID, LedgerType(kind), first.PaymentID, change})
		}
	}
	if w.add(entries...) {
		*booked = truth
	}
}

// to lists what has to be added to m to make it other: one amount, or in another currency two.
func (m Money) to(other Money) []Money {
	if m.Currency == other.Currency {
		return []Money{{other.Amount - m.Amount, m.Currency}}
	}
	return []Money{{-m.Amount, m.Currency}, other}
}

// List returns the statuses in the set, in the order in which a refund usually passes them.
func (r RefundStates) List() []RefundStatus {
	var l []RefundStatus
	if r.Pending {
		l = append(l, RefundPending)
	}
	if r.Processed {
		l = append(l, RefundProcessed)
	}
	if r.Failed {
		l = append(l, RefundFailed)
	}
	return l
}
