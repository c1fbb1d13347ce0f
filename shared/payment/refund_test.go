package payment_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

// asked is a refund request of o, and the fact that reserves its money.
func asked(o payment.Order, id, paymentID string, amount int64) payment.RefundRequest {
	r := payment.NewRefundRequest(o, id, paymentID, amount, day)
	r.Call.Key = payment.Receipt("shop", o.ID, id)
	return r
}

func reserved(r payment.RefundRequest) payment.ReservedFact { return payment.ReservedFact{Request: r} }

// withReceipt is the gateway's refund as our call makes it.
func withReceipt(f payment.RefundFact, r payment.RefundRequest) payment.RefundFact {
	f.Receipt = r.Call.Key
	return f
}

// promise reserves the money of a request r1 of payment A.
func promise(o payment.Order, amount int64) payment.Order {
	return payment.Apply(o, facts{reserved(asked(o, "r1", "A", amount))}, payment.Rules{}, day).Order
}

var showsFailed = &payment.Reading{Failed: map[string]bool{"r1": true, "g1": true}}

func TestMayRefund(t *testing.T) {
	disputed := dispute("d1", payment.PhaseChargeback, payment.DisputeOpen)
	for _, c := range []struct {
		name   string
		order  payment.Order
		most   int64 // that may be refunded of A without a reading
		read   *payment.Reading
		reread int64 // with one
	}{
		{"captured", known(payment.Rules{}, captured("A", 100)), 100, &payment.Reading{}, 100},
		{"authorized only", known(payment.Rules{}, authorized("A")), 0, &payment.Reading{}, 0},
		{"voided", known(payment.Rules{}, authorized("A"), voided("A")), 0, &payment.Reading{}, 0},
		{"unknown", known(payment.Rules{}), 0, &payment.Reading{}, 0},
		{"another order's", known(payment.Rules{}, captured("A", 100), payment.ForeignPaymentFact{PaymentID: "A", OrderID: "o2"}), 0, &payment.Reading{}, 0},
		{"in dollars", known(payment.Rules{}, dollars("A", 70)), 70, &payment.Reading{}, 70},
		{"a refund processed", known(payment.Rules{}, captured("A", 100), refund("r1", "A", processedRefund, 40)), 60, &payment.Reading{AmountRefunded: 40}, 60},
		{"a refund pending", known(payment.Rules{}, captured("A", 100), refund("r1", "A", pendingRefund, 40)), 60, &payment.Reading{AmountRefunded: 40}, 60},
		{"a refund pending that the payment does not show yet", known(payment.Rules{}, captured("A", 100), refund("r1", "A", pendingRefund, 40)),
			60, &payment.Reading{}, 60},
		{"another payment's refund", known(payment.Rules{}, captured("A", 100), captured("B", 100), refund("r1", "B", processedRefund, 40)),
			100, &payment.Reading{}, 100},
		{"a refund that failed frees its money only when that was read", known(payment.Rules{}, captured("A", 100), refund("r1", "A", failedRefund, 40)),
			60, showsFailed, 100},
		{"and the reading does not show it as failed", known(payment.Rules{}, captured("A", 100), refund("r1", "A", failedRefund, 40)),
			60, &payment.Reading{}, 60},
		{"and the payment still shows it as refunded", known(payment.Rules{}, captured("A", 100), refund("r1", "A", failedRefund, 40)),
			60, &payment.Reading{AmountRefunded: 40}, 60},
		{"processed, then failed", known(payment.Rules{}, captured("A", 100), refund("r1", "A", processedRefund, 40), refund("r1", "A", failedRefund, 40)),
			60, showsFailed, 100},
		{"failed, then processed after all", known(payment.Rules{}, captured("A", 100), refund("r1", "A", failedRefund, 40), refund("r1", "A", processedRefund, 40)),
			60, &payment.Reading{AmountRefunded: 40}, 60},
		{"the gateway speaks of a refund that we don't know", known(payment.Rules{}, claiming("A", 100, 30)), 70, &payment.Reading{AmountRefunded: 30}, 70},
		{"and spoke of one that failed since", known(payment.Rules{}, claiming("A", 100, 30)), 70, &payment.Reading{}, 100},
		{"a known refund is part of what it speaks of", known(payment.Rules{}, claiming("A", 100, 30), refund("r1", "A", processedRefund, 30)),
			70, &payment.Reading{AmountRefunded: 30}, 70},
		{"promised to a request", promise(known(payment.Rules{}, captured("A", 100)), 25), 75, &payment.Reading{}, 75},
		{"promised, refunded and unread", promise(known(payment.Rules{}, claiming("A", 100, 30), refund("r9", "A", processedRefund, 10)), 25),
			45, &payment.Reading{AmountRefunded: 30}, 45},
		{"disputed, but of another payment", known(payment.Rules{}, captured("A", 100), captured("B", 100), func() payment.DisputeFact {
			d := disputed
			d.PaymentID = "B"
			return d
		}()), 100, &payment.Reading{}, 100},
		{"a dispute that was won", known(payment.Rules{}, captured("A", 100), dispute("d1", payment.PhaseChargeback, payment.DisputeWon)), 100, &payment.Reading{}, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, by := range []struct {
				read *payment.Reading
				most int64
			}{{nil, c.most}, {c.read, c.reread}} {
				if err := c.order.MayRefund("A", by.most, false, by.read); by.most > 0 && err != nil {
					t.Errorf("read %v: %d is refused: %v", by.read, by.most, err)
				}
				if err := c.order.MayRefund("A", by.most+1, false, by.read); !errors.Is(err, payment.ErrBeyondRefundable) {
					t.Errorf("read %v: %d: got %v, want that it is too much", by.read, by.most+1, err)
				}
			}
		})
	}
	for _, status := range []payment.DisputeStatus{payment.DisputeOpen, payment.DisputeUnderReview, payment.DisputeLost} {
		o := known(payment.Rules{}, captured("A", 100), dispute("d1", payment.PhaseChargeback, status))
		if err := o.MayRefund("A", 1, false, nil); !errors.Is(err, payment.ErrDisputed) {
			t.Errorf("dispute %s: got %v", status, err)
		}
		if err := o.MayRefund("A", 100, true, nil); err != nil {
			t.Errorf("dispute %s, forced: got %v", status, err)
		}
		if err := o.MayRefund("A", 101, true, nil); !errors.Is(err, payment.ErrBeyondRefundable) {
			t.Errorf("dispute %s, forced and too much: got %v", status, err)
		}
	}
}

func TestPaymentToRefund(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts facts
		want  string
		err   error
	}{
		{"nothing captured", facts{authorized("A"), failed("B")}, "", payment.ErrBeyondRefundable},
		{"one captured", facts{failed("A"), captured("B", 100), authorized("C")}, "B", nil},
		{"the only one, though nothing is left of it", facts{captured("A", 100), refund("r1", "A", processedRefund, 100)}, "A", nil},
		{"two, one of them given back", facts{captured("A", 100), captured("B", 100), refund("r1", "A", pendingRefund, 100)}, "B", nil},
		{"two", facts{captured("A", 100), captured("B", 100)}, "", payment.ErrPaymentNeeded},
		{"two, one of them given back in part", facts{captured("A", 100), captured("B", 100), refund("r1", "A", processedRefund, 99)}, "", payment.ErrPaymentNeeded},
		{"two, both given back", facts{claiming("A", 100, 100), claiming("B", 100, 100)}, "", payment.ErrPaymentNeeded},
		{"two, one of them another order's", facts{captured("A", 100), captured("B", 100), payment.ForeignPaymentFact{PaymentID: "B", OrderID: "o2"}}, "A", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, err := known(payment.Rules{}, c.facts...).PaymentToRefund()
			if id != c.want || !errors.Is(err, c.err) {
				t.Errorf("%q, %v; want %q, %v", id, err, c.want, c.err)
			}
		})
	}
}

// TestReservations: money is promised once, to the one who came first, until the gateway's refund takes its place.
func TestReservations(t *testing.T) {
	paid := known(payment.Rules{}, confirmed(captured("A", 100)))
	r1, r2 := asked(paid, "r1", "A", 60), asked(paid, "r2", "A", 60)
	other := asked(paid, "r3", "A", 40)
	release := payment.ReleasedFact{Receipt: r1.Call.Key, Why: "refused"}
	for _, c := range []struct {
		name  string
		facts facts
		want  string // the requests whose money is reserved
		said  string // by the last fact
	}{
		{"reserved", facts{reserved(r1)}, "r1", "refund request r1: 0.60 INR of payment A reserved"},
		{"reserved again", facts{reserved(r1), reserved(r1)}, "r1", ""},
		{"more than is left", facts{reserved(r1), reserved(r2)}, "r1", ""},
		{"the rest", facts{reserved(r1), reserved(other)}, "r1 r3", "refund request r3: 0.40 INR of payment A reserved"},
		{"of nothing that was captured", facts{reserved(asked(paid, "r1", "Z", 1))}, "", ""},
		{"released", facts{reserved(r1), release}, "", "refund request r1 failed, 0.60 INR of payment A free again: refused"},
		{"released twice", facts{reserved(r1), release, release}, "", ""},
		{"released and then another's", facts{reserved(r1), release, reserved(r2)}, "r2", "refund request r2: 0.60 INR of payment A reserved"},
		{"released by another's receipt", facts{reserved(r1), payment.ReleasedFact{Receipt: r2.Call.Key}}, "r1", ""},
		{"the gateway's refund takes its place", facts{reserved(r1), withReceipt(refund("g1", "A", pendingRefund, 60), r1)}, "", "refund g1 of payment A pending 0.60 INR"},
		{"the gateway's refund comes first", facts{withReceipt(refund("g1", "A", pendingRefund, 60), r1), reserved(r1)}, "", ""},
		{"even if it failed", facts{withReceipt(refund("g1", "A", failedRefund, 60), r1), payment.ReservedFact{Request: r1, Read: showsFailed}}, "", ""},
		{"a refund of another receipt does not", facts{reserved(r1), withReceipt(refund("g1", "A", pendingRefund, 60), r2)}, "r1", "refund g1 of payment A pending 0.60 INR"},
		{"of another amount", facts{reserved(r1), withReceipt(refund("g1", "A", pendingRefund, 59), r1)}, "r1", "refund g1 of payment A pending 0.59 INR"},
		{"of another payment", facts{reserved(r1), withReceipt(refund("g1", "B", pendingRefund, 60), r1)}, "r1", "refund g1 of payment B pending 0.60 INR"},
		{"without a receipt", facts{reserved(r1), refund("g1", "A", pendingRefund, 60)}, "r1", "refund g1 of payment A pending 0.60 INR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, said := paid, ""
			for _, f := range c.facts {
				out := payment.Apply(o, facts{f}, payment.Rules{}, day)
				o, said = out.Order, strings.Join(out.Learned, "; ")
			}
			var ids []string
			for _, r := range []payment.RefundRequest{r1, r2, other} {
				if promised, ok := o.Reserved[r.Call.Key]; ok {
					ids = append(ids, promised.RequestID)
				}
			}
			if got := strings.Join(ids, " "); got != c.want || len(ids) != len(o.Reserved) {
				t.Errorf("reserved for %q, want %q: %v", got, c.want, o.Reserved)
			}
			if said != c.said {
				t.Errorf("said %q, want %q", said, c.said)
			}
			refund, is := o.RefundOf(r1)
			took := c.name == "the gateway's refund takes its place" || c.name == "the gateway's refund comes first" || c.name == "even if it failed"
			if is != took || is && refund.ID != "g1" {
				t.Errorf("the request's refund is %q, %t", refund.ID, is)
			}
		})
	}
}

// TestAReservationHoldsTheGoods as a pending refund does: the customer should not get both.
func TestAReservationHoldsTheGoods(t *testing.T) {
	for _, c := range []struct {
		name   string
		amount int64
		facts  facts
		holds  bool
	}{
		{"all of an order", 100, facts{captured("A", 100)}, true},
		{"a part", 1, facts{captured("A", 100)}, true},
		{"what is too much", 20, facts{captured("A", 120)}, false},
		{"more than is too much", 21, facts{captured("A", 120)}, true},
		{"a payment too many", 100, facts{captured("A", 100), captured("B", 100)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			// All in one decision, before anything was fulfilled.
			r := asked(known(payment.Rules{}, c.facts...), "r1", "A", c.amount)
			out := payment.Apply(scenario{}.order(), append(c.facts, reserved(r)), payment.Rules{}, day)
			held := strings.Contains(holdList(out.Order.Derive(payment.Rules{})), "refund_in_flight:"+r.Call.Key)
			if held != c.holds || out.Order.FulfilledAt.IsZero() != c.holds {
				t.Errorf("held %t, fulfilled %t; want held %t", held, !out.Order.FulfilledAt.IsZero(), c.holds)
			}
			freed := payment.Apply(out.Order, facts{payment.ReleasedFact{Receipt: r.Call.Key}}, payment.Rules{}, day).Order
			if freed.FulfilledAt.IsZero() {
				t.Error("not fulfilled although the refund came to nothing")
			}
		})
	}
}

func TestNextRefundLook(t *testing.T) {
	r := payment.RefundRequest{CreatedAt: day}
	var got []string
	for at := day; len(got) < 15; {
		next := payment.Pace(0).NextRefundLook(r, at)
		got = append(got, next.Sub(day).String())
		at = next
	}
	want := strings.Fields("1m0s 5m0s 15m0s 1h0m0s 6h0m0s 12h0m0s 23h50m0s 25h0m0s 48h0m0s 72h0m0s 120h0m0s 168h0m0s 336h0m0s 504h0m0s 672h0m0s")
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("looks (-want +got)\n%s", diff)
	}
	late := day.Add(100*24*time.Hour + time.Minute)
	if next := payment.Pace(0).NextRefundLook(r, late); !next.After(late) || next.Sub(late) > 7*24*time.Hour {
		t.Errorf("after a long time the next look is at %s", next)
	}
}

func TestWhatMayBecomeOfARequest(t *testing.T) {
	open := payment.RefundRequest{Status: payment.RequestOpen, CreatedAt: day, Attempts: 2}
	used, accepted, first := open, open, open
	used.KeyUsed, accepted.Status, first.Attempts = true, payment.RequestAccepted, 1
	for _, c := range []struct {
		name         string
		request      payment.RefundRequest
		age          time.Duration
		send, giveUp bool
		alone        bool          // if the call before began so long ago
		before       time.Duration // that
	}{
		{"just made", first, 0, true, false, true, 0},
		{"within a day", open, 24*time.Hour - time.Second, true, false, false, 15*time.Minute - time.Second},
		{"after a day", open, 24 * time.Hour, false, false, true, 15 * time.Minute},
		{"before it is given up", open, 25*time.Hour - time.Second, false, false, true, time.Hour},
		{"given up", open, 25 * time.Hour, false, true, true, time.Hour},
		{"its key was used", used, time.Hour, false, false, true, time.Hour},
		{"its key was used, a day later", used, 25 * time.Hour, false, true, true, time.Hour},
		{"accepted", accepted, 30 * time.Hour, false, false, true, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := day.Add(c.age)
			if got := c.request.MaySend(at); got != c.send {
				t.Errorf("may send: %t, want %t", got, c.send)
			}
			if got := c.request.MayGiveUp(at); got != c.giveUp {
				t.Errorf("may give up: %t, want %t", got, c.giveUp)
			}
			if got := c.request.Alone(at.Add(-c.before), at); got != c.alone {
				t.Errorf("alone: %t, want %t", got, c.alone)
			}
		})
	}
}

// TestReceiptsAreUnique: a request's name at the gateway is the same for ever, and no other's. The parts cannot run into
// one another, because neither a shop's id nor an adopted order's has the separator.
func TestReceiptsAreUnique(t *testing.T) {
	if got, want := payment.Receipt("shop", "o1", "r1"), "po_8fc3d425f3a58ad7f86a90d670f6fa4c"; got != want {
		t.Errorf("receipt %s, want %s for ever", got, want)
	}
	form := regexp.MustCompile(`^po_[0-9a-f]{32}$`) // what the gateway takes as a key, and as a receipt of up to 40 characters
	seen := map[string]string{}
	parts := []string{"a", "b", "ab", "a.b", "a-b", "a_b", "aa", "razorpay.order_1", "order_1", "razorpay.order_1b", "1", "11", "111", "A", "B"}
	for _, stack := range []string{"shop", "shop-a", "shop2", "sho"} {
		for _, order := range parts {
			for _, request := range parts {
				receipt := payment.Receipt(stack, order, request)
				name := fmt.Sprint(stack, " ", order, " ", request)
				if before, taken := seen[receipt]; taken || !form.MatchString(receipt) {
					t.Errorf("receipt %s of %s, and before of %q", receipt, name, before)
				}
				seen[receipt] = name
			}
		}
	}
	if adopted, _ := payment.Adopt(payment.GatewayOrder{ID: "order_1", Amount: inr(1)}, "razorpay", payment.Test, "", day); strings.Contains(adopted.ID, "|") {
		t.Errorf("an adopted order's id has the separator: %s", adopted.ID)
	}
}

func TestStepsAreBounded(t *testing.T) {
	r := payment.RefundRequest{}.Did(day, "asked for")
	for i := range 500 {
		before := r
		r = r.Did(day.Add(time.Duration(i)*time.Hour), "look %d", i)
		if n := len(before.Steps); n > 0 && before.Steps[n-1] == r.Steps[len(r.Steps)-1] {
			t.Fatal("the request that was given has changed")
		}
	}
	if len(r.Steps) != 40 || r.Steps[0].What != "asked for" || r.Steps[1].What != "look 461" || r.Steps[39].What != "look 499" {
		t.Errorf("%d steps, from %q and %q to %q", len(r.Steps), r.Steps[0].What, r.Steps[1].What, r.Steps[len(r.Steps)-1].What)
	}
}

// TestARefundOnItsWayAlertsNobodyOnceTheGoodsAreGone: before that the hold keeps them here, and somebody should know.
func TestARefundOnItsWayAlertsNobodyOnceTheGoodsAreGone(t *testing.T) {
	told := func(o payment.Order) bool {
		r := payment.RefundRequest{ID: "r1", PaymentID: "A", Amount: inr(60), Call: payment.RefundCall{Key: "po_1"}}
		out := payment.Apply(o, []payment.Fact{payment.ReservedFact{Request: r}}, payment.Rules{}, day)
		if _, reserved := out.Order.Reserved["po_1"]; !reserved {
			t.Fatal("nothing was reserved")
		}
		for _, e := range out.Effects {
			if n, ok := e.(payment.Notification); ok && n.Hold.Reason == payment.HoldRefundInFlight {
				return true
			}
		}
		return false
	}
	if told(known(payment.Rules{}, captured("A", 100))) {
		t.Error("fulfilled: subscribers are alerted")
	}
	if !told(known(payment.Rules{}, payment.ClosedFact{Reason: "out of stock", At: day}, captured("A", 100))) {
		t.Error("not fulfilled: subscribers are not alerted")
	}
}
