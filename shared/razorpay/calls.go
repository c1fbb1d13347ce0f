package razorpay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"paidonce/shared/payment"
)

// An OrderRequest asks for a new order at the gateway, whose payments are captured automatically.
type OrderRequest struct {
	Amount  payment.Money     // at least 100 for INR
	Receipt string            // our own id, up to 40 characters; the gateway does not keep receipts unique
	Notes   map[string]string // up to 15 pairs, 256 characters each
	Partial bool              // the customer may pay in parts

	// How long an authorized payment may wait to be captured, in minutes (12 to 7200): automatically until
	// AutomaticExpiry, by hand until ManualExpiry, then it is voided at RefundSpeed (normal or optimum). If all are
	// zero, the settings of the gateway's dashboard count.
	AutomaticExpiry int
	ManualExpiry    int
	RefundSpeed     string
}

type capture struct {
	Mode    string          `json:"capture"`
	Options *captureOptions `json:"capture_options,omitempty"`
}

type captureOptions struct {
	AutomaticExpiry int    `json:"automatic_expiry_period,omitempty"`
	ManualExpiry    int    `json:"manual_expiry_period,omitempty"`
	RefundSpeed     string `json:"refund_speed,omitempty"`
}

// CreateOrder creates an order. It is sent once. Unless [NotDone] says otherwise of its error, the order may exist: look
// it up with [Client.OrdersByReceipt] before another call.
func (c *Client) CreateOrder(ctx context.Context, r OrderRequest) (Order, error) {
	const op = "create order"
	settings := capture{Mode: "automatic"}
	if options := (captureOptions{r.AutomaticExpiry, r.ManualExpiry, r.RefundSpeed}); options != (captureOptions{}) {
		settings.Options = &options
	}
	body, err := json.Marshal(struct {
		Amount   int64             `json:"amount"`
		Currency string            `json:"currency"`
		Receipt  string            `json:"receipt,omitempty"`
		Notes    map[string]string `json:"notes,omitempty"`
		Partial  bool              `json:"partial_payment,omitempty"`
		Payment  capture           `json:"payment"`
	}{r.Amount.Amount, r.Amount.Currency, r.Receipt, r.Notes, r.Partial, settings})
	if err != nil {
		return Order{}, opError(op, err)
	}
	var answer wholeOrder
	if err := c.do(ctx, http.MethodPost, "orders", nil, body, &answer); err != nil {
		return Order{}, opError(op, err)
	}
	return finished(op, answer.order)
}

// Order reads one order.
func (c *Client) Order(ctx context.Context, id string) (Order, error) {
	op := "read order " + shown(id)
	if !word(id) {
		return Order{}, opError(op, errNoID)
	}
	var answer wholeOrder
	if err := c.get(ctx, "orders/"+id, nil, &answer); err != nil {
		return Order{}, opError(op, err)
	}
	return finished(op, answer.order)
}

// OrdersByReceipt reads all orders with exactly this receipt, newest first. The gateway's own filter matches parts of
// receipts too, and several orders may share one.
func (c *Client) OrdersByReceipt(ctx context.Context, receipt string) ([]Order, error) {
	op := "read orders by receipt"
	if receipt == "" {
		return nil, opError(op, errNoID) // the gateway would list every order
	}
	entities, err := pages[wholeOrder](ctx, c, "orders", url.Values{"receipt": {receipt}})
	if err != nil {
		return nil, opError(op, err)
	}
	var orders []Order
	seen := map[string]bool{}
	for _, entity := range entities {
		if entity.Receipt != receipt {
			continue
		}
		order, err := finished(op, entity.order)
		if err != nil {
			return nil, err
		}
		if !seen[order.ID] { // a new order shifts the pages
			seen[order.ID] = true
			orders = append(orders, order)
		}
	}
	return orders, nil
}

// OrderPayments reads all payments of an order, failed ones included. An order without any has none; that is no error.
func (c *Client) OrderPayments(ctx context.Context, gatewayOrderID string) ([]payment.PaymentFact, error) {
	op := "read payments of order " + shown(gatewayOrderID)
	if !word(gatewayOrderID) {
		return nil, opError(op, errNoID)
	}
	var answer collection[paymentEntity]
	if err := c.get(ctx, "orders/"+gatewayOrderID+"/payments", nil, &answer); err != nil {
		return nil, opError(op, err)
	}
	if err := answer.check(); err != nil {
		return nil, opError(op, err)
	}
	return paymentFacts(op, answer.Items)
}

// Payment reads one payment.
func (c *Client) Payment(ctx context.Context, id string) (payment.PaymentFact, error) {
	op := "read payment " + shown(id)
	if !word(id) {
		return payment.PaymentFact{}, opError(op, errNoID)
	}
	var answer paymentEntity
	if err := c.get(ctx, "payments/"+id, nil, &answer); err != nil {
		return payment.PaymentFact{}, opError(op, err)
	}
	return finished(op, answer.fact)
}

// Payments reads all payments created from one time to another, both included, to the second. The window should lie
// in the past: payments that come in while it is read shift the gateway's pages.
func (c *Client) Payments(ctx context.Context, from, to time.Time) ([]payment.PaymentFact, error) {
	const op = "read payments"
	entities, err := pages[paymentEntity](ctx, c, "payments", url.Values{
		"from": {strconv.FormatInt(from.Unix(), 10)},
		"to":   {strconv.FormatInt(to.Unix(), 10)},
	})
	if err != nil {
		return nil, opError(op, err)
	}
	return paymentFacts(op, entities)
}

// errNoID refuses an empty or odd id before it changes which resource the URL names.
var errNoID = errors.New("not an id")

func paymentFacts(op string, entities []paymentEntity) ([]payment.PaymentFact, error) {
	var facts []payment.PaymentFact
	for i := range entities {
		fact, err := finished(op, entities[i].fact)
		if err != nil {
			return nil, err
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// finished turns an entity into what callers get.
func finished[T any](op string, convert func() (T, error)) (T, error) {
	value, err := convert()
	if err != nil {
		return value, opError(op, fmt.Errorf("%w: %w", ErrUndecodable, err))
	}
	return value, nil
}

// collection is the gateway's list of entities.
type collection[E any] struct {
	Count *int `json:"count"`
	Items []E  `json:"items"`
}

// check refuses an answer that is no collection, or an incomplete one. Either would pass for an empty list.
func (l collection[E]) check() error {
	if l.Count == nil || *l.Count != len(l.Items) {
		return fmt.Errorf("%w: not a whole collection", ErrUndecodable)
	}
	return nil
}

const (
	pageSize = 100 // the gateway's maximum
	maxPages = 100
)

// pages reads a list whole. Past 10000 entities it fails rather than return a part.
func pages[E any](ctx context.Context, c *Client, path string, query url.Values) ([]E, error) {
	query.Set("count", strconv.Itoa(pageSize))
	var all []E
	for page := range maxPages {
		query.Set("skip", strconv.Itoa(page*pageSize))
		var answer collection[E]
		if err := c.get(ctx, path, query, &answer); err != nil {
			return nil, err
		}
		if err := answer.check(); err != nil {
			return nil, err
		}
		all = append(all, answer.Items...)
		if len(answer.Items) < pageSize {
			return all, nil
		}
	}
	return nil, fmt.Errorf("more than %d entities", maxPages*pageSize)
}
