package razorpay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

// writes are the calls that must never be done twice, with an answer that each takes for done.
var writes = map[string]struct {
	path, answer string
	send         func(context.Context, *Client) error
}{
	"create order": {"/v1/orders", orderJSON, func(ctx context.Context, c *Client) error {
		_, err := c.CreateOrder(ctx, OrderRequest{Amount: order1.Amount})
		return err
	}},
	"refund": {call1.Path, refundJSON, func(ctx context.Context, c *Client) error {
		_, err := c.SendRefund(ctx, call1)
		return err
	}},
	"capture": {"/v1/payments/pay_1/capture", capturedJSON, func(ctx context.Context, c *Client) error {
		_, err := c.Capture(ctx, "pay_1", inr(49900))
		return err
	}},
}

// TestWritesAreRetriedOnlyWhenNothingWasDone counts the writes alone: a capture is read after each failure.
func TestWritesAreRetriedOnlyWhenNothingWasDone(t *testing.T) {
	slow := func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	for name, test := range map[string]struct {
		failures int
		fail     http.HandlerFunc
		sent     int
		fails    bool
		waits    []time.Duration // nil: not looked at
	}{
		"429 once":       {1, status(429, nil), 2, false, nil},
		"429 twice":      {2, status(429, map[string]string{"Retry-After": "7"}), 3, false, []time.Duration{7 * time.Second, 7 * time.Second}},
		"429 for good":   {9, status(429, nil), maxAttempts, true, nil},
		"429, an hour":   {1, status(429, map[string]string{"Retry-After": "3600"}), 1, true, []time.Duration{}},
		"500":            {1, status(500, nil), 1, true, nil},
		"502":            {1, status(502, nil), 1, true, nil},
		"503":            {1, status(503, map[string]string{"Retry-After": "1"}), 1, true, nil},
		"504":            {1, status(504, nil), 1, true, nil},
		"408":            {1, status(408, nil), 1, true, nil},
		"425":            {1, status(425, nil), 1, true, nil},
		"409":            {1, status(409, nil), 1, true, nil},
		"400":            {1, status(400, nil), 1, true, nil},
		"401":            {1, status(401, nil), 1, true, nil},
		"302":            {1, status(302, map[string]string{"Location": "/v1/orders"}), 1, true, nil},
		"aborted":        {1, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 1, true, nil},
		"answer cut off": {1, cutOff, 1, true, nil},
		"no answer":      {1, slow, 1, true, nil},
		"200 in HTML":    {1, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, 1, true, nil},
	} {
		for call, write := range writes {
			t.Run(name+"/"+call, func(t *testing.T) {
				var sent atomic.Int32
				waits := []time.Duration{}
				client := serve(t, &waits, func(w http.ResponseWriter, r *http.Request) {
					if r.Method != http.MethodPost {
						io.WriteString(w, authorizedJSON)
						return
					}
					if r.URL.Path != write.path {
						t.Errorf("sent to %s", r.URL.Path)
					}
					if int(sent.Add(1)) <= test.failures {
						test.fail(w, r)
						return
					}
					io.WriteString(w, write.answer)
				}, WithAttemptTimeout(200*time.Millisecond))
				err := write.send(t.Context(), client)
				if (err != nil) != test.fails {
					t.Errorf("error %v, want one: %t", err, test.fails)
				}
				if err != nil && !errors.Is(err, payment.ErrOutcomeUnknown) {
					t.Errorf("error %v, want ErrOutcomeUnknown", err)
				}
				if n := int(sent.Load()); n != test.sent {
					t.Errorf("sent %d times, want %d", n, test.sent)
				}
				if test.waits != nil {
					if diff := cmp.Diff(test.waits, waits); diff != "" {
						t.Errorf("waits (-want +got):\n%s", diff)
					}
				}
			})
		}
	}
}

func TestWritesWithoutAConnectionAreRetried(t *testing.T) {
	for call, write := range writes {
		t.Run(call, func(t *testing.T) {
			var dials, sent atomic.Int32
			transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if dials.Add(1) < maxAttempts {
					return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			}}
			t.Cleanup(transport.CloseIdleConnections)
			var waits []time.Duration
			client := serve(t, &waits, func(w http.ResponseWriter, r *http.Request) {
				sent.Add(1)
				io.WriteString(w, write.answer)
			}, WithHTTPClient(&http.Client{Transport: transport}))
			if err := write.send(t.Context(), client); err != nil || sent.Load() != 1 || dials.Load() != maxAttempts {
				t.Errorf("%v; %d dials, sent %d times, want it sent once at dial %d", err, dials.Load(), sent.Load(), maxAttempts)
			}
			if len(waits) != 2 || waits[0] < firstBackoff/2 || waits[1] > 2*firstBackoff {
				t.Errorf("waits %v", waits)
			}
		})
	}
}

func TestWritesEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for call, write := range writes {
		waits := []time.Duration{}
		client := serve(t, &waits, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				io.WriteString(w, authorizedJSON)
				return
			}
			status(429, map[string]string{"Retry-After": "25"})(w, r)
		})
		if err := write.send(ctx, client); !errors.Is(err, payment.ErrOutcomeUnknown) || len(waits) != 0 {
			t.Errorf("%s: %v after pauses %v, want ErrOutcomeUnknown without any", call, err, waits)
		}
	}
}

// connections starts a gateway that counts the connections to it, and a client with the transport that it has by itself.
func connections(t *testing.T, handler http.HandlerFunc) (*Client, *atomic.Int32) {
	t.Helper()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client, err := New(server.URL, "rzp_test_1", "s")
	if err != nil {
		t.Fatal(err)
	}
	return client, &opened
}

func TestConnectionsAreReused(t *testing.T) {
	var calls atomic.Int32
	client, opened := connections(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch calls.Add(1) % 5 {
		case 0:
			w.WriteHeader(400)
			w.Write(bytes.Repeat([]byte("x"), 100_000))
		case 1:
			w.WriteHeader(409)
			io.WriteString(w, "<html>")
		case 2:
			w.WriteHeader(200) // and nothing
		case 3:
			w.Write(append([]byte("{}"), bytes.Repeat([]byte(" "), 100_000)...))
		default:
			io.WriteString(w, refundJSON)
		}
	})
	for range 5 {
		client.SendRefund(t.Context(), call1)
		client.Capture(t.Context(), "pay_1", inr(100)) // two calls
		client.Refunds(t.Context(), "pay_1")
		client.Order(t.Context(), "order_1")
	}
	if n := calls.Load(); opened.Load() != 1 || n != 25 {
		t.Errorf("%d connections for %d calls, want 1 for 25", opened.Load(), n)
	}
}

// TestConcurrentCallsKeepTheirConnections lets several calls meet in the gateway, twice.
func TestConcurrentCallsKeepTheirConnections(t *testing.T) {
	const callers = 8
	var round sync.WaitGroup
	client, opened := connections(t, func(w http.ResponseWriter, _ *http.Request) {
		round.Done()
		round.Wait()
		io.WriteString(w, orderJSON)
	})
	for range 2 {
		round.Add(callers)
		var done sync.WaitGroup
		for range callers {
			done.Go(func() {
				if _, err := client.Order(t.Context(), "order_1"); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
	}
	if n := opened.Load(); n != callers {
		t.Errorf("%d connections, want %d", n, callers)
	}
}
