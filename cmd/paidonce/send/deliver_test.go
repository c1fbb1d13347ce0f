package send

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"paidonce/cmd/paidonce/terminal"
)

func TestPlanOfDeliveries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events, dup, drop := rapid.IntRange(0, 30).Draw(t, "events"), rapid.IntRange(0, 5).Draw(t, "dup"), rapid.IntRange(0, 100).Draw(t, "drop")
		shuffle, seed := rapid.Bool().Draw(t, "shuffle"), rapid.Uint64().Draw(t, "seed")
		p := planDeliveries(events, dup, drop, shuffle, seed)
		for i := range events {
			times := 0
			for _, sent := range p.order {
				if sent == i {
					times++
				}
			}
			want := dup + 1
			if slices.Contains(p.dropped, i) {
				want = 0
			}
			if times != want {
				t.Fatalf("event %d is sent %d times, want %d", i, times, want)
			}
		}
		if drop == 0 && len(p.dropped) > 0 || drop == 100 && len(p.order) > 0 {
			t.Fatalf("at %d percent %d of %d are dropped", drop, len(p.dropped), events)
		}
		if !shuffle && !slices.IsSorted(p.order) {
			t.Fatalf("not asked for, shuffled all the same: %v", p.order)
		}
		again := planDeliveries(events, dup, drop, shuffle, seed)
		if diff := cmp.Diff(p, again, cmp.AllowUnexported(deliveryPlan{})); diff != "" {
			t.Fatalf("the same seed plans something else\n%s", diff)
		}
		straight := planDeliveries(events, dup, drop, false, seed)
		if !slices.Equal(straight.dropped, p.dropped) {
			t.Fatalf("shuffled, %v are dropped, else %v", p.dropped, straight.dropped)
		}
	})
	if a, b := planDeliveries(20, 0, 50, true, 1), planDeliveries(20, 0, 50, true, 2); slices.Equal(a.order, b.order) || slices.Equal(a.dropped, b.dropped) {
		t.Error("two seeds plan the same")
	}
	p := planDeliveries(10_000, 0, 30, false, 1)
	if n := len(p.dropped); n < 2800 || n > 3200 {
		t.Errorf("at 30 percent %d of 10000 are dropped", n)
	}
}

func TestPutIntoABody(t *testing.T) {
	for _, c := range []struct{ name, body, set, want string }{
		{"a number", "{\"a\" : 1 ,\n\"b\":2}\n", "a=100", "{\"a\" : 100 ,\n\"b\":2}\n"},
		{"deep down", `{"a":{"b":{"c":"x","d":[1, 2]}},"c":1}`, "a.b.c=y z", `{"a":{"b":{"c":"y z","d":[1, 2]}},"c":1}`},
		{"the same name elsewhere", `{"id":1,"p":{"id":2},"q":{"id":3}}`, "q.id=4", `{"id":1,"p":{"id":2},"q":{"id":4}}`},
		{"of two the one that counts", `{"a":1,"a":2}`, "a=3", `{"a":1,"a":3}`},
		{"of two objects the one that counts", `{"a":{"b":1},"a":{"b":2}}`, "a.b=3", `{"a":{"b":1},"a":{"b":3}}`},
		{"JSON stays JSON", `{"a":1}`, `a={"b": [null]}`, `{"a":{"b": [null]}}`},
		{"null", `{"a":1}`, "a=null", `{"a":null}`},
		{"text becomes a string", `{"a":1}`, "a=<5\"", `{"a":"<5\""}`},
		{"a number as text", `{"a":1}`, `a="5"`, `{"a":"5"}`},
		{"nothing", `{"a":1}`, "a=", `{"a":""}`},
		{"a value with =", `{"a":1}`, "a=b=c", `{"a":"b=c"}`},
		{"a new one", `{"a":{"b":1 } }`, "a.c=2", `{"a":{"b":1 ,"c":2} }`},
		{"the first one", `{"a":{ }}`, "a.c=2", `{"a":{ "c":2}}`},
		{"at the top", `{}`, "a=1", `{"a":1}`},
		{"escapes and numbers stay", `{"n":1.50e3,"s":"\u20b9\/","a":1}`, "a=2", `{"n":1.50e3,"s":"\u20b9\/","a":2}`},
		{"an escaped name", `{"\u0061":1}`, "a=2", `{"\u0061":2}`},
		{"behind spaces", "\n {\"a\":1}", "a=2", "\n {\"a\":2}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sets, err := parseAssignments([]string{c.set})
			if err != nil {
				t.Fatal(err)
			}
			got, err := assign([]byte(c.body), sets)
			if err != nil || string(got) != c.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, c.want)
			}
		})
	}
	for body, want := range map[string]string{
		`{"a":1}`:   "the body has no a.b, so a.b.c cannot be put in",
		`{"b":{}}`:  "the body has no a, so a.b.c cannot be put in",
		`[{"a":1}]`: "the body is not a JSON object: nothing can be put into it (a.b.c)",
		`{"a":`:     "the body is not a JSON object: nothing can be put into it (a.b.c)",
		``:          "the body is not a JSON object: nothing can be put into it (a.b.c)",
	} {
		if _, err := assign([]byte(body), []assignment{{"a.b.c", []byte("1")}}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}

// The server answers nobody before all are there, so that it only ends if they are sent at a time.
func TestConcurrentDeliveries(t *testing.T) {
	const together = 8
	var arrived sync.WaitGroup
	arrived.Add(together)
	var now, most atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		arrived.Done()
		arrived.Wait()
		now.Add(-1)
	}))
	defer server.Close()
	d := deliverer{client: server.Client(), url: server.URL, concurrency: together, w: terminal.RealWorld()}
	answers := 0
	err := d.deliver(t.Context(), make([]webhookEvent, together), []int{0, 1, 2, 3, 4, 5, 6, 7}, func(_ int, one delivered) {
		if answers++; one.Status != 200 {
			t.Errorf("answered %d %s", one.Status, one.Answer)
		}
	})
	if err != nil || answers != together || most.Load() != together {
		t.Errorf("%d answers, %d at a time, %v", answers, most.Load(), err)
	}
}

func TestDelayAndInterruption(t *testing.T) {
	b := newWebhookBench(t)
	ctx, interrupt := context.WithCancel(t.Context())
	var slept []time.Duration
	w := terminal.Surroundings{Now: time.Now, Sleep: func(ctx context.Context, d time.Duration) error {
		if slept = append(slept, d); len(slept) == 3 {
			interrupt()
		}
		return ctx.Err()
	}}
	out, err := b.sendOn(ctx, w, fileOf(t, "body.json", sampleBody), "--dup", "9", "--delay", "200ms")
	if err == nil || err.Error() != "interrupted: 3 of 10 sent" || strings.Count(out, "\n") != 3 || len(b.receipts) != 3 {
		t.Errorf("%v, %d received\n%s", err, len(b.receipts), out)
	}
	if !slices.Equal(slept, []time.Duration{200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond}) {
		t.Errorf("slept %v", slept)
	}
}

// roundTrip is a transport of one function.
type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestWhatIsUnderWayIsNotBrokenOff(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		interrupt()
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	})}
	d := deliverer{client: client, url: "http://127.0.0.1:1", concurrency: 1, w: terminal.RealWorld()}
	var statuses []int
	err := d.deliver(ctx, make([]webhookEvent, 5), []int{0, 1, 2, 3, 4}, func(_ int, one delivered) { statuses = append(statuses, one.Status) })
	if !errors.Is(err, context.Canceled) || len(statuses) == 5 || statuses[0] != 200 {
		t.Errorf("answered %v, %v", statuses, err)
	}
}
