package razorpaytest_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

const (
	keyID         = "rzp_test_Sim1"
	keySecret     = "simulated key secret"
	webhookSecret = "simulated webhook secret"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newGateway returns a gateway whose clock stands still unless it is advanced, listening, and a client for it.
func newGateway(t *testing.T, change func(*razorpaytest.Config)) (*razorpaytest.Gateway, string, *razorpay.Client) {
	t.Helper()
	config := razorpaytest.Config{
		KeyID: keyID, KeySecret: keySecret, WebhookSecret: webhookSecret, AccountID: "acc_Sim1",
		Now:  func() time.Time { return start },
		Rand: rand.New(rand.NewPCG(1, 2)),
	}
	if change != nil {
		change(&config)
	}
	gateway := razorpaytest.New(config)
	t.Cleanup(gateway.Close)
	url, err := gateway.Start(0)
	if err != nil {
		t.Fatal(err)
	}
	client, err := razorpay.New(url, keyID, keySecret, razorpay.WithSleep(func(context.Context, time.Duration) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	return gateway, url, client
}

// delivered is a webhook as a receiver saw it.
type delivered struct {
	id, signature, contentType string
	body                       []byte
}

// receiver is a shop's webhook endpoint.
type receiver struct {
	url    string
	mu     sync.Mutex
	status int // that it answers
	got    []delivered
}

func newReceiver(t *testing.T, gateway *razorpaytest.Gateway) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusOK}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL + "/webhooks/razorpay"
	gateway.SetWebhookURL(r.url)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	header := request.Header
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, delivered{
		header.Get(razorpay.HeaderEventID), header.Get(razorpay.HeaderSignature), header.Get("Content-Type"), body,
	})
	w.WriteHeader(r.status)
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) deliveries() []delivered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// names settles the gateway and returns the names of the events that arrived, in their order.
func (r *receiver) names(t *testing.T, gateway *razorpaytest.Gateway) []string {
	t.Helper()
	settle(t, gateway)
	var names []string
	for _, d := range r.deliveries() {
		event, err := razorpay.Decode(d.body)
		if err != nil {
			t.Fatalf("%v\n%s", err, d.body)
		}
		names = append(names, event.Type)
	}
	return names
}

func settle(t *testing.T, gateway *razorpaytest.Gateway) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := gateway.Settle(ctx); err != nil {
		t.Fatalf("deliveries did not end: %v", err)
	}
}

func addOrder(t *testing.T, gateway *razorpaytest.Gateway, amount int64) string {
	t.Helper()
	id, err := gateway.AddOrder(razorpaytest.OrderRequest{Amount: amount, Currency: "INR"})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func pay(t *testing.T, gateway *razorpaytest.Gateway, request razorpaytest.PaymentRequest) string {
	t.Helper()
	id, err := gateway.Pay(request)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestStartAndClose(t *testing.T) {
	gateway := razorpaytest.New(razorpaytest.Config{KeyID: keyID, KeySecret: keySecret})
	url, err := gateway.Start(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.Start(0); err == nil {
		t.Error("started twice")
	}
	if gateway.AccountID() == "" || time.Since(gateway.Now()) > time.Minute {
		t.Errorf("account %q at %v", gateway.AccountID(), gateway.Now())
	}
	// A delivery that hangs must not hold up Close.
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	gateway.SetWebhookURL(server.URL)
	pay(t, gateway, razorpaytest.PaymentRequest{Amount: 100, Status: "authorized"})
	<-arrived
	gateway.Close()
	if _, err := http.Get(url + "/v1/orders"); err == nil {
		t.Error("still listening after Close")
	}
	if err := gateway.Settle(t.Context()); err != nil && t.Context().Err() != nil {
		t.Error(err)
	}
	gateway.Close() // a second time does nothing
}

// TestSeedRepeatsARun runs the same calls twice and wants the same ids and the same losses.
func TestSeedRepeatsARun(t *testing.T) {
	run := func() (ids []string) {
		gateway, _, _ := newGateway(t, nil)
		half := 0.5
		if _, err := gateway.ChangeDelivery(razorpaytest.DeliveryChange{Drop: &half}); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			order := addOrder(t, gateway, 100)
			ids = append(ids, order, pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: "authorized"}))
		}
		settle(t, gateway)
		deliveries := gateway.Deliveries()
		slices.SortFunc(deliveries, func(a, b razorpaytest.Delivery) int { return strings.Compare(a.EventID, b.EventID) })
		for _, d := range deliveries {
			ids = append(ids, d.EventID+" "+d.Error)
		}
		return ids
	}
	if first, second := run(), run(); !slices.Equal(first, second) {
		t.Errorf("two runs of one seed differ:\n%v\n%v", first, second)
	}
}
