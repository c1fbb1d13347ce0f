package functions_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"paidonce/shared/localaws"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

const (
	first     = `{"received":true,"duplicate":false}`
	duplicate = `{"received":true,"duplicate":true}`

	putItem  = "DynamoDB_20120810.PutItem"
	transact = "DynamoDB_20120810.TransactWriteItems"
	send     = "AmazonSQS.SendMessage"
)

func TestFiftyConcurrentDeliveriesAreOnePayment(t *testing.T) {
	o, id := newOrder(t), uniqueEvent()
	answers := make(chan string, 50)
	var wg sync.WaitGroup
	for range cap(answers) {
		wg.Go(func() {
			status, answer := deliver(t, id, body(o, "pay_"+id), stack.WebhookSecret)
			answers <- fmt.Sprint(status, " ", answer)
		})
	}
	wg.Wait()
	close(answers)
	counts := map[string]int{}
	for a := range answers {
		counts[a]++
	}
	if want := map[string]int{"200 " + first: 1, "200 " + duplicate: 49}; !maps.Equal(counts, want) {
		t.Errorf("answers %v, want %v", counts, want)
	}
	if got, want := settled(t, id), fmt.Sprintf("payment pay_%s captured 499.00 INR; order pending → paid; fulfilled", id); got != want {
		t.Errorf("verdict %q, want %q", got, want)
	}
	if paid := paidOnce(t, o.ID); paid.Version != o.Version+1 {
		t.Errorf("version went from %d to %d, want one write", o.Version, paid.Version)
	}
}

func TestCallsPerDelivery(t *testing.T) {
	o, id := newOrder(t), uniqueEvent()
	deliver(t, id+"_warm", body(o, "pay_"+id), stack.WebhookSecret) // a warm function has read its secret
	settled(t, id+"_warm")
	for _, c := range []struct {
		name string
		want map[string]int
	}{
		{"first", map[string]int{putItem: 1, send: 1}},
		{"settled duplicate", map[string]int{putItem: 1}},
	} {
		stack.Proxy.ResetCalls()
		deliver(t, id, body(o, "pay_"+id), stack.WebhookSecret)
		got := stack.Proxy.Calls()
		settled(t, id)
		for _, operation := range []string{putItem, send, "secretsmanager.GetSecretValue"} {
			if got[operation] != c.want[operation] {
				t.Errorf("%s delivery: %d %s, want %d", c.name, got[operation], operation, c.want[operation])
			}
		}
	}
	paidOnce(t, o.ID)
}

// TestWebhookCrashes breaks each call of the webhook in each way. After the gateway's next delivery all is well.
func TestWebhookCrashes(t *testing.T) {
	const attempts = 2 // of the SDK: both must fail for the call to fail
	for _, c := range []struct {
		name  string
		fault localaws.Fault
		kill  bool
	}{
		{"put refused", localaws.Fault{Kind: localaws.Refuse, Operation: putItem, Count: attempts}, false},
		{"put done, answer lost", localaws.Fault{Kind: localaws.LoseAnswer, Operation: putItem, Count: attempts}, false},
		{"send refused", localaws.Fault{Kind: localaws.Refuse, Operation: send, Count: attempts}, false},
		{"send done, answer lost", localaws.Fault{Kind: localaws.LoseAnswer, Operation: send, Count: attempts}, false},
		{"killed between put and send", localaws.Fault{Kind: localaws.Hold, Operation: send, Count: 1}, true},
		{"killed after the send", localaws.Fault{Kind: localaws.HoldAnswer, Operation: send, Count: 1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, id := newOrder(t), uniqueEvent()
			c.fault.Contains = id
			fault := stack.Proxy.Inject(c.fault)
			defer fault.Remove()
			var killed sync.WaitGroup
			if c.kill {
				killed.Go(func() {
					reached(t, fault)
					if n, err := stack.KillFunction("WebhookFunction"); n == 0 || err != nil {
						t.Errorf("killed %d webhook processes: %v", n, err)
					}
					fault.Drop() // the call of a dead process never arrives
				})
			}
			if status, answer := deliver(t, id, body(o, "pay_"+id), stack.WebhookSecret); status < 500 {
				// Only an answer lost by SQS alone may be repaired within the delivery, by the SDK's second attempt.
				t.Errorf("the broken delivery answered %d %s, want 5xx", status, answer)
			}
			killed.Wait()
			if fault.Struck() == 0 {
				t.Fatal("the fault struck nothing")
			}
			fault.Remove()
			if status, answer := deliver(t, id, body(o, "pay_"+id), stack.WebhookSecret); status != http.StatusOK {
				t.Errorf("the next delivery answered %d %s", status, answer)
			}
			settled(t, id)
			paidOnce(t, o.ID)
		})
	}
}

// TestWorkerCrashes breaks the worker's transaction in each way. SQS hands the message out again and all is well.
func TestWorkerCrashes(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault localaws.Fault
		kill  bool
	}{
		{"transaction refused", localaws.Fault{Kind: localaws.Refuse, Operation: transact, Count: 2}, false},
		{"transaction done, answer lost", localaws.Fault{Kind: localaws.LoseAnswer, Operation: transact, Count: 2}, false},
		{"killed before the transaction", localaws.Fault{Kind: localaws.Hold, Operation: transact, Count: 1}, true},
		{"killed after the transaction", localaws.Fault{Kind: localaws.HoldAnswer, Operation: transact, Count: 1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, id := newOrder(t), uniqueEvent()
			c.fault.Contains = id
			fault := stack.Proxy.Inject(c.fault)
			defer fault.Remove()
			if status, answer := deliver(t, id, body(o, "pay_"+id), stack.WebhookSecret); status != http.StatusOK {
				t.Fatalf("the delivery answered %d %s", status, answer)
			}
			reached(t, fault)
			if c.kill {
				if n, err := stack.KillFunction("WorkerFunction"); n == 0 || err != nil {
					t.Errorf("killed %d worker processes: %v", n, err)
				}
				fault.Drop() // the call of a dead process never arrives
			}
			settled(t, id)
			paidOnce(t, o.ID)
		})
	}
}

func TestAPoisonMessageEndsInTheDeadLetterQueue(t *testing.T) {
	o, id := newOrder(t), uniqueEvent()
	setRowVersion(t, o.ID, "99")
	deliver(t, id, body(o, "pay_"+id), stack.WebhookSecret)
	e := becomes(t, id, payment.EventFailed)
	want := fmt.Sprintf("gave up after %d receives: dynamo: read order %s: row ORDER#%s/ORDER has version 99: written by a newer release",
		maxReceives, o.ID, o.ID)
	if e.Verdict != want {
		t.Errorf("verdict %q, want %q", e.Verdict, want)
	}
	eventually(t, "in the dead letter queue", func() bool {
		out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &stack.EventsDlqURL, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			if aws.ToString(m.Body) == queue.Encode(key(id)) {
				return true
			}
		}
		return false
	})

	// Only APPLIED is final: once the cause is gone, the message put back pays the order.
	setRowVersion(t, o.ID, "1")
	if err := queue.New(queues, stack.EventsQueueURL).Send(t.Context(), key(id)); err != nil {
		t.Fatal(err)
	}
	settled(t, id)
	paidOnce(t, o.ID)
}

func setRowVersion(t *testing.T, orderID, version string) {
	t.Helper()
	_, err := dynamodb.NewFromConfig(stack.Config()).UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &stack.Table,
		Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "ORDER#" + orderID}, "sk": &types.AttributeValueMemberS{Value: "ORDER"},
		},
		UpdateExpression:          aws.String("SET v = :v"),
		ConditionExpression:       aws.String("attribute_exists(pk)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: version}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnsignedDeliveriesLeaveNoTrace(t *testing.T) {
	o := newOrder(t)
	for name, change := range map[string]func(http.Header){
		"bad":              func(h http.Header) { h.Set(razorpay.HeaderSignature, strings.Repeat("0", 64)) },
		"missing":          func(h http.Header) { h.Del(razorpay.HeaderSignature) },
		"empty":            func(h http.Header) { h.Set(razorpay.HeaderSignature, "") },
		"the empty secret": func(h http.Header) { h.Set(razorpay.HeaderSignature, razorpay.Sign(body(o, "pay_x"), "")) },
		"the API key":      func(h http.Header) { h.Set(razorpay.HeaderSignature, razorpay.Sign(body(o, "pay_x"), stack.KeySecret)) },
	} {
		t.Run(name, func(t *testing.T) {
			id := uniqueEvent()
			header := http.Header{}
			header.Set(razorpay.HeaderSignature, razorpay.Sign(body(o, "pay_x"), stack.WebhookSecret))
			header.Set(razorpay.HeaderEventID, id)
			change(header)
			status, answer := call(t, http.MethodPost, "/webhooks/razorpay", body(o, "pay_x"), header)
			if status != http.StatusUnauthorized || string(answer) != `{"error":"bad signature"}` {
				t.Errorf("answered %d %s, want 401", status, answer)
			}
			if e := event(t, id); e.Status != "" {
				t.Errorf("the event was stored as %s", e.Status)
			}
		})
	}
}

func TestThePreviousSecretStillPays(t *testing.T) {
	o, id := newOrder(t), uniqueEvent()
	if status, answer := deliver(t, id, body(o, "pay_"+id), stack.PreviousWebhookSecret); status != http.StatusOK {
		t.Errorf("answered %d %s", status, answer)
	}
	settled(t, id)
	if by := event(t, id).VerifiedBy; by != "test_previous" {
		t.Errorf("verified by %s, want test_previous", by)
	}
	paidOnce(t, o.ID)
}

func TestWhatIsSignedIsKept(t *testing.T) {
	o := newOrder(t)
	unknown := o
	unknown.GatewayOrderID = aws.String("order_NotOurs0000001")
	large := append(body(o, "pay_large"), strings.Repeat(" ", 900<<10)...)
	for _, c := range []struct {
		name   string
		body   []byte
		status payment.EventStatus
		says   string
	}{
		{"an unknown order", body(unknown, "pay_unknown"), payment.EventParked, "no order of ours is known"},
		{"undecodable", []byte(`{"event":`), payment.EventParked, "cannot be decoded"},
		{"an event nobody has heard of", []byte(`{"entity":"event","event":"moon.landed","payload":{}}`), payment.EventIgnored, "moon.landed"},
		{"a large body", large, payment.EventApplied, "pay_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := uniqueEvent()
			if status, answer := deliver(t, id, c.body, stack.WebhookSecret); status != http.StatusOK || answer != first {
				t.Errorf("answered %d %s", status, answer)
			}
			e := becomes(t, id, c.status)
			if !strings.Contains(e.Verdict, c.says) {
				t.Errorf("verdict %q says nothing of %q", e.Verdict, c.says)
			}
			if string(e.Body) != string(c.body) {
				t.Error("the body is not as received")
			}
		})
	}
}

func TestAPaymentThroughTheGateway(t *testing.T) {
	o := newOrder(t)
	for _, status := range []string{"failed", "captured"} {
		if _, err := gateway.Pay(razorpaytest.PaymentRequest{OrderID: *o.GatewayOrderID, Status: status}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "fulfilled", func() bool {
		now, err := table.Order(t.Context(), o.ID)
		return err == nil && !now.FulfilledAt.IsZero() && now.GatewayPaid
	})
	paid := paidOnce(t, o.ID)
	if n := paid.FailedAttempts(); n != 1 || len(paid.Payments) != 2 {
		t.Errorf("%d failed attempts among %d payments, want 1 among 2", n, len(paid.Payments))
	}
}
