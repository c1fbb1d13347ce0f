package refund_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

// then is what happens after the first call has come to its end, or to a crash.
type then struct {
	name string
	run  func(w *world)
}

var thens = []then{
	{"the shop calls again at once", func(w *world) { w.shop() }},
	{"the shop calls again after 10 minutes", func(w *world) { w.gateway.Advance(10 * time.Minute); w.shop() }},
	{"only reconcile", func(*world) {}},
	{"its webhook, then reconcile", func(w *world) { w.webhooks() }},
	{"its webhook before the answer, then reconcile", func(*world) {}},
}

// The places of some in thens.
const (
	shopAgain      = 0
	reconcileAlone = 2
	webhookFirst   = 4 // the webhook overtakes the answer
)

// crash is where the first call, or what comes after it, is hit.
type crash struct {
	second bool // it hits what comes after the first call
	point
}

func (c crash) String() string {
	what := "first call"
	if c.second {
		what = "what follows"
	}
	switch {
	case c.point == point{}:
		return "no crash"
	case c.beforeSend:
		return what + " killed before it is sent"
	case c.afterSend:
		return what + " killed after it is sent"
	}
	return fmt.Sprintf("%s, store call %d %s", what, c.n, c.mishap)
}

// TestTable is every answer of the gateway, at every point where a process can crash, with everything that can come next.
// Crash points are found by running until the process makes no further call.
func TestTable(t *testing.T) {
	for _, a := range answers {
		t.Run(strings.ReplaceAll(a.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			for i, then := range thens {
				ends := map[string]int{}
				try := func(c crash) (method string) {
					w := newWorld(t, fmt.Sprintf("%s; %s; %s", a.name, c, then.name))
					defer w.close()
					ends[w.run(a, c, i)]++
					return w.store.at
				}
				try(crash{})
				everywhere(func(p point) string { return try(crash{false, p}) })
				if i == shopAgain || i == reconcileAlone {
					everywhere(func(p point) string { return try(crash{true, p}) })
				}
				for _, end := range slices.Sorted(maps.Keys(ends)) {
					t.Logf("%4d × %s → %s", ends[end], then.name, end)
				}
				if len(ends) != 1 || ends[a.end] == 0 {
					t.Errorf("%s, %s: ended as %v, want always %s", a.name, then.name, ends, a.end)
				}
			}
		})
	}
}

// enough are the store calls of the first three looks at a request that stays open. Further ones are like the third.
const enough = 24

// everywhere tries every point at which a process can crash. try returns the method that was hit, or "".
func everywhere(try func(point) (method string)) {
	try(point{beforeSend: true})
	try(point{afterSend: true})
	for n := 1; n <= enough; n++ {
		switch try(point{n: n, mishap: notDone}) {
		case "":
			return
		case "Commit", "PutRefundRequest": // a read leaves nothing behind
			try(point{n: n, mishap: unsaid})
			try(point{n: n, mishap: killedBy})
		}
	}
}

// run lives through one cell of the table and returns how the request ended.
func (w *world) run(a answer, c crash, next int) string {
	a.set(w)
	if next == webhookFirst {
		change := w.calls.after
		w.calls.after = func() {
			w.webhooks()
			if change != nil {
				change()
			}
		}
	}
	if !c.second && c.point != (point{}) {
		w.store.arm(c.point)
	}
	w.shop()
	if c.second {
		w.store.arm(c.point)
	} else {
		w.store.disarm()
	}
	thens[next].run(w)
	w.pass(8 * 24 * time.Hour)
	w.store.disarm()
	// A shop that was never told calls once more, at the latest. If nothing had been begun, it is now.
	end := w.shop()
	if !end.definite() {
		w.pass(8 * 24 * time.Hour)
		end = w.shop()
	}
	w.verify(a, end)
	return end.words()
}

// verify asserts what must be so in the end, whatever happened.
func (w *world) verify(a answer, end result) {
	w.t.Helper()
	w.must(w.gateway.SetFaults())
	made := w.atGateway(receipt())
	made = slices.DeleteFunc(made, func(f payment.RefundFact) bool { return f.Amount.Amount != asked })
	order := w.order(orderID)
	if _, reserved := order.Reserved[receipt()]; reserved {
		w.broken("its money is reserved still")
	}
	switch stored, _ := w.request(); {
	case end.Refund.ID != "":
		if len(made) != 1 || made[0].ID != end.Refund.ID {
			w.broken("accepted as %s, and the gateway has %v", end.Refund.ID, made)
		}
		if end.Refund.Status() != a.then || order.Refunds[end.Refund.ID].Receipt != receipt() {
			w.broken("the order has it as %+v", order.Refunds[end.Refund.ID])
		}
		if stored.Status != payment.RequestAccepted || stored.RefundID != end.Refund.ID {
			w.broken("the request is stored as %s %s", stored.Status, stored.RefundID)
		}
		if unsettled := a.then == payment.RefundPending; unsettled == stored.NextAt.IsZero() {
			w.broken("it is looked at again %s", stored.NextAt)
		}
	default:
		if len(made) != 0 {
			w.broken("%s, and the gateway has %v", end.words(), made)
		}
		if stored.Status != payment.RequestFailed || !stored.NextAt.IsZero() {
			w.broken("the request is stored as %s, to be looked at again %s", stored.Status, stored.NextAt)
		}
	}
	for _, said := range w.said {
		if said != end.words() {
			w.broken("the shop was told %s, and then %s", said, end.words())
		}
	}
	w.oneKeyOneBody()
}

// oneKeyOneBody: our request reached the gateway with one key and one body.
func (w *world) oneKeyOneBody() {
	w.t.Helper()
	sent := map[string]bool{}
	for _, c := range w.gateway.Calls() {
		if c.Method == "POST" && strings.HasSuffix(c.Path, "/"+w.paymentID+"/refund") && c.Key == receipt() {
			sent[c.Key+" "+c.Body] = true
		}
	}
	if len(sent) > 1 {
		w.broken("it was sent as %v", slices.Sorted(maps.Keys(sent)))
	}
}

// isOurs reports whether a call asks for our refund.
func isOurs(c razorpaytest.Call) bool {
	return c.Method == "POST" && c.Key == receipt() && strings.Contains(c.Body, receipt())
}
