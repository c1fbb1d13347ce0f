package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/advance"
	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
	"paidonce/shared/razorpay"
	"paidonce/shared/storetest"
)

var now = time.Date(2026, 11, 30, 10, 0, 5, 0, time.UTC)

const maxReceives = 5

type bundle struct {
	*handler
	memory  *storetest.Memory
	checker *storetest.Checker
	log     *bytes.Buffer
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{memory: storetest.NewMemory(), log: &bytes.Buffer{}}
	b.checker = &storetest.Checker{Store: b.memory}
	clock := func() time.Time { return now }
	b.handler = &handler{
		store:       b.memory,
		advancer:    advance.Advancer{Store: b.memory, Now: clock},
		decoders:    map[string]decoder{"razorpay": razorpay.Decode},
		maxReceives: maxReceives,
		pace:        payment.Pace(time.Minute),
		log:         logs.New(b.log, "DEBUG"),
		now:         clock,
	}
	for _, id := range []string{"1", "2"} {
		b.open(t, id)
	}
	return b
}

// open creates order o<id> with the gateway's order order_<id>, 499.00 INR.
func (b *bundle) open(t *testing.T, id string) {
	t.Helper()
	o := payment.NewOrder("o"+id, payment.Money{Amount: 49900, Currency: "INR"}, "razorpay", payment.Test, now)
	o.Account = "acc_1"
	o, err := b.memory.CreateOrder(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.GatewayOrderID = "order_" + id
	if err := b.memory.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{
		payment.OrderPointer{GatewayOrderID: o.GatewayOrderID},
	}}); err != nil {
		t.Fatal(err)
	}
}

// receive stores an event as the webhook does.
func (b *bundle) receive(t *testing.T, id, body string) {
	t.Helper()
	if _, err := b.memory.PutEvent(t.Context(), payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: id}, Status: payment.EventReceived, Body: []byte(body),
		VerifiedBy: "test_current", Mode: payment.Test, ReceivedAt: now,
	}); err != nil {
		t.Fatal(err)
	}
}

// body is an event about payment pay_<order>.
func body(event, order, status string) string {
	return fmt.Sprintf(`{"entity":"event","account_id":"acc_1","event":%q,"payload":{"payment":{"entity":{"id":"pay_%s",`+
		`"amount":49900,"currency":"INR","status":%q,"order_id":"order_%s","captured":%t,"email":"buyer@example.com"}}}}`,
		event, order, status, order, status == "captured")
}

// message is a message about the event, received so often.
func message(id string, receives int) events.SQSMessage {
	return events.SQSMessage{
		MessageId: "m-" + id, Body: queue.Encode(payment.EventKey{Gateway: "razorpay", ID: id}),
		Attributes: map[string]string{"ApproximateReceiveCount": fmt.Sprint(receives)},
	}
}

// work handles the messages and returns the ids of those that failed.
func (b *bundle) work(t *testing.T, ctx context.Context, messages ...events.SQSMessage) []string {
	t.Helper()
	response, err := b.Handle(ctx, events.SQSEvent{Records: messages})
	if err != nil {
		t.Fatal(err)
	}
	if response.BatchItemFailures == nil {
		t.Error("batchItemFailures is null, want a list")
	}
	var failed []string
	for _, f := range response.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	b.checker.Check(t, "o1", "o2")
	return failed
}

func (b *bundle) expectFailed(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failed messages (-want +got)\n%s\n%s", diff, b.log)
	}
}

func (b *bundle) expectEvent(t *testing.T, id string, status payment.EventStatus, verdict string) {
	t.Helper()
	e, err := b.memory.Event(t.Context(), payment.EventKey{Gateway: "razorpay", ID: id})
	if err != nil {
		t.Fatal(err)
	}
	if e.Status != status || e.Verdict != verdict {
		t.Errorf("event %s is %s: %q, want %s: %q", id, e.Status, e.Verdict, status, verdict)
	}
}

func (b *bundle) expectOrder(t *testing.T, id string, status payment.Status, fulfilled bool) {
	t.Helper()
	o, err := b.memory.Order(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if o.Status != status || o.FulfilledAt.IsZero() == fulfilled {
		t.Errorf("order %s is %s, fulfilled %t; want %s, %t", id, o.Status, !o.FulfilledAt.IsZero(), status, fulfilled)
	}
}

func TestABatchPaysItsOrders(t *testing.T) {
	b := setup(t)
	b.receive(t, "failed", body("payment.failed", "1", "failed"))
	b.receive(t, "captured", body("payment.captured", "1", "captured"))
	b.receive(t, "authorized", body("payment.authorized", "1", "authorized"))
	b.receive(t, "other", body("payment.captured", "2", "captured"))
	b.expectFailed(t, b.work(t, t.Context(), message("failed", 1), message("captured", 1), message("other", 1), message("authorized", 1)))
	b.expectOrder(t, "o1", payment.Paid, true)
	b.expectOrder(t, "o2", payment.Paid, true)
	b.expectEvent(t, "failed", payment.EventApplied, "payment pay_1 failed")
	b.expectEvent(t, "captured", payment.EventApplied, "payment pay_1 captured 499.00 INR; order pending → paid; fulfilled")
	b.expectEvent(t, "authorized", payment.EventApplied, "nothing new")
	b.expectEvent(t, "other", payment.EventApplied, "payment pay_2 captured 499.00 INR; order pending → paid; fulfilled")
}

func TestAMessageAgainIsDone(t *testing.T) {
	b := setup(t)
	b.receive(t, "captured", body("payment.captured", "1", "captured"))
	for range 3 {
		b.expectFailed(t, b.work(t, t.Context(), message("captured", maxReceives), message("captured", 1)))
	}
	b.expectOrder(t, "o1", payment.Paid, true)
	b.expectEvent(t, "captured", payment.EventApplied, "payment pay_1 captured 499.00 INR; order pending → paid; fulfilled")
}

func TestWhatNoOrderNeedsIsSettled(t *testing.T) {
	for _, c := range []struct {
		name, body string
		status     payment.EventStatus
		verdict    string
		next       time.Time
	}{
		{"unknown order", body("payment.captured", "9", "captured"), payment.EventParked, "no order of ours is known for gateway order order_9", now.Add(time.Minute)},
		{"undecodable", `{"event":`, payment.EventParked, "", time.Time{}},
		{"of no concern", `{"entity":"event","event":"settlement.processed","payload":{}}`, payment.EventIgnored, "", time.Time{}},
		{"another account", strings.Replace(body("payment.captured", "1", "captured"), "acc_1", "acc_2", 1), payment.EventIgnored, "the event is of another merchant account", time.Time{}},
		{"several orders", strings.Replace(body("payment.captured", "1", "captured"), `"payload":{`,
			`"payload":{"order":{"entity":{"id":"order_2","amount":49900,"currency":"INR","status":"paid"}},`, 1),
			payment.EventParked, "speaks of several gateway orders", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t)
			b.receive(t, "e", c.body)
			b.expectFailed(t, b.work(t, t.Context(), message("e", 1)))
			e, err := b.memory.Event(t.Context(), payment.EventKey{Gateway: "razorpay", ID: "e"})
			if err != nil {
				t.Fatal(err)
			}
			if e.Status != c.status || c.verdict != "" && e.Verdict != c.verdict || e.Verdict == "" || !e.NextAt.Equal(c.next) {
				t.Errorf("%s: %q, next at %s", e.Status, e.Verdict, e.NextAt)
			}
			b.expectOrder(t, "o1", payment.Pending, false)
			b.expectOrder(t, "o2", payment.Pending, false)
		})
	}
}

func TestALiveEventIsNotForATestOrder(t *testing.T) {
	b := setup(t)
	if _, err := b.memory.PutEvent(t.Context(), payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: "e"}, Status: payment.EventReceived,
		Body: []byte(body("payment.captured", "1", "captured")), VerifiedBy: "live_current", Mode: payment.Live, ReceivedAt: now,
	}); err != nil {
		t.Fatal(err)
	}
	b.expectFailed(t, b.work(t, t.Context(), message("e", 1)))
	b.expectEvent(t, "e", payment.EventIgnored, "a live event, and the order is a test one")
	b.expectOrder(t, "o1", payment.Pending, false)
}

// failing is a store that fails, or panics, at the order of one id.
type failing struct {
	advance.Store
	orderID string
	fail    func() error
}

func (f failing) Order(ctx context.Context, id string) (payment.Order, error) {
	if id == f.orderID {
		if err := f.fail(); err != nil {
			return payment.Order{}, err
		}
	}
	return f.Store.Order(ctx, id)
}

func TestOneFailureFailsOneMessage(t *testing.T) {
	for name, fail := range map[string]func() error{
		"an error": func() error { return errors.New("throttled") },
		"a panic":  func() error { panic("nil map of buyer@example.com") },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.advancer.Store = failing{b.memory, "o1", fail}
			b.receive(t, "bad", body("payment.captured", "1", "captured"))
			b.receive(t, "good", body("payment.captured", "2", "captured"))
			b.expectFailed(t, b.work(t, t.Context(), message("bad", 1), message("good", 1)), "m-bad")
			b.expectOrder(t, "o2", payment.Paid, true)
			b.expectEvent(t, "bad", payment.EventReceived, "")

			b.expectFailed(t, b.work(t, t.Context(), message("bad", maxReceives)), "m-bad")
			reason := map[string]string{"an error": "throttled", "a panic": "panic of type string"}[name]
			b.expectEvent(t, "bad", payment.EventFailed, "gave up after 5 receives: "+reason)
			if strings.Contains(b.log.String(), "buyer@") {
				t.Error("the log holds what the panic said")
			}

			// Only APPLIED is final: a redrive still pays the order.
			b.advancer.Store = b.memory
			b.expectFailed(t, b.work(t, t.Context(), message("bad", 1)))
			b.expectOrder(t, "o1", payment.Paid, true)
			b.expectEvent(t, "bad", payment.EventApplied, "payment pay_1 captured 499.00 INR; order pending → paid; fulfilled")
		})
	}
}

func TestALateFailureDoesNotUndoWhatWasApplied(t *testing.T) {
	b := setup(t)
	b.receive(t, "e", body("payment.captured", "1", "captured"))
	// Another copy of the message applies the event while this one, at its last receive, is failing.
	b.advancer.Store = failing{b.memory, "o1", func() error {
		rival := *b.handler
		rival.advancer.Store = b.memory
		if _, err := rival.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{message("e", 1)}}); err != nil {
			t.Error(err)
		}
		return errors.New("timeout")
	}}
	b.expectFailed(t, b.work(t, t.Context(), message("e", maxReceives))) // done, so not for the dead letter queue
	b.expectEvent(t, "e", payment.EventApplied, "payment pay_1 captured 499.00 INR; order pending → paid; fulfilled")
}

func TestCopiesInOneBatchShareTheirFate(t *testing.T) {
	b := setup(t)
	b.advancer.Store = failing{b.memory, "o1", func() error { return errors.New("throttled") }}
	b.receive(t, "bad", body("payment.captured", "1", "captured"))
	b.receive(t, "good", body("payment.captured", "2", "captured"))
	copies := []events.SQSMessage{message("bad", 1), message("good", 1), message("bad", 2), message("good", 2)}
	for i := range copies {
		copies[i].MessageId = fmt.Sprint("m-", i)
	}
	b.expectFailed(t, b.work(t, t.Context(), copies...), "m-0", "m-2")
	b.expectOrder(t, "o2", payment.Paid, true)
}

func TestMessagesThatNameNoEvent(t *testing.T) {
	b := setup(t)
	odd := func(id, body string) events.SQSMessage {
		return events.SQSMessage{MessageId: id, Body: body, Attributes: map[string]string{"ApproximateReceiveCount": "5"}}
	}
	b.expectFailed(t, b.work(t, t.Context(),
		odd("text", "hello"), odd("newer", `{"v":2,"gateway":"razorpay","event":"e"}`), odd("empty", "{}"), message("missing", maxReceives),
	), "text", "newer", "empty", "m-missing")
}

func TestAnEventWithoutVerificationIsRefused(t *testing.T) {
	b := setup(t)
	if _, err := b.memory.PutEvent(t.Context(), payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: "e"}, Body: []byte(body("payment.captured", "1", "captured")), Mode: payment.Test,
	}); err != nil {
		t.Fatal(err)
	}
	b.expectFailed(t, b.work(t, t.Context(), message("e", maxReceives)), "m-e")
	b.expectEvent(t, "e", payment.EventFailed, "gave up after 5 receives: the event row does not say which secret verified it")
	b.expectOrder(t, "o1", payment.Pending, false)
}

func TestNothingBeginsWithLittleTimeLeft(t *testing.T) {
	b := setup(t)
	b.receive(t, "e", body("payment.captured", "1", "captured"))
	ctx, cancel := context.WithTimeout(t.Context(), reserve-time.Millisecond)
	defer cancel()
	b.expectFailed(t, b.work(t, ctx, message("e", 1)), "m-e")
	b.expectOrder(t, "o1", payment.Pending, false)
	b.expectEvent(t, "e", payment.EventReceived, "")
	b.expectFailed(t, b.work(t, ctx, message("e", maxReceives)), "m-e")
	b.expectEvent(t, "e", payment.EventFailed, "gave up after 5 receives: not begun: too little time left")
}

// TestEveryCrashIsRepairedByTheNextReceive breaks each call of the worker in turn, not done or done without an answer,
// and hands it the message again.
func TestEveryCrashIsRepairedByTheNextReceive(t *testing.T) {
	for _, method := range []string{"Event", "OrderID", "Order", "Commit"} {
		for name, fault := range map[string]storetest.Fault{"not done": storetest.NotDone, "done, answer lost": storetest.DoneUnsaid} {
			t.Run(method+" "+name, func(t *testing.T) {
				b := setup(t)
				b.receive(t, "e", body("payment.captured", "1", "captured"))
				var once sync.Once
				b.memory.Faults = func(m string) (f storetest.Fault) {
					if m == method {
						once.Do(func() { f = fault })
					}
					return f
				}
				b.expectFailed(t, b.work(t, t.Context(), message("e", 1)), "m-e")
				b.expectFailed(t, b.work(t, t.Context(), message("e", 2)))
				b.expectOrder(t, "o1", payment.Paid, true)
			})
		}
	}
}

func TestRacingCopiesPayOnce(t *testing.T) {
	b := setup(t)
	b.log = nil
	b.handler.log = logs.New(&strings.Builder{}, "ERROR")
	var messages []events.SQSMessage
	for i := range 30 {
		id := fmt.Sprint("e", i)
		b.receive(t, id, body("payment.captured", "1", []string{"captured", "authorized", "failed"}[i%3]))
		messages = append(messages, message(id, 1))
	}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for j := range messages {
				m := messages[(i*5+j)%len(messages)]
				response, err := b.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}})
				if err != nil || len(response.BatchItemFailures) > 0 {
					t.Errorf("message %s failed", m.MessageId)
				}
			}
		})
	}
	wg.Wait()
	b.checker.Check(t, "o1")
	b.expectOrder(t, "o1", payment.Paid, true)
}

// poisoned is a fact that cannot be merged.
type poisoned struct{ payment.Fact }

func (poisoned) Ref() payment.Ref { return payment.Ref{GatewayOrderID: "order_1"} }

func TestOneBadEventOfAnOrderFailsAlone(t *testing.T) {
	b := setup(t)
	b.receive(t, "failed", body("payment.failed", "1", "failed"))
	b.receive(t, "bad", body("payment.authorized", "1", "authorized"))
	b.receive(t, "captured", body("payment.captured", "1", "captured"))
	b.decoders["razorpay"] = func(body []byte) (payment.Notice, error) {
		n, err := razorpay.Decode(body)
		if n.Type == "payment.authorized" {
			n.Facts = append(n.Facts, poisoned{})
		}
		return n, err
	}
	b.expectFailed(t, b.work(t, t.Context(), message("failed", 1), message("bad", 1), message("captured", 1)), "m-bad")
	b.expectOrder(t, "o1", payment.Paid, true)
}
