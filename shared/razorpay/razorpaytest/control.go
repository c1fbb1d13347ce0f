package razorpaytest

import (
	"encoding/json"
	"net/http"
	"time"

	"paidonce/shared/payment"
)

// OrderRequest describes an order that was made past the shop: by hand in the dashboard, or by another shop on the same
// account. Unlike the API it allows an amount of nothing.
type OrderRequest struct {
	ID       string            `json:"id"` // empty: made up
	Amount   int64             `json:"amount"`
	Currency string            `json:"currency"`
	Receipt  string            `json:"receipt"`
	Notes    map[string]string `json:"notes"`
}

// PaymentRequest describes a customer's attempt to pay.
type PaymentRequest struct {
	OrderID  string `json:"order_id"` // empty: a payment without an order
	Amount   int64  `json:"amount"`   // minor units; 0: what is due on the order, or all of it if nothing is
	Currency string `json:"currency"` // empty: the order's, or INR; money of another than the order's does not pay it
	Status   string `json:"status"`   // created, authorized, captured or failed: how far the attempt gets
	Deliver  *bool  `json:"deliver"`  // false keeps its webhooks back
}

// Move describes what becomes of a payment: created or failed may go to authorized or captured, created to failed,
// authorized to captured.
type Move struct {
	Status  string `json:"status"`
	Deliver *bool  `json:"deliver"` // false keeps its webhooks back
}

// AddOrder makes an order and returns its id.
func (g *Gateway) AddOrder(r OrderRequest) (id string, err error) {
	o, refused := g.addForeignOrder(r)
	if refused != nil {
		return "", refused
	}
	return o.ID, nil
}

// Pay makes a payment and returns its id. A capture emits payment.authorized, payment.captured and, if it pays the
// order, order.paid; a failure emits payment.failed. Capturing more than an order wants is possible, as when two
// attempts race.
func (g *Gateway) Pay(r PaymentRequest) (id string, err error) {
	id, refused := g.pay(r)
	if refused != nil {
		return "", refused
	}
	return id, nil
}

// Move moves a payment on and emits what goes with it.
func (g *Gateway) Move(paymentID string, to Move) error {
	if refused := g.movePayment(paymentID, to); refused != nil {
		return refused
	}
	return nil
}

func (g *Gateway) addForeignOrder(r OrderRequest) (orderEntity, *refusal) {
	request := orderRequest{id: r.ID, amount: r.Amount, currency: r.Currency, notes: r.Notes}
	if r.Receipt != "" {
		request.receipt = &r.Receipt
	}
	if refused := request.checkLabels(); refused != nil {
		return orderEntity{}, refused
	}
	switch {
	case r.Amount < 0 || r.Amount > maxAmount:
		return orderEntity{}, badRequest("amount", "The amount is out of range.")
	case !payment.IsCurrency(r.Currency):
		return orderEntity{}, badRequest("currency", "The currency is not supported.")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.ID != "" && g.order(r.ID) != nil {
		return orderEntity{}, badRequest("id", "The id is taken.")
	}
	return *g.addOrder(request), nil
}

func (g *Gateway) pay(r PaymentRequest) (id string, refused *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var of *orderEntity
	if r.OrderID != "" {
		if of = g.order(r.OrderID); of == nil {
			return "", errNoSuchID
		}
		if r.Amount == 0 {
			r.Amount = of.AmountDue
		}
		if r.Amount == 0 {
			r.Amount = of.Amount
		}
		if r.Currency == "" {
			r.Currency = of.Currency
		}
	}
	if r.Currency == "" {
		r.Currency = "INR"
	}
	switch r.Status {
	case created, authorized, captured, failed:
	default:
		return "", badRequest("status", "The status must be created, authorized, captured or failed.")
	}
	switch {
	case r.Amount < 0 || r.Amount > maxAmount || r.Amount == 0 && of == nil:
		return "", badRequest("amount", "The amount is out of range.")
	case !payment.IsCurrency(r.Currency):
		return "", badRequest("currency", "The currency is not supported.")
	}
	p := g.addPayment(of, r.Amount, r.Currency)
	if r.Status != created {
		refused = g.move(p, r.Status, r.Deliver == nil || *r.Deliver)
	}
	return p.ID, refused
}

func (g *Gateway) movePayment(id string, to Move) *refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.payment(id)
	if p == nil {
		return errNoSuchID
	}
	return g.move(p, to.Status, to.Deliver == nil || *to.Deliver)
}

// controlRoutes serves the control interface.
func (g *Gateway) controlRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /_sim/orders", command(func(_ *http.Request, body OrderRequest) (any, *refusal) {
		order, refused := g.addForeignOrder(body)
		return order, refused
	}))
	mux.HandleFunc("POST /_sim/payments", command(func(_ *http.Request, body PaymentRequest) (any, *refusal) {
		id, refused := g.pay(body)
		return map[string]string{"id": id}, refused
	}))
	mux.HandleFunc("POST /_sim/payments/{id}", command(func(r *http.Request, body Move) (any, *refusal) {
		id := r.PathValue("id")
		return map[string]string{"id": id}, g.movePayment(id, body)
	}))
	mux.HandleFunc("POST /_sim/delivery", command(func(_ *http.Request, body DeliveryChange) (any, *refusal) {
		settings, refused := g.changeDelivery(body)
		return settings, refused
	}))
	mux.HandleFunc("POST /_sim/faults", command(func(_ *http.Request, body []Fault) (any, *refusal) {
		return map[string]int{"faults": len(body)}, g.setFaults(body)
	}))
	mux.HandleFunc("POST /_sim/clock", command(func(_ *http.Request, body struct {
		Seconds int64 `json:"advance_seconds"`
	}) (any, *refusal) {
		if body.Seconds < 0 || body.Seconds > 1e9 {
			return nil, badRequest("advance_seconds", "The clock cannot be set so.")
		}
		g.Advance(time.Duration(body.Seconds) * time.Second)
		return map[string]time.Time{"now": g.Now()}, nil
	}))
	mux.HandleFunc("GET /_sim/deliveries", answer(func(r *http.Request) (any, *refusal) {
		deliveries := g.Deliveries()
		if r.URL.Query().Get("body") != "true" {
			for i := range deliveries {
				deliveries[i].Body = nil
			}
		}
		return deliveries, nil
	}))
	mux.HandleFunc("/", answer(func(*http.Request) (any, *refusal) { return nil, errNoSuchURL }))
	return mux
}

// command decodes a JSON body strictly: a misspelt field must not pass unnoticed in a test.
func command[B any](run func(*http.Request, B) (any, *refusal)) http.HandlerFunc {
	return answer(func(r *http.Request) (any, *refusal) {
		var body B
		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&body); err != nil {
			return nil, badRequest("", err.Error())
		}
		return run(r, body)
	})
}
