package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

// gatewayAnswers are the gateway's answers to the creation of its order.
var gatewayAnswers = []struct {
	name    string
	kind    razorpaytest.FaultKind // empty: none
	calls   int                    // with the fault
	body    string                 // of the request
	wrong   bool                   // key
	answers int                    // what the shop is answered if nothing else goes wrong
}{
	{name: "success", body: good, answers: 201},
	{name: "timeout before", kind: razorpaytest.TimeoutBefore, calls: 1, body: good, answers: 503},
	{name: "timeout after", kind: razorpaytest.TimeoutAfter, calls: 1, body: good, answers: 503},
	{name: "reset before", kind: razorpaytest.Reset, calls: 1, body: good, answers: 503},
	{name: "reset after", kind: razorpaytest.ResetAfter, calls: 1, body: good, answers: 503},
	{name: "429 once", kind: razorpaytest.Throttled, calls: 1, body: good, answers: 201},
	{name: "429 at every attempt", kind: razorpaytest.Throttled, calls: 3, body: good, answers: 503},
	{name: "500 before", kind: razorpaytest.ServerError, calls: 1, body: good, answers: 503},
	{name: "500 after", kind: razorpaytest.ServerErrorAfter, calls: 1, body: good, answers: 503},
	{name: "502 in HTML before", kind: razorpaytest.BadGateway, calls: 1, body: good, answers: 503},
	{name: "502 in HTML after", kind: razorpaytest.BadGatewayAfter, calls: 1, body: good, answers: 503},
	{name: "409", kind: razorpaytest.InProgress, calls: 1, body: good, answers: 503},
	{name: "400: refused", body: tooLittle, answers: 502},
	{name: "401", wrong: true, body: good, answers: 503},
}

var (
	tooLittle = strings.Replace(good, "49900", "50", 1) // the gateway takes no less than a rupee
	another   = strings.Replace(good, "49900", "12300", 1)
)

// sequels are what comes after a call that stopped somewhere, before the shop calls again.
var sequels = []struct {
	name   string
	atOnce bool // calls race: the gateway may end up with more than one order
	happen func(w *world, body string)
}{
	{"the shop calls again", false, func(*world, string) {}},
	{"the shop calls twice", false, func(w *world, body string) { w.post(body) }},
	{"the shop calls three times at once", true, func(w *world, body string) {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { w.post(body) })
		}
		wg.Wait()
	}},
	{"another order is wanted under the id", false, func(w *world, body string) {
		if status := w.post(another); status != 409 && status != 201 {
			w.t.Errorf("%s: the other order was answered %d", w.name, status)
		}
	}},
	{"the sweep comes first", false, func(w *world, _ string) { w.sweep() }},
	{"the look-up fails", false, func(w *world, body string) {
		w.faults(razorpaytest.Fault{Method: "GET", Path: "/v1/orders", Kind: razorpaytest.ServerError, Count: 3})
		w.post(body)
		w.faults()
	}},
	{"the look-up times out", false, func(w *world, body string) {
		w.faults(razorpaytest.Fault{Method: "GET", Path: "/v1/orders", Kind: razorpaytest.TimeoutBefore, Count: 3})
		w.post(body)
		w.faults()
	}},
	{"the next call dies at its 1st step", false, dies(1, false)},
	{"the next call dies after its 1st step", false, dies(1, true)},
	{"the next call dies at its 2nd step", false, dies(2, false)},
	{"the next call dies after its 2nd step", false, dies(2, true)},
	{"the next call dies at its 3rd step", false, dies(3, false)},
	{"the next call dies after its 3rd step", false, dies(3, true)},
	{"the next call dies at its 4th step", false, dies(4, false)},
	{"the next call dies after its 4th step", false, dies(4, true)},
}

func dies(at int, done bool) func(*world, string) {
	return func(w *world, body string) { w.run(&process{at: at, done: done, dies: true}, w.client, body) }
}

func (w *world) faults(f ...razorpaytest.Fault) {
	if err := w.sim.SetFaults(f...); err != nil {
		w.t.Fatal(err)
	}
}

// TestCreateCrashes breaks or kills the creation at every step, with every answer of the gateway, and lets everything happen
// that can come next. In the end there is the order, or its id is free.
func TestCreateCrashes(t *testing.T) {
	var cases, handed atomic.Int64
	for _, answer := range gatewayAnswers {
		t.Run(answer.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				steps := 0
				for _, p := range crashes() {
					for _, sequel := range sequels {
						name := fmt.Sprintf("step %d (done %t, dies %t), then %s", p.at, p.done, p.dies, sequel.name)
						first := p
						w := newWorld(t, name)
						client := w.client
						if answer.wrong {
							client = w.newClient("another key's secret")
						}
						if answer.kind != "" {
							w.faults(razorpaytest.Fault{Method: "POST", Path: "/v1/orders", Kind: answer.kind, Count: answer.calls})
						}
						status := w.run(&first, client, answer.body)
						if first.at == 0 && status != answer.answers {
							t.Errorf("answered %d, want %d", status, answer.answers)
						}
						steps = max(steps, first.calls)
						w.faults()
						w.check()
						sequel.happen(w, answer.body)
						w.check()
						w.ends(answer.body, sequel.atOnce)
						w.sim.Close()
						cases.Add(1)
						handed.Add(int64(len(w.handed)))
						if t.Failed() {
							t.Fatal(name)
						}
					}
				}
				if steps > maxSteps {
					t.Errorf("a creation takes %d steps, and only %d are broken", steps, maxSteps)
				}
			})
		})
	}
	t.Logf("creation: %d ways to crash, %d gateway orders handed out", cases.Load(), handed.Load())
}

// maxSteps is how many calls of store and gateway a first creation makes.
const maxSteps = 3

// crashes are the ways in which the first call may stop.
func crashes() []process {
	all := []process{{}}
	for at := 1; at <= maxSteps; at++ {
		for _, done := range []bool{false, true} {
			for _, dies := range []bool{false, true} {
				all = append(all, process{at: at, done: done, dies: dies})
			}
		}
	}
	return all
}

// ends lets the shop call until it is answered for good, and asserts what it has then.
func (w *world) ends(body string, raced bool) {
	w.t.Helper()
	order, err := w.memory.Order(context.Background(), "o1")
	taken := err == nil && order.Amount.Amount == 12300 // by the other order, while nobody had the id
	status := w.post(body)
	w.check()
	switch {
	case taken && status != 409:
		w.t.Errorf("%s: answered %d, want 409: the id is another order's", w.name, status)
	case body == tooLittle && !taken:
		if status != 502 {
			w.t.Errorf("%s: answered %d, want 502", w.name, status)
		}
		if status = w.post(another); status != 201 {
			w.t.Errorf("%s: another order was answered %d, want 201: the refusal leaves the id free", w.name, status)
		}
		w.check()
	case !taken && status != 200 && status != 201:
		w.t.Errorf("%s: answered %d by a healthy gateway, want the order", w.name, status)
	}
	if len(w.handed) != 1 {
		w.t.Errorf("%s: handed out %v, want one gateway order", w.name, w.handed)
	}
	if n := w.atGateway(); n != 1 && !raced || n < 1 {
		w.t.Errorf("%s: the gateway has %d orders, want 1", w.name, n)
	}
}

// fickle refuses, or hides, some of the creations.
type fickle struct {
	gateway
	calls *atomic.Int64
	every int64
}

func (f fickle) OpenOrder(ctx context.Context, o payment.Order, note string) (string, error) {
	if n := f.calls.Add(1); f.every > 0 && n%f.every == 0 {
		return "", fmt.Errorf("at this moment: %w", payment.ErrGatewayRefused)
	}
	return f.gateway.OpenOrder(ctx, o, note)
}

// TestTwentyCreationsAtOnce lets twenty calls race, some of which the gateway answers badly.
func TestTwentyCreationsAtOnce(t *testing.T) {
	for _, refusing := range []int64{0, 2, 3} { // every so many creations are refused
		for _, answer := range gatewayAnswers {
			t.Run(fmt.Sprintf("%s, refusing one in %d", answer.name, refusing), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, "twenty at once")
					defer w.sim.Close()
					if answer.kind != "" {
						w.faults(razorpaytest.Fault{Method: "POST", Path: "/v1/orders", Kind: answer.kind, Count: 7})
					}
					var calls, ok atomic.Int64
					var wg sync.WaitGroup
					for i := range 20 {
						client := w.client
						if answer.wrong && i%2 > 0 {
							client = w.newClient("another key's secret")
						}
						wg.Go(func() {
							status, id := w.answer(w.handler(fickle{client, &calls, refusing}), answer.body)
							w.take(status, id)
							if status < 300 {
								ok.Add(1)
							}
						})
					}
					wg.Wait()
					w.faults()
					w.check()
					if plain := answer.name == "success" && refusing == 0; plain && ok.Load() != 20 {
						t.Errorf("%d of 20 were answered with the order", ok.Load())
					}
					w.ends(answer.body, true)
				})
			})
		}
	}
}
