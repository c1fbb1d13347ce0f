package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
)

// Findings counts what a comparison with the gateway came to.
type Findings struct {
	Matched        int `json:"matched"`         // captured payments that we knew as the gateway shows them
	MissingWebhook int `json:"missing_webhook"` // captured payments that we did not know of; they are applied now
	Stuck          int `json:"stuck"`           // captured payments, older than 15 minutes, of orders that are neither fulfilled nor refunded, nor wait for another part
	AmountMismatch int `json:"amount_mismatch"` // captured payments of another amount or currency than we knew, or expect
	UnknownOrder   int `json:"unknown_order"`   // captured payments that belong to no order of ours
	RefundUnknown  int `json:"refund_unknown"`  // refunds that we did not know of; they are applied now
	Unreadable     int `json:"unreadable"`      // what the gateway showed and we could not read
	Failed         int `json:"failed"`          // orders that could not be compared
}

// Add adds other findings.
func (f *Findings) Add(other Findings) {
	f.Matched += other.Matched
	f.MissingWebhook += other.MissingWebhook
	f.Stuck += other.Stuck
	f.AmountMismatch += other.AmountMismatch
	f.UnknownOrder += other.UnknownOrder
	f.RefundUnknown += other.RefundUnknown
	f.Unreadable += other.Unreadable
	f.Failed += other.Failed
}

// compared is what a slice of the gateway's lists came to.
type compared struct {
	Findings
	captured []payment.Unheard // of our orders, by creation
}

// Compare reads what the gateway has from one time to another, both included, and applies what we did not know. With dry it only
// counts. An error means that the gateway could not be asked, or nothing could be compared; the findings say what was.
func (r Reconciler) Compare(ctx context.Context, gateway string, from, to time.Time, dry bool) (Findings, error) {
	c, err := r.compare(ctx, gateway, from, to, dry)
	return c.Findings, err
}

func (r Reconciler) compare(ctx context.Context, gateway string, from, to time.Time, dry bool) (c compared, err error) {
	open := r.Gateways[gateway]
	if open == nil {
		return c, fmt.Errorf("this deployment has no gateway %s", gateway)
	}
	g := open(ctx)
	payments, err := list(ctx, &c, g.Payments, from, to)
	if err != nil {
		return c, err
	}
	refunds, err := list(ctx, &c, g.RefundsBetween, from, to)
	if err != nil {
		return c, err
	}
	groups, err := r.group(ctx, g, gateway, payments, refunds, dry, &c)
	if err != nil {
		return c, err
	}
	var failed error
	broken := 0
	for _, orderID := range slices.Sorted(maps.Keys(groups)) {
		err := r.compareOrder(ctx, g, orderID, groups[orderID], dry, &c)
		if err == nil {
			continue
		}
		c.Failed++
		if !errors.As(err, new(excludedError)) {
			broken++
			failed = cmp.Or(failed, err)
		}
		r.Log.LogAttrs(ctx, slog.LevelError, "not compared", slog.String("order", orderID), slog.String("error", err.Error()))
	}
	slices.SortFunc(c.captured, func(a, b payment.Unheard) int { return a.CreatedAt.Compare(b.CreatedAt) })
	if broken > 0 && broken == len(groups) {
		return c, fmt.Errorf("%w: %w", errNoneCompared, failed)
	}
	return c, nil
}

// errNoneCompared: the gateway showed orders, and none could be compared.
var errNoneCompared = errors.New("none of the orders could be compared")

// excludedError says why what the gateway shows cannot be about the order.
type excludedError string

func (e excludedError) Error() string { return string(e) }

// list reads what was made in a slice, and counts what could not be read of it. Of a slice with more than one list holds, which
// card testing can bring about, it reads the halves; a second with too many counts as unreadable.
func list[F any](ctx context.Context, c *compared, read func(ctx context.Context, from, to time.Time) ([]F, error), from, to time.Time) ([]F, error) {
	all, err := read(ctx, from, to)
	some := new(payment.UnreadableError)
	switch {
	case errors.As(err, &some):
		c.Unreadable += some.Count
		return all, nil
	case errors.Is(err, payment.ErrTooMany) && to.Sub(from) < 2*time.Second:
		c.Unreadable++
		return nil, nil
	case !errors.Is(err, payment.ErrTooMany):
		return all, err
	}
	middle := from.Add(to.Sub(from) / 2).Truncate(time.Second)
	first, err := list(ctx, c, read, from, middle)
	if err != nil {
		return nil, err
	}
	second, err := list(ctx, c, read, middle.Add(time.Second), to)
	return append(first, second...), err
}

// group is what the gateway shows of one order.
type group struct {
	payments []payment.PaymentFact
	refunds  []payment.RefundFact
}

// group finds the order of each payment and refund.
func (r Reconciler) group(
	ctx context.Context, g Gateway, gateway string, payments []payment.PaymentFact, refunds []payment.RefundFact, dry bool, c *compared,
) (map[string]*group, error) {
	groups, byPayment := map[string]*group{}, map[string]*group{}
	of := func(ref payment.Ref) (*group, error) {
		id, err := r.Store.OrderID(ctx, gateway, ref)
		if errors.Is(err, payment.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if groups[id] == nil {
			groups[id] = &group{}
		}
		return groups[id], nil
	}
	for _, p := range payments {
		found, err := of(p.Ref())
		if err == nil && found == nil && p.IsCaptured() && r.Adopts && !dry {
			found, err = r.adopt(ctx, g, gateway, p, of)
		}
		switch {
		case err != nil:
			return nil, err
		case found != nil:
			found.payments = append(found.payments, p)
			byPayment[p.ID] = found
		case p.IsCaptured():
			c.UnknownOrder++
		}
	}
	for _, f := range refunds {
		found, err := byPayment[f.PaymentID], error(nil)
		if found == nil {
			found, err = of(f.Ref())
		}
		if err != nil {
			return nil, err
		}
		if found != nil { // of another shop's payment otherwise, or of one that counts as unknown already
			found.refunds = append(found.refunds, f)
		}
	}
	return groups, nil
}

// adopt makes an order of ours for a payment's, if it can.
func (r Reconciler) adopt(ctx context.Context, g Gateway, gateway string, p payment.PaymentFact, of func(payment.Ref) (*group, error)) (*group, error) {
	if p.GatewayOrderID == "" {
		return nil, nil
	}
	stray := advance.Stray{Gateway: gateway, ID: p.GatewayOrderID, Account: r.Account, Source: payment.SourceSweep}
	id, why, err := advance.Adopt(ctx, r.Store, g, stray, r.Stack, r.Now())
	if err != nil {
		why = err.Error() // one that cannot be adopted must not stop the rest, and comes again with the next pass
	}
	if err != nil || id == "" {
		r.Log.LogAttrs(ctx, slog.LevelWarn, "not adopted", slog.String("payment", p.ID), slog.String("outcome", why))
		return nil, nil
	}
	return of(p.Ref())
}

// compareOrder compares an order with what the gateway shows of it, and learns what is new.
func (r Reconciler) compareOrder(ctx context.Context, g Gateway, orderID string, shown *group, dry bool, c *compared) error {
	before, err := r.Store.Order(ctx, orderID)
	if err != nil {
		return err
	}
	if why := before.Excludes(before.Gateway, g.Mode(), r.Account); why != "" {
		return excludedError(why)
	}
	var facts []payment.Fact
	for _, p := range shown.payments {
		if !r.Advancer.Rules.Confirm.Wants(before.Amount) {
			p.Confirmed = false // nobody asks for it, and a write of each order for it would be for nothing
		}
		facts = append(facts, p)
	}
	facts = append(facts, payment.Facts(shown.refunds)...)
	after := before
	if draft := payment.Begin(before); len(draft.Learn(facts)) > 0 {
		after = draft.Decide(r.Advancer.Rules, r.Now()).Order
		if !dry {
			result, err := r.Advancer.Apply(ctx, orderID, advance.Step{Source: payment.SourceSweep, Facts: facts})
			if err != nil {
				return err
			}
			after = result.Order
		}
	}
	for _, p := range shown.payments {
		if p.IsCaptured() {
			if found := c.count(before, after, p, r.Advancer.Rules, r.Now()); found != "" {
				r.Log.LogAttrs(ctx, slog.LevelInfo, "found", slog.String("order", orderID), slog.String("payment", p.ID), slog.String("outcome", found))
			}
		}
	}
	for _, f := range shown.refunds {
		if _, known := before.Refunds[f.ID]; !known {
			c.RefundUnknown++
		}
	}
	return nil
}

// count counts what one captured payment came to, and names what somebody may want to look at.
func (c *compared) count(before, after payment.Order, p payment.PaymentFact, rules payment.Rules, at time.Time) (found string) {
	c.captured = append(c.captured, payment.Unheard{OrderID: before.ID, PaymentID: p.ID, CreatedAt: p.CreatedAt})
	known := before.Payments[p.ID]
	switch {
	case known.IsCaptured() && known.Captured != p.Amount, unexpected(after.Derive(rules), p.ID):
		c.AmountMismatch++
		found = "amount_mismatch"
	case !known.IsCaptured():
		c.MissingWebhook++
		found = "missing_webhook"
	default:
		c.Matched++
	}
	waitsForTheRest := after.Partial && after.Status == payment.Pending
	if after.FulfilledAt.IsZero() && after.Status != payment.Refunded && !waitsForTheRest && !givenBack(after, p) && rules.Pace.Expected(p.CreatedAt, at) {
		c.Stuck++
		found = strings.TrimPrefix(found+", stuck", ", ")
	}
	return found
}

// givenBack reports whether the payment was refunded whole, as one that never covered its order is.
func givenBack(o payment.Order, p payment.PaymentFact) bool {
	var back int64
	for _, r := range o.Refunds {
		if r.PaymentID == p.ID && r.Seen.Processed && !r.Seen.Failed {
			back += r.Amount.Amount
		}
	}
	return back >= p.Amount.Amount
}

// unexpected reports whether the order is held for the amount or the currency of the payment.
func unexpected(d payment.Derivation, paymentID string) bool {
	return slices.ContainsFunc(d.Holds, func(h payment.Hold) bool {
		switch h.Reason {
		case payment.HoldShort, payment.HoldOver:
			return true
		case payment.HoldCurrency, payment.HoldConflict:
			return h.Subject == paymentID
		}
		return false
	})
}

// Scan takes a scan of the gateway as far as the time reaches: slice by slice, each of which is done before the cursor moves
// over it. A slice that the gateway does not show, because the key is refused or calls are throttled, is where the next run
// begins; so is one of which no order could be compared, for half an hour. It returns the captured payments in a row of which no
// webhook came, which is known between two passes; -1 otherwise.
func (r Reconciler) Scan(ctx context.Context, gateway string, scan payment.Scan, more func() bool) (found Findings, silent int, err error) {
	c, err := r.Store.Cursor(ctx, gateway, scan.Name)
	if err != nil {
		return found, -1, err
	}
	pace := r.Advancer.Rules.Pace
	for c = scan.Resume(c, pace, r.Now()); c.Underway(); {
		if !more() {
			return found, -1, nil
		}
		from, to := c.Slice(pace)
		part, err := r.compare(ctx, gateway, from, to, false)
		found.Add(part.Findings)
		if errors.Is(err, errNoneCompared) && c.Stuck(pace, r.Now()) {
			err = nil // counted as failed, and on record: the slices after it must not wait for ever
		}
		if err != nil {
			return found, -1, fmt.Errorf("%s to %s: %w", from.Format(time.RFC3339), to.Format(time.RFC3339), err)
		}
		if scan.Listens {
			if c, err = r.hear(ctx, c, part.captured); err != nil {
				return found, -1, err
			}
		}
		c = c.Finished(pace)
		if err := r.Store.PutCursor(ctx, gateway, scan.Name, c); err != nil {
			return found, -1, ignore(err, payment.ErrVersionConflict) // somebody else is at it
		}
		c.Version++
	}
	c, err = r.hear(ctx, c, c.Silent) // a webhook may have come late
	if err == nil && len(c.Silent) > 0 {
		var failed time.Time // a webhook that the worker gave up on came all the same
		failed, err = r.Store.LastFailed(ctx)
		c = c.Heard(failed)
	}
	return found, len(c.Silent), err
}

// hear looks which of the payments a webhook came of.
func (r Reconciler) hear(ctx context.Context, c payment.Cursor, captured []payment.Unheard) (payment.Cursor, error) {
	for _, u := range captured {
		heard, err := r.Store.Heard(ctx, u.OrderID)
		if err != nil {
			return c, err
		}
		c = c.Hear(u, heard, r.Advancer.Rules.Pace, r.Now())
	}
	return c, nil
}
