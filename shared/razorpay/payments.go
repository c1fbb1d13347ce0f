package razorpay

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"paidonce/shared/payment"
)

// OrderPayments reads all payments of an order, failed ones included (Razorpay, "Fetch payments for an order"). An order
// without any has none; that is no error. [payment.ErrNotFound] if the gateway shows us no order of that id.
func (c *Client) OrderPayments(ctx context.Context, gatewayOrderID string) ([]payment.PaymentFact, error) {
	facts, err := c.readOrderPayments(ctx, gatewayOrderID)
	return facts, readError("read payments of order "+shown(gatewayOrderID), err)
}

func (c *Client) readOrderPayments(ctx context.Context, gatewayOrderID string) ([]payment.PaymentFact, error) {
	if !word(gatewayOrderID) {
		return nil, errNoID
	}
	var answer collection[paymentEntity]
	if err := c.get(ctx, "orders/"+gatewayOrderID+"/payments", nil, &answer); err != nil {
		return nil, err
	}
	if err := answer.check(); err != nil {
		return nil, err
	}
	return collect(answer.Items, (*paymentEntity).confirmed, paymentFactID)
}

// Payment reads one payment (Razorpay, "Fetch a payment"). [payment.ErrNotFound] if the gateway shows us none of that id.
func (c *Client) Payment(ctx context.Context, id string) (payment.PaymentFact, error) {
	fact, err := c.readPayment(ctx, id)
	return fact, readError("read payment "+shown(id), err)
}

func (c *Client) readPayment(ctx context.Context, id string) (payment.PaymentFact, error) {
	if !word(id) {
		return payment.PaymentFact{}, errNoID
	}
	var answer paymentEntity
	if err := c.get(ctx, "payments/"+id, nil, &answer); err != nil {
		return payment.PaymentFact{}, err
	}
	fact, err := decoded(answer.confirmed)
	if err == nil && fact.ID != id {
		return payment.PaymentFact{}, fmt.Errorf("%w: %w", ErrUndecodable, errOther)
	}
	return fact, err
}

// Payments reads all payments created from one time to another, both included, to the second (Razorpay, "Fetch all
// payments"). The window should lie in the past: payments that come in while it is read shift the gateway's pages. With a
// [*payment.UnreadableError] comes what could be read.
func (c *Client) Payments(ctx context.Context, from, to time.Time) ([]payment.PaymentFact, error) {
	facts, err := c.readPayments(ctx, from, to)
	return facts, listError("read payments", err)
}

func (c *Client) readPayments(ctx context.Context, from, to time.Time) ([]payment.PaymentFact, error) {
	entities, err := pages[json.RawMessage](ctx, c, "payments", window(from, to))
	if err != nil {
		return nil, err
	}
	return readable(entities, (*paymentEntity).confirmed, paymentFactID)
}

func paymentFactID(f payment.PaymentFact) string { return f.ID }

// confirmed is the fact of a payment that the API itself showed us.
func (p *paymentEntity) confirmed() (payment.PaymentFact, error) {
	fact, err := p.fact()
	fact.Confirmed = err == nil
	return fact, err
}
