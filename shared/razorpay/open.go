package razorpay

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"paidonce/shared/payment"
)

// noteKey is the note by which an order at the gateway is known to be of our making.
const noteKey = "paidonce"

// How long an authorized payment waits, in minutes: it is captured by itself for as long as a late authorization may
// take (3 days: Razorpay, "Late authorisation"), and can still be captured by hand after that.
const (
	automaticExpiry = 3 * 24 * 60
	manualExpiry    = 5 * 24 * 60
)

// ParseClient returns a parser of the API key document (see [ParseKey]) that makes a client of it.
func ParseClient(baseURL string, options ...Option) func(document []byte) (*Client, error) {
	return func(document []byte) (*Client, error) {
		key, err := ParseKey(document)
		if err != nil {
			return nil, err
		}
		c, err := New(baseURL, key.ID, key.Secret, options...)
		if err != nil {
			return nil, err
		}
		c.mode = key.Mode
		return c, nil
	}
}

// Mode is the mode of the client's key.
func (c *Client) Mode() payment.Mode { return c.mode }

// KeyID is the public half of the client's key, which the browser's checkout needs.
func (c *Client) KeyID() string { return c.keyID }

// OpenOrder creates the gateway's order for o, with o's id as receipt and with the note, and returns its id. Errors wrap
// [payment.ErrGatewayRefused], or [payment.ErrOutcomeUnknown]: then it may exist, and FindOrder may find it.
func (c *Client) OpenOrder(ctx context.Context, o payment.Order, note string) (string, error) {
	notes := map[string]string{noteKey: note}
	for k, v := range o.Notes {
		if k != noteKey {
			notes[k] = v
		}
	}
	opened, err := c.CreateOrder(ctx, OrderRequest{
		Amount: o.Amount, Receipt: o.ID, Notes: notes, Partial: o.Partial,
		AutomaticExpiry: automaticExpiry, ManualExpiry: manualExpiry, RefundSpeed: "normal",
	})
	return opened.ID, err
}

// FindOrder looks for an order that OpenOrder created with this note, and returns the first if there are several.
// [payment.ErrNotFound] if there is none, otherwise [payment.ErrOutcomeUnknown]. A receipt alone proves nothing: receipts
// are not unique.
func (c *Client) FindOrder(ctx context.Context, o payment.Order, note string) (string, error) {
	orders, err := c.OrdersByReceipt(ctx, o.ID)
	if err != nil {
		return "", err
	}
	orders = slices.DeleteFunc(orders, func(found Order) bool {
		return found.Notes[noteKey] != note || found.Amount != o.Amount
	})
	if len(orders) == 0 {
		return "", payment.ErrNotFound
	}
	first := slices.MinFunc(orders, func(a, b Order) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return first.ID, nil
}

// GatewayOrder reads an order, whoever created it. [payment.ErrNotFound] if the gateway shows us none of that id,
// otherwise [payment.ErrOutcomeUnknown].
func (c *Client) GatewayOrder(ctx context.Context, id string) (payment.GatewayOrder, error) {
	o, err := c.Order(ctx, id)
	if err != nil {
		return payment.GatewayOrder{}, err
	}
	return payment.GatewayOrder{ID: o.ID, Amount: o.Amount, Paid: o.Status == "paid", Note: o.Notes[noteKey]}, nil
}
