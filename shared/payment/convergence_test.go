package payment_test

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"paidonce/shared/payment"
)

// sequences counts the orders of arrival that were played, by the tests below.
var sequences struct{ exhaustive, random atomic.Int64 }

// randomChecks is how many sets of facts TestRandomConvergence draws, unless -rapid.checks says otherwise.
const randomChecks = 4000

func TestMain(m *testing.M) {
	flag.Lookup("rapid.checks").DefValue = fmt.Sprint(randomChecks)
	if err := flag.Set("rapid.checks", fmt.Sprint(randomChecks)); err != nil { // before the command line is read
		panic(err)
	}
	code := m.Run()
	if n := sequences.exhaustive.Load() + sequences.random.Load(); n > 0 {
		fmt.Printf("convergence: %d scenarios, %d sequences (%d of them random)\n", len(scenarios), n, sequences.random.Load())
	}
	os.Exit(code)
}

// TestConvergence plays every order of arrival of up to 7 facts, and the rotations of longer lists and of their reverse.
func TestConvergence(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			play := func(order facts) (end, payment.Order) {
				sequences.exhaustive.Add(1)
				w := newWorld(t, s.order(), s.rules)
				for _, f := range order {
					w.arrive(arrival{payment.SourceSweep, []facts{{f}}})
				}
				e := w.end()
				if s.surplus {
					e.Status = ""
				}
				return e, w.order()
			}
			want, _ := play(s.facts)
			for order := range arrivals(s.facts) {
				got, o := play(order)
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Fatalf("arrived as %v (-in the order written +as arrived)\n%s", order, diff)
				}
				if fulfilled := !o.FulfilledAt.IsZero(); s.fulfil != "early" && fulfilled != (s.fulfil == "yes") {
					t.Fatalf("arrived as %v: fulfilled %t, want %s", order, fulfilled, s.fulfil)
				}
			}
		})
	}
	t.Cleanup(func() { t.Logf("%d scenarios, %d sequences", len(scenarios), sequences.exhaustive.Load()) })
}

// arrivals yields orders in which facts can arrive.
func arrivals(l facts) iter.Seq[facts] {
	const exhaustive = 7
	return func(yield func(facts) bool) {
		if len(l) <= exhaustive {
			permute(slices.Clone(l), 0, yield)
			return
		}
		reversed := slices.Clone(l)
		slices.Reverse(reversed)
		for _, base := range []facts{l, reversed} {
			for i := range base {
				if !yield(slices.Concat(base[i:], base[:i])) {
					return
				}
			}
		}
	}
}

func permute(l facts, done int, yield func(facts) bool) bool {
	if done == len(l) {
		return yield(slices.Clone(l))
	}
	for i := done; i < len(l); i++ {
		l[done], l[i] = l[i], l[done]
		if !permute(l, done+1, yield) {
			return false
		}
		l[done], l[i] = l[i], l[done]
	}
	return true
}

// TestRandomConvergence plays sets of facts of all kinds in two orders each, with duplicates, in bodies and groups from
// every source.
func TestRandomConvergence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenario{partial: rapid.Bool().Draw(t, "partial")}
		s.rules.AcceptOffers = rapid.Bool().Draw(t, "offers")
		s.rules.Confirm = rapid.SampledFrom([]payment.Confirm{{}, confirming("always"), confirming("above:100")}).Draw(t, "confirm")
		l := anyFacts.Draw(t, "facts")
		var ends [2]end
		for i := range ends {
			w := newWorld(t, s.order(), s.rules)
			for _, a := range anyArrivals(t, l) {
				w.arrive(a)
			}
			ends[i] = unordered(w.end(), l, s.rules)
			w.settled(l)
			sequences.random.Add(1)
		}
		if diff := gocmp.Diff(ends[0], ends[1]); diff != "" {
			t.Fatalf("(-one order of arrival +another)\n%s", diff)
		}
	})
	t.Logf("%d sequences", sequences.random.Load())
}

// unordered takes from an end what the facts' order of arrival may decide.
func unordered(e end, l facts, r payment.Rules) end {
	if mayLead(l, r) {
		e.Status = ""
	}
	if slices.ContainsFunc(l, fromAPerson) { // closing counts only before the order is fulfilled
		holds := strings.Fields(e.Holds)
		e.Holds = strings.Join(slices.DeleteFunc(holds, func(h string) bool { return h == string(payment.HoldPaidAfterClose) }), " ")
	}
	if attempts(l) >= 20 { // which attempts are kept, and what is known of them, is by arrival; how many failed is not
		kept := map[string]payment.Payment{}
		for id, p := range e.Payments {
			if p.Status != payment.PaymentCreated {
				p.Failed, p.Amount = false, payment.Money{}
				kept[id] = p
			}
		}
		e.Payments = kept
	}
	return e
}

// attempts counts the payments that the facts name.
func attempts(l facts) int {
	ids := map[string]bool{}
	for _, f := range l {
		if p, ok := f.(payment.PaymentFact); ok {
			ids[p.ID] = true
		}
	}
	return len(ids)
}

// mayLead reports whether a payment too many, or an amount that the gateway changed, may leave the status ahead of what is
// derived in the end.
func mayLead(l facts, r payment.Rules) bool {
	amounts := map[string]payment.Money{}
	gatewayPaid := false
	for _, f := range l {
		switch f := f.(type) {
		case payment.PaymentFact:
			took := f.Status == payment.PaymentCaptured || f.Status == payment.PaymentRefunded && f.Captured
			if !took || f.Amount.Amount == 0 || f.ID == "F" {
				continue
			}
			if before, ok := amounts[f.ID]; ok && before != f.Amount {
				return true
			}
			amounts[f.ID] = f.Amount
		case payment.OrderFact:
			gatewayPaid = gatewayPaid || f.Paid && f.Amount == inr(100)
		}
	}
	var sum int64
	n := 0
	for _, m := range amounts {
		if m.Currency == "INR" {
			sum, n = sum+m.Amount, n+1
		}
	}
	return n > 1 && (sum > 100 || r.AcceptOffers && gatewayPaid)
}
