package razorpay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"paidonce/shared/payment"
)

// ErrUndecodable marks a body that is not what the gateway is known to send: no JSON object, no event name, or an
// entity without the id, state or exact amount that a fact needs. New code may be able to read it later.
var ErrUndecodable = errors.New("undecodable")

// Decode reads a webhook's body. Whatever its kind (payment, order, refund, invoice, payment link, subscription, ...),
// each payment, order, refund and dispute in it becomes a fact, in this order. An event of an unknown kind without any
// is no error: it has a Note instead. Errors wrap [ErrUndecodable] and show no value of the body beyond ids and states.
//
// The envelope's list of contents is not read, and its time decides nothing, because samples of both are wrong.
func Decode(body []byte) (payment.Notice, error) {
	_, event, err := read(body)
	return event, err
}

// Reduce returns a small body (under 2 KiB) that decodes to the same [payment.Notice], for a body too big to be kept whole. It
// fails where Decode does.
func Reduce(body []byte) ([]byte, error) {
	e, _, err := read(body)
	if err != nil {
		return nil, err
	}
	if r := e.Payload.Refund.entity; r != nil {
		r.Receipt = r.receipt()
	}
	small, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("razorpay: reduce: %w", err)
	}
	return small, nil
}

func read(body []byte) (envelope, payment.Notice, error) {
	e, err := parse(body)
	if err != nil {
		return envelope{}, payment.Notice{}, fmt.Errorf("razorpay: decode: %w: %w", ErrUndecodable, err)
	}
	event, err := e.event()
	if err != nil {
		return envelope{}, payment.Notice{}, fmt.Errorf("razorpay: decode %s: %w: %w", shown(e.Event), ErrUndecodable, err)
	}
	return e, event, nil
}

// envelope is a webhook body, as far as it is read.
type envelope struct {
	Event   string  `json:"event"`
	Account string  `json:"account_id,omitempty"`
	Payload payload `json:"payload"`
	// CreatedAt is when the event came about, if it is to be believed.
	CreatedAt claimedTime `json:"created_at,omitzero"`
}

// claimedTime is in Unix seconds, and 0 if something else stands there.
type claimedTime int64

// UnmarshalJSON implements [json.Unmarshaler].
func (c *claimedTime) UnmarshalJSON(data []byte) error {
	if n, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		*c = claimedTime(n)
	}
	return nil
}

func (c claimedTime) time() time.Time {
	if c <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(c), 0).UTC()
}

// payload holds the entities by kind. Other kinds are skipped, and so are numbers among the entities: several events
// have their created_at here instead of in the envelope.
type payload struct {
	Payment boxed[paymentEntity] `json:"payment,omitzero"`
	Order   boxed[orderEntity]   `json:"order,omitzero"`
	Refund  boxed[refundEntity]  `json:"refund,omitzero"`
	Dispute boxed[disputeEntity] `json:"dispute,omitzero"`
}

// nothing is how a payload says that it has no entity of a kind.
var nothing = regexp.MustCompile(`^\s*\{\s*("entity"\s*:\s*null\s*)?\}\s*$`)

// boxed is an entity in its wrapping, {"entity": {...}}, or without. In an unwrapped entity "entity" is its kind, a
// string.
type boxed[E any] struct{ entity *E }

// UnmarshalJSON implements [json.Unmarshaler].
func (b *boxed[E]) UnmarshalJSON(data []byte) error {
	b.entity = nil
	if string(data) == "null" {
		return nil
	}
	var wrapping struct {
		Entity *E `json:"entity"`
	}
	err := json.Unmarshal(data, &wrapping)
	var mismatch *json.UnmarshalTypeError
	wrapped := !errors.As(err, &mismatch) || mismatch.Field != "entity"
	if wrapped && (err != nil || wrapping.Entity != nil) {
		b.entity = wrapping.Entity
		return err
	}
	if nothing.Match(data) {
		return nil // beside entities that say something
	}
	return json.Unmarshal(data, &b.entity)
}

// MarshalJSON implements [json.Marshaler].
func (b boxed[E]) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Entity *E `json:"entity"`
	}{b.entity})
}

func parse(body []byte) (envelope, error) {
	var e envelope
	err := json.Unmarshal(body, &e)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch) && mismatch.Field == "payload" && mismatch.Value == "array":
		// An empty object that went through PHP comes out as an array.
	case errors.As(err, &mismatch):
		return envelope{}, wrongType(mismatch)
	case err != nil:
		return envelope{}, err
	}
	return e, nil
}

// wrongType names the place of a mismatch. The library's own text can repeat what stands there.
func wrongType(mismatch *json.UnmarshalTypeError) error {
	place := mismatch.Field[strings.LastIndexByte(mismatch.Field, '.')+1:]
	return fmt.Errorf("wrong JSON type of %s", cmp.Or(place, "an entity"))
}

func (e envelope) event() (payment.Notice, error) {
	if !word(e.Event) {
		return payment.Notice{}, errors.New("no event name")
	}
	if e.Account != "" && !word(e.Account) {
		return payment.Notice{}, errors.New("odd account id")
	}
	event := payment.Notice{Type: e.Event, Account: e.Account, At: e.CreatedAt.time()}
	p := e.Payload
	if err := p.complete(e.Event); err != nil {
		return payment.Notice{}, err
	}
	var attempt payment.PaymentFact
	if p.Payment.entity != nil {
		var err error
		if attempt, err = p.Payment.entity.fact(); err != nil {
			return payment.Notice{}, err
		}
		event.Facts = append(event.Facts, attempt)
	}
	if p.Order.entity != nil {
		fact, err := p.Order.entity.fact()
		if err != nil {
			return payment.Notice{}, err
		}
		event.Facts = append(event.Facts, fact)
	}
	if p.Refund.entity != nil {
		fact, err := p.Refund.entity.fact(e.Event, attempt)
		if err != nil {
			return payment.Notice{}, err
		}
		event.Facts = append(event.Facts, fact)
	}
	if p.Dispute.entity != nil {
		fact, err := p.Dispute.entity.fact(attempt)
		if err != nil {
			return payment.Notice{}, err
		}
		event.Facts = append(event.Facts, fact)
	}
	if len(event.Facts) == 0 {
		event.Note = event.Type + " carries no payment of an order"
	}
	return event, nil
}

// complete refuses an event that lacks the very entity it is named after. Taking it for one of no concern would lose
// money.
func (p payload) complete(event string) error {
	missing := ""
	switch {
	case strings.HasPrefix(event, "payment.dispute."):
		if p.Dispute.entity == nil {
			missing = "dispute"
		}
	case strings.HasPrefix(event, "refund."):
		if p.Refund.entity == nil {
			missing = "refund"
		}
	case event == "order.paid":
		if p.Order.entity == nil && p.Payment.entity == nil {
			missing = "order"
		}
	case strings.HasPrefix(event, "payment.") && !strings.HasPrefix(event, "payment.downtime."):
		if p.Payment.entity == nil {
			missing = "payment"
		}
	}
	if missing != "" {
		return fmt.Errorf("the body has no %s", missing)
	}
	return nil
}
