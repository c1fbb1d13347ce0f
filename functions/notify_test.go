package functions_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"paidonce/shared/bus"
	"paidonce/shared/localaws"
	"paidonce/shared/payment"
)

const putEvents = "AWSEvents.PutEvents"

// received is an event as the sample subscriber finds it in its queue.
type received struct {
	Type   string    `json:"detail-type"`
	Detail bus.Event `json:"detail"`
}

// subscriber reads the sample queue. It keeps what it read, since the tests share the queue.
var subscriber = struct {
	sync.Mutex
	queue  string
	schema *jsonschema.Schema
	read   map[string][]received // by order
}{read: map[string][]received{}}

// told is what the sample subscriber has been told of the order, by the events' ids. Every event is held against the schema.
func told(t *testing.T, orderID string) map[string][]received {
	t.Helper()
	s := &subscriber
	s.Lock()
	defer s.Unlock()
	if s.queue == "" {
		s.queue = output(t, "SampleQueueUrl")
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		var err error
		if s.schema, err = compiler.Compile("../docs/events.schema.json"); err != nil {
			t.Fatal(err)
		}
	}
	for {
		out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &s.queue, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			break
		}
		for _, m := range out.Messages {
			var e received
			if err := json.Unmarshal([]byte(*m.Body), &e); err != nil {
				t.Fatalf("%v: %s", err, *m.Body)
			}
			document, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(*m.Body)))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.schema.Validate(document); err != nil {
				t.Errorf("%s: %v", *m.Body, err)
			}
			s.read[e.Detail.Order] = append(s.read[e.Detail.Order], e)
			if _, err := queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &s.queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
	}
	byID := map[string][]received{}
	for _, e := range s.read[orderID] {
		byID[e.Detail.ID] = append(byID[e.Detail.ID], e)
	}
	return byID
}

// output is an output of the deployed template.
func output(t *testing.T, name string) string {
	t.Helper()
	out, err := cloudformation.NewFromConfig(stack.Config()).DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: &stack.StackName})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out.Stacks[0].Outputs {
		if aws.ToString(o.OutputKey) == name {
			return aws.ToString(o.OutputValue)
		}
	}
	t.Fatalf("the stack has no output %s", name)
	return ""
}

// owed is what subscribers are to be told of the order, by what its effects say.
func owed(t *testing.T, orderID string) []payment.OutboxKey {
	t.Helper()
	effects, err := table.Effects(t.Context(), orderID)
	if err != nil {
		t.Fatal(err)
	}
	var keys []payment.OutboxKey
	for _, e := range effects {
		switch e := e.(type) {
		case payment.Fulfilment:
			keys = append(keys, payment.OutboxKey{OrderID: orderID, Name: "FULFILMENT"})
		case payment.Notification:
			keys = append(keys, payment.OutboxKey{OrderID: orderID, Name: "OUTBOX#" + e.Key})
		}
	}
	return keys
}

// waiting lists the order's announcements that are not sent: those that the rows call so, and those that are listed as due.
func waiting(t *testing.T, orderID string) (unsent, due []string) {
	t.Helper()
	announcements, err := table.Unsent(t.Context(), owed(t, orderID))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range announcements {
		unsent = append(unsent, a.Key.Name)
	}
	if err := table.DueAnnouncements(t.Context(), time.Now().Add(time.Hour), func(k payment.OutboxKey) bool {
		if k.OrderID == orderID {
			due = append(due, k.Name)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return unsent, due
}

// allTold waits until the subscriber knows all that it is owed and nothing of it waits any more, and returns what it was told.
// meanwhile runs before each look.
func allTold(t *testing.T, orderID string, meanwhile func()) map[string][]received {
	t.Helper()
	var events map[string][]received
	eventually(t, "told all of order "+orderID, func() bool {
		meanwhile()
		unsent, due := waiting(t, orderID)
		events = told(t, orderID)
		for _, k := range owed(t, orderID) {
			if len(events[k.String()]) == 0 {
				return false
			}
		}
		return len(unsent)+len(due) == 0
	})
	if n := len(owed(t, orderID)); len(events) != n || n == 0 {
		t.Errorf("%d events were owed, and the subscriber knows %v", n, slices.Sorted(maps.Keys(events)))
	}
	return events
}

// toldTimes asserts how often each event came, always the same.
func toldTimes(t *testing.T, events map[string][]received, least, most int) {
	t.Helper()
	for id, copies := range events {
		if len(copies) < least || len(copies) > most {
			t.Errorf("%s came %d times, want %d to %d", id, len(copies), least, most)
		}
		for _, c := range copies[1:] {
			if diff := cmp.Diff(copies[0], c); diff != "" {
				t.Errorf("%s came again and differs (-first +again)\n%s", id, diff)
			}
		}
	}
}

func idle() {}

func TestNotificationsReachASubscriber(t *testing.T) {
	o, paymentID := paidOrder(t)
	status, made, answer := refund(t, o.ID, fmt.Sprintf(`{"id":"part","amount":%d}`, price/10))
	if status != http.StatusCreated {
		t.Fatalf("the refund answered %d %s", status, answer)
	}
	if status, _, answer = refund(t, o.ID, fmt.Sprintf(`{"id":"rest","amount":%d}`, price-price/10)); status != http.StatusCreated {
		t.Fatalf("the refund answered %d %s", status, answer)
	}
	eventually(t, "the refunds' own webhooks applied", func() bool { return appliedEvents(t, o.ID, "refund.") >= 4 })
	events := allTold(t, o.ID, idle)
	toldTimes(t, events, 1, 1)

	stored := storedOrder(t, o.ID)
	types, versions := map[string]int{}, map[string]int64{}
	for _, copies := range events {
		e := copies[0]
		types[e.Type]++
		versions[e.Type] = e.Detail.OrderVersion
		if e.Detail.OrderVersion > stored.Version || e.Detail.Currency != "INR" {
			t.Errorf("the order is at version %d, and was told %+v", stored.Version, e)
		}
	}
	for detailType, want := range map[string]int{
		"order.paid": 1, "order.partially_refunded": 1, "order.refunded": 1, "refund.processed": 2, "order.failed": 0, "refund.failed": 0,
	} {
		if types[detailType] != want {
			t.Errorf("%d events %s, want %d", types[detailType], detailType, want)
		}
	}
	if !(versions["order.paid"] < versions["order.partially_refunded"] && versions["order.partially_refunded"] < versions["order.refunded"]) {
		t.Errorf("the versions do not tell the order of events: %v", versions)
	}
	if paid := events[o.ID+"#FULFILMENT"]; len(paid) != 1 || paid[0].Detail.Amount != price || paid[0].Detail.Status != payment.Paid {
		t.Errorf("order.paid is %+v", paid)
	}
	processed := events[fmt.Sprintf("%s#OUTBOX#refund#%s#processed", o.ID, *made.RefundID)]
	if len(processed) != 1 || processed[0].Detail.Refund != *made.RefundID || processed[0].Detail.Amount != price/10 {
		t.Errorf("refund.processed of payment %s is %+v", paymentID, processed)
	}
}

// switchStream stops or starts the stream's deliveries to notify.
func switchStream(t *testing.T, on bool) {
	t.Helper()
	mappings := stack.Engine.URL + "/2015-03-31/event-source-mappings"
	var list struct {
		EventSourceMappings []struct{ UUID, State string }
	}
	lambdaCall(t, http.MethodGet, mappings+"?FunctionName="+url.QueryEscape(output(t, "NotifyFunctionName")), nil, &list)
	if len(list.EventSourceMappings) != 1 {
		t.Fatalf("notify has mappings %v, want one", list.EventSourceMappings)
	}
	var now struct{ State string }
	lambdaCall(t, http.MethodPut, mappings+"/"+list.EventSourceMappings[0].UUID, map[string]bool{"Enabled": on}, &now)
	if want := map[bool]string{true: "Enabled", false: "Disabled"}[on]; now.State != want {
		t.Fatalf("the mapping is %s, want %s", now.State, want)
	}
}

func lambdaCall(t *testing.T, method, target string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(method, target, bytes.NewReader(text)) // not with the test's context: a cleanup calls it too
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s %s answered %d %s, %v", method, target, response.StatusCode, answer, err)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatal(err)
	}
}

// The stream brings nothing for longer than reconcile waits: reconcile publishes, and the stream, once it is back, nothing twice.
func TestNotificationsOfAStoppedStream(t *testing.T) {
	switchStream(t, false)
	on := sync.OnceFunc(func() { switchStream(t, true) })
	defer on()
	o, _ := paidOrder(t)
	if unsent, due := waiting(t, o.ID); len(unsent) != 1 || len(due) != 1 {
		t.Errorf("with the stream stopped %v are unsent and %v due, want the fulfilment", unsent, due)
	}
	toldTimes(t, allTold(t, o.ID, func() { sweep(t) }), 1, 1)

	on()
	later, _ := paidOrder(t) // comes behind the first order in the stream
	toldTimes(t, allTold(t, later.ID, idle), 1, 1)
	toldTimes(t, told(t, o.ID), 1, 1)
}

// The bus takes nothing. A single refusal the call's second attempt makes good, a longer one whoever comes next.
func TestNotificationsOfABusyBus(t *testing.T) {
	refuse := func(orderID string, count int) *localaws.Injection {
		return stack.Proxy.Inject(localaws.Fault{Kind: localaws.Refuse, Operation: putEvents, Contains: `"` + orderID + "#", Count: count})
	}
	t.Run("once", func(t *testing.T) {
		o := newOrder(t)
		fault := refuse(o.ID, 1)
		defer fault.Remove()
		pay(t, o, "captured", true)
		reached(t, fault)
		toldTimes(t, allTold(t, o.ID, idle), 1, 1)
	})
	t.Run("for long", func(t *testing.T) {
		o := newOrder(t)
		fault := refuse(o.ID, 0)
		defer fault.Remove()
		pay(t, o, "captured", true)
		eventually(t, "refused, by the stream's function and by reconcile", func() bool {
			// A run that could publish nothing fails, and an alarm tells a person.
			_, err := stack.Invoke(t.Context(), "ReconcileFunction", []byte("{}"))
			return err != nil && strings.Contains(err.Error(), "announcements published: none of") && fault.Struck() >= 4
		})
		if unsent, due := waiting(t, o.ID); len(unsent) != 1 || len(due) != 1 || len(told(t, o.ID)) > 0 {
			t.Errorf("refused, and %v are unsent and %v due", unsent, due)
		}
		fault.Remove()
		toldTimes(t, allTold(t, o.ID, func() { sweep(t) }), 1, 1)
	})
}

// The function is killed around its call to the bus. The stream brings the record again.
func TestNotificationsOfAKilledFunction(t *testing.T) {
	for _, c := range []struct {
		name string
		kind localaws.FaultKind
		most int // copies
	}{{"before it published", localaws.Hold, 1}, {"after it published", localaws.HoldAnswer, 2}} {
		t.Run(c.name, func(t *testing.T) {
			o := newOrder(t)
			fault := stack.Proxy.Inject(localaws.Fault{Kind: c.kind, Operation: putEvents, Contains: `"` + o.ID + "#", Count: 1})
			defer fault.Remove()
			pay(t, o, "captured", true)
			reached(t, fault)
			if n, err := stack.KillFunction("NotifyFunction"); n == 0 || err != nil {
				t.Errorf("killed %d processes: %v", n, err)
			}
			fault.Drop()
			events := allTold(t, o.ID, idle)
			toldTimes(t, events, c.most, c.most)
		})
	}
}
