package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/bus"
	"paidonce/shared/payment"
)

var at = time.Date(2026, 11, 30, 10, 0, 0, 123_000_000, time.UTC)

// client answers PutEvents and keeps what it was asked.
type client struct {
	answer func(entries int) (*eventbridge.PutEventsOutput, error)
	asked  []types.PutEventsRequestEntry
}

func (c *client) PutEvents(_ context.Context, in *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	c.asked = append(c.asked, in.Entries...)
	return c.answer(len(in.Entries))
}

// entries answers with an entry each; a text is the code of one that failed.
func entries(codes ...string) func(int) (*eventbridge.PutEventsOutput, error) {
	return func(int) (*eventbridge.PutEventsOutput, error) {
		out := &eventbridge.PutEventsOutput{}
		for _, code := range codes {
			e := types.PutEventsResultEntry{EventId: aws.String("taken")}
			if code != "" {
				e = types.PutEventsResultEntry{ErrorCode: aws.String(code), ErrorMessage: aws.String("no room for order-secret")}
				out.FailedEntryCount++
			}
			out.Entries = append(out.Entries, e)
		}
		return out, nil
	}
}

func fails(err error) func(int) (*eventbridge.PutEventsOutput, error) {
	return func(int) (*eventbridge.PutEventsOutput, error) { return nil, err }
}

func some(n int) []payment.Announcement {
	var all []payment.Announcement
	for i := range n {
		all = append(all, payment.Announcement{
			Key: payment.OutboxKey{OrderID: fmt.Sprint("order-secret-", i), Name: "FULFILMENT"}, Type: "order.paid", OrderVersion: 2,
			At: at, Status: payment.Paid, Amount: payment.Money{Amount: 49900, Currency: "INR"},
		})
	}
	return all
}

func TestPublish(t *testing.T) {
	const lost = "bus: publish: the answer does not tell of each event"
	throttled := &smithy.GenericAPIError{Code: "ThrottlingException", Message: "no room for order-secret-0"}
	for _, c := range []struct {
		name   string
		answer func(int) (*eventbridge.PutEventsOutput, error)
		want   []string // by position; empty: taken
	}{
		{"all taken", entries("", "", ""), []string{"", "", ""}},
		{"one failed in an answer of 200", entries("", "InternalFailure", ""), []string{"", "bus: publish: InternalFailure", ""}},
		{
			"all failed, for reasons of their own", entries("ThrottlingException", "InternalException", "ThrottlingException"),
			[]string{"bus: publish: ThrottlingException", "bus: publish: InternalException", "bus: publish: ThrottlingException"},
		},
		{"too few entries", entries("", ""), []string{lost, lost, lost}},
		{"too many entries", entries("", "", "", ""), []string{lost, lost, lost}},
		{"no entries", entries(), []string{lost, lost, lost}},
		{
			"throttled", fails(fmt.Errorf("operation error EventBridge: PutEvents: %w", throttled)),
			[]string{"bus: publish: ThrottlingException", "bus: publish: ThrottlingException", "bus: publish: ThrottlingException"},
		},
		{"out of time", fails(context.DeadlineExceeded), []string{
			"bus: publish: context deadline exceeded", "bus: publish: context deadline exceeded", "bus: publish: context deadline exceeded",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, err := range bus.New(&client{answer: c.answer}, "b").Publish(t.Context(), some(3)) {
				if err == nil {
					got = append(got, "")
					continue
				}
				got = append(got, err.Error())
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("%q repeats the event", err)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestACancelledCallStaysOne(t *testing.T) {
	results := bus.New(&client{answer: fails(fmt.Errorf("operation error: %w", context.Canceled))}, "b").Publish(t.Context(), some(1))
	if !errors.Is(results[0], context.Canceled) {
		t.Errorf("got %v", results[0])
	}
}

func TestWhatIsOnTheWire(t *testing.T) {
	inr := func(n int64) payment.Money { return payment.Money{Amount: n, Currency: "INR"} }
	local := at.In(time.FixedZone("IST", 5*3600+1800))
	c := &client{answer: entries("", "", "")}
	bus.New(c, "shop").Publish(t.Context(), []payment.Announcement{
		{Key: payment.OutboxKey{OrderID: "o1", Name: "FULFILMENT"}, Type: "order.paid", OrderVersion: 3, At: local, Status: payment.Paid, Amount: inr(49900)},
		{
			Key: payment.OutboxKey{OrderID: "o1", Name: "OUTBOX#refund#rfnd_1#failed"}, Type: "refund.failed", OrderVersion: 9, At: at,
			Status: payment.PartiallyRefunded, Amount: inr(100), RefundID: "rfnd_1",
		},
		{
			Key: payment.OutboxKey{OrderID: "o1", Name: "OUTBOX#hold#short#"}, Type: "order.held", OrderVersion: 2, At: at, Status: payment.Pending,
			Amount: inr(49900), Hold: payment.HoldKey{Reason: payment.HoldShort},
		},
	})
	want := []struct{ detailType, detail string }{
		{"order.paid", `{"version":1,"id":"o1#FULFILMENT","order":"o1","order_version":3,"at":"2026-11-30T10:00:00.123Z","status":"paid",` +
			`"amount":49900,"currency":"INR"}`},
		{"refund.failed", `{"version":1,"id":"o1#OUTBOX#refund#rfnd_1#failed","order":"o1","order_version":9,"at":"2026-11-30T10:00:00.123Z",` +
			`"status":"partially_refunded","amount":100,"currency":"INR","refund":"rfnd_1"}`},
		{"order.held", `{"version":1,"id":"o1#OUTBOX#hold#short#","order":"o1","order_version":2,"at":"2026-11-30T10:00:00.123Z",` +
			`"status":"pending","amount":49900,"currency":"INR","hold":{"reason":"short","subject":"","blocking":false}}`},
	}
	if len(c.asked) != len(want) {
		t.Fatalf("%d entries, want %d", len(c.asked), len(want))
	}
	for i, e := range c.asked {
		if aws.ToString(e.EventBusName) != "shop" || aws.ToString(e.Source) != bus.Source || !aws.ToTime(e.Time).Equal(at) || len(e.Resources) > 0 {
			t.Errorf("entry %d is for bus %q, from %q, at %s", i, aws.ToString(e.EventBusName), aws.ToString(e.Source), aws.ToTime(e.Time))
		}
		if got := aws.ToString(e.DetailType); got != want[i].detailType {
			t.Errorf("entry %d is a %s, want %s", i, got, want[i].detailType)
		}
		if diff := cmp.Diff(want[i].detail, aws.ToString(e.Detail)); diff != "" {
			t.Errorf("entry %d (-want +got)\n%s", i, diff)
		}
	}
}

// envelope is the event as EventBridge hands it to a subscriber, as far as it is ours.
func envelope(t *testing.T, a payment.Announcement) map[string]any {
	t.Helper()
	c := &client{answer: entries("")}
	if err := bus.New(c, "b").Publish(t.Context(), []payment.Announcement{a})[0]; err != nil {
		t.Fatal(err)
	}
	var detail any
	if err := json.Unmarshal([]byte(*c.asked[0].Detail), &detail); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"source": *c.asked[0].Source, "detail-type": *c.asked[0].DetailType, "detail": detail}
}
