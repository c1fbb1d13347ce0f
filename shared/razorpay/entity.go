package razorpay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"paidonce/shared/payment"
)

// paymentEntity is the gateway's payment (Razorpay, "Payment entity"), as far as it is read.
type paymentEntity struct {
	ID             string    `json:"id"`
	OrderID        string    `json:"order_id,omitempty"`
	Status         string    `json:"status"`
	Captured       maybe     `json:"captured,omitzero"`
	Amount         *int64    `json:"amount"`
	Currency       string    `json:"currency"`
	AmountRefunded int64     `json:"amount_refunded,omitempty"`
	CreatedAt      timestamp `json:"created_at,omitzero"`
}

// fact trusts the status. Samples have captured: true beside the statuses authorized and failed; only of a refunded
// payment does it tell something, namely whether there was money to give back.
func (p *paymentEntity) fact() (payment.PaymentFact, error) {
	if !word(p.ID) {
		return payment.PaymentFact{}, errors.New("a payment has no id")
	}
	fact := payment.PaymentFact{ID: p.ID, AmountRefunded: p.AmountRefunded, CreatedAt: p.CreatedAt.time()}
	switch p.Status {
	case "created", "pending": // pending: cash on delivery
		fact.Status = payment.PaymentCreated
	case "failed":
		fact.Status, fact.Failed = payment.PaymentCreated, true
	case "authorized":
		fact.Status = payment.PaymentAuthorized
	case "captured":
		fact.Status = payment.PaymentCaptured
	case "refunded":
		if !p.Captured.known {
			return payment.PaymentFact{}, fmt.Errorf("payment %s is refunded and does not say whether it was captured", p.ID)
		}
		fact.Status, fact.Captured = payment.PaymentRefunded, p.Captured.is
	default:
		return payment.PaymentFact{}, fmt.Errorf("payment %s has the unknown status %s", p.ID, shown(p.Status))
	}
	var err error
	if fact.Amount, err = money(p.Amount, p.Currency); err != nil {
		return payment.PaymentFact{}, fmt.Errorf("payment %s: %w", p.ID, err)
	}
	if fact.AmountRefunded < 0 || fact.AmountRefunded > payment.MaxAmount {
		return payment.PaymentFact{}, fmt.Errorf("payment %s: amount refunded out of range", p.ID)
	}
	if fact.GatewayOrderID, err = orderID(p.OrderID); err != nil {
		return payment.PaymentFact{}, fmt.Errorf("payment %s: %w", p.ID, err)
	}
	return fact, nil
}

// refundEntity is the gateway's refund (Razorpay, "Refund entity"), as far as it is read.
type refundEntity struct {
	ID        string  `json:"id"`
	PaymentID string  `json:"payment_id,omitempty"`
	Status    string  `json:"status,omitempty"`
	Amount    *int64  `json:"amount"`
	Currency  string  `json:"currency"`
	Receipt   string  `json:"receipt,omitempty"`
	Note      ourNote `json:"notes,omitzero"`
}

// fact takes the status from the entity (refund.created comes with "processed"), and where it has none, as in bodies of
// 2020, from the event's name. The order is that of the payment beside it, if it is the payment refunded.
func (r *refundEntity) fact(event string, attempt payment.PaymentFact) (payment.RefundFact, error) {
	if !word(r.ID) {
		return payment.RefundFact{}, errors.New("a refund has no id")
	}
	fact := payment.RefundFact{ID: r.ID, Receipt: r.receipt()}
	status := r.Status
	if status == "" {
		status = strings.TrimPrefix(event, "refund.")
	}
	switch status {
	case "pending", "created", "speed_changed":
		fact.Status = payment.RefundPending
	case "processed":
		fact.Status = payment.RefundProcessed
	case "failed":
		fact.Status = payment.RefundFailed
	default:
		return payment.RefundFact{}, fmt.Errorf("refund %s has the unknown status %s", r.ID, shown(status))
	}
	var err error
	if fact.Amount, err = money(r.Amount, r.Currency); err != nil {
		return payment.RefundFact{}, fmt.Errorf("refund %s: %w", r.ID, err)
	}
	fact.PaymentID, fact.GatewayOrderID, err = owner(r.PaymentID, attempt)
	if err != nil {
		return payment.RefundFact{}, fmt.Errorf("refund %s: %w", r.ID, err)
	}
	return fact, nil
}

// receipt returns the receipt, or "" for one longer than the gateway takes from anybody. Where the gateway shows none, the note
// that we gave a refund of ours says what it is.
func (r *refundEntity) receipt() string {
	switch parts := strings.Split(string(r.Note), "/"); {
	case r.Receipt == "" && len(parts) == 3: // see DraftRefund
		return payment.Receipt(parts[0], parts[1], parts[2])
	case utf8.RuneCountInString(r.Receipt) > maxReceipt:
		return ""
	}
	return r.Receipt
}

// ourNote is the note that we gave an entity, among those that merchants may give; empty if there is none. Notes are an array
// when there are none, and may be null.
type ourNote string

// UnmarshalJSON implements [json.Unmarshaler].
func (n *ourNote) UnmarshalJSON(data []byte) error {
	var all notes
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*n = ourNote(all[noteKey])
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (n ourNote) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{noteKey: string(n)})
}

// disputeEntity is the gateway's dispute (Razorpay, "Dispute entity"), as far as it is read.
type disputeEntity struct {
	ID        string `json:"id"`
	PaymentID string `json:"payment_id,omitempty"`
	Status    string `json:"status"`
	Phase     string `json:"phase"`
	Amount    *int64 `json:"amount"`
	Currency  string `json:"currency"`
	Deducted  int64  `json:"amount_deducted,omitempty"`
}

func (d *disputeEntity) fact(attempt payment.PaymentFact) (payment.DisputeFact, error) {
	if !word(d.ID) {
		return payment.DisputeFact{}, errors.New("a dispute has no id")
	}
	fact := payment.DisputeFact{
		ID: d.ID, Status: payment.DisputeStatus(d.Status), Phase: payment.DisputePhase(d.Phase), Deducted: d.Deducted,
	}
	switch fact.Status {
	case payment.DisputeOpen, payment.DisputeUnderReview, payment.DisputeClosed, payment.DisputeWon, payment.DisputeLost:
	default:
		return payment.DisputeFact{}, fmt.Errorf("dispute %s has the unknown status %s", d.ID, shown(d.Status))
	}
	switch fact.Phase {
	case payment.PhaseFraud, payment.PhaseRetrieval, payment.PhaseChargeback, payment.PhasePreArbitration,
		payment.PhaseArbitration:
	default:
		return payment.DisputeFact{}, fmt.Errorf("dispute %s has the unknown phase %s", d.ID, shown(d.Phase))
	}
	var err error
	if fact.Amount, err = money(d.Amount, d.Currency); err != nil {
		return payment.DisputeFact{}, fmt.Errorf("dispute %s: %w", d.ID, err)
	}
	if fact.Deducted < 0 || fact.Deducted > payment.MaxAmount {
		return payment.DisputeFact{}, fmt.Errorf("dispute %s: amount deducted out of range", d.ID)
	}
	fact.PaymentID, fact.GatewayOrderID, err = owner(d.PaymentID, attempt)
	if err != nil {
		return payment.DisputeFact{}, fmt.Errorf("dispute %s: %w", d.ID, err)
	}
	return fact, nil
}

// orderEntity is the gateway's order (Razorpay, "Order entity"), as far as a fact needs it.
type orderEntity struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Amount   *int64 `json:"amount"`
	Currency string `json:"currency"`
}

func (o *orderEntity) fact() (payment.OrderFact, error) {
	id, err := orderID(o.ID)
	if err != nil {
		return payment.OrderFact{}, err
	}
	if id == "" {
		return payment.OrderFact{}, errors.New("an order has no id")
	}
	fact := payment.OrderFact{GatewayOrderID: id}
	switch o.Status {
	case "created", "attempted":
	case "paid":
		fact.Paid = true
	default:
		return payment.OrderFact{}, fmt.Errorf("order %s has the unknown status %s", id, shown(o.Status))
	}
	if fact.Amount, err = money(o.Amount, o.Currency); err != nil {
		return payment.OrderFact{}, fmt.Errorf("order %s: %w", id, err)
	}
	return fact, nil
}

// maxReceipt is the gateway's limit for a receipt, in characters.
const maxReceipt = 40

// owner returns the payment a refund or dispute belongs to and, where attempt is that payment, its order.
func owner(id string, attempt payment.PaymentFact) (paymentID, gatewayOrderID string, err error) {
	switch {
	case id == "" && attempt.ID == "":
		return "", "", errors.New("of no payment")
	case id == "" || id == attempt.ID:
		return attempt.ID, attempt.GatewayOrderID, nil
	case !word(id):
		return "", "", errors.New("odd payment id")
	}
	return id, "", nil
}

// orderID returns an order's id as payments carry it. The order inside payment_link.paid lacks the prefix.
func orderID(id string) (string, error) {
	switch {
	case id == "":
		return "", nil
	case !word(id):
		return "", errors.New("odd order id")
	case !strings.HasPrefix(id, "order_"):
		return "order_" + id, nil
	}
	return id, nil
}

// money refuses an amount that is absent, negative or beyond all reason. Zero is possible: registering a mandate has an order of nothing.
func money(amount *int64, currency string) (payment.Money, error) {
	switch {
	case amount == nil:
		return payment.Money{}, errors.New("no amount")
	case *amount < 0:
		return payment.Money{}, errors.New("negative amount")
	case *amount > payment.MaxAmount:
		return payment.Money{}, errors.New("amount out of range")
	case !payment.IsCurrency(currency):
		return payment.Money{}, errors.New("no currency of three upper-case letters")
	}
	return payment.Money{Amount: *amount, Currency: currency}, nil
}

// word reports whether s looks like an id or a name of the gateway's: up to 64 letters, digits, and after the first also
// underscores, dots and hyphens. They become parts of keys, paths and log lines.
func word(s string) bool {
	for i, c := range []byte(s) {
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// shown returns a state for an error's text, which must not repeat just anything.
func shown(status string) string {
	if !word(status) {
		return "(not a word)"
	}
	return status
}

// maybe is a truth value as the gateway writes it: true, "1", 1, or null. Anything else is not known.
type maybe struct{ known, is bool }

// UnmarshalJSON implements [json.Unmarshaler].
func (m *maybe) UnmarshalJSON(data []byte) error {
	switch string(bytes.Trim(data, `"`)) {
	case "true", "1":
		*m = maybe{known: true, is: true}
	case "false", "0", "":
		*m = maybe{known: true}
	default:
		*m = maybe{}
	}
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (m maybe) MarshalJSON() ([]byte, error) { return strconv.AppendBool(nil, m.is), nil }

// timestamp is a time in Unix seconds. One that is no such number, or beyond the year 9999, counts as not said: no
// decision rests on it.
type timestamp int64

// UnmarshalJSON implements [json.Unmarshaler].
func (t *timestamp) UnmarshalJSON(data []byte) error {
	seconds, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || seconds < 0 || seconds > 253402300799 {
		seconds = 0
	}
	*t = timestamp(seconds)
	return nil
}

func (t timestamp) time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(int64(t), 0).UTC()
}
