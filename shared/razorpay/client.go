package razorpay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/time/rate"

	"paidonce/shared/payment"
)

// Name is the gateway's name, in the webhook's path and the keys of its events.
const Name = "razorpay"

// DefaultURL is where the gateway's API lives.
const DefaultURL = "https://api.razorpay.com"

const (
	attemptTimeout = 10 * time.Second
	maxAttempts    = 3
	firstBackoff   = 200 * time.Millisecond
	maxBackoff     = 30 * time.Second // whatever the gateway asks for
	maxAnswer      = 16 << 20         // bytes: an order's payments come in one answer, and card testing makes thousands
	maxIdle        = 16               // connections kept open while unused; net/http keeps 2
)

// A Client calls the gateway's REST API. It is safe for concurrent use. All clients share their connections.
//
// A call is tried up to three times, with jittered pauses or those that the gateway asks for (Retry-After), for as long
// as its context lasts. A read is tried again after a broken connection, a timeout, 408, 425, 429 and 5xx. A write is
// tried again only where it is certain that the gateway did nothing: after 429, and where no connection came about.
// After anything else it may have been done.
//
// The error of a call wraps one of package payment's: [payment.ErrOutcomeUnknown] unless its comment names another.
type Client struct {
	base      *url.URL // with /v1
	keyID     string
	keySecret string
	mode      payment.Mode // empty unless known from the key's document
	http      http.Client
	timeout   time.Duration // per attempt
	sleep     func(context.Context, time.Duration) error
	rate      *rate.Limiter // nil: none
	watch     func(context.Context, payment.Call)
}

// An Option changes how a [Client] works.
type Option func(*Client)

// WithHTTPClient makes the client use h's transport, jar and timeout. Redirects are not followed either way.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = *h } }

// WithAttemptTimeout limits each attempt, the reading of its answer included. The default is 10 seconds.
func WithAttemptTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// WithRate limits the client to so many requests a second, retries included. The default is no limit.
func WithRate(perSecond int) Option {
	return func(c *Client) { c.rate = rate.NewLimiter(rate.Limit(perSecond), 1) }
}

// WithSleep replaces the pause between attempts. It must return the context's error when the context ends first.
func WithSleep(sleep func(context.Context, time.Duration) error) Option {
	return func(c *Client) { c.sleep = sleep }
}

// WithWatch has watch called after each call, with all its attempts, in the goroutine that made it.
func WithWatch(watch func(context.Context, payment.Call)) Option {
	return func(c *Client) { c.watch = watch }
}

// New returns a client for the API at baseURL ([DefaultURL], or another scheme and host, without /v1). The key travels
// in every request, so plain http is refused except to this machine.
func New(baseURL, keyID, keySecret string, options ...Option) (*Client, error) {
	base, err := url.Parse(baseURL)
	switch {
	case err != nil:
		return nil, errors.New("razorpay: the API's URL cannot be parsed") // the error would repeat it
	case base.Host == "" || base.User != nil || base.RawQuery != "":
		return nil, errors.New("razorpay: the API's URL wants a scheme and a host, and no more than a path")
	case base.Scheme != "https" && (base.Scheme != "http" || !loopback(base.Hostname())):
		return nil, errors.New("razorpay: the API's URL must be https")
	case keyID == "" || keySecret == "":
		return nil, errors.New("razorpay: no API key")
	}
	c := &Client{
		base: base.JoinPath("v1"), keyID: keyID, keySecret: keySecret, timeout: attemptTimeout, sleep: pause,
		http: http.Client{Transport: transport}, watch: func(context.Context, payment.Call) {},
	}
	for _, option := range options {
		option(c)
	}
	// A redirected POST would become a GET, and its answer pass for the POST's.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

func loopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// transport is net/http's own, with more idle connections.
var transport = func() http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // somebody put another in its place, for a reason
	}
	t := standard.Clone()
	t.MaxIdleConnsPerHost = maxIdle
	return t
}()

// A request is one call of the API.
type request struct {
	method string
	path   string // below /v1; the ids in it must be words
	query  url.Values
	key    string // a refund's idempotency key
	body   []byte
}

// get reads path into answer.
func (c *Client) get(ctx context.Context, path string, query url.Values, answer any) error {
	return c.try(ctx, request{method: http.MethodGet, path: path, query: query}, answer, retryable)
}

// post writes, and reads what the gateway made of it into answer.
func (c *Client) post(ctx context.Context, r request, answer any) error {
	r.method = http.MethodPost
	return c.try(ctx, r, answer, notTaken)
}

// try sends a request until it succeeds, fails in a way that is not for again, or has failed too often.
func (c *Client) try(ctx context.Context, r request, answer any, again func(error) bool) error {
	call := payment.Call{Gateway: Name, Name: r.method + " " + r.path}
	began := time.Now()
	for {
		call.Attempts++
		call.Status, call.Err = c.do(ctx, r, answer)
		if !c.onceMore(ctx, call, again) {
			call.Took = time.Since(began)
			c.watch(ctx, call)
			return call.Err
		}
	}
}

// onceMore reports whether the call is to be tried again, and waits until then.
func (c *Client) onceMore(ctx context.Context, call payment.Call, again func(error) bool) bool {
	if call.Err == nil || call.Attempts == maxAttempts || !again(call.Err) {
		return false
	}
	wait := backoff(call.Attempts, call.Err)
	if deadline, ok := ctx.Deadline(); wait > maxBackoff || ok && time.Until(deadline) <= wait {
		return false // the error says more than that the time is up
	}
	return c.sleep(ctx, wait) == nil
}

// backoff returns how long to wait after an attempt that failed: what the gateway asks for, or between half and all of
// a pause that doubles.
func backoff(attempt int, err error) time.Duration {
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		return e.RetryAfter
	}
	full := firstBackoff << (attempt - 1)
	return full/2 + rand.N(full/2)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// do sends one request and decodes the answer. status is the answer's, 0 if there was none.
func (c *Client) do(ctx context.Context, r request, answer any) (status int, err error) {
	if c.rate != nil {
		if err := c.rate.Wait(ctx); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	target := c.base.JoinPath(r.path)
	target.RawQuery = r.query.Encode()
	sent, err := http.NewRequestWithContext(ctx, r.method, target.String(), bytes.NewReader(r.body))
	if err != nil {
		return 0, err
	}
	sent.SetBasicAuth(c.keyID, c.keySecret)
	sent.Header.Set("Accept", "application/json")
	sent.Header.Set("User-Agent", "paidonce")
	if r.body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		sent.Header.Set(headerRefundKey, r.key)
	}
	response, err := c.http.Do(sent)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, readAnswer(response, answer)
}

// readAnswer decodes what came back. Up to maxAnswer is read to its end, whatever it says, so that the connection can be used
// again.
func readAnswer(response *http.Response, answer any) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		return newError(response.StatusCode, response.Header, text)
	case err != nil:
		return fmt.Errorf("read the answer: %w", err)
	case len(text) > maxAnswer:
		return fmt.Errorf("%w: the answer is larger than %d bytes", ErrUndecodable, maxAnswer)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) {
			err = wrongType(mismatch)
		}
		return fmt.Errorf("%w: %w", ErrUndecodable, err)
	}
	return nil
}
