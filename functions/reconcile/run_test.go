package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/reconcile"
	"paidonce/shared/storetest"
)

// slowAsker is a reconciler that takes its time for each order, and cannot do some.
type slowAsker struct {
	*bundle
	takes   time.Duration
	bad     func(orderID string) bool
	mu      sync.Mutex
	asked   []string
	scanned int
}

func (a *slowAsker) Ask(ctx context.Context, orderID string) (bool, error) {
	o, err := a.memory.Order(ctx, orderID)
	if err != nil {
		return false, err
	}
	if err := a.memory.PostponeOrder(ctx, o, a.now().Add(6*time.Hour)); err != nil {
		return false, err
	}
	a.mu.Lock()
	a.asked = append(a.asked, orderID)
	a.mu.Unlock()
	select {
	case <-time.After(a.takes):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if a.bad != nil && a.bad(orderID) {
		return true, errors.New("bad")
	}
	return true, nil
}

// soFar is how many orders were asked about, for a test beside a run.
func (a *slowAsker) soFar() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

func (a *slowAsker) Scan(context.Context, string, payment.Scan, func() bool) (reconcile.Findings, int, error) {
	a.scanned++
	return reconcile.Findings{}, -1, nil
}

// dueOrders stores orders that are due, one after the other.
func (b *bundle) dueOrders(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		b.dueOrder(t, fmt.Sprintf("o%04d", i+1), received.Add(time.Duration(i)*time.Millisecond))
	}
}

// dueOrder stores one order that is due.
func (b *bundle) dueOrder(t *testing.T, id string, at time.Time) {
	t.Helper()
	o := payment.NewOrder(id, rupees, "razorpay", payment.Test, received)
	o.DueAt = at
	if _, err := b.memory.CreateOrder(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// functionTime is the function's timeout in template.yaml.
const functionTime = 120 * time.Second

// scheduled runs the function as Lambda does: from now on, with its deadline, and then until the next run is due.
func (b *bundle) scheduled(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), functionTime)
	defer cancel()
	err := b.Handle(ctx)
	if ctx.Err() != nil {
		t.Error("the run was cut off")
	}
	time.Sleep(5 * time.Minute) // of the test's own time
	return err
}

// inTime runs a test in a time of its own, in which the function's clock goes as well.
func inTime(t *testing.T, takes time.Duration, test func(*testing.T, *slowAsker)) {
	synctest.Test(t, func(t *testing.T) {
		b, begins := setup(), time.Now()
		b.handler.now = func() time.Time { return received.Add(time.Hour).Add(time.Since(begins)) }
		a := &slowAsker{bundle: b, takes: takes}
		b.reconciler = a
		test(t, a)
	})
}

// TestWhatOneRunCannotDoTheNextDoes, once each, and every run ends before its time does.
func TestWhatOneRunCannotDoTheNextDoes(t *testing.T) {
	for _, takes := range []time.Duration{100 * time.Millisecond, time.Second, itemTime - time.Second, time.Hour} {
		t.Run(takes.String(), func(t *testing.T) {
			inTime(t, takes, func(t *testing.T, a *slowAsker) {
				a.dueOrders(t, 300)
				runs := 0
				for ; len(a.asked) < 300 && runs < 50; runs++ {
					before := len(a.asked)
					if err := a.scheduled(t); (err != nil) != (takes > itemTime) { // none could be done
						t.Error(err)
					}
					if done, least := len(a.asked)-before, int((functionTime-reserve)/min(takes, itemTime)); done < min(least, 300-before) {
						t.Errorf("a run did %d, there was time for %d", done, least)
					}
				}
				if !slices.IsSorted(a.asked) || len(slices.Compact(slices.Clone(a.asked))) != 300 {
					t.Errorf("asked about %v", a.asked)
				}
			})
		})
	}
}

// TestAHundredBadItemsDelayTheNextByOneRun, however they fail as long as it is within a second.
func TestAHundredBadItemsDelayTheNextByOneRun(t *testing.T) {
	for _, takes := range []time.Duration{0, 10 * time.Millisecond, time.Second, 2 * time.Second} {
		t.Run("orders/"+takes.String(), func(t *testing.T) {
			inTime(t, takes, func(t *testing.T, a *slowAsker) {
				a.dueOrders(t, 101)
				a.bad = func(id string) bool { return id != "o0101" }
				for run := range 2 {
					err := a.scheduled(t)
					if done := slices.Contains(a.asked, "o0101"); done != (err == nil) {
						t.Errorf("run %d says %v", run+1, err)
					}
				}
				if !slices.Contains(a.asked, "o0101") {
					t.Errorf("number 101 was not asked about in two runs, only %d others", len(a.asked))
				}
			})
		})
	}
	t.Run("events", func(t *testing.T) {
		inTime(t, 0, func(t *testing.T, a *slowAsker) {
			for i := range 101 {
				a.put(t, fmt.Sprintf("e%04d", i+1), payment.EventReceived, received.Add(time.Duration(i)*time.Millisecond))
			}
			a.handler.queue = refusing{a.queue, "e0101"}
			if err := a.scheduled(t); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"e0101"}, a.queue.sent); diff != "" {
				t.Errorf("(-want +sent)\n%s", diff)
			}
		})
	})
}

// refusing is a queue that takes one event only.
type refusing struct {
	*fakeQueue
	takes string
}

func (q refusing) Send(ctx context.Context, k payment.EventKey) error {
	if k.ID != q.takes {
		return errors.New("refused")
	}
	return q.fakeQueue.Send(ctx, k)
}

// TestOfTwoRunsOneWorks, also if the one before died with the lease in its hand.
func TestOfTwoRunsOneWorks(t *testing.T) {
	as := func(ctx context.Context, invocation string) context.Context {
		return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: invocation})
	}
	inTime(t, time.Second, func(t *testing.T, a *slowAsker) {
		a.dueOrders(t, 30)
		done := make(chan error)
		go func() { done <- a.Handle(as(t.Context(), "first")) }()
		time.Sleep(10500 * time.Millisecond)
		n := a.soFar()
		if err := a.Handle(as(t.Context(), "second")); err != nil || a.soFar() != n {
			t.Errorf("the second run asked about %d orders, %v", a.soFar()-n, err)
		}
		if n == 0 || n == 30 {
			t.Fatalf("the first run had asked about %d", n)
		}
		if err := <-done; err != nil || len(a.asked) != 30 {
			t.Errorf("the first run asked about %d orders, %v", len(a.asked), err)
		}
		if taken, err := a.memory.Lease(t.Context(), "dead", a.now(), a.now().Add(leaseTime)); !taken || err != nil {
			t.Fatalf("the lease was not given back: %v", err)
		}
		a.dueOrder(t, "late", received)
		for _, wait := range []time.Duration{0, leaseTime - time.Second} {
			time.Sleep(wait)
			if err := a.Handle(as(t.Context(), "waiting")); err != nil || slices.Contains(a.asked, "late") {
				t.Errorf("works beside one that may live, %v", err)
			}
		}
		time.Sleep(time.Second)
		if err := a.Handle(as(t.Context(), "waiting")); err != nil || !slices.Contains(a.asked, "late") {
			t.Errorf("does not work after one that died, %v", err)
		}
	})
}

// TestTheLeaseOutlastsTheFunction: a run that Lambda cut off must not meet the next.
func TestTheLeaseOutlastsTheFunction(t *testing.T) {
	if leaseTime <= functionTime {
		t.Errorf("the lease lasts %s, the function %s", leaseTime, functionTime)
	}
	if reserve >= functionTime/2 {
		t.Errorf("of %s, %s are kept in hand", functionTime, reserve)
	}
}

// TestOnePartsFailureKeepsNoOther: whatever method of the store fails, what can be done without it is done, and the run says so.
func TestOnePartsFailureKeepsNoOther(t *testing.T) {
	for _, c := range []struct {
		method           string
		fails            bool // the run
		sends, announces bool // an event is sent again, an announcement published
		asks             bool
	}{
		{"", false, true, true, true},
		{"Lease", true, false, false, false},
		{"Release", true, true, true, true},
		{"DueEvents", true, false, true, true},
		{"Event", true, false, true, true},
		{"SettleEvent", true, false, true, true},
		{"DueRefunds", true, true, true, true},
		{"DueOrders", true, true, true, false},
		{"Order", true, true, true, false},
		{"PostponeOrder", true, true, true, false},
		{"DueAnnouncements", true, true, false, true},
		{"PostponeAnnouncement", true, true, false, true},
		{"Unsent", true, true, false, true},
		{"MarkSent", true, true, true, true},
	} {
		t.Run("without "+c.method, func(t *testing.T) {
			inTime(t, 0, func(t *testing.T, a *slowAsker) {
				a.put(t, "e1", payment.EventReceived, received)
				a.dueOrders(t, 1)
				a.announced(t, 1)
				a.gateways = []string{"razorpay"}
				a.memory.Faults = failing(c.method)
				if err := a.scheduled(t); (err != nil) != c.fails || err != nil && !errors.Is(err, storetest.ErrFault) && !strings.Contains(err.Error(), "none of 1 could be done") {
					t.Errorf("the run says %v", err)
				}
				if sent := len(a.queue.sent) > 0; sent != c.sends {
					t.Errorf("sent: %t", sent)
				}
				if published := len(a.bus.published) > 0; published != c.announces {
					t.Errorf("published: %t", published)
				}
				if asked := len(a.asked) > 0; asked != c.asks {
					t.Errorf("asked: %t", asked)
				}
				if scanned := a.scanned == 2; scanned != (c.method != "Lease") {
					t.Errorf("scanned: %t", scanned)
				}
			})
		})
	}
}

// TestOverdue: what has been due for longer than half an hour, of every kind.
func TestOverdue(t *testing.T) {
	inTime(t, 0, func(t *testing.T, a *slowAsker) {
		out := a.measured()
		a.put(t, "e1", payment.EventReceived, a.now().Add(-31*time.Minute))
		a.put(t, "e2", payment.EventReceived, a.now().Add(-29*time.Minute))
		a.put(t, "e3", payment.EventFailed, a.now().Add(-9*time.Hour))
		count := func(want float64) {
			t.Helper()
			s := &sweep{handler: a.handler}
			if err := s.measureOverdue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := gauge(t, out, "Overdue"); len(got) != 1 || got[0] != want {
				t.Errorf("overdue %v, want %v", got, want)
			}
			out.Reset()
		}
		count(1)
		a.put(t, "p1", payment.EventParked, a.now().Add(-31*time.Minute))
		count(2)
		a.dueOrders(t, 1) // due an hour ago
		count(3)
		a.announced(t, 1) // written an hour ago, 10 minutes of which are the stream's
		count(4)
		a.dueOrder(t, "o2", a.now().Add(-29*time.Minute))
		count(4)
		time.Sleep(2 * time.Minute)
		count(6)
	})
}

// measured lets the function write metrics, and its log, to the buffer that it returns.
func (b *bundle) measured() *bytes.Buffer {
	out := &bytes.Buffer{}
	b.metrics = newMetrics(out, b.now)
	b.log = logs.New(out, "INFO")
	return out
}
