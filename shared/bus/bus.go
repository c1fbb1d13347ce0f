// Package bus hands announcements to the rest of the shop through an EventBridge bus. It is all that knows EventBridge. What an
// event looks like is documented in docs/events.md and in the schema beside it.
package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"paidonce/shared/payment"
)

// Source is what rules know our events by.
const Source = "paidonce"

// eventVersion grows when a subscriber that knows the version before could misread an event. New fields do not change it.
const eventVersion = 1

// Event is the detail of an event on the bus. It holds ids and amounts only.
type Event struct {
	Version      int            `json:"version"`
	ID           string         `json:"id"` // the same whenever the event is repeated
	Order        string         `json:"order"`
	OrderVersion int64          `json:"order_version"` // of two events of an order the one with the larger is the later
	At           time.Time      `json:"at"`
	Status       payment.Status `json:"status"` // of the order, after the change that the event tells of
	Amount       int64          `json:"amount"` // minor units
	Currency     string         `json:"currency"`
	Refund       string         `json:"refund,omitempty"`  // refund.*: the gateway's refund
	Request      string         `json:"request,omitempty"` // refund_request.*: the shop's refund request
	Hold         *Hold          `json:"hold,omitempty"`    // order.held
}

// Hold says why an order is held.
type Hold struct {
	Reason   payment.HoldReason `json:"reason"`
	Subject  string             `json:"subject"`  // the payment, refund or dispute; empty: the order itself
	Blocking bool               `json:"blocking"` // it keeps the order from being fulfilled
}

// client is what the bus needs of an *eventbridge.Client.
type client interface {
	PutEvents(context.Context, *eventbridge.PutEventsInput, ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
}

// Bus is one event bus.
type Bus struct {
	client client
	name   string
}

// New returns the bus of the name.
func New(c client, name string) *Bus { return &Bus{c, name} }

// Publish hands over up to 10 announcements in one call and says of each, by its position, why the bus did not take it; nil: it
// did. An answer of 200 may hold entries that failed, so each is looked at (EventBridge, PutEvents).
func (b *Bus) Publish(ctx context.Context, announcements []payment.Announcement) []error {
	results := make([]error, len(announcements))
	entries := make([]types.PutEventsRequestEntry, len(announcements))
	for i, a := range announcements {
		detail, err := json.Marshal(newEvent(a))
		if err != nil {
			return all(results, err)
		}
		entries[i] = types.PutEventsRequestEntry{
			EventBusName: &b.name, Source: aws.String(Source), DetailType: aws.String(a.Type), Detail: aws.String(string(detail)),
			Time: aws.Time(a.At),
		}
	}
	out, err := b.client.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: entries})
	switch {
	case err != nil:
		return all(results, fmt.Errorf("bus: publish: %w", plain(err)))
	case len(out.Entries) != len(entries):
		return all(results, errors.New("bus: publish: the answer does not tell of each event"))
	}
	for i, entry := range out.Entries {
		if code := aws.ToString(entry.ErrorCode); code != "" {
			results[i] = fmt.Errorf("bus: publish: %s", code) // its message may repeat the event
		}
	}
	return results
}

// plain is the error without the service's message, which may repeat the events.
func plain(err error) error {
	var answer interface {
		error
		ErrorCode() string
	}
	if errors.As(err, &answer) {
		return errors.New(answer.ErrorCode())
	}
	return err
}

func newEvent(a payment.Announcement) Event {
	e := Event{
		Version: eventVersion, ID: a.Key.String(), Order: a.Key.OrderID, OrderVersion: a.OrderVersion, At: a.At.UTC(),
		Status: a.Status, Amount: a.Amount.Amount, Currency: a.Amount.Currency, Refund: a.RefundID, Request: a.RequestID,
	}
	if a.Hold != (payment.HoldKey{}) {
		e.Hold = &Hold{a.Hold.Reason, a.Hold.Subject, a.Hold.Reason.Blocking()}
	}
	return e
}

func all(results []error, err error) []error {
	for i := range results {
		results[i] = err
	}
	return results
}
