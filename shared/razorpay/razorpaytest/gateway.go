// Package razorpaytest is a simulated Razorpay for tests and for development: an HTTP server that speaks the gateway's
// REST API for orders, payments and refunds and delivers signed webhooks, with failures on demand. It refuses what the
// gateway refuses.
//
// It answers under /v1 as the gateway does:
//
//	POST /v1/orders                        GET /v1/orders          GET /v1/orders/{id}
//	GET  /v1/orders/{id}/payments          GET /v1/payments        GET /v1/payments/{id}
//	POST /v1/payments/{id}/capture         {amount, currency}
//	POST /v1/payments/{id}/refund          {amount?, speed?, notes?, receipt?}, with the header X-Refund-Idempotency
//	GET  /v1/payments/{id}/refunds         GET /v1/payments/{id}/refunds/{refund}
//	GET  /v1/refunds                       GET /v1/refunds/{id}
//
// What a customer or the dashboard would do, and everything a test wants to bring about, goes through the control
// interface under /_sim, or through the Go methods behind it:
//
//	POST /_sim/orders     {id?, amount, currency, receipt?, notes?}               an order somebody else made
//	POST /_sim/payments   {order_id?, amount?, currency?, status, deliver?}       a customer's attempt; answers {id}
//	POST /_sim/payments/{id}  {status, deliver?}                                  moves it on
//	POST /_sim/refunds    {payment_id, amount?, receipt?, notes?, status?, deliver?}  a dashboard refund; answers {id}
//	POST /_sim/refunds/{id}   {status, deliver?}                                  moves it on
//	POST /_sim/settings   {refund_status?, refund_takes_seconds?, key_conflict?, keep_failed?, auto_refund_surplus?, balance?}
//	POST /_sim/delivery   {drop?, duplicate?, shuffle?, delay_ms?, enabled?}      how webhooks travel
//	POST /_sim/faults     [{method?, path, kind, count?}]                         makes API calls fail
//	POST /_sim/clock      {advance_seconds}                                       moves the clock; what falls due happens
//	GET  /_sim/deliveries                                                         what was sent; ?body=true with bodies
//	GET  /_sim/calls                                                              which API calls came in
//
// A payment that is authorized stays so until it is captured, or until the order's manual expiry period, counted from
// the payment's creation, is over: then it is refunded. An automatic capture happens at once or never: ask for the
// status captured.
//
// Time is the real time plus what the clock was advanced by. All ids come from one random source, so that a seed
// repeats a run as long as calls come in the same order. Nothing is kept when the process ends.
package razorpaytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Config says what a [Gateway] is like. The zero value of each field but KeyID and KeySecret has a sensible meaning.
type Config struct {
	KeyID     string // of the one API key it accepts
	KeySecret string

	WebhookURL    string // where events go; empty: nowhere, until SetWebhookURL
	WebhookSecret string // signs them; empty: they go unsigned, as from an account without one
	AccountID     string // the merchant's; empty: made up

	Now  func() time.Time // the clock before it is advanced; nil: time.Now
	Rand *rand.Rand       // the source of ids and chances, used by the gateway alone from now on; nil: a random seed

	// ManualExpiry is how long after its creation an authorized payment is refunded unless it is captured, if its order
	// does not say. 0: 3 days.
	ManualExpiry time.Duration

	// DeliveryTimeout is how long a webhook may take to answer. 0: the gateway's 5 seconds.
	DeliveryTimeout time.Duration
}

// A Gateway is a simulated gateway. It is an [http.Handler]; Start lets it listen by itself. It is safe for concurrent
// use. Close it.
type Gateway struct {
	config  Config
	api     http.Handler
	control http.Handler

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	offset    time.Duration // by which the clock was advanced
	moment    time.Time     // the time of the deadline that is being met; zero: none is
	deadlines []deadline    // soonest first
	orders    list[orderEntity]
	payments  list[paymentEntity]
	refunds   list[refundEntity]
	keys      map[string]*keyUse // by idempotency key
	settings  Settings
	faults    []Fault
	calls     callLog
	delivery  delivery
	server    *http.Server
}

// New returns a gateway without orders.
func New(config Config) *Gateway {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Rand == nil {
		config.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if config.DeliveryTimeout == 0 {
		config.DeliveryTimeout = 5 * time.Second
	}
	if config.ManualExpiry == 0 {
		config.ManualExpiry = 3 * 24 * time.Hour
	}
	g := &Gateway{
		config: config, settings: defaultSettings, keys: map[string]*keyUse{},
		orders: newList[orderEntity](), payments: newList[paymentEntity](), refunds: newList[refundEntity](),
		calls: newCallLog(),
	}
	if g.config.AccountID == "" {
		g.config.AccountID = g.newID("acc_")
	}
	g.api, g.control = g.apiRoutes(), g.controlRoutes()
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.delivery = newDelivery()
	g.work.Go(g.dispatch)
	return g
}

// Start listens on 127.0.0.1 and returns the base URL, without /v1. Port 0 takes any free one.
func (g *Gateway) Start(port int) (url string, err error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return "", fmt.Errorf("razorpaytest: %w", err)
	}
	server := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second}
	g.mu.Lock()
	started := g.server != nil
	if !started {
		g.server = server
	}
	g.mu.Unlock()
	if started {
		listener.Close()
		return "", errors.New("razorpaytest: started already")
	}
	g.work.Go(func() { server.Serve(listener) })
	return "http://" + listener.Addr().String(), nil
}

// Close stops listening and delivering, and returns when all of the gateway's goroutines have ended.
func (g *Gateway) Close() {
	g.cancel()
	g.mu.Lock()
	server := g.server
	g.mu.Unlock()
	if server != nil {
		server.Close()
	}
	g.work.Wait()
	g.delivery.client.CloseIdleConnections()
}

// SetWebhookURL changes where events go from now on, those that wait for another attempt included.
func (g *Gateway) SetWebhookURL(url string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config.WebhookURL = url
}

// SetWebhookSecret changes the secret for events that are yet to come. Later attempts of older ones keep the old
// secret, as at the real gateway.
func (g *Gateway) SetWebhookSecret(secret string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config.WebhookSecret = secret
}

// AccountID returns the merchant's account, which every event names.
func (g *Gateway) AccountID() string { return g.config.AccountID }

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// newID returns an id of the gateway's form. The caller holds mu.
func (g *Gateway) newID(prefix string) string {
	id := []byte(prefix)
	for range 14 {
		id = append(id, base62[g.config.Rand.IntN(len(base62))])
	}
	return string(id)
}
