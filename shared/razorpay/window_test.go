package razorpay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

var (
	windowFrom = time.Unix(1700000000, 999_000_000) // the gateway knows seconds
	windowTo   = time.Unix(1700000600, 1)
	inWindow   = url.Values{"from": {"1700000000"}, "to": {"1700000600"}}
)

// scanned are the lists by time, with an entity of each that can be read, under a number.
var scanned = map[string]struct {
	entity string
	read   func(context.Context, *Client) ([]string, error)
}{
	"payments": {`{"id":"pay_%d","amount":100,"currency":"INR","status":"captured"}`, func(ctx context.Context, c *Client) (ids []string, err error) {
		facts, err := c.Payments(ctx, windowFrom, windowTo)
		for _, f := range facts {
			ids = append(ids, strings.TrimPrefix(f.ID, "pay_"))
		}
		return ids, err
	}},
	"refunds": {`{"id":"rfnd_%d","payment_id":"pay_1","amount":100,"currency":"INR","status":"processed"}`, func(ctx context.Context, c *Client) (ids []string, err error) {
		facts, err := c.RefundsBetween(ctx, windowFrom, windowTo)
		for _, f := range facts {
			ids = append(ids, strings.TrimPrefix(f.ID, "rfnd_"))
		}
		return ids, err
	}},
}

// TestWhatCannotBeReadHidesNothing: an odd entity is counted, and those beside it, on other pages too, come all the same.
func TestWhatCannotBeReadHidesNothing(t *testing.T) {
	odd := []string{
		`null`, `7`, `"pay_9"`, `[]`, `{}`, `{"id":"../x","amount":100,"currency":"INR","status":"captured"}`,
		`{"id":"pay_9","amount":1.5,"currency":"INR","status":"captured"}`, `{"id":"pay_9","amount":"100","currency":"INR","status":"captured"}`,
		`{"id":"pay_9","amount":-100,"currency":"INR","status":"captured"}`, `{"id":"pay_9","amount":100,"currency":"rupees","status":"captured"}`,
		`{"id":"pay_9","amount":100,"currency":"INR","status":"quantum"}`, `{"id":{"a":1},"amount":100,"currency":"INR","status":"captured"}`,
	}
	for name, c := range scanned {
		for _, n := range []int{0, 1, 230} { // that can be read
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				var entities, want []string
				for i := range n {
					entities, want = append(entities, fmt.Sprintf(c.entity, i)), append(want, fmt.Sprint(i))
				}
				middle := len(entities) / 2
				entities = append(append(append([]string{}, entities[:middle]...), odd...), entities[middle:]...)
				ids, err := c.read(t.Context(), serve(t, nil, list(t, entities, inWindow)))
				if diff := cmp.Diff(want, ids); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				some := new(payment.UnreadableError)
				if !errors.As(err, &some) || some.Count != len(odd) || !errors.Is(err, ErrUndecodable) {
					t.Errorf("error %v, want one for %d entities", err, len(odd))
				}
			})
		}
		t.Run(name+" only", func(t *testing.T) {
			ids, err := c.read(t.Context(), serve(t, nil, list(t, []string{fmt.Sprintf(c.entity, 1)}, inWindow)))
			if err != nil || len(ids) != 1 {
				t.Errorf("%v, %v", ids, err)
			}
		})
	}
}

// TestAPageThatIsNoListIsUnreadable, and a refusal is not: the one is passed over, the other asked again.
func TestAPageThatIsNoListIsUnreadable(t *testing.T) {
	for name, c := range scanned {
		for body, code := range map[string]int{
			"<html>": 200, "": 200, "{}": 200, `{"count":3,"items":[]}`: 200, `{"count":1,"items":{}}`: 200, `[]`: 200,
			"a 401": 401, "a 403": 403, "a 429": 429, "a 500": 500, "a 502": 502, "a 400": 400, "a 404": 404,
		} {
			t.Run(name+" "+body, func(t *testing.T) {
				ids, err := c.read(t.Context(), serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(code)
					io.WriteString(w, body)
				}))
				some := new(payment.UnreadableError)
				if unreadable := errors.As(err, &some); len(ids) > 0 || err == nil || unreadable != (code == 200) || unreadable && some.Count != 1 {
					t.Errorf("%v, %v", ids, err)
				}
			})
		}
	}
}

// TestAnEntityIsShownTwiceByOffsets: an addition while pages are read moves the last of a page to the next.
func TestAnEntityIsShownTwiceByOffsets(t *testing.T) {
	for name, c := range scanned {
		t.Run(name, func(t *testing.T) {
			newest := 250
			ids, err := c.read(t.Context(), serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
				var entities []string
				for i := newest; i > 0; i-- {
					entities = append(entities, fmt.Sprintf(c.entity, i))
				}
				list(t, entities, inWindow)(w, r)
				newest++
			}))
			if err != nil || len(ids) != 250 || ids[0] != "250" || ids[249] != "1" {
				t.Errorf("%d entities, %v", len(ids), err)
			}
		})
	}
}

// TestTheRateIsKept: calls that are tried again count as well, and waiting ends with the context.
func TestTheRateIsKept(t *testing.T) {
	const perSecond, calls = 50, 10
	n, last, begins := 0, time.Time{}, time.Now()
	client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		n, last = n+1, time.Now()
		if n%3 == 0 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		io.WriteString(w, orderJSON)
	}, WithRate(perSecond))
	for range calls {
		if _, err := client.Order(t.Context(), "order_1"); err != nil {
			t.Fatal(err)
		}
	}
	if n != 14 {
		t.Fatalf("%d calls, want 14 with those that were throttled", n)
	}
	if took, least := last.Sub(begins), time.Second*13/perSecond; took < least {
		t.Errorf("%d calls came within %s, want at least %s", n, took, least)
	}
}

func TestTheRateEndsWithTheContext(t *testing.T) {
	var calls atomic.Int32
	client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		io.WriteString(w, orderJSON)
	}, WithRate(1))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := client.Order(ctx, "order_1"); err != nil {
		t.Fatal(err)
	}
	begins := time.Now()
	if _, err := client.Order(ctx, "order_1"); err == nil || calls.Load() != 1 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
	if waited := time.Since(begins); waited > 900*time.Millisecond {
		t.Errorf("waited %s for what cannot be in time", waited)
	}
}
