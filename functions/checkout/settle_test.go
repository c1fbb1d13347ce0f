package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

func TestAnOrderThatWasPaidIsNotReadAgain(t *testing.T) {
	refund := func(amount int64) payment.Fact {
		return payment.RefundFact{ID: fmt.Sprint("rfnd_", amount), PaymentID: "pay_1", Status: payment.RefundProcessed, Amount: inr(amount)}
	}
	for status, facts := range map[payment.Status][]payment.Fact{
		payment.Paid:              {captured("pay_1", "order_1")},
		payment.PartiallyRefunded: {captured("pay_1", "order_1"), refund(100)},
		payment.Refunded:          {captured("pay_1", "order_1"), refund(price)},
	} {
		t.Run(string(status), func(t *testing.T) {
			b := setup(t)
			if _, err := b.advancer.Apply(t.Context(), "o1", advance.Step{Source: payment.SourceSweep, Facts: facts}); err != nil {
				t.Fatal(err)
			}
			b.expect(t, form("o1", fields("order_1", "pay_1")), 303, shopPage+"?order=o1&status="+string(status))
			b.expect(t, form("o1", fields("order_1", "pay_other")), 303, shopPage+"?order=o1&status="+string(status))
			if b.gateway.reads != 0 {
				t.Errorf("the gateway was read %d times", b.gateway.reads)
			}
		})
	}
}

func TestAGatewayThatDoesNotAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(context.Context) error
		took time.Duration
	}{
		{"at all", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, readBackWithin},
		{"but with an error", func(context.Context) error { return errors.New("HTTP 502") }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // time passes at once
				b := setup(t)
				b.gateway.fail = c.fail
				began := time.Now()
				b.expect(t, form("o1", fields("order_1", "pay_1")), 303, shopPage+"?order=o1&status=pending")
				if took := time.Since(began); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				if !strings.Contains(b.log.String(), `"level":"WARN"`) {
					t.Errorf("logged %s", b.log)
				}
			})
		})
	}
}

func TestWhatTheGatewayShowsMustBeWhatWasSigned(t *testing.T) {
	for name, change := range map[string]func(*payment.PaymentFact){
		"another payment":             func(f *payment.PaymentFact) { f.ID = "pay_2" },
		"another order's payment":     func(f *payment.PaymentFact) { f.GatewayOrderID = "order_2" },
		"a payment without an order":  func(f *payment.PaymentFact) { f.GatewayOrderID = "" },
		"a payment of another letter": func(f *payment.PaymentFact) { f.ID = "PAY_1" },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			fact := captured("pay_1", "order_1")
			change(&fact)
			b.gateway.payments["pay_1"] = fact
			b.expect(t, form("o1", fields("order_1", "pay_1")), 303, shopPage+"?order=o1&status=pending")
			if o := b.stored(t, "o1"); o.Version != 1 || b.gateway.reads != 1 {
				t.Errorf("order at version %d, gateway read %d times", o.Version, b.gateway.reads)
			}
			if !strings.Contains(b.log.String(), errMismatched.Error()) {
				t.Errorf("logged %s", b.log)
			}
		})
	}
}

// TestReplaysAreReadOnce also has the gateway show nothing new, so that only the record of the first can stop the others.
func TestReplaysAreReadOnce(t *testing.T) {
	for name, status := range map[string]payment.PaymentStatus{"captured": payment.PaymentCaptured, "authorized": payment.PaymentAuthorized} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			fact := captured("pay_1", "order_1")
			fact.Status = status
			b.gateway.has(fact)
			var wg sync.WaitGroup
			for i := range 20 {
				r := form("o1", fields("order_1", "pay_1"))
				if i%2 == 1 {
					r = script("o1", fields("order_1", "pay_1"))
				}
				wg.Go(func() {
					if got, said := b.send(t, r); got != 303 && got != 200 {
						t.Errorf("answered %d %s", got, said)
					}
				})
			}
			wg.Wait()
			if b.gateway.reads != 1 {
				t.Errorf("the gateway was read %d times, want once", b.gateway.reads)
			}
			if n := strings.Count(b.log.String(), `"level":"INFO"`); n != 20 {
				t.Errorf("%d of 20 are nothing to worry about; logged %s", n, b.log)
			}
			if diff := cmp.Diff([]payment.Callback{{PaymentID: "pay_1", At: now}}, b.callbacks(t, "o1")); diff != "" {
				t.Errorf("callbacks (-want +got)\n%s", diff)
			}
			b.checker.Check(t, "o1")
			b.expectFulfilments(t, status == payment.PaymentCaptured)
		})
	}
}

// expectFulfilments looks for the one move to paid, and the one fulfilment, of o1.
func (b *bundle) expectFulfilments(t *testing.T, paid bool) {
	t.Helper()
	effects, err := b.memory.Effects(t.Context(), "o1")
	if err != nil {
		t.Fatal(err)
	}
	n, booked := 0, 0
	for _, e := range effects {
		switch e.(type) {
		case payment.Fulfilment:
			n++
		case payment.LedgerEntry:
			booked++
		}
	}
	want := 0
	if paid {
		want = 1
	}
	if o := b.stored(t, "o1"); n != want || booked != want || (o.Status == payment.Paid) != paid {
		t.Errorf("order %s, %d fulfilments, %d bookings; want paid %t, %d, %d", o.Status, n, booked, paid, want, want)
	}
}

func TestASecondPaymentIsReadToo(t *testing.T) {
	b := setup(t)
	failed := captured("pay_0", "order_1")
	failed.Status, failed.Failed = payment.PaymentCreated, true
	b.gateway.has(failed)
	b.expect(t, form("o1", fields("order_1", "pay_0")), 303, shopPage+"?order=o1&status=failed")
	b.expect(t, form("o1", fields("order_1", "pay_1")), 303, shopPage+"?order=o1&status=paid")
}

// webhook learns the same payment as the worker does from a delivery.
func (b *bundle) webhook(t *testing.T, id string) {
	t.Helper()
	e := payment.Event{Key: payment.EventKey{Gateway: "razorpay", ID: id}, Status: payment.EventReceived, Mode: payment.Test, ReceivedAt: now}
	if _, err := b.memory.PutEvent(t.Context(), e); err != nil {
		t.Error(err)
		return
	}
	fact := captured("pay_1", "order_1")
	fact.Confirmed = false
	step := advance.Step{Source: payment.SourceWebhook, Event: &e, Kind: "payment.captured", Facts: []payment.Fact{fact}}
	if _, err := b.advancer.Apply(t.Context(), "o1", step); err != nil {
		t.Error(err)
	}
}

func TestACallbackAndItsWebhook(t *testing.T) {
	for name, meet := range map[string]func(callback, webhook func()){
		"callback first": func(callback, webhook func()) { callback(); webhook() },
		"webhook first":  func(callback, webhook func()) { webhook(); callback() },
		"at once": func(callback, webhook func()) {
			var wg sync.WaitGroup
			wg.Go(callback)
			wg.Go(webhook)
			wg.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				b := setup(t)
				meet(func() { b.send(t, form("o1", fields("order_1", "pay_1"))) }, func() { b.webhook(t, "evt_1") })
				b.checker.Check(t, "o1")
				b.expectFulfilments(t, true)
				if b.gateway.reads > 1 {
					t.Fatalf("the gateway was read %d times", b.gateway.reads)
				}
			}
		})
	}
}

func TestAStoreThatFails(t *testing.T) {
	const pending, internal = `{"order":"o1","status":"pending","amount":49900}`, `{"error":"internal error"}`
	for _, c := range []struct {
		method     string
		fault      storetest.Fault
		formStatus payment.Status
		status     int
		said       string
		reads      int
	}{
		{"Order", storetest.NotDone, statusUnknown, 500, internal, 0},
		{"RecordCallback", storetest.NotDone, payment.Pending, 200, pending, 0},
		{"RecordCallback", storetest.DoneUnsaid, payment.Pending, 200, pending, 0},
		{"Commit", storetest.NotDone, payment.Pending, 200, pending, 1},
		{"Commit", storetest.DoneUnsaid, payment.Pending, 200, pending, 1},
	} {
		t.Run(fmt.Sprint(c.method, c.fault), func(t *testing.T) {
			for _, r := range []events.APIGatewayV2HTTPRequest{form("o1", fields("order_1", "pay_1")), script("o1", fields("order_1", "pay_1"))} {
				b := setup(t)
				b.memory.Faults = func(method string) storetest.Fault {
					if method == c.method {
						return c.fault
					}
					return storetest.None
				}
				status, said := c.status, c.said
				if r.Headers["content-type"] != "application/json" {
					status, said = 303, shopPage+"?order=o1&status="+string(c.formStatus)
				}
				b.expect(t, r, status, said)
				if b.gateway.reads != c.reads || !strings.Contains(b.log.String(), `"level":"ERROR"`) {
					t.Errorf("read %d times, want %d; logged %s", b.gateway.reads, c.reads, b.log)
				}
				b.memory.Faults = nil
				b.webhook(t, "evt_1") // settles it
				b.checker.Check(t, "o1")
				b.expectFulfilments(t, true)
			}
		})
	}
}

func TestARaceLostUntilTheTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.advancer.Store = contended{b.memory}
		b.advancer.Reserve = reserve
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		response, err := b.Handle(ctx, script("o1", fields("order_1", "pay_1")))
		if err != nil || response.Body != `{"order":"o1","status":"pending","amount":49900}` || ctx.Err() != nil {
			t.Errorf("answered %s, %v; context %v", response.Body, err, ctx.Err())
		}
	})
}

// contended is a store in which somebody else is always faster.
type contended struct{ advance.Store }

func (contended) Commit(context.Context, payment.Commit) error { return payment.ErrVersionConflict }

func TestAChangedKeyIsReadAgain(t *testing.T) {
	signed := fields("order_1", "pay_1")
	for _, c := range []struct {
		name      string
		atHand    *fakeGateway
		renewed   *fakeGateway
		form      url.Values
		want      payment.Status
		newReads  int
		readAgain bool
	}{
		{"the old key signed nothing", newGateway("the-key-before"), newGateway(keySecret), signed, payment.Paid, 1, true},
		{"the old key was of the other mode", &fakeGateway{secret: keySecret, mode: payment.Live}, newGateway(keySecret), signed, payment.Paid, 1, true},
		{"not again so soon", newGateway("the-key-before"), nil, signed, statusUnknown, 0, true},
		{"the new key neither", newGateway("the-key-before"), newGateway("the-key-after"), signed, statusUnknown, 0, true},
		{"the new key is of the other mode", newGateway("the-key-before"), &fakeGateway{secret: keySecret, mode: payment.Live}, signed, statusUnknown, 0, true},
		{"the key is good", newGateway(keySecret), newGateway(keySecret), signed, payment.Paid, 0, false},
		{"no signature", newGateway(keySecret), newGateway(keySecret), url.Values{"razorpay_payment_id": {"pay_1"}}, statusUnknown, 0, false},
		{"no payment", newGateway(keySecret), newGateway(keySecret), url.Values{"razorpay_signature": {"00"}}, statusUnknown, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t)
			b.gateway, b.renewed = c.atHand, c.renewed
			for _, g := range []*fakeGateway{c.atHand, c.renewed} {
				if g != nil {
					g.payments = map[string]payment.PaymentFact{"pay_1": captured("pay_1", "order_1")}
				}
			}
			refreshed := 0
			way := b.gateways["razorpay"]
			b.gateways["razorpay"] = access{way.current, func(ctx context.Context) (gateway, bool) { refreshed++; return way.refresh(ctx) }}
			b.expect(t, form("o1", c.form), 303, shopPage+"?order=o1&status="+string(c.want))
			if again := refreshed == 1; again != c.readAgain || refreshed > 1 {
				t.Errorf("read again %d times, want %t", refreshed, c.readAgain)
			}
			if c.renewed != nil && c.renewed.reads != c.newReads {
				t.Errorf("%d payments read with the new key, want %d", c.renewed.reads, c.newReads)
			}
		})
	}
}
