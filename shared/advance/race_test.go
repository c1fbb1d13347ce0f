package advance_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/shared/payment"
)

// rival commits a change of the order by somebody else, and fails the test if it cannot.
func (b *bench) rival(t *testing.T, f ...payment.Fact) {
	t.Helper()
	out := payment.Apply(b.order(t, orderID), f, payment.Rules{}, at)
	if !out.Changed() {
		out.Order.UpdatedAt = at.Add(time.Duration(out.Order.Version))
	}
	if err := b.Memory.Commit(t.Context(), payment.Commit{Order: out.Order, Effects: out.Effects}); err != nil {
		t.Fatal(err)
	}
}

func TestLostRace(t *testing.T) {
	for _, c := range []struct {
		name      string
		rival     []payment.Fact
		verdict   string
		calls     []string
		version   int64
		holds     []payment.HoldReason
		ledger    int
		fulfilled int
	}{
		{"against another fact", facts(failed("pay_0")),
			"payment pay_1 captured 1.00 INR; order failed → paid; fulfilled", []string{"Commit", "Commit"}, 4, nil, 1, 1},
		{"against the same fact", facts(captured("pay_1")),
			"nothing new", []string{"Commit", "SettleEvent"}, 3, nil, 1, 1},
		{"against another payment", facts(captured("pay_0")),
			"payment pay_1 captured 1.00 INR; held: surplus pay_1", []string{"Commit", "Commit"}, 4, []payment.HoldReason{payment.HoldSurplus}, 2, 1},
		{"against a lost dispute", facts(payment.DisputeFact{ID: "disp_1", PaymentID: "pay_1", Status: payment.DisputeOpen, Phase: payment.PhaseChargeback, Amount: inr(100)}),
			"payment pay_1 captured 1.00 INR; order pending → paid", []string{"Commit", "Commit"}, 4, []payment.HoldReason{payment.HoldDispute}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.before = func(method string, earlier int) {
					if method == "Commit" && earlier == 0 {
						b.rival(t, c.rival...)
					}
				}
				step := b.delivery(t, "evt_1", captured("pay_1"))
				result := b.apply(t, step, nil)
				if result.Verdict != c.verdict {
					t.Errorf("got %q, want %q", result.Verdict, c.verdict)
				}
				b.wantCalls(t, c.calls...)
				b.wantOrder(t, c.version, payment.Paid, c.fulfilled)
				b.wantEvent(t, step, payment.EventApplied, c.verdict)
				if got := b.count(t, "ledger"); got != c.ledger {
					t.Errorf("%d ledger entries, want %d", got, c.ledger)
				}
				b.wantHolds(t, c.holds...)
			})
		})
	}
}

// The time in these tests is synctest's: waiting takes none.
func TestRaceLostUntilTheDeadline(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit func(context.Context) (context.Context, context.CancelFunc)
		// the time that Apply may take: up to a second before the deadline, or the caller's own end
		atLeast, atMost time.Duration
	}{
		{"it stops before the deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 10*time.Second)
		}, 8 * time.Second, 9 * time.Second},
		{"too late to begin again", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, 0, 0},
		{"the caller goes away", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			stop := time.AfterFunc(3*time.Second, cancel)
			return ctx, func() { stop.Stop(); cancel() }
		}, 3 * time.Second, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.before = func(string, int) { b.rival(t) }
				step := b.delivery(t, "evt_1", captured("pay_1"))
				ctx, cancel := c.limit(t.Context())
				defer cancel()
				began := time.Now()
				_, err := b.advancer().Apply(ctx, orderID, step)
				if took := time.Since(began); took < c.atLeast || took > c.atMost {
					t.Errorf("took %s, want %s to %s", took, c.atLeast, c.atMost)
				}
				if !errors.Is(err, payment.ErrVersionConflict) {
					t.Errorf("got error %v, want %v", err, payment.ErrVersionConflict)
				}
				b.checker.Check(t, orderID)
				b.wantOrder(t, 2+int64(len(b.calls)), payment.Pending, 0)
				b.wantEvent(t, step, payment.EventReceived, "")

				b.before = nil // the rival is gone, the message comes again
				b.apply(t, step, nil)
				b.wantEvent(t, step, payment.EventApplied, "payment pay_1 captured 1.00 INR; order pending → paid; fulfilled")
				if got := b.count(t, "fulfilment"); got != 1 {
					t.Errorf("%d fulfilments, want 1", got)
				}
			})
		})
	}
}
