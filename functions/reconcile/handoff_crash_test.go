package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"paidonce/shared/advance"
	"paidonce/shared/announce"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/reconcile"
	"paidonce/shared/storetest"
)

// mishap is what goes wrong with a call to AWS.
type mishap int

const (
	killedBefore mishap = iota // it is never sent
	fails                      // nothing is done
	unheard                    // it is done, and the answer lost
	killedAfter                // it is done, and the process is gone
	mishaps
)

// strike is the one mishap of a step: with the call of this number, from 1. The zero value is a step in which all goes well.
type strike struct {
	call int
	what mishap
}

// chain is one payment on its way: a webhook that is delivered three times, the queue, the worker, the stream, notify, the bus,
// and reconcile. Store and queue lose nothing; every process may die. Reconcile is the function itself, as is all that announces
// and advances; webhook and worker are the calls that they make, in their order, and have tests of their own.
type chain struct {
	*handler
	t            *testing.T
	memory       *storetest.Memory
	checker      storetest.Checker
	at           time.Time
	gatewayShows bool // the payment

	stored       bool // the event, whether anybody heard of it or not
	acknowledged bool
	queued       int                 // messages, all of the one event
	stream       []payment.OutboxKey // records that notify has still to be given
	streamed     map[payment.OutboxKey]bool
	published    map[string]int

	process string // that is running
	dead    bool   // it has been killed
	strike  strike
	calls   []string // of the step
	steps   int
	replays bool // it has been checked as far as it goes
}

const (
	chainRound = 20 * time.Minute // from one delivery to the next
	chainSweep = 16 * time.Minute // after a delivery: hand-off, announcement and order are due by then
)

var (
	chainEvent = payment.EventKey{Gateway: "razorpay", ID: "evt_1"}
	chainPaid  = payment.PaymentFact{ID: "pay_1", GatewayOrderID: "order_1", Status: payment.PaymentCaptured, Captured: true, Amount: rupees}
	chainRules = payment.Rules{Pace: pace}
)

func newChain(t *testing.T, gatewayShows bool) *chain {
	w := &chain{
		t: t, memory: storetest.NewMemory(), at: received, gatewayShows: gatewayShows,
		streamed: map[payment.OutboxKey]bool{}, published: map[string]int{},
	}
	w.checker = storetest.Checker{Store: w.memory, Rules: chainRules}
	o := payment.NewOrder("o1", rupees, "razorpay", payment.Test, received).Opened("order_1", chainRules, received)
	if err := w.memory.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: "order_1"}}}); err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return w.at }
	log := logs.New(io.Discard, "ERROR")
	w.handler = &handler{
		store: w.memory, queue: w, pace: pace, log: log, now: clock,
		announcer: announce.Announcer{Store: w.memory, Bus: w, Now: clock},
		reconciler: reconcile.Reconciler{
			Gateways: map[string]func(context.Context) gateway{"razorpay": func(context.Context) gateway { return chainGateway{chain: w} }},
			Store:    w.memory, Advancer: w.advancer(), Stack: "shop", Log: log, Now: clock,
		},
	}
	return w
}

func (w *chain) advancer() advance.Advancer {
	return advance.Advancer{Store: w.memory, Rules: chainRules, Now: func() time.Time { return w.at }}
}

// chainGateway shows the payment, or nothing yet.
type chainGateway struct {
	gateway
	chain *chain
}

func (chainGateway) Mode() payment.Mode { return payment.Test }

func (g chainGateway) OrderPayments(context.Context, string) ([]payment.PaymentFact, error) {
	if !g.chain.gatewayShows {
		return nil, nil
	}
	return []payment.PaymentFact{chainPaid}, nil
}

// struck decides about a call.
func (w *chain) struck(name string) storetest.Fault {
	if w.dead {
		panic("a dead process calls nothing")
	}
	w.calls = append(w.calls, w.process+" "+name)
	if len(w.calls) != w.strike.call {
		return storetest.None
	}
	switch w.strike.what {
	case killedBefore:
		w.dead = true
		panic("killed")
	case fails:
		return storetest.NotDone
	case killedAfter:
		w.dead = true // what it still does with the answer nobody sees; its next call ends it
	}
	return storetest.DoneUnsaid
}

func (w *chain) call(name string, do func()) error {
	fault := w.struck(name)
	if fault != storetest.NotDone {
		do()
	}
	if fault != storetest.None {
		return storetest.ErrFault
	}
	return nil
}

// Send implements [queue].
func (w *chain) Send(context.Context, payment.EventKey) error {
	return w.call("SendMessage", func() { w.queued++ })
}

// Waiting implements [queue].
func (w *chain) Waiting(context.Context) (n int, err error) {
	err = w.call("GetQueueAttributes", func() { n = w.queued })
	return n, err
}

// Publish implements [announce.Bus].
func (w *chain) Publish(_ context.Context, announcements []payment.Announcement) []error {
	err := w.call("PutEvents", func() {
		for _, a := range announcements {
			w.published[a.Key.String()] = min(w.published[a.Key.String()]+1, 2) // more often is no different
		}
	})
	return slices.Repeat([]error{err}, len(announcements))
}

// runs runs a process until it ends or is killed, and reports whether it said that all is well.
func (w *chain) runs(process string, run func(context.Context) error) (well bool) {
	w.process, w.dead, w.memory.Faults = process, false, w.struck
	defer func() {
		if w.dead {
			recover() // its own end, and nothing else
			well = false
		}
		w.memory.Faults = nil
		w.look()
	}()
	ctx := lambdacontext.NewContext(context.Background(), &lambdacontext.LambdaContext{AwsRequestID: process + w.at.String()})
	return run(ctx) == nil
}

// look takes note of what was written, and checks every invariant.
func (w *chain) look() {
	_, err := w.memory.Event(w.t.Context(), chainEvent)
	w.stored = err == nil
	effects, err := w.memory.Effects(w.t.Context(), "o1")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range effects {
		k := payment.OutboxKey{OrderID: "o1", Name: "FULFILMENT"}
		if _, ok := e.(payment.Fulfilment); ok && !w.streamed[k] {
			w.stream, w.streamed[k] = append(w.stream, k), true
		}
	}
	if !w.replays {
		w.checker.Check(w.t, "o1")
	}
}

// webhook is the webhook on one delivery: it stores, sends, and only then acknowledges.
func (w *chain) webhook(ctx context.Context) error {
	stored, err := w.memory.PutEvent(ctx, payment.Event{
		Key: chainEvent, Status: payment.EventReceived, VerifiedBy: "test_current", Mode: payment.Test, ReceivedAt: w.at, NextAt: pace.FirstLook(w.at),
	})
	switch {
	case errors.Is(err, payment.ErrEventExists) && stored.Status != payment.EventReceived:
		return nil
	case err != nil && !errors.Is(err, payment.ErrEventExists):
		return err
	}
	return w.Send(ctx, chainEvent)
}

// worker is the worker on one message. None fails so often here that it is given up on.
func (w *chain) worker(ctx context.Context) error {
	e, err := w.memory.Event(ctx, chainEvent)
	if err != nil || e.Status == payment.EventApplied {
		return err
	}
	orderID, err := w.memory.OrderID(ctx, "razorpay", chainPaid.Ref())
	if err != nil {
		return err
	}
	_, err = w.advancer().Apply(ctx, orderID, advance.Step{
		Source: payment.SourceWebhook, Facts: []payment.Fact{chainPaid}, Event: &e, Kind: "payment.captured",
	})
	return err
}

// work gives the worker a try at each message, and notify one at what the stream brings.
func (w *chain) work() {
	for range w.queued {
		if w.runs("worker", w.worker) {
			w.queued--
		}
	}
	if keys := w.stream; len(keys) > 0 && w.runs("notify", func(ctx context.Context) error {
		_, err := w.announcer.Announce(ctx, keys)
		return err
	}) {
		w.stream = w.stream[len(keys):]
	}
}

// sweep lets reconcile run after a while, and more time pass.
func (w *chain) sweep() {
	w.at = w.at.Add(chainSweep)
	w.runs("reconcile", w.Handle)
	w.at = w.at.Add(chainRound - chainSweep)
}

// step is the next step of the chain, with a mishap: by turns a delivery with what comes of it, and a run of reconcile.
func (w *chain) step(s strike) {
	w.strike, w.calls = s, nil
	if w.steps++; w.steps%2 == 0 {
		w.sweep()
	} else {
		w.acknowledged = w.runs("webhook", w.webhook) || w.acknowledged
		w.work()
	}
	w.strike = strike{}
}

// state is all that the next step depends on. The store is printed with what it hides: nothing in it is left out.
func (w *chain) state() string {
	return fmt.Sprintf("%+v stored %t acknowledged %t queued %d stream %v %v published %v",
		w.memory, w.stored, w.acknowledged, w.queued, w.stream, w.streamed, w.published)
}

// ends lets time pass without further deliveries or mishaps, and asserts what holds in the end. It reports whether the payment
// was known before the gateway showed it.
func (w *chain) ends() (known bool) {
	w.t.Helper()
	for range 30 { // ten hours: the last of the hand-offs is after six
		w.work()
		w.sweep()
	}
	o, err := w.memory.Order(w.t.Context(), "o1")
	if err != nil {
		w.t.Fatal(err)
	}
	known = o.Status == payment.Paid
	if (w.acknowledged || w.stored) && !known {
		w.t.Fatalf("acknowledged %t, stored %t, and the order is %s", w.acknowledged, w.stored, o.Status)
	}
	w.gatewayShows = true
	for _, after := range []time.Duration{24 * time.Hour, 48 * time.Hour} {
		w.at = received.Add(after)
		w.sweep()
		w.work()
	}
	if o, err = w.memory.Order(w.t.Context(), "o1"); err != nil {
		w.t.Fatal(err)
	}
	h, err := w.memory.History(w.t.Context(), "o1")
	if err != nil {
		w.t.Fatal(err)
	}
	fulfilled := 0
	for _, c := range h.Changes {
		fulfilled += strings.Count(c.What, "; fulfilled")
	}
	for _, e := range h.Events {
		fulfilled += strings.Count(e.Verdict, "; fulfilled")
	}
	if o.Status != payment.Paid || o.FulfilledAt.IsZero() || fulfilled != 1 || len(h.Effects) != 2 || !o.DueAt.IsZero() {
		w.t.Fatalf("the order is %s, due at %s, fulfilled %d times, with effects %v; want it paid, fulfilled once and booked once",
			o.Status, o.DueAt, fulfilled, h.Effects)
	}
	if keys := slices.Collect(maps.Keys(w.published)); !slices.Equal(keys, []string{"o1#FULFILMENT"}) {
		w.t.Fatalf("published %v, want the fulfilment", w.published)
	}
	if e, err := w.memory.Event(w.t.Context(), chainEvent); w.stored && (err != nil || e.Status != payment.EventApplied) {
		w.t.Fatalf("the event is %s (%v)", e.Status, err)
	}
	if err := w.memory.DueAnnouncements(w.t.Context(), w.at.AddDate(1, 0, 0), func(k payment.OutboxKey) bool {
		w.t.Fatalf("%s is still unsent", k)
		return false
	}); err != nil {
		w.t.Fatal(err)
	}
	return known
}

// TestCrashesOfTheHandOff breaks every call to AWS of webhook, worker, notify and reconcile in every way, in each of three
// deliveries and of the runs of reconcile after them, in all combinations. Of sequences that leave everything the same it follows one.
func TestCrashesOfTheHandOff(t *testing.T) {
	const deliveries = 3
	type reached struct {
		by        []strike // a sequence that leads there
		sequences int      // how many do
	}
	for _, c := range []struct {
		name         string
		gatewayShows bool
	}{
		{"the gateway's API shows the payment from the beginning", true},
		{"the gateway's API shows it only days later", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play := func(by ...strike) *chain {
				w := newChain(t, c.gatewayShows)
				for i, s := range by {
					w.replays = i < len(by)-1
					w.step(s)
				}
				return w
			}
			hit := map[string]bool{}
			states := map[string]*reached{"": {sequences: 1}}
			for range 2 * deliveries {
				next := map[string]*reached{}
				arrive := func(w *chain, from *reached, s strike) {
					if t.Failed() {
						t.Fatalf("after %v", append(from.by, s))
					}
					to := w.state()
					if next[to] == nil {
						next[to] = &reached{by: append(slices.Clone(from.by), s)}
					}
					next[to].sequences += from.sequences
				}
				for _, from := range states {
					smooth := play(append(from.by, strike{})...)
					arrive(smooth, from, strike{})
					for i, name := range smooth.calls {
						hit[name] = true
						for what := range mishaps {
							s := strike{i + 1, what}
							arrive(play(append(from.by, s)...), from, s)
						}
					}
				}
				states = next
			}
			var sequences, acknowledged, byAPI, repeated int
			for _, at := range states {
				w := play(at.by...)
				known := w.ends()
				if t.Failed() {
					t.Fatalf("after %v", at.by)
				}
				sequences += at.sequences
				if w.acknowledged {
					acknowledged += at.sequences
				}
				if !known {
					byAPI += at.sequences
				}
				if w.published["o1#FULFILMENT"] > 1 {
					repeated += at.sequences
				}
			}
			perProcess := map[string]int{}
			for name := range hit {
				process, _, _ := strings.Cut(name, " ")
				perProcess[process]++
			}
			t.Logf("calls broken, each in %d ways, in each of %d deliveries and runs of reconcile: %v", mishaps, deliveries, perProcess)
			t.Logf("sequences: %d, which leave %d states", sequences, len(states))
			t.Logf("  acknowledged: %d; lost: 0; doubled: 0; published again, with the same id: %d", acknowledged, repeated)
			t.Logf("  nothing was ever stored, and the order is paid by what the API shows: %d", byAPI)
			if !c.gatewayShows && byAPI == 0 {
				t.Error("the API part was never needed")
			}
			for process, least := range map[string]int{"webhook": 2, "worker": 4, "notify": 3, "reconcile": 15} {
				if perProcess[process] < least {
					t.Errorf("%s made %d calls, want at least %d", process, perProcess[process], least)
				}
			}
		})
	}
}
