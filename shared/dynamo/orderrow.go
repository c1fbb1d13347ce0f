package dynamo

import "paidonce/shared/payment"

// orderRow is an order, whole: one read and one write are all that a decision takes.
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
