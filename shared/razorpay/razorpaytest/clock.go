package razorpaytest

import (
	"context"
	"slices"
	"time"
)

// deadline is something that happens at a time on the gateway's clock.
type deadline struct {
	at   time.Time
	meet func() // called with mu held
}

// Now returns the gateway's time.
func (g *Gateway) Now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now()
}

// Advance moves the gateway's clock forward. What falls due by then happens in the order of time, each thing at its own
// time on the clock, before Advance returns. Only webhooks are sent later, and see the clock as it is by then: use
// [Gateway.Pass] to have each sent, and sent again, when it is due.
func (g *Gateway) Advance(d time.Duration) {
	g.mu.Lock()
	g.meetDeadlines(g.now().Add(d))
	g.offset += d
	g.mu.Unlock()
	g.delivery.wake()
}

// Pass lets time pass on the gateway's clock: as [Gateway.Advance], but it halts whenever something falls due and waits
// for the deliveries that come of it. Retries are made when they're due, too.
func (g *Gateway) Pass(ctx context.Context, d time.Duration) error {
	end := g.Now().Add(d)
	for {
		if err := g.Settle(ctx); err != nil {
			return err
		}
		g.mu.Lock()
		now := g.now()
		next, ok := g.nextDue(now)
		g.mu.Unlock()
		if !now.Before(end) {
			return nil
		}
		if !ok || next.After(end) {
			next = end
		}
		g.Advance(next.Sub(now))
	}
}

// now returns the gateway's time. The caller holds mu.
func (g *Gateway) now() time.Time {
	if !g.moment.IsZero() {
		return g.moment
	}
	return g.config.Now().Add(g.offset).UTC()
}

// schedule has something happen at a time to come, after what is to happen at the same time already. The caller holds
// mu.
func (g *Gateway) schedule(at time.Time, meet func()) {
	i := len(g.deadlines)
	for i > 0 && g.deadlines[i-1].at.After(at) {
		i--
	}
	g.deadlines = slices.Insert(g.deadlines, i, deadline{at, meet})
	g.delivery.wake()
}

// meetDeadlines makes happen what is due by a time. The caller holds mu.
func (g *Gateway) meetDeadlines(by time.Time) {
	for len(g.deadlines) > 0 && !g.deadlines[0].at.After(by) {
		next := g.deadlines[0]
		g.deadlines = g.deadlines[1:]
		g.moment = next.at
		next.meet()
	}
	g.moment = time.Time{}
}

// nextDue returns when the next deadline or delivery after now is due. The caller holds mu.
func (g *Gateway) nextDue(now time.Time) (due time.Time, ok bool) {
	later := func(at time.Time) bool { return at.After(now) }
	if i := slices.IndexFunc(g.deadlines, func(d deadline) bool { return later(d.at) }); i >= 0 {
		due, ok = g.deadlines[i].at, true
	}
	if i := slices.IndexFunc(g.delivery.queue, func(p *parcel) bool { return later(p.due) }); i >= 0 {
		if at := g.delivery.queue[i].due; !ok || at.Before(due) {
			due, ok = at, true
		}
	}
	return due, ok
}
