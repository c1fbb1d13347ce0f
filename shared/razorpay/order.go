package razorpay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
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

// CreateOrder creates an order (Razorpay, "Create an order"). Errors wrap [payment.ErrGatewayRefused] or
// [payment.ErrOutcomeUnknown]. Unless [NotDone] says otherwise of the error, the order may exist: look it up with
// [Client.OrdersByReceipt] before another call.
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
		return Order{}, writeError(op, err)
	}
	var answer wholeOrder
	if err := c.post(ctx, request{path: "orders", body: body}, &answer); err != nil {
		return Order{}, writeError(op, err)
	}
	order, err := decoded(answer.order)
	return order, writeError(op, err)
}

// Order reads one order (Razorpay, "Fetch an order with id"). [payment.ErrNotFound] if the gateway shows us none of that
// id.
func (c *Client) Order(ctx context.Context, id string) (Order, error) {
	order, err := c.readOrder(ctx, id)
	return order, readError("read order "+shown(id), err)
}

func (c *Client) readOrder(ctx context.Context, id string) (Order, error) {
	if !word(id) {
		return Order{}, errNoID
	}
	var answer wholeOrder
	if err := c.get(ctx, "orders/"+id, nil, &answer); err != nil {
		return Order{}, err
	}
	order, err := decoded(answer.order)
	if wanted, _ := orderID(id); err == nil && order.ID != wanted {
		return Order{}, fmt.Errorf("%w: %w", ErrUndecodable, errOther)
	}
	return order, err
}

// OrdersByReceipt reads all orders with exactly this receipt, newest first (Razorpay, "Fetch all orders"). The gateway's
// own filter matches parts of receipts too, and several orders may share one.
func (c *Client) OrdersByReceipt(ctx context.Context, receipt string) ([]Order, error) {
	orders, err := c.readOrders(ctx, receipt)
	return orders, listError("read orders by receipt", err)
}

func (c *Client) readOrders(ctx context.Context, receipt string) ([]Order, error) {
	if receipt == "" {
		return nil, errNoID // the gateway would list every order
	}
	entities, err := pages[wholeOrder](ctx, c, "orders", url.Values{"receipt": {receipt}})
	if err != nil {
		return nil, err
	}
	entities = slices.DeleteFunc(entities, func(o wholeOrder) bool { return o.Receipt != receipt })
	return collect(entities, (*wholeOrder).order, func(o Order) string { return o.ID })
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
