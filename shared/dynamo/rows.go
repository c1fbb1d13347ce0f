package dynamo

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"paidonce/shared/payment"
)

type item = map[string]types.AttributeValue

// rowVersion is the newest layout of rows that this release writes and understands.
const rowVersion = 1

// envelope is what every row carries.
type envelope struct {
	key
	indexKey
	RowVersion int    `dynamodbav:"v"`
	Entity     string `dynamodbav:"entity"`
}

func (e envelope) check() error {
	if e.RowVersion > rowVersion {
		return fmt.Errorf("row %s/%s has version %d: %w", e.key.PK, e.key.SK, e.RowVersion, payment.ErrNewerVersion)
	}
	return nil
}

type eventRow struct {
	envelope
	Gateway    string `dynamodbav:"gateway"`
	EventID    string `dynamodbav:"event_id"`
	Status     string `dynamodbav:"status"`
	Verdict    string `dynamodbav:"verdict,omitempty"`
	Type       string `dynamodbav:"kind,omitempty"` // "type" is a reserved word
	OrderID    string `dynamodbav:"order_id,omitempty"`
	Body       []byte `dynamodbav:"body,omitempty"` // gzip
	Reduced    bool   `dynamodbav:"reduced,omitempty"`
	SHA256     string `dynamodbav:"sha256"`
	VerifiedBy string `dynamodbav:"verified_by"`
	Mode       string `dynamodbav:"mode"`
	Delivery   string `dynamodbav:"delivery,omitempty"`
	Attempts   int    `dynamodbav:"attempts,omitempty"`
	ReceivedAt string `dynamodbav:"received_at"`
	NextAt     string `dynamodbav:"next_at,omitempty"`
	KeepUntil  int64  `dynamodbav:"keep_until,omitempty"` // unix seconds; see ExpiresAt
	ExpiresAt  int64  `dynamodbav:"expires_at,omitempty"` // DynamoDB's TTL: set only while the event is APPLIED or IGNORED
}

func newEventRow(e payment.Event) (eventRow, error) {
	body, err := compress(e.Body)
	if err != nil {
		return eventRow{}, err
	}
	return eventRow{
		envelope: envelope{
			key:        eventKey(e.Key),
			indexKey:   eventIndex(e.Status, e.Key, e.OrderID, e.NextAt, e.ReceivedAt),
			RowVersion: rowVersion,
			Entity:     "EVENT",
		},
		Gateway: e.Key.Gateway, EventID: e.Key.ID, Status: string(e.Status), Verdict: e.Verdict, Type: e.Type,
		OrderID: e.OrderID, Body: body, Reduced: e.Reduced, SHA256: e.SHA256, VerifiedBy: e.VerifiedBy,
		Mode: string(e.Mode), Delivery: e.Delivery, Attempts: e.Attempts, ReceivedAt: formatTime(e.ReceivedAt),
		NextAt: formatTime(e.NextAt), KeepUntil: unixOrZero(e.KeepUntil),
	}, nil
}

func (r eventRow) event() (payment.Event, error) {
	if err := r.check(); err != nil {
		return payment.Event{}, err
	}
	e := payment.Event{
		Key:    payment.EventKey{Gateway: r.Gateway, ID: r.EventID},
		Status: payment.EventStatus(r.Status), Verdict: r.Verdict, Type: r.Type, OrderID: r.OrderID,
		Reduced: r.Reduced, SHA256: r.SHA256, VerifiedBy: r.VerifiedBy, Mode: payment.Mode(r.Mode),
		Delivery: r.Delivery, Attempts: r.Attempts,
	}
	var times timeParser
	e.ReceivedAt, e.NextAt = times.parse(r.ReceivedAt), times.parse(r.NextAt)
	if r.KeepUntil > 0 {
		e.KeepUntil = time.Unix(r.KeepUntil, 0).UTC()
	}
	body, err := decompress(r.Body)
	if err != nil {
		return payment.Event{}, err
	}
	e.Body = body
	return e, times.err
}

// effectRow is the row of any effect. Which attributes it has depends on the effect.
type effectRow struct {
	envelope
	OrderID string `dynamodbav:"order_id"`
	// of the order after the change that brought the effect
	OrderVersion int64  `dynamodbav:"order_version"`
	At           string `dynamodbav:"at"`

	Subject   string    `dynamodbav:"subject,omitempty"`
	Type      string    `dynamodbav:"type,omitempty"`
	PaymentID string    `dynamodbav:"payment_id,omitempty"`
	Amount    *moneyRow `dynamodbav:"amount,omitempty"`
	Key       string    `dynamodbav:"key,omitempty"`
	Status    string    `dynamodbav:"status,omitempty"`
	About     string    `dynamodbav:"about,omitempty"`
	Reason    string    `dynamodbav:"reason,omitempty"` // of a hold
}

func newEffectRow(o payment.Order, version int64, e payment.Effect) effectRow {
	r := effectRow{
		envelope: envelope{key: effectKey(o, e), RowVersion: rowVersion},
		OrderID:  o.ID, OrderVersion: version, At: formatTime(o.UpdatedAt),
	}
	switch e := e.(type) {
	case payment.Fulfilment:
		r.Entity, r.Amount, r.indexKey = "FULFILMENT", moneyOrNil(e.Captured), outboxIndex(o.ID, o.UpdatedAt)
	case payment.Notification:
		r.Entity, r.Key, r.Status, r.About = "OUTBOX", e.Key, string(e.Status), e.About
		r.Reason, r.Subject = string(e.Hold.Reason), e.Hold.Subject
		r.Amount, r.indexKey = moneyOrNil(e.Amount), outboxIndex(o.ID, o.UpdatedAt)
	case payment.LedgerEntry:
		r.Entity, r.Subject, r.Type, r.PaymentID = "LEDGER", e.SubjectID, string(e.Type), e.PaymentID
		r.Amount = moneyOrNil(e.Amount)
	case payment.CountedAttempt:
		r.Entity, r.PaymentID = "ATTEMPT", e.PaymentID
	case payment.PaymentPointer:
		r.Entity, r.PaymentID = "POINTER", e.PaymentID
	case payment.OrderPointer:
		r.Entity, r.Subject = "POINTER", e.GatewayOrderID
	}
	return r
}

// effect is the effect that the row records, or nil for a row of another kind.
func (r effectRow) effect() payment.Effect {
	switch r.Entity {
	case "FULFILMENT":
		return payment.Fulfilment{Captured: moneyOrZero(r.Amount)}
	case "OUTBOX":
		return payment.Notification{
			Key: r.Key, Status: payment.Status(r.Status), About: r.About, Amount: moneyOrZero(r.Amount),
			Hold: payment.HoldKey{Reason: payment.HoldReason(r.Reason), Subject: r.Subject},
		}
	case "LEDGER":
		return payment.LedgerEntry{
			SubjectID: r.Subject, Type: payment.LedgerType(r.Type), PaymentID: r.PaymentID, Amount: moneyOrZero(r.Amount),
		}
	case "ATTEMPT":
		return payment.CountedAttempt{PaymentID: r.PaymentID}
	}
	return nil
}

type changeRow struct {
	envelope
	Source string `dynamodbav:"source"`
	What   string `dynamodbav:"what"`
	At     string `dynamodbav:"at"`
}

func newChangeRow(orderID string, version int64, c payment.Change) changeRow {
	return changeRow{
		envelope: envelope{key: changeKey(orderID, version), RowVersion: rowVersion, Entity: "CHANGE"},
		Source:   string(c.Source), What: c.What, At: formatTime(c.At),
	}
}

func (r changeRow) change() (payment.Change, error) {
	var times timeParser
	c := payment.Change{Source: payment.Source(r.Source), What: r.What, At: times.parse(r.At)}
	return c, times.err
}

func marshal(row any) (item, error) { return attributevalue.MarshalMap(row) }

func unmarshal[T any](i item) (T, error) {
	var row T
	err := attributevalue.UnmarshalMap(i, &row)
	return row, err
}

// checked unmarshals a row, unless a newer release wrote it.
func checked[T interface{ check() error }](i item) (T, error) {
	row, err := unmarshal[T](i)
	if err == nil {
		err = row.check()
	}
	return row, err
}

func moneyOrNil(m payment.Money) *moneyRow {
	if m == (payment.Money{}) {
		return nil
	}
	r := moneyRow(m)
	return &r
}

func moneyOrZero(r *moneyRow) payment.Money {
	if r == nil {
		return payment.Money{}
	}
	return payment.Money(*r)
}

func texts(states []payment.RefundStatus) []string {
	var s []string
	for _, state := range states {
		s = append(s, string(state))
	}
	return s
}

func refundStates(s []string) payment.RefundStates {
	var states payment.RefundStates
	for _, state := range s {
		states = states.With(payment.RefundStatus(state))
	}
	return states
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeFormat)
}

func unixOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// timeParser parses several times and keeps the first error.
type timeParser struct{ err error }

func (p *timeParser) parse(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(timeFormat, s)
	if err != nil && p.err == nil {
		p.err = err
	}
	return t
}
