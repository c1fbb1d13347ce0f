package payment

import (
	"fmt"
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
		said = append(said, "nothing new")
	}
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
	return strings.Join(said, "; ")
}

// Apply merges facts into o and decides what follows. It is the only place where an order's status changes. It is
// pure: at is the time of the decision, and o stays as it is.
//
// Facts must be of o's gateway, mode and account; see [Order.Excludes]. An Apply without facts decides again on what
// is known, so that the release of a hold can fulfil.
func Apply(o Order, facts []Fact, r Rules, at time.Time) Outcome {
	o = o.clone()
	out := Outcome{}
	var w owing
	for _, f := range facts {
		if said := o.learn(f, facts, &w); said != "" {
			out.Learned = append(out.Learned, said)
		}
	}
	out.Moves = o.walk(o.Derive(r).Status, at)
	w.owe(&o, o.Derive(r), out.Moves, at)
	out.Effects, out.More = w.effects, w.more
	if out.Changed() {
		o.UpdatedAt = at
	}
	out.Order = o
	return out
}

// learn merges one fact and says what it taught. An attempt beyond those that o keeps is counted instead.
func (o *Order) learn(f Fact, all []Fact, w *owing) string {
	attempt, ok := f.(PaymentFact)
	if !ok || attempt.Status != PaymentCreated || !o.attemptsFull(attempt.ID) {
		return f.merge(o)
	}
	for _, other := range all {
		if counted, ok := other.(CountedAttemptFact); ok && counted.PaymentID == attempt.ID {
			return ""
		}
	}
	if !attempt.Failed || !w.add(CountedAttempt{attempt.ID}) {
		return ""
	}
	o.CountedAttempts++
	return fmt.Sprintf("payment %s failed (counted)", attempt.ID)
}

// attemptsFull reports whether o does not know the payment and has no room for another that was never authorized.
func (o *Order) attemptsFull(paymentID string) bool {
	if _, known := o.Payments[paymentID]; known || len(o.Payments) < maxStoredAttempts {
		return false
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
	return Order{ID: id, Amount: amount, Gateway: gateway, Mode: mode, Status: Pending, CreatedAt: at, UpdatedAt: at}
}
