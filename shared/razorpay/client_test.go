package razorpay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

// serve starts a gateway that answers with handler, and a client for it whose pauses take no time. The pauses are
// appended to waits if it is not nil.
func serve(t *testing.T, waits *[]time.Duration, handler http.HandlerFunc, options ...Option) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	sleep := func(ctx context.Context, d time.Duration) error {
		if waits != nil {
			*waits = append(*waits, d)
		}
		return ctx.Err()
	}
	client, err := New(server.URL, "rzp_test_1", "key secret", append([]Option{WithSleep(sleep)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const orderJSON = `{"id":"order_1","entity":"order","amount":49900,"amount_paid":0,"amount_due":49900,"currency":"INR",` +
	`"receipt":"shop-1","offer_id":null,"status":"created","attempts":0,"notes":[],"created_at":1700000000}`

var order1 = Order{ID: "order_1", Amount: payment.Money{Amount: 49900, Currency: "INR"}, Receipt: "shop-1", Status: "created",
	CreatedAt: time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC)}

func TestNewRefuses(t *testing.T) {
	for _, base := range []string{
		"", "api.razorpay.com", "http://api.razorpay.com", "ftp://127.0.0.1", "https://", "https://key:secret@api.razorpay.com",
		"https://api.razorpay.com?x=1", "http://127.0.0.1.example.com", "https://key:hunter2@a b",
	} {
		if _, err := New(base, "rzp_test_1", "s"); err == nil {
			t.Errorf("%q: no error", base)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error repeats the URL: %v", base, err)
		}
	}
	if _, err := New(DefaultURL, "", "s"); err == nil {
		t.Error("no key id: no error")
	}
	if _, err := New(DefaultURL, "rzp_test_1", ""); err == nil {
		t.Error("no key secret: no error")
	}
}

func TestReadsAreRetried(t *testing.T) {
	for name, test := range map[string]struct {
		failures int
		fail     http.HandlerFunc
		calls    int
		fails    bool
		waits    []time.Duration // exact, where the gateway asks for them
	}{
		"500 once":       {1, status(500, nil), 2, false, nil},
		"500 twice":      {2, status(500, nil), 3, false, nil},
		"500 for good":   {9, status(500, nil), 3, true, nil},
		"502":            {2, status(502, nil), 3, false, nil},
		"425":            {1, status(425, nil), 2, false, nil},
		"429":            {2, status(429, map[string]string{"Retry-After": "7"}), 3, false, []time.Duration{7 * time.Second, 7 * time.Second}},
		"429, an hour":   {1, status(429, map[string]string{"Retry-After": "3600"}), 1, true, []time.Duration{}},
		"429, a date":    {1, status(429, map[string]string{"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}), 2, false, nil},
		"503":            {1, status(503, map[string]string{"Retry-After": "1"}), 2, false, []time.Duration{time.Second}},
		"aborted":        {2, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 3, false, nil},
		"answer cut off": {1, cutOff, 2, false, nil},
		"400":            {1, status(400, nil), 1, true, nil},
		"401":            {1, status(401, nil), 1, true, nil},
		"404":            {1, status(404, nil), 1, true, nil},
		"409":            {1, status(409, nil), 1, true, nil},
		"302":            {1, status(302, map[string]string{"Location": "/v1/orders/order_1"}), 1, true, nil},
		"undecodable":    {1, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, 1, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			waits := []time.Duration{}
			client := serve(t, &waits, func(w http.ResponseWriter, r *http.Request) {
				if int(calls.Add(1)) <= test.failures {
					test.fail(w, r)
					return
				}
				io.WriteString(w, orderJSON)
			}, WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}))
			_, err := client.Order(t.Context(), "order_1")
			if (err != nil) != test.fails {
				t.Errorf("error %v, want one: %t", err, test.fails)
			}
			if n := int(calls.Load()); n != test.calls {
				t.Errorf("%d calls, want %d", n, test.calls)
			}
			if test.waits != nil {
				if diff := cmp.Diff(test.waits, waits); diff != "" {
					t.Errorf("waits (-want +got):\n%s", diff)
				}
				return
			}
			for i, wait := range waits {
				if full := firstBackoff << i; wait < full/2 || wait > full {
					t.Errorf("pause %d is %v, want %v to %v", i, wait, full/2, full)
				}
			}
		})
	}
}

func status(code int, header map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
	}
}

func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "400")
	io.WriteString(w, orderJSON[:40])
}

func TestReadsEndWithTheirContext(t *testing.T) {
	t.Run("cancelled during a pause", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int32
		client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.WriteHeader(500)
		}, WithSleep(func(ctx context.Context, _ time.Duration) error {
			cancel()
			return ctx.Err()
		}))
		_, err := client.Order(ctx, "order_1")
		var e *Error
		if !errors.As(err, &e) || e.HTTPStatus != 500 || calls.Load() != 1 {
			t.Errorf("%v after %d calls, want the 500 after 1", err, calls.Load())
		}
	})
	t.Run("no time left for the pause", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		waits := []time.Duration{}
		client := serve(t, &waits, status(429, map[string]string{"Retry-After": "25"}))
		if _, err := client.Order(ctx, "order_1"); err == nil || len(waits) != 0 {
			t.Errorf("%v after pauses %v, want the 429 without any", err, waits)
		}
	})
	t.Run("cancelled during a call", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int32
		client := serve(t, nil, func(_ http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			cancel()
			<-r.Context().Done()
		})
		if _, err := client.Order(ctx, "order_1"); !errors.Is(err, context.Canceled) || calls.Load() != 1 {
			t.Errorf("%v after %d calls, want Canceled after 1", err, calls.Load())
		}
	})
	t.Run("an attempt's own timeout is retried", func(t *testing.T) {
		var calls atomic.Int32
		client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 1 {
				<-r.Context().Done()
				return
			}
			io.WriteString(w, orderJSON)
		}, WithAttemptTimeout(200*time.Millisecond))
		if _, err := client.Order(t.Context(), "order_1"); err != nil {
			t.Error(err)
		}
	})
	t.Run("the real pause", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := pause(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("pause = %v, want Canceled", err)
		}
		if err := pause(t.Context(), time.Nanosecond); err != nil {
			t.Errorf("pause = %v", err)
		}
	})
}
