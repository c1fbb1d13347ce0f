package functions_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"paidonce/shared/advance"
	"paidonce/shared/dynamo"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
	"paidonce/shared/storetest"
)

// meter counts the requests of a client and their bytes, both ways, bodies only.
type meter struct{ requests, bytes atomic.Int64 }

func (m *meter) Do(r *http.Request) (*http.Response, error) {
	m.requests.Add(1)
	m.bytes.Add(max(0, r.ContentLength))
	response, err := http.DefaultClient.Do(r)
	if err == nil {
		response.Body = &meteredBody{response.Body, m}
	}
	return response, err
}

type meteredBody struct {
	io.ReadCloser
	meter *meter
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.meter.bytes.Add(int64(n))
	return n, err
}

// cost is what one event takes.
type cost struct{ requests, bytes int64 }

// costOf takes one event with a body as Razorpay sends it through the calls of webhook and worker, and says what they took.
func costOf(t *testing.T, o payment.Order, facts ...payment.Fact) cost {
	t.Helper()
	var sample struct{ Body string }
	if text, err := os.ReadFile("../events/webhook-payment-failed.json"); err != nil || json.Unmarshal(text, &sample) != nil || sample.Body == "" {
		t.Fatalf("no sample body: %v", err)
	}
	e := payment.Event{
		Key: key(uniqueEvent()), Status: payment.EventReceived, Verdict: "waiting", VerifiedBy: "test_current", Mode: payment.Test,
		Body: []byte(sample.Body), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(sample.Body))), Delivery: "Q2bFhX1yZ0aBcD7=",
		ReceivedAt: time.Now(), NextAt: time.Now().Add(time.Hour), KeepUntil: time.Now().Add(24 * time.Hour),
	}
	m := new(meter)
	metered := dynamo.New(dynamodb.NewFromConfig(stack.Config(), func(o *dynamodb.Options) { o.HTTPClient = m }), stack.Table)
	if _, err := metered.PutEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e, err := metered.Event(t.Context(), e.Key)
	if err != nil {
		t.Fatal(err)
	}
	id, err := metered.OrderID(t.Context(), o.Gateway, facts[0].Ref())
	if err != nil {
		t.Fatal(err)
	}
	a := advance.Advancer{Store: metered, Now: time.Now}
	if _, err := a.Apply(t.Context(), id, advance.Step{Source: payment.SourceWebhook, Facts: facts, Event: &e, Kind: "payment.failed"}); err != nil {
		t.Fatal(err)
	}
	return cost{m.requests.Load(), m.bytes.Load()}
}

// gatewayID is an id as the gateway makes them, 14 letters and digits that do not compress: the n-th of its kind for the order.
func gatewayID(o payment.Order, kind string, n int) string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256(fmt.Append(nil, o.ID, kind, n))
	id := make([]byte, 14)
	for i := range id {
		id[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return kind + "_" + string(id)
}

func failedAttempt(o payment.Order, n int) payment.PaymentFact {
	return payment.PaymentFact{
		ID: gatewayID(o, "pay", n), GatewayOrderID: o.GatewayOrderID, Status: payment.PaymentCreated, Failed: true,
		Amount: o.Amount, CreatedAt: o.CreatedAt.Truncate(time.Second).Add(time.Duration(n) * time.Second), // the gateway's times are in seconds
	}
}

func partPayment(o payment.Order, n int, amount int64) payment.PaymentFact {
	return payment.PaymentFact{
		ID: gatewayID(o, "pay", -n-1), GatewayOrderID: o.GatewayOrderID, Status: payment.PaymentCaptured,
		Amount: rupees(amount), CreatedAt: o.CreatedAt.Truncate(time.Second).Add(time.Duration(n) * time.Minute),
	}
}

// TestAnOrderThatGrows: 5,000 failed attempts, 60 part payments and 60 refunds stay within what DynamoDB takes, and the
// last event costs as many requests as the first and not much more.
func TestAnOrderThatGrows(t *testing.T) {
	const attempts, parts, part = 5000, 60, 1000
	w := &winners{Store: table, won: map[string]int{}}
	o := storeOrder(t, w, parts*part, true)
	learn := func(facts ...payment.Fact) {
		t.Helper()
		if _, err := w.advancer().Apply(t.Context(), o.ID, advance.Step{Source: payment.SourceSweep, Facts: facts}); err != nil {
			t.Fatal(err)
		}
	}
	firstFailed := costOf(t, o, failedAttempt(o, 0))
	firstPart := costOf(t, o, partPayment(o, 0, part))
	var failures, payments, refunds []payment.Fact
	for n := 1; n < attempts-1; n++ {
		failures = append(failures, failedAttempt(o, n))
	}
	for n := range parts - 1 {
		p := partPayment(o, n, part)
		payments = append(payments, p)
		refunds = append(refunds, payment.RefundFact{
			ID: gatewayID(o, "rfnd", n), PaymentID: p.ID, Status: payment.RefundProcessed, Amount: rupees(part / 2),
		})
	}
	learn(failures...)
	learn(payments...)
	learn(refunds...)

	lastFailed := costOf(t, o, failedAttempt(o, attempts-1))
	lastPart := costOf(t, o, partPayment(o, parts-1, part))
	id := uniqueEvent()
	webhook := fmt.Appendf(nil, `{"entity":"event","account_id":%q,"event":"refund.processed","contains":["refund","payment"],"payload":{`+
		`"refund":{"entity":{"id":"rfnd_%s","entity":"refund","amount":%d,"currency":"INR","payment_id":%q,"status":"processed","notes":[]}},`+
		`"payment":{"entity":{"id":%q,"entity":"payment","amount":%d,"currency":"INR","status":"captured","order_id":%q,"captured":true,"amount_refunded":%d,"notes":[]}}}}`,
		accountID, o.ID, part/2, partPayment(o, parts-1, part).ID, partPayment(o, parts-1, part).ID, part, o.GatewayOrderID, part/2)
	stack.Proxy.ResetCalls()
	if status, answer := deliver(t, id, webhook, stack.WebhookSecret); status != http.StatusOK {
		t.Fatalf("answered %d %s", status, answer)
	}
	settled(t, id)
	if n := stack.Proxy.Calls()[transact]; n != 1 {
		t.Errorf("the last webhook took %d transactions, want 1", n)
	}

	now := storedOrder(t, o.ID)
	(&storetest.Checker{Store: table}).Check(t, o.ID)
	captured, refunded := 0, 0
	for _, p := range now.Payments {
		if p.IsCaptured() {
			captured++
		}
	}
	for _, r := range now.Refunds {
		if r.Seen.Processed {
			refunded++
		}
	}
	if captured != parts || refunded != parts || now.FailedAttempts() != attempts || now.Status != payment.PartiallyRefunded {
		t.Errorf("order %s with %d part payments, %d refunds and %d failed attempts; want it partially refunded with %d, %d and %d",
			now.Status, captured, refunded, now.FailedAttempts(), parts, parts, attempts)
	}
	for _, c := range []struct {
		what        string
		first, last cost
	}{{"a failed attempt", firstFailed, lastFailed}, {"a part payment", firstPart, lastPart}} {
		t.Logf("%s: first %d requests, %d bytes; last %d requests, %d bytes", c.what, c.first.requests, c.first.bytes, c.last.requests, c.last.bytes)
		// The bytes grow by the packed order, which is read once and written once, and by nothing else.
		if c.last.requests != c.first.requests || c.last.bytes > 2*c.first.bytes {
			t.Errorf("%s costs more requests than the first or twice its bytes: %+v, then %+v", c.what, c.first, c.last)
		}
	}
}

// TestABurstAboutOneOrder: 1,000 events of one order drain with far fewer transactions than events.
func TestABurstAboutOneOrder(t *testing.T) {
	const burst, parts, part = 1000, 50, 1000
	w := &winners{Store: table, won: map[string]int{}}
	o := storeOrder(t, w, parts*part, true)
	keys := make([]payment.EventKey, burst)
	var puts sync.WaitGroup
	for lane := range 8 {
		puts.Go(func() {
			for n := lane; n < burst; n += 8 {
				p := map[string]any{
					"id": failedAttempt(o, n).ID, "entity": "payment", "amount": part, "currency": "INR", "status": "failed", "order_id": o.GatewayOrderID,
				}
				event := "payment.failed"
				if n%(burst/parts) == 0 {
					event, p["id"], p["status"], p["captured"] = "payment.captured", partPayment(o, n, part).ID, "captured", true
				}
				e := payment.Event{
					Key: key(fmt.Sprintf("evt_%s_%04d", o.ID, n)), Status: payment.EventReceived, VerifiedBy: "test_current", Mode: payment.Test,
					ReceivedAt: time.Now(), NextAt: time.Now().Add(time.Hour),
				}
				var err error
				if e.Body, err = json.Marshal(map[string]any{
					"entity": "event", "account_id": accountID, "event": event, "contains": []string{"payment"},
					"payload": map[string]any{"payment": map[string]any{"entity": p}},
				}); err != nil {
					t.Error(err)
				}
				if _, err := table.PutEvent(t.Context(), e); err != nil {
					t.Error(err)
				}
				keys[n] = e.Key
			}
		})
	}
	puts.Wait()
	if t.Failed() {
		t.FailNow()
	}

	stack.Proxy.ResetCalls()
	began := time.Now()
	for n := 0; n < burst; n += 10 {
		batch := &sqs.SendMessageBatchInput{QueueUrl: &stack.EventsQueueURL}
		for i, k := range keys[n : n+10] {
			batch.Entries = append(batch.Entries, sqstypes.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(queue.Encode(k))})
		}
		if out, err := queues.SendMessageBatch(t.Context(), batch); err != nil || len(out.Failed) > 0 {
			t.Fatalf("%v, %v", out, err)
		}
	}
	left := keys
	eventually(t, "applied every event of the burst", func() bool {
		for len(left) > 0 {
			e, err := table.Event(context.WithoutCancel(t.Context()), left[0])
			if err != nil {
				t.Fatal(err)
			}
			if e.Status != payment.EventApplied {
				return false
			}
			left = left[1:]
		}
		return true
	})
	transactions := stack.Proxy.Calls()[transact]
	t.Logf("%d events drained in %s with %d transactions", burst, time.Since(began).Round(time.Millisecond), transactions)
	if transactions > burst/2 {
		t.Errorf("%d transactions for %d events, want at most half as many", transactions, burst)
	}
	now := paidOnce(t, o.ID)
	if d := now.Derive(payment.Rules{}); d.Captured != parts*part || now.FailedAttempts() != burst-parts || len(d.Holds) > 0 {
		t.Errorf("%d captured, %d failed attempts, holds %v; want %d, %d and none", d.Captured, now.FailedAttempts(), d.Holds, parts*part, burst-parts)
	}
}
