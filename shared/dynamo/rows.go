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

type orderRow struct {
	envelope
	ID             string            `dynamodbav:"id"`
	Gateway        string            `dynamodbav:"gateway"`
	Mode           string            `dynamodbav:"mode"`
	Account        string            `dynamodbav:"account,omitempty"`
	GatewayOrderID string            `dynamodbav:"gateway_order_id,omitempty"`
	Amount         int64             `dynamodbav:"amount"`
	Currency       string            `dynamodbav:"currency"`
	Partial        bool              `dynamodbav:"partial,omitempty"`
	Notes          map[string]string `dynamodbav:"notes,omitempty"`

	orderEntities
	Reserved        map[string]reservationRow `dynamodbav:"reserved,omitempty"`
	Packed          []byte                    `dynamodbav:"packed,omitempty"` // the entities of an order that has many, see pack
	GatewayPaid     bool                      `dynamodbav:"gateway_paid,omitempty"`
	PaidConfirmed   bool                      `dynamodbav:"paid_confirmed,omitempty"`
	CountedAttempts int                       `dynamodbav:"counted_attempts,omitempty"`

	Status      string `dynamodbav:"status"`
	PaidAt      string `dynamodbav:"paid_at,omitempty"`
	FulfilledAt string `dynamodbav:"fulfilled_at,omitempty"`
	ClosedAt    string `dynamodbav:"closed_at,omitempty"`
	CloseReason string `dynamodbav:"close_reason,omitempty"`
	ActiveAt    string `dynamodbav:"active_at,omitempty"`
	DueAt       string `dynamodbav:"due_at,omitempty"`
	Version     int64  `dynamodbav:"version"`
	CreatedAt   string `dynamodbav:"created_at"`
	UpdatedAt   string `dynamodbav:"updated_at"`
}

// orderEntities is what grows with an order.
type orderEntities struct {
	Payments map[string]paymentRow `dynamodbav:"payments,omitempty" json:"p,omitempty"`
	Refunds  map[string]refundRow  `dynamodbav:"refunds,omitempty" json:"r,omitempty"`
	Disputes map[string]disputeRow `dynamodbav:"disputes,omitempty" json:"d,omitempty"`
	Holds    []holdRow             `dynamodbav:"holds,omitempty" json:"h,omitempty"`
}

type moneyRow struct {
	Amount   int64  `dynamodbav:"amount" json:"amount,omitempty"`
	Currency string `dynamodbav:"currency" json:"currency,omitempty"`
}

type paymentRow struct {
	Status    string    `dynamodbav:"status" json:"status,omitempty"`
	Failed    bool      `dynamodbav:"failed,omitempty" json:"failed,omitempty"`
	Voided    bool      `dynamodbav:"voided,omitempty" json:"voided,omitempty"`
	Amount    moneyRow  `dynamodbav:"amount" json:"amount,omitempty"`
	Captured  *moneyRow `dynamodbav:"captured,omitempty" json:"captured,omitempty"`
	Conflict  bool      `dynamodbav:"conflict,omitempty" json:"conflict,omitempty"`
	Confirmed bool      `dynamodbav:"confirmed,omitempty" json:"confirmed,omitempty"`
	Claim     int64     `dynamodbav:"claim,omitempty" json:"claim,omitempty"`
	OtherID   string    `dynamodbav:"other_id,omitempty" json:"other_id,omitempty"`
	CreatedAt string    `dynamodbav:"created_at,omitempty" json:"created_at,omitempty"`
	Pointed   bool      `dynamodbav:"pointed,omitempty" json:"pointed,omitempty"`
	Booked    *moneyRow `dynamodbav:"booked,omitempty" json:"booked,omitempty"`
}

type refundRow struct {
	PaymentID string    `dynamodbav:"payment_id" json:"payment_id,omitempty"`
	Amount    moneyRow  `dynamodbav:"amount" json:"amount,omitempty"`
	Receipt   string    `dynamodbav:"receipt,omitempty" json:"receipt,omitempty"`
	Seen      []string  `dynamodbav:"seen" json:"seen,omitempty"`
	Conflict  bool      `dynamodbav:"conflict,omitempty" json:"conflict,omitempty"`
	Told      []string  `dynamodbav:"told,omitempty" json:"told,omitempty"`
	Booked    *moneyRow `dynamodbav:"booked,omitempty" json:"booked,omitempty"`
	Reversed  *moneyRow `dynamodbav:"reversed,omitempty" json:"reversed,omitempty"`
}

type reservationRow struct {
	RequestID string   `dynamodbav:"request_id"`
	PaymentID string   `dynamodbav:"payment_id"`
	Amount    moneyRow `dynamodbav:"amount"`
}

type disputeRow struct {
	PaymentID string    `dynamodbav:"payment_id" json:"payment_id,omitempty"`
	Status    string    `dynamodbav:"status" json:"status,omitempty"`
	Phase     string    `dynamodbav:"phase,omitempty" json:"phase,omitempty"`
	Amount    moneyRow  `dynamodbav:"amount" json:"amount,omitempty"`
	Deducted  int64     `dynamodbav:"deducted,omitempty" json:"deducted,omitempty"`
	EverLost  bool      `dynamodbav:"ever_lost,omitempty" json:"ever_lost,omitempty"`
	Booked    *moneyRow `dynamodbav:"booked,omitempty" json:"booked,omitempty"`
}

type holdRow struct {
	Reason         string `dynamodbav:"reason" json:"reason,omitempty"`
	Subject        string `dynamodbav:"subject,omitempty" json:"subject,omitempty"`
	Since          string `dynamodbav:"since" json:"since,omitempty"`
	Told           bool   `dynamodbav:"told,omitempty" json:"told,omitempty"`
	AcknowledgedBy string `dynamodbav:"acknowledged_by,omitempty" json:"acknowledged_by,omitempty"`
	AcknowledgedAt string `dynamodbav:"acknowledged_at,omitempty" json:"acknowledged_at,omitempty"`
	Why            string `dynamodbav:"why,omitempty" json:"why,omitempty"`
	Detail         string `dynamodbav:"detail,omitempty" json:"detail,omitempty"` // acknowledged
}

func newOrderRow(o payment.Order, version int64) (orderRow, error) {
	r := orderRow{
		envelope: envelope{key: orderKey(o.ID), indexKey: orderIndex(o.ID, o.DueAt), RowVersion: rowVersion, Entity: "ORDER"},
		ID:       o.ID, Gateway: o.Gateway, Mode: string(o.Mode), Account: o.Account, GatewayOrderID: o.GatewayOrderID,
		Amount: o.Amount.Amount, Currency: o.Amount.Currency, Partial: o.Partial, Notes: o.Notes,
		orderEntities: orderEntities{map[string]paymentRow{}, map[string]refundRow{}, map[string]disputeRow{}, nil},
		Reserved:      map[string]reservationRow{},
		GatewayPaid:   o.GatewayPaid, PaidConfirmed: o.PaidConfirmed, CountedAttempts: o.CountedAttempts,
		Status: string(o.Status), PaidAt: formatTime(o.PaidAt), FulfilledAt: formatTime(o.FulfilledAt),
		ClosedAt: formatTime(o.ClosedAt), CloseReason: o.CloseReason, ActiveAt: formatTime(o.ActiveAt), DueAt: formatTime(o.DueAt), Version: version,
		CreatedAt: formatTime(o.CreatedAt), UpdatedAt: formatTime(o.UpdatedAt),
	}
	for id, p := range o.Payments {
		r.Payments[id] = paymentRow{
			Status: string(p.Status), Failed: p.Failed, Voided: p.Voided, Amount: moneyRow(p.Amount),
			Captured: moneyOrNil(p.Captured), Conflict: p.Conflict, Confirmed: p.Confirmed, Claim: p.Claim, OtherID: p.OtherID,
			CreatedAt: formatTime(p.CreatedAt), Pointed: p.Pointed, Booked: moneyOrNil(p.Booked),
		}
	}
	for id, f := range o.Refunds {
		r.Refunds[id] = refundRow{
			PaymentID: f.PaymentID, Amount: moneyRow(f.Amount), Receipt: f.Receipt, Seen: texts(f.Seen.List()),
			Conflict: f.Conflict, Told: texts(f.Told.List()), Booked: moneyOrNil(f.Booked), Reversed: moneyOrNil(f.Reversed),
		}
	}
	for receipt, promised := range o.Reserved {
		r.Reserved[receipt] = reservationRow{promised.RequestID, promised.PaymentID, moneyRow(promised.Amount)}
	}
	for id, d := range o.Disputes {
		r.Disputes[id] = disputeRow{
			PaymentID: d.PaymentID, Status: string(d.Status), Phase: string(d.Phase), Amount: moneyRow(d.Amount),
			Deducted: d.Deducted, EverLost: d.EverLost, Booked: moneyOrNil(d.Booked),
		}
	}
	for k, h := range o.Holds {
		row := holdRow{Reason: string(k.Reason), Subject: k.Subject, Since: formatTime(h.Since), Told: h.Told}
		if a := h.Acknowledged; a != nil {
			row.AcknowledgedBy, row.AcknowledgedAt, row.Why, row.Detail = a.By, formatTime(a.At), a.Why, a.Detail
		}
		r.Holds = append(r.Holds, row)
	}
	return r, r.pack()
}

func (r orderRow) order() (payment.Order, error) {
	if err := r.check(); err != nil {
		return payment.Order{}, err
	}
	if err := r.unpack(); err != nil {
		return payment.Order{}, err
	}
	var times timeParser
	o := payment.Order{
		ID: r.ID, Gateway: r.Gateway, Mode: payment.Mode(r.Mode), Account: r.Account, GatewayOrderID: r.GatewayOrderID,
		Amount: payment.Money{Amount: r.Amount, Currency: r.Currency}, Partial: r.Partial, Notes: r.Notes,
		Payments: map[string]payment.Payment{}, Refunds: map[string]payment.Refund{},
		Disputes: map[string]payment.Dispute{}, Reserved: map[string]payment.Reservation{}, Holds: map[payment.HoldKey]payment.HoldHistory{},
		GatewayPaid: r.GatewayPaid, PaidConfirmed: r.PaidConfirmed, CountedAttempts: r.CountedAttempts, Status: payment.Status(r.Status),
		PaidAt: times.parse(r.PaidAt), FulfilledAt: times.parse(r.FulfilledAt), ClosedAt: times.parse(r.ClosedAt),
		CloseReason: r.CloseReason, ActiveAt: times.parse(r.ActiveAt), DueAt: times.parse(r.DueAt), Version: r.Version,
		CreatedAt: times.parse(r.CreatedAt), UpdatedAt: times.parse(r.UpdatedAt),
	}
	for id, p := range r.Payments {
		o.Payments[id] = payment.Payment{
			ID: id, Status: payment.PaymentStatus(p.Status), Failed: p.Failed, Voided: p.Voided,
			Amount: payment.Money(p.Amount), Captured: moneyOrZero(p.Captured), Conflict: p.Conflict, Confirmed: p.Confirmed, Claim: p.Claim,
			OtherID: p.OtherID, CreatedAt: times.parse(p.CreatedAt), Pointed: p.Pointed, Booked: moneyOrZero(p.Booked),
		}
	}
	for id, f := range r.Refunds {
		o.Refunds[id] = payment.Refund{
			ID: id, PaymentID: f.PaymentID, Amount: payment.Money(f.Amount), Receipt: f.Receipt,
			Seen: refundStates(f.Seen), Conflict: f.Conflict, Told: refundStates(f.Told),
			Booked: moneyOrZero(f.Booked), Reversed: moneyOrZero(f.Reversed),
		}
	}
	for receipt, promised := range r.Reserved {
		o.Reserved[receipt] = payment.Reservation{
			RequestID: promised.RequestID, PaymentID: promised.PaymentID, Amount: payment.Money(promised.Amount),
		}
	}
	for id, d := range r.Disputes {
		o.Disputes[id] = payment.Dispute{
			ID: id, PaymentID: d.PaymentID, Status: payment.DisputeStatus(d.Status),
			Phase: payment.DisputePhase(d.Phase), Amount: payment.Money(d.Amount), Deducted: d.Deducted, EverLost: d.EverLost, Booked: moneyOrZero(d.Booked),
		}
	}
	for _, h := range r.Holds {
		history := payment.HoldHistory{Since: times.parse(h.Since), Told: h.Told}
		if h.AcknowledgedAt != "" {
			history.Acknowledged = &payment.Acknowledgement{
				By: h.AcknowledgedBy, Why: h.Why, At: times.parse(h.AcknowledgedAt), Detail: h.Detail,
			}
		}
		o.Holds[payment.HoldKey{Reason: payment.HoldReason(h.Reason), Subject: h.Subject}] = history
	}
	return o, times.err
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
