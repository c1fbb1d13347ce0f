package payment_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

// known is an order of 100 about which the facts are known since day.
func known(r payment.Rules, l ...payment.Fact) payment.Order {
	return payment.Apply(scenario{}.order(), l, r, day).Order
}

// nextLooks are the times since day at which the gateway is asked about the order, as long as it says nothing new.
func nextLooks(o payment.Order, r payment.Rules) []string {
	var l []string
	for at := day; len(l) < 20; {
		next := o.NextLook(r, at)
		if next.IsZero() {
			break
		}
		l = append(l, next.Sub(day).String())
		at = next
	}
	return l
}

func TestNextLook(t *testing.T) {
	const unpaid = "15m0s 1h0m0s 6h0m0s 24h0m0s 48h0m0s 73h0m0s"
	inSeconds := payment.Rules{Pace: payment.Pace(time.Second)}
	for _, c := range []struct {
		name  string
		order payment.Order
		rules payment.Rules
		want  string
	}{
		{"a new order", scenario{}.order(), payment.Rules{}, unpaid},
		{"a failed attempt", known(payment.Rules{}, failed("A")), payment.Rules{}, unpaid},
		{"short", known(payment.Rules{}, captured("A", 50)), payment.Rules{}, unpaid},
		{"on a local stack", scenario{}.order(), inSeconds, "15s 1m0s 6m0s 24m0s 48m0s 1h13m0s"},
		{"paid", known(payment.Rules{}, captured("A", 100)), payment.Rules{}, ""},
		{"paid, with a dispute that only a person settles", known(payment.Rules{}, captured("A", 100),
			dispute("d1", payment.PhaseChargeback, payment.DisputeOpen)), payment.Rules{}, ""},
		{"refunded", known(payment.Rules{}, captured("A", 100), refund("r1", "A", processedRefund, 100)), payment.Rules{}, ""},
		{"paid, with refunds that we don't know", known(payment.Rules{}, claiming("A", 100, 40)), payment.Rules{}, "1m0s " + unpaid},
		{"paid, unconfirmed", known(confirm, captured("A", 100)), confirm, "1m0s " + unpaid},
		{"paid and confirmed", known(confirm, confirmed(captured("A", 100))), confirm, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := gocmp.Diff(strings.Fields(c.want), append([]string{}, nextLooks(c.order, c.rules)...)); diff != "" {
				t.Errorf("looks (-want +got)\n%s", diff)
			}
		})
	}
}

// TestADecisionSetsTheNextLook: only what is new begins the schedule again.
func TestADecisionSetsTheNextLook(t *testing.T) {
	o := known(payment.Rules{}, failed("A"))
	if !o.ActiveAt.Equal(day) || !o.DueAt.Equal(day.Add(15*time.Minute)) {
		t.Errorf("active at %s, due at %s", o.ActiveAt, o.DueAt)
	}
	later := day.Add(5 * time.Hour)
	if same := payment.Apply(o, facts{failed("A")}, payment.Rules{}, later); same.Changed() || !same.Order.DueAt.Equal(o.DueAt) {
		t.Error("the same fact again moved the next look")
	}
	o = payment.Apply(o, facts{created("B")}, payment.Rules{}, later).Order
	if !o.ActiveAt.Equal(later) || !o.DueAt.Equal(later.Add(15*time.Minute)) {
		t.Errorf("after news: active at %s, due at %s", o.ActiveAt, o.DueAt)
	}
	if paid := payment.Apply(o, facts{captured("B", 100)}, payment.Rules{}, later).Order; !paid.DueAt.IsZero() {
		t.Errorf("the paid order is due at %s", paid.DueAt)
	}
	opened := scenario{}.order().Opened("order_9", payment.Rules{}, later)
	if opened.GatewayOrderID != "order_9" || !opened.ActiveAt.Equal(later) || !opened.DueAt.Equal(later.Add(15*time.Minute)) {
		t.Errorf("opened: %+v", opened)
	}
}

func TestToCapture(t *testing.T) {
	foreign := payment.ForeignPaymentFact{PaymentID: "A", OrderID: "o2"}
	inDollars := authorized("A")
	inDollars.Amount.Currency = "USD"
	undated := authorized("Z")
	undated.CreatedAt = day.Add(time.Duration('A') * time.Minute) // at the same time as A
	elsewhere := authorized("A")
	elsewhere.GatewayOrderID = "order_2"
	for _, c := range []struct {
		name  string
		facts facts
		want  string
	}{
		{"nothing", facts{}, ""},
		{"created", facts{created("A")}, ""},
		{"failed", facts{failed("A")}, ""},
		{"authorized", facts{authorized("A")}, "A"},
		{"failed first, authorized late", facts{failed("A"), authorized("A")}, "A"},
		{"the earlier of two", facts{authorized("B"), authorized("A")}, "A"},
		{"two of the same second", facts{undated, authorized("A")}, "A"},
		{"captured", facts{captured("A", 100)}, ""},
		{"one more on a paid order", facts{captured("A", 100), authorized("B")}, ""},
		{"one more on a refunded order", facts{captured("A", 100), refund("r1", "A", processedRefund, 100), authorized("B")}, ""},
		{"the rest of an order that is short", facts{captured("A", 50), authorized("B")}, "B"},
		{"voided", facts{authorized("A"), voided("A")}, ""},
		{"another order's", facts{authorized("A"), foreign}, ""},
		{"in another currency", facts{inDollars}, ""},
		{"another amount than the order's", facts{pay("A", payment.PaymentAuthorized, 60)}, ""},
		{"of another gateway order", facts{elsewhere}, ""},
		{"of a closed order", facts{authorized("A"), payment.ClosedFact{Reason: "out of stock", At: day}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, ok := known(payment.Rules{}, c.facts...).ToCapture(listed(c.facts), payment.Rules{FulfilWithin: time.Hour}, day.Add(time.Hour))
			if p.ID != c.want || ok != (c.want != "") {
				t.Errorf("to capture: %q, %t; want %q", p.ID, ok, c.want)
			}
		})
	}
}

// listed are the payments as the gateway shows them in the end.
func listed(l facts) []payment.PaymentFact {
	last := map[string]payment.PaymentFact{}
	for _, f := range l {
		if p, ok := f.(payment.PaymentFact); ok {
			last[p.ID] = p
		}
	}
	return slices.Collect(maps.Values(last))
}

func TestWhatIsNotToBeCaptured(t *testing.T) {
	o := known(payment.Rules{}, authorized("A"))
	if p, ok := o.ToCapture(listed(facts{authorized("A")}), payment.Rules{FulfilWithin: time.Hour}, day.Add(time.Hour+time.Second)); ok {
		t.Errorf("%s is captured although the order would be held as late", p.ID)
	}
	if p, ok := o.ToCapture(nil, payment.Rules{}, day); ok {
		t.Errorf("%s is captured on a webhook's word", p.ID)
	}
	o.Partial = true
	if _, ok := o.ToCapture([]payment.PaymentFact{pay("A", payment.PaymentAuthorized, 60)}, payment.Rules{}, day); !ok {
		t.Error("a part is not captured although the order may be paid in parts")
	}
}

func TestRefundsToRead(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts facts
		want  string
	}{
		{"nothing", facts{captured("A", 100)}, "[]"},
		{"one that the gateway speaks of", facts{claiming("A", 100, 40)}, "[A]"},
		{"one on its way, of a payment of which another is unread", facts{claiming("A", 100, 40), refund("r1", "A", pendingRefund, 10)}, "[A]"},
		{"one on its way and one unread", facts{claiming("A", 100, 40), captured("B", 100), refund("r1", "B", pendingRefund, 10)}, "[A B]"},
		{"settled ones", facts{captured("A", 100), refund("r1", "A", processedRefund, 10), refund("r2", "A", failedRefund, 10)}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(known(payment.Rules{}, c.facts...).RefundsToRead(payment.Rules{})); got != c.want {
				t.Errorf("to read: %s, want %s", got, c.want)
			}
		})
	}
}

func TestConfirmAsText(t *testing.T) {
	for text, want := range map[string]struct{ any, at100, at101 bool }{
		"never": {false, false, false}, "always": {true, true, true}, "above:100": {true, false, true}, "above:0": {true, true, true},
		fmt.Sprint("above:", int64(payment.MaxAmount)): {true, false, false},
	} {
		c := confirming(text)
		if c.Any() != want.any || c.Wants(inr(100)) != want.at100 || c.Wants(inr(101)) != want.at101 {
			t.Errorf("%s: any %t, 100: %t, 101: %t; want %v", text, c.Any(), c.Wants(inr(100)), c.Wants(inr(101)), want)
		}
	}
	var zero payment.Confirm
	if zero.Any() || zero.Wants(inr(payment.MaxAmount)) {
		t.Error("the zero value confirms something")
	}
	for _, text := range []string{
		"", "Never", "yes", "always ", "above", "above:", "above:-1", "above:1.5", "above:1e3", "above: 1", "above:1000000000000001", "above:99999999999999999999",
	} {
		c := confirming("always")
		if err := c.UnmarshalText([]byte(text)); err == nil || c != confirming("always") {
			t.Errorf("%q is taken, or changed the value: %v", text, err)
		}
	}
}

// TestWaitsForConfirmation: the gateway is asked only if its word is all that is missing.
func TestWaitsForConfirmation(t *testing.T) {
	acknowledged := func(detail string) payment.Fact {
		return payment.AcknowledgedFact{Hold: payment.HoldKey{Reason: payment.HoldUnconfirmed, Subject: "A"}, Detail: detail, By: "ann", Why: "seen", At: day}
	}
	for _, c := range []struct {
		name   string
		before facts // decided on already
		facts  facts
		rules  payment.Rules
		want   bool
	}{
		{"a capture", nil, facts{captured("A", 100)}, confirm, true},
		{"the same without the rule", nil, facts{captured("A", 100)}, payment.Rules{}, false},
		{"the same of an order too small", nil, facts{captured("A", 100)}, payment.Rules{Confirm: confirming("above:100")}, false},
		{"confirmed at once", nil, facts{confirmed(captured("A", 100))}, confirm, false},
		{"an authorization", nil, facts{authorized("A")}, confirm, false},
		{"too little", nil, facts{captured("A", 50)}, confirm, false},
		{"held for a dispute too", nil, facts{captured("A", 100), dispute("d1", payment.PhaseChargeback, payment.DisputeOpen)}, confirm, false},
		{"refunded", nil, facts{captured("A", 100), refund("r1", "A", processedRefund, 100)}, confirm, false},
		{"held, and now something else comes", facts{captured("A", 100)}, facts{gatewayPaid()}, confirm, true},
		{"acknowledged", facts{captured("A", 100)}, facts{acknowledged("1.00 INR")}, confirm, false},
		{"acknowledged as it is not", facts{captured("A", 100)}, facts{acknowledged("2.00 INR")}, confirm, true},
		{"fulfilled", facts{confirmed(captured("A", 100))}, facts{captured("B", 100)}, confirm, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := scenario{}.order()
			if c.before != nil {
				o = payment.Apply(o, c.before, c.rules, day).Order
			}
			d := payment.Begin(o)
			d.Learn(c.facts)
			if got := d.WaitsForConfirmation(c.rules); got != c.want {
				t.Errorf("waits: %t, want %t", got, c.want)
			}
		})
	}
}

func TestRefusalIsOneOfTheGateway(t *testing.T) {
	cause := errors.New("HTTP 400")
	err := fmt.Errorf("refund: %w", &payment.Refusal{Reason: payment.RefusedBalance, Cause: cause})
	refusal := new(payment.Refusal)
	if !errors.Is(err, payment.ErrGatewayRefused) || !errors.Is(err, cause) || !errors.As(err, &refusal) || errors.Is(err, payment.ErrOutcomeUnknown) {
		t.Errorf("%v is not the refusal that it should be", err)
	}
	if got, want := (&payment.Refusal{Reason: payment.RefusedOther}).Error(), "the gateway refused: other"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
