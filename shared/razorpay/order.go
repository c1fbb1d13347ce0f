package razorpay

import (
	"encoding/json"
	"fmt"
	"time"

	"paidonce/shared/payment"
)

// An Order is the gateway's own order, as its API shows it.
type Order struct {
	ID         string // order_...
	Amount     payment.Money
	AmountPaid int64             // minor units of Amount's currency
	Receipt    string            // what whoever made it named it; neither unique nor required
	Status     string            // created, attempted or paid
	Notes      map[string]string // nil if there are none
	CreatedAt  time.Time         // zero if not said
}

// Fact returns what the order says as a fact.
func (o Order) Fact() payment.OrderFact {
	return payment.OrderFact{GatewayOrderID: o.ID, Paid: o.Status == "paid", Amount: o.Amount}
}

// wholeOrder is an order with what only the API's readers want.
type wholeOrder struct {
	orderEntity
	AmountPaid int64     `json:"amount_paid"`
	Receipt    string    `json:"receipt"`
	Notes      notes     `json:"notes"`
	CreatedAt  timestamp `json:"created_at"`
}

func (o *wholeOrder) order() (Order, error) {
	fact, err := o.fact()
	if err != nil {
		return Order{}, err
	}
	if o.AmountPaid < 0 {
		return Order{}, fmt.Errorf("order %s: negative amount paid", fact.GatewayOrderID)
	}
	return Order{
		ID: fact.GatewayOrderID, Amount: fact.Amount, AmountPaid: o.AmountPaid, Receipt: o.Receipt, Status: o.Status,
		Notes: o.Notes, CreatedAt: o.CreatedAt.time(),
	}, nil
}

// notes are the pairs a merchant gave an order. Without any the gateway sends an array, or null.
type notes map[string]string

// UnmarshalJSON implements [json.Unmarshaler].
func (n *notes) UnmarshalJSON(data []byte) error {
	*n = nil
	if data[0] != '{' {
		return nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	for name, raw := range values {
		if *n == nil {
			*n = notes{}
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw) // a number or the like, as it is written
		}
		(*n)[name] = text
	}
	return nil
}
