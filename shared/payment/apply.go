package payment

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outcome is what Apply made of some facts.
type Outcome struct {
	Order   Order    // as it should now be; Version is the one it was read at
	Learned []string // what the facts taught, in words; empty if nothing was new
	Moves   []Move
	Effects []Effect // to be written in the order's transaction
	More    bool     // more is owed than one transaction carries: commit, then Apply the same facts again
}

// Changed reports whether there is anything to write.
func (out Outcome) Changed() bool {
	return len(out.Learned) > 0 || len(out.Moves) > 0 || len(out.Effects) > 0
}

// Verdict says in one sentence what happened to the order.
func (out Outcome) Verdict() string {
	said := append([]string(nil), out.Learned...)
	if len(said) == 0 {
		said = append(said, NothingNew)
	}
	return strings.Join(append(said, out.Decisions()...), "; ")
}

// NothingNew is the verdict on facts that taught nothing.
const NothingNew = "nothing new"

// Decisions says in words what followed from what was learned.
func (out Outcome) Decisions() []string {
	var said []string
	for _, m := range out.Moves {
		said = append(said, fmt.Sprintf("order %s → %s", m.From, m.To))
	}
	for _, e := range out.Effects {
		switch e := e.(type) {
		case Fulfilment:
			said = append(said, "fulfilled")
		case Notification:
			if e.Hold != (HoldKey{}) {
				said = append(said, "held: "+e.Hold.String())
			}
		}
	}
	return said
}

// Apply merges facts into o and decides what follows. It is pure: at is the time of the decision, and o stays as it is.
//
// Facts must be of o's gateway, mode and account; see [Order.Excludes]. An Apply without facts decides again on what
// is known, so that the release of a hold can fulfil.
func Apply(o Order, facts []Fact, r Rules, at time.Time) Outcome {
	d := Begin(o)
	d.Learn(facts)
	return d.Decide(r, at)
}

// Draft is an order that is learning facts, from one body or several, until it decides once on all of them. It is the
// only place where an order changes.
type Draft struct {
	order   Order
	learned []string
	owing   owing
}

// Begin returns a draft of o, which stays as it is.
func Begin(o Order) *Draft { return &Draft{order: o.clone()} }

// Learn merges facts and says in words what they taught; nothing, if nothing was new.
func (d *Draft) Learn(facts []Fact) []string {
	var taught []string
	for _, f := range facts {
		if said := d.order.learn(f, facts, &d.owing); said != "" {
			taught = append(taught, said)
		}
	}
	d.learned = append(d.learned, taught...)
	return taught
}

// Full reports whether something that was to be learned has to wait for the next transaction.
func (d *Draft) Full() bool { return d.owing.more }

// WaitsForConfirmation reports whether the order would be fulfilled if its captures were read from the gateway.
func (d *Draft) WaitsForConfirmation(r Rules) bool {
	trusting := r
	trusting.Confirm = Confirm{}
	o := d.order.clone()
	derived := o.Derive(r)
	waits := slices.ContainsFunc(derived.Holds, func(h Hold) bool { return h.Reason == HoldUnconfirmed && !o.Acknowledged(h) })
	if !waits {
		return false
	}
	o.walk(derived.Status, time.Time{})
	return o.fulfils(o.Derive(trusting))
}

// Decide moves the order's status and says what follows from all that was learned.
func (d *Draft) Decide(r Rules, at time.Time) Outcome {
	o, out := d.order, Outcome{Learned: d.learned}
	d.owing.version = o.Version + 1
	out.Moves = o.walk(o.Derive(r).Status, at)
	d.owing.owe(&o, o.Derive(r), out.Moves, at)
	out.Effects, out.More = d.owing.effects, d.owing.more
	if len(out.Learned) > 0 {
		o.ActiveAt = at
	}
	if out.Changed() {
		o.UpdatedAt = at
		o.DueAt = o.NextLook(r, at)
	}
	out.Order = o
	return out
}

// learn merges one fact and says what it taught. An order with many attempts keeps no further one that was never
// authorized, and counts a failure by its row instead of marking the payment: the row knows whether it was counted before.
func (o *Order) learn(f Fact, all []Fact, w *owing) string {
	if released, ok := f.(ReleasedFact); ok {
		return o.release(released, w)
	}
	attempt, ok := f.(PaymentFact)
	if !ok || !o.crowded() {
		return f.merge(o)
	}
	p, known := o.Payments[attempt.ID]
	var said []string
	kept := known && p.Status == PaymentCreated && p.OtherID == "" // since before the order was crowded: never counted
	if attempt.Failed && !p.Failed && !kept {
		row, before := CountedAttempt{attempt.ID}, CountedAttemptFact{attempt.ID}
		if !slices.Contains(all, Fact(before)) && !slices.Contains(w.effects, Effect(row)) && w.addAttempt(row) {
			o.CountedAttempts++
			said = append(said, fmt.Sprintf("payment %s failed (counted)", attempt.ID))
		}
		attempt.Failed = false
	}
	if known || attempt.Status != PaymentCreated {
		if taught := attempt.merge(o); taught != "" {
			said = append(said, taught)
		}
	}
	return strings.Join(said, "; ")
}

// release frees what was reserved, and tells subscribers: a shop that was told to wait hears of the end.
func (o *Order) release(f ReleasedFact, w *owing) string {
	promised := o.Reserved[f.Receipt]
	said := f.merge(o)
	if said != "" {
		key := refundRequestKey + promised.RequestID + "#failed"
		w.add(Notification{Key: key, Status: o.Status, About: promised.RequestID, Amount: promised.Amount}) // the first of its transaction
	}
	return said
}

// crowded reports whether o has room for no further attempt that was never authorized. It stays so once one was counted.
func (o *Order) crowded() bool {
	if o.CountedAttempts > 0 {
		return true
	}
	n := 0
	for _, p := range o.Payments {
		if p.Status == PaymentCreated {
			n++
		}
	}
	return n >= maxStoredAttempts
}

// walk moves o's status along allowed moves to the derived one, and returns the moves. It never goes back.
func (o *Order) walk(derived Status, at time.Time) []Move {
	var moves []Move
	for statusRank[o.Status] < statusRank[derived] {
		to := derived
		if !allowed(o.Status, to) {
			to = Paid // whatever lies beyond paid is reached through it
		}
		moves = append(moves, Move{o.Status, to})
		o.Status = to
		if to == Paid {
			o.PaidAt = at
		}
	}
	return moves
}

func allowed(from, to Status) bool {
	for _, s := range next[from] {
		if s == to {
			return true
		}
	}
	return false
}

// Excludes says why facts of this mode and account are not about o, or "" if they may be. An empty account is not
// compared: old envelopes carry none.
func (o Order) Excludes(gateway string, mode Mode, account string) string {
	switch {
	case o.Gateway != gateway:
		return fmt.Sprintf("the order is paid through %s", o.Gateway)
	case o.Mode != mode:
		return fmt.Sprintf("a %s event, and the order is a %s one", mode, o.Mode)
	case o.Account != "" && account != "" && o.Account != account:
		return "the event is of another merchant account"
	}
	return ""
}

// NewOrder returns the order as it is before anything happened to it.
func NewOrder(id string, amount Money, gateway string, mode Mode, at time.Time) Order {
	return Order{
		ID: id, Amount: amount, Gateway: gateway, Mode: mode, Status: Pending, CreatedAt: at, UpdatedAt: at, ActiveAt: at,
	}
}
