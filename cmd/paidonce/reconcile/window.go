package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"paidonce/cmd/paidonce/stack"
	"paidonce/shared/payment"
	"paidonce/shared/reconcile"
)

// window is a time to go through, both ends included, to the second.
type window struct{ from, to time.Time }

const (
	// settling is how long ago a window must have ended: the gateway's list may lag.
	settling   = time.Minute
	longestDay = 400
	longest    = longestDay * 24 * time.Hour
)

// earliest is the oldest time that the gateway's lists take.
var earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// window reads the flags --since, --from and --to.
func (o options) window(now time.Time) (w window, err error) {
	last := now.Add(-settling).Truncate(time.Second)
	switch {
	case o.since == "" && o.from == "" && o.to == "":
		return w, errors.New("say what to compare: --since 24h, --from TIME, or the id of an order")
	case o.since != "" && (o.from != "" || o.to != ""):
		return w, errors.New("--since goes back from now: give it alone, or --from and --to")
	case o.since == "" && o.from == "":
		return w, errors.New("--to says where to end: give --from too")
	}
	w.to = last
	if o.since != "" {
		back, err := time.ParseDuration(o.since)
		if err != nil {
			return w, fmt.Errorf("--since %q is not a duration: write it as 24h or 90m", o.since)
		}
		if back <= settling {
			return w, fmt.Errorf("--since %s leaves nothing to compare: it ends a minute ago, since the gateway's lists may lag", o.since)
		}
		w.from = now.Add(-back)
	} else if w.from, err = flagTime("--from", o.from); err != nil {
		return w, err
	}
	if o.to != "" {
		if w.to, err = flagTime("--to", o.to); err != nil {
			return w, err
		}
	}
	w = window{w.from.UTC().Truncate(time.Second), w.to.UTC().Truncate(time.Second)}
	switch {
	case w.to.After(last):
		return w, fmt.Errorf("--to %s is later than a minute ago: the gateway's lists may not be complete yet, leave it out", inUTC(w.to))
	case !w.from.Before(w.to):
		return w, fmt.Errorf("--from %s is not before --to %s: nothing to compare", inUTC(w.from), inUTC(w.to))
	case w.from.Before(earliest):
		return w, fmt.Errorf("%s is before the year 2000: the gateway lists nothing as old", inUTC(w.from))
	case w.to.Sub(w.from) > longest:
		return w, fmt.Errorf("%s to %s is more than %d days: go through it in parts", inUTC(w.from), inUTC(w.to), longestDay)
	}
	return w, nil
}

func flagTime(flag, value string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return t, fmt.Errorf("%s %q is not a time: write it as 2026-11-30T00:00:00Z, or 2026-11-30T00:00:00+05:30", flag, value)
	}
	return t, nil
}

// slicePace is the pace of slices: minutes are minutes, on a local stack too.
const slicePace = payment.Pace(time.Minute)

func (w window) cursor() payment.Cursor { return payment.Cursor{Next: w.from, Until: w.to} }

// slices counts the slices of the window.
func (w window) slices() (n int) {
	for c := w.cursor(); c.Underway(); c = c.Finished(slicePace) {
		n++
	}
	return n
}

// comparison is what going through a window came to.
type comparison struct {
	found   reconcile.Findings
	reached time.Time // the window is done to here
	failed  window    // the slices with orders that could not be compared, from the first to the last
}

// compare goes through the window and calls step after each slice. It ends at a slice that fails, of which nothing counts.
func (r reconciler) compare(ctx context.Context, w window, dry bool, step func()) (comparison, error) {
	c := comparison{reached: w.from}
	open, once := r.Gateways[stack.GatewayName], &once{}
	r.Gateways = map[string]func(context.Context) reconcile.Gateway{stack.GatewayName: func(ctx context.Context) reconcile.Gateway {
		once.Gateway = open(ctx)
		return once
	}}
	for cursor := w.cursor(); cursor.Underway(); cursor = cursor.Finished(slicePace) {
		from, to := cursor.Slice(slicePace)
		part, err := r.Compare(ctx, stack.GatewayName, from, to, dry)
		if ctx.Err() != nil { // whichever orders failed, it is for this
			return c, ctx.Err()
		}
		if err != nil && stops(part, err) {
			return c, err
		}
		c.found.Add(part)
		c.reached = to
		if part.Failed > 0 {
			if c.failed.from.IsZero() {
				c.failed.from = from
			}
			c.failed.to = to
		}
		step()
	}
	return c, nil
}

// stops reports whether the next slice would fail as well. An error that is only that of each of a slice's orders is on record,
// and keeps nobody from the rest: else a single bad order would end every run at the same place.
func stops(part reconcile.Findings, err error) bool {
	outage := net.Error(nil)
	return part.Failed == 0 || stack.CodeOf(err) != "" || errors.As(err, &outage)
}

// once shows what is listed by two slices, because it was made in the second in which they meet, by the first alone.
type once struct {
	reconcile.Gateway
	payments, refunds map[string]bool // that the slice before showed
}

func (o *once) Payments(ctx context.Context, from, to time.Time) ([]payment.PaymentFact, error) {
	all, err := o.Gateway.Payments(ctx, from, to)
	all, o.payments = fresh(all, o.payments, func(p payment.PaymentFact) string { return p.ID })
	return all, err
}

func (o *once) RefundsBetween(ctx context.Context, from, to time.Time) ([]payment.RefundFact, error) {
	all, err := o.Gateway.RefundsBetween(ctx, from, to)
	all, o.refunds = fresh(all, o.refunds, func(f payment.RefundFact) string { return f.ID })
	return all, err
}

// fresh are those that were not shown before, and the ids of all.
func fresh[F any](all []F, before map[string]bool, id func(F) string) (left []F, shown map[string]bool) {
	shown = map[string]bool{}
	for _, f := range all {
		if shown[id(f)] = true; !before[id(f)] {
			left = append(left, f)
		}
	}
	return left, shown
}
