package razorpaytest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

// one makes a payment that emits one event.
func one(t *testing.T, gateway *razorpaytest.Gateway) {
	t.Helper()
	pay(t, gateway, razorpaytest.PaymentRequest{Amount: 100, Status: "authorized"})
}

func change(t *testing.T, gateway *razorpaytest.Gateway, c razorpaytest.DeliveryChange) {
	t.Helper()
	if _, err := gateway.ChangeDelivery(c); err != nil {
		t.Fatal(err)
	}
}

// log returns what the gateway recorded: attempt, status and time since the start.
func log(t *testing.T, gateway *razorpaytest.Gateway) []string {
	t.Helper()
	settle(t, gateway)
	var lines []string
	for _, d := range gateway.Deliveries() {
		line := fmt.Sprintf("%d %d %v", d.Attempt, d.Status, d.At.Sub(start))
		if d.Attempt == 0 {
			line += " " + d.Error
		}
		lines = append(lines, line)
	}
	return lines
}

func TestRetriesBackOff(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	receiver.answer(http.StatusInternalServerError)
	one(t, gateway)
	settle(t, gateway)
	for _, d := range []time.Duration{59 * time.Second, time.Second, 2*time.Minute - 1, 1} {
		gateway.Advance(d)
		settle(t, gateway)
	}
	receiver.answer(http.StatusNoContent)
	gateway.Advance(4 * time.Minute)
	settle(t, gateway)
	gateway.Advance(48 * time.Hour)
	want := []string{"1 500 0s", "2 500 1m0s", "3 500 3m0s", "4 204 7m0s"}
	if diff := cmp.Diff(want, log(t, gateway)); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	got := receiver.deliveries()
	for _, d := range got[1:] {
		if d.id != got[0].id || d.signature != got[0].signature || string(d.body) != string(got[0].body) {
			t.Errorf("a retry differs: %+v, first %+v", d, got[0])
		}
	}
}

func TestOnly2xxIsSuccess(t *testing.T) {
	for status, success := range map[int]bool{200: true, 202: true, 204: true, 302: false, 400: false, 401: false, 500: false} {
		gateway, _, _ := newGateway(t, nil)
		newReceiver(t, gateway).answer(status)
		one(t, gateway)
		settle(t, gateway)
		gateway.Advance(time.Hour)
		settle(t, gateway)
		if n := len(gateway.Deliveries()); (n == 1) != success {
			t.Errorf("%d: %d attempts, success %t", status, n, success)
		}
	}
}

// TestWebhookIsSwitchedOff lets an event fail for 24 hours.
func TestWebhookIsSwitchedOff(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	receiver.answer(http.StatusUnauthorized)
	one(t, gateway)
	settle(t, gateway)
	for range 24*60 - 1 {
		gateway.Advance(time.Minute)
		settle(t, gateway)
	}
	if settings, err := gateway.ChangeDelivery(razorpaytest.DeliveryChange{}); err != nil || !settings.Enabled {
		t.Fatalf("switched off too early: %+v, %v", settings, err)
	}
	gateway.Advance(time.Minute)
	settle(t, gateway)
	if settings, err := gateway.ChangeDelivery(razorpaytest.DeliveryChange{}); err != nil || settings.Enabled {
		t.Fatalf("still on after 24 hours: %+v, %v", settings, err)
	}
	attempts := len(receiver.deliveries())
	if attempts != 12 { // at 0, 1, 3, 7, ..., 1023 minutes and at 24 hours
		t.Errorf("%d attempts, want 12", attempts)
	}
	receiver.answer(http.StatusOK)
	one(t, gateway)
	settle(t, gateway)
	if n := len(receiver.deliveries()); n != attempts {
		t.Errorf("an event arrived while the webhook was off")
	}
	change(t, gateway, razorpaytest.DeliveryChange{Enabled: new(true)})
	one(t, gateway)
	settle(t, gateway)
	if n := len(receiver.deliveries()); n != attempts+1 {
		t.Errorf("%d arrived after switching it on again, want the new one alone", n-attempts)
	}
}

func TestLosses(t *testing.T) {
	t.Run("dropped", func(t *testing.T) {
		gateway, _, _ := newGateway(t, nil)
		receiver := newReceiver(t, gateway)
		change(t, gateway, razorpaytest.DeliveryChange{Drop: new(1.0)})
		one(t, gateway)
		gateway.Advance(25 * time.Hour)
		if diff := cmp.Diff([]string{"0 0 0s dropped"}, log(t, gateway)); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
		if n := len(receiver.deliveries()); n != 0 {
			t.Errorf("%d arrived", n)
		}
	})
	t.Run("kept back", func(t *testing.T) {
		gateway, _, _ := newGateway(t, nil)
		newReceiver(t, gateway)
		id := pay(t, gateway, razorpaytest.PaymentRequest{Amount: 100, Status: "authorized", Deliver: new(false)})
		if err := gateway.Move(id, razorpaytest.Move{Status: "captured", Deliver: new(false)}); err != nil {
			t.Fatal(err)
		}
		if got := log(t, gateway); got != nil {
			t.Errorf("deliveries %v", got)
		}
	})
	t.Run("no URL", func(t *testing.T) {
		gateway, _, _ := newGateway(t, nil)
		one(t, gateway)
		if diff := cmp.Diff([]string{"0 0 0s there is no webhook URL"}, log(t, gateway)); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
	})
	t.Run("due while switched off", func(t *testing.T) {
		gateway, _, _ := newGateway(t, nil)
		newReceiver(t, gateway).answer(500)
		one(t, gateway)
		settle(t, gateway)
		change(t, gateway, razorpaytest.DeliveryChange{Enabled: new(false)})
		gateway.Advance(time.Minute)
		if diff := cmp.Diff([]string{"1 500 0s", "0 0 1m0s the webhook is switched off"}, log(t, gateway)); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
	})
}

func TestDuplicates(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	change(t, gateway, razorpaytest.DeliveryChange{Duplicate: new(1.0)})
	one(t, gateway)
	if diff := cmp.Diff([]string{"1 200 0s", "2 200 0s"}, log(t, gateway)); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	if got := receiver.deliveries(); len(got) != 2 || got[0].id != got[1].id || string(got[0].body) != string(got[1].body) {
		t.Errorf("the two differ: %+v", got)
	}
}

func TestDelay(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	newReceiver(t, gateway)
	change(t, gateway, razorpaytest.DeliveryChange{DelayMS: new(int64(1500))})
	one(t, gateway)
	if got := log(t, gateway); got != nil {
		t.Fatalf("sent before its time: %v", got)
	}
	gateway.Advance(1500 * time.Millisecond)
	if diff := cmp.Diff([]string{"1 200 1.5s"}, log(t, gateway)); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

func TestShuffle(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	change(t, gateway, razorpaytest.DeliveryChange{Shuffle: new(true), DelayMS: new(int64(60_000))})
	order := addOrder(t, gateway, 100)
	for range 20 {
		pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: "failed"})
	}
	var emitted []string
	gateway.Advance(time.Minute)
	settle(t, gateway)
	for _, d := range gateway.Deliveries() {
		emitted = append(emitted, d.EventID)
	}
	if len(emitted) != 20 || len(receiver.deliveries()) != 20 {
		t.Fatalf("%d sent, %d arrived, want 20", len(emitted), len(receiver.deliveries()))
	}
	// The same seed without Shuffle tells the order in which the events were made.
	straight, _, _ := newGateway(t, nil)
	newReceiver(t, straight)
	order = addOrder(t, straight, 100)
	for range 20 {
		pay(t, straight, razorpaytest.PaymentRequest{OrderID: order, Status: "failed"})
	}
	settle(t, straight)
	var inOrder []string
	for _, d := range straight.Deliveries() {
		inOrder = append(inOrder, d.EventID)
	}
	if slices.Equal(emitted, inOrder) {
		t.Error("20 shuffled events came in order")
	}
	slices.Sort(emitted)
	slices.Sort(inOrder)
	if diff := cmp.Diff(inOrder, emitted); diff != "" {
		t.Errorf("other events than without Shuffle (-straight +shuffled):\n%s", diff)
	}
}

// TestSecretChange checks that events keep the secret of the time at which they were made.
func TestSecretChange(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	receiver.answer(500)
	one(t, gateway)
	settle(t, gateway)
	gateway.SetWebhookSecret("the next secret")
	receiver.answer(200)
	gateway.Advance(time.Minute)
	settle(t, gateway)
	one(t, gateway)
	settle(t, gateway)
	gateway.SetWebhookSecret("")
	one(t, gateway)
	settle(t, gateway)
	var signedBy []string
	for _, d := range receiver.deliveries() {
		label, _ := razorpay.Verify(d.body, d.signature, []razorpay.Secret{
			{Label: "test_previous", Value: webhookSecret}, {Label: "test_current", Value: "the next secret"},
		})
		signedBy = append(signedBy, label)
	}
	if diff := cmp.Diff([]string{"test_previous", "test_previous", "test_current", ""}, signedBy); diff != "" {
		t.Errorf("signed by (-want +got):\n%s", diff)
	}
}

func TestSlowReceiverIsAFailure(t *testing.T) {
	gateway, _, _ := newGateway(t, func(c *razorpaytest.Config) { c.DeliveryTimeout = 20 * time.Millisecond })
	release := make(chan struct{})
	defer close(release)
	gateway.SetWebhookURL(hanging(t, release))
	one(t, gateway)
	settle(t, gateway)
	deliveries := gateway.Deliveries()
	if len(deliveries) != 1 || deliveries[0].Status != 0 || !strings.Contains(deliveries[0].Error, context.DeadlineExceeded.Error()) {
		t.Fatalf("deliveries %+v, want one that ran out of time", deliveries)
	}
	receiver := newReceiver(t, gateway)
	gateway.Advance(time.Minute)
	settle(t, gateway)
	if n := len(receiver.deliveries()); n != 1 {
		t.Errorf("%d retries arrived, want 1", n)
	}
}

func hanging(t *testing.T, release <-chan struct{}) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	return server.URL
}

func TestSettleGivesUpWithItsContext(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	release := make(chan struct{})
	defer close(release)
	gateway.SetWebhookURL(hanging(t, release))
	one(t, gateway)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := gateway.Settle(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Settle = %v, want Canceled", err)
	}
}

func TestDeliverySettingsOutOfRange(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	for name, c := range map[string]razorpaytest.DeliveryChange{
		"drop": {Drop: new(1.1)}, "negative drop": {Drop: new(-0.1)}, "duplicate": {Duplicate: new(2.0)},
		"delay": {DelayMS: new(int64(-1))},
	} {
		if _, err := gateway.ChangeDelivery(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	settings, err := gateway.ChangeDelivery(razorpaytest.DeliveryChange{})
	if want := (razorpaytest.DeliverySettings{Enabled: true}); err != nil || settings != want {
		t.Errorf("settings %+v, %v, want %+v", settings, err, want)
	}
}

// TestManyAtOnce lets many customers pay at the same time, over a bad line.
func TestManyAtOnce(t *testing.T) {
	gateway, _, client := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	change(t, gateway, razorpaytest.DeliveryChange{Duplicate: new(0.3), Shuffle: new(true)})
	var customers sync.WaitGroup
	for i := range 20 {
		customers.Go(func() {
			order, err := gateway.AddOrder(razorpaytest.OrderRequest{Amount: 500, Currency: "INR", Receipt: fmt.Sprintf("shop-%d", i)})
			if err != nil {
				t.Error(err)
				return
			}
			for _, status := range []string{"failed", "captured"} {
				if _, err := gateway.Pay(razorpaytest.PaymentRequest{OrderID: order, Status: status}); err != nil {
					t.Error(err)
				}
			}
			if got, err := client.Order(t.Context(), order); err != nil || got.Status != "paid" || got.AmountPaid != 500 {
				t.Errorf("order %+v, %v", got, err)
			}
		})
	}
	customers.Wait()
	settle(t, gateway)
	events := map[string]int{}
	for _, d := range receiver.deliveries() {
		events[d.id]++
	}
	if len(events) != 20*4 {
		t.Errorf("%d events arrived, want 80", len(events))
	}
	if n := len(receiver.deliveries()); n == 80 || n > 160 {
		t.Errorf("%d deliveries, want some twice", n)
	}
}

// TestEventsOfOneOrderKeepTheirOrder checks that without Shuffle nothing overtakes.
func TestEventsOfOneOrderKeepTheirOrder(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	orders := make([]string, 10)
	for i := range orders {
		orders[i] = addOrder(t, gateway, 100)
		pay(t, gateway, razorpaytest.PaymentRequest{OrderID: orders[i], Status: "captured"})
	}
	settle(t, gateway)
	got := map[string][]string{}
	for _, d := range receiver.deliveries() {
		event, err := razorpay.Decode(d.body)
		if err != nil {
			t.Fatal(err)
		}
		id := event.Facts[0].Ref().GatewayOrderID
		got[id] = append(got[id], event.Type)
	}
	for _, order := range orders {
		if want := []string{"payment.authorized", "payment.captured", "order.paid"}; !slices.Equal(got[order], want) {
			t.Errorf("%s: %v, want %v", order, got[order], want)
		}
	}
}
