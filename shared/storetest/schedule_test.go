package storetest_test

import (
	"context"

	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

// An actor is whoever works on the store, one call after the other. Between two calls anybody else may act.
type actor struct {
	run    func(*turns)
	free   string
	faults []fault
}

// fault is what goes wrong with an actor's n-th call (from 1) of a method.
type fault struct {
	method string
	n      int
	what   storetest.Fault
}

// turns is the store as an actor sees it: each call waits until it is the actor's turn.
type turns struct {
	*storetest.Memory
	free   string // a method whose calls need no turn: nobody changes what it reads
	faults []fault
	calls  map[string]int
	turn   chan struct{}
	state  chan bool // whether the actor waits for a turn; false: it is done
}

func (s *turns) wait(method string) {
	if method != s.free {
		s.state <- true
		<-s.turn
	}
	s.calls[method]++
	s.Faults = func(string) storetest.Fault {
		for _, f := range s.faults {
			if f.method == method && f.n == s.calls[method] {
				return f.what
			}
		}
		return storetest.None
	}
}

func (s *turns) PutEvent(ctx context.Context, e payment.Event) (payment.Event, error) {
	s.wait("PutEvent")
	return s.Memory.PutEvent(ctx, e)
}

func (s *turns) Event(ctx context.Context, k payment.EventKey) (payment.Event, error) {
	s.wait("Event")
	return s.Memory.Event(ctx, k)
}

func (s *turns) OrderID(ctx context.Context, gateway string, ref payment.Ref) (string, error) {
	s.wait("OrderID")
	return s.Memory.OrderID(ctx, gateway, ref)
}

func (s *turns) Order(ctx context.Context, id string) (payment.Order, error) {
	s.wait("Order")
	return s.Memory.Order(ctx, id)
}

func (s *turns) Commit(ctx context.Context, c payment.Commit) error {
	s.wait("Commit")
	return s.Memory.Commit(ctx, c)
}

func (s *turns) SettleEvent(ctx context.Context, st payment.Settlement) error {
	s.wait("SettleEvent")
	return s.Memory.SettleEvent(ctx, st)
}

// path is one interleaving: who acted at each turn, out of how many. Its zero value is the first.
type path []struct{ chosen, of int }

// next turns the path into the one after it, and reports false after the last.
func (p *path) next() bool {
	for len(*p) > 0 {
		last := &(*p)[len(*p)-1]
		if last.chosen++; last.chosen < last.of {
			return true
		}
		*p = (*p)[:len(*p)-1]
	}
	return false
}

// walk lets the actors act on the store as the path says, and where it ends, the first that can. It completes the path.
// Each turn is one call; after it comes look.
func (p *path) walk(store *storetest.Memory, actors []actor, look func()) {
	var waiting []*turns
	advance := func(s *turns) bool { return <-s.state }
	for _, a := range actors {
		s := &turns{Memory: store, free: a.free, faults: a.faults, calls: map[string]int{}, turn: make(chan struct{}), state: make(chan bool)}
		go func() {
			a.run(s)
			s.state <- false
		}()
		if advance(s) {
			waiting = append(waiting, s)
		}
	}
	for n := 0; len(waiting) > 0; n++ {
		if n == len(*p) {
			*p = append(*p, struct{ chosen, of int }{0, len(waiting)})
		}
		i := (*p)[n].chosen
		waiting[i].turn <- struct{}{}
		if !advance(waiting[i]) {
			waiting = append(waiting[:i:i], waiting[i+1:]...)
		}
		store.Faults = nil
		look()
	}
}
