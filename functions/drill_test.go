package functions_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"paidonce/shared/apigw"
	"paidonce/shared/localaws"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

const (
	drillOrders = 300
	drillAtOnce = 8
	drillPart   = 10000       // what goes back of an order that is refunded in part
	drillShare  = 0.2         // of the webhooks are lost, and as many come twice
	drillHour   = time.Minute // at the stack's pace, a second for a minute
	drillSweeps = 2 * time.Second
	drillEnds   = 3 * drillHour // by then everything has to be right
)

// fate is what becomes of an order in the drill.
type fate struct {
	name      string
	of20      int // how many orders of 20
	play      func(t *testing.T, o apigw.Order)
	status    payment.Status // in the end
	fulfilled bool
}

var fates = []fate{
	{"paid", 9, func(t *testing.T, o apigw.Order) { pay(t, o, "captured", true) }, payment.Paid, true},
	{"failed, then paid", 3, func(t *testing.T, o apigw.Order) {
		pay(t, o, "failed", true)
		pay(t, o, "captured", true)
	}, payment.Paid, true},
	{"left authorized", 2, func(t *testing.T, o apigw.Order) { pay(t, o, "authorized", true) }, payment.Paid, true},
	{"paid twice", 1, func(t *testing.T, o apigw.Order) {
		pay(t, o, "captured", true)
		pay(t, o, "captured", true)
	}, payment.Paid, true},
	{"refunded in part by the shop", 1, func(t *testing.T, o apigw.Order) {
		payAndComeBack(t, o)
		if status, _, answer := refund(t, o.ID, fmt.Sprintf(`{"id":"part","amount":%d}`, drillPart)); status != http.StatusCreated {
			t.Errorf("the refund of order %s answered %d %s", o.ID, status, answer)
		}
	}, payment.PartiallyRefunded, true},
	{"refunded in part in the dashboard", 1, func(t *testing.T, o apigw.Order) {
		refundInDashboard(t, payAndComeBack(t, o), drillPart)
	}, payment.PartiallyRefunded, true},
	{"refunded in the dashboard", 1, func(t *testing.T, o apigw.Order) { refundInDashboard(t, payAndComeBack(t, o), price) }, payment.Refunded, true},
	{"failed", 1, func(t *testing.T, o apigw.Order) { pay(t, o, "failed", true) }, payment.Failed, false},
	{"never paid", 1, func(*testing.T, apigw.Order) {}, payment.Pending, false},
}

// payAndComeBack pays, and the browser brings the customer back before anything else happens.
func payAndComeBack(t *testing.T, o apigw.Order) (paymentID string) {
	paymentID = pay(t, o, "captured", true)
	if status := comeBack(t, o.ID, form(t, paymentID)); status != "paid" {
		t.Errorf("the customer of order %s is told %q", o.ID, status)
	}
	return paymentID
}

func refundInDashboard(t *testing.T, paymentID string, amount int64) {
	if _, err := gateway.Refund(razorpaytest.RefundRequest{PaymentID: paymentID, Amount: amount}); err != nil {
		t.Error(err)
	}
}

// victim is an order in the drill, and what was found wrong with it in the end.
type victim struct {
	apigw.Order
	fate
	wrong         []string
	lost, doubled bool
	bySweep       bool // it was fulfilled by what reconcile found
	told          int  // announcements that were published, repetitions included
	repeated      int
}

func (v *victim) problem(format string, a ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, a...))
}

// atOnce does something for each of them, a few side by side.
func atOnce[T any](all []T, do func(T)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, drillAtOnce)
	for _, one := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(one)
		})
	}
	wg.Wait()
}

// TestLossDrill breaks everything at once that is known to break in shops: webhooks get lost, come twice and out of order, the
// worker dies, the webhook is switched off, notifications stop. Once reconcile has been through, every order is right.
func TestLossDrill(t *testing.T) {
	began := time.Now()
	earlier := len(gateway.Deliveries())
	d := startDrill(t)
	d.change(razorpaytest.DeliveryChange{Drop: new(drillShare), Duplicate: new(drillShare), Shuffle: new(true), DelayMS: new(int64(400))})
	third := drillOrders / 3

	d.play(d.orders[:third/2])
	switchStream(t, false)
	stopped := time.Now()
	on := sync.OnceFunc(func() { switchStream(t, true) })
	defer on()
	d.whileTheWorkerDies(localaws.HoldAnswer, func() { d.play(d.orders[third/2 : third]) })
	d.settle()
	d.change(razorpaytest.DeliveryChange{Enabled: new(false)})
	d.play(d.orders[third : 2*third])
	d.change(razorpaytest.DeliveryChange{Enabled: new(true)})
	d.whileTheWorkerDies(localaws.Hold, func() { d.play(d.orders[2*third:]) })
	d.settle()
	missed := d.missing()

	d.sweepUntil("the notifications have been stopped for an hour", func() bool { return time.Since(stopped) >= drillHour })
	on()
	stoppedFor := time.Since(stopped)
	last := d.sweepUntil("all is right", d.right)
	deliveries := gateway.Deliveries()[earlier:]
	d.finish(deliveries, last)
	d.table(travelled(deliveries), missed, stoppedFor, time.Since(began))
}

// drill is the drill under way.
type drill struct {
	t      *testing.T
	orders []*victim
}

// startDrill creates the orders, with the fates well mixed.
func startDrill(t *testing.T) *drill {
	d := &drill{t: t}
	var deck []fate
	for _, f := range fates {
		deck = append(deck, slices.Repeat([]fate{f}, f.of20)...)
	}
	for i := range drillOrders {
		d.orders = append(d.orders, &victim{fate: deck[i*7%len(deck)]}) // 7 and 20 have no common factor
	}
	atOnce(d.orders, func(v *victim) { v.Order = newOrder(t) })
	t.Cleanup(func() {
		d.change(razorpaytest.DeliveryChange{Drop: new(0.0), Duplicate: new(0.0), Shuffle: new(false), DelayMS: new(int64(0)), Enabled: new(true)})
	})
	return d
}

func (d *drill) change(c razorpaytest.DeliveryChange) {
	d.t.Helper()
	if _, err := gateway.ChangeDelivery(c); err != nil {
		d.t.Error(err)
	}
}

func (d *drill) play(orders []*victim) {
	atOnce(orders, func(v *victim) { v.play(d.t, v.Order) })
}

// settle waits until the webhooks that are under way have come, and the worker has done what they brought.
func (d *drill) settle() {
	d.t.Helper()
	if err := gateway.Settle(d.t.Context()); err != nil {
		d.t.Error(err)
	}
	eventually(d.t, "worked off", func() bool {
		open := false
		if err := table.DueEvents(d.t.Context(), payment.EventReceived, time.Now().Add(time.Hour), func(payment.EventKey) bool {
			open = true
			return false
		}); err != nil {
			d.t.Error(err)
		}
		return !open
	})
}

// whileTheWorkerDies kills the worker in the middle of what happens: around one of its transactions.
func (d *drill) whileTheWorkerDies(around localaws.FaultKind, happens func()) {
	d.t.Helper()
	fault := stack.Proxy.Inject(localaws.Fault{Kind: around, Operation: transact, Contains: "EVENT#", Count: 1}) // an event is settled
	defer fault.Remove()
	var happening sync.WaitGroup
	happening.Go(happens)
	reached(d.t, fault)
	if n, err := stack.KillFunction("WorkerFunction"); n == 0 || err != nil {
		d.t.Errorf("killed %d worker processes: %v", n, err)
	}
	fault.Drop()
	happening.Wait()
}

// missing counts the orders that are paid at the gateway, and nobody has told us.
func (d *drill) missing() (n int) {
	var mu sync.Mutex
	atOnce(d.orders, func(v *victim) {
		if v.fulfilled && storedOrder(d.t, v.ID).FulfilledAt.IsZero() {
			mu.Lock()
			defer mu.Unlock()
			n++
		}
	})
	return n
}

// sweepUntil runs reconcile, again and again, and returns when the last run began.
func (d *drill) sweepUntil(what string, done func() bool) (last time.Time) {
	d.t.Helper()
	deadline := time.Now().Add(drillEnds)
	tick := time.NewTicker(drillSweeps)
	defer tick.Stop()
	for {
		last = time.Now()
		sweep(d.t)
		switch {
		case done():
			return last
		case last.After(deadline) || d.t.Failed():
			d.t.Errorf("never: %s", what)
			return last
		}
		<-tick.C
	}
}

// right reports whether each order is where it should be, and all that is owed to subscribers has been sent.
func (d *drill) right() bool {
	atOnce(d.orders, func(v *victim) { v.examine(d.t) })
	return !slices.ContainsFunc(d.orders, func(v *victim) bool { return len(v.wrong) > 0 })
}
