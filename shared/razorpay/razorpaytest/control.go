package razorpaytest

import (
	"cmp"
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

// RefundRequest describes a refund that somebody makes in the gateway's dashboard, past the shop.
type RefundRequest struct {
	PaymentID string            `json:"payment_id"`
	Amount    int64             `json:"amount"` // minor units; 0: all that is left of the payment
	Receipt   string            `json:"receipt"`
	Notes     map[string]string `json:"notes"`
	Status    string            `json:"status"`  // processed, pending or failed; empty: as the settings say
	Deliver   *bool             `json:"deliver"` // false keeps its webhooks back
}

// Move describes what becomes of a payment or a refund. A payment may go from created or failed to authorized or
// captured, from created to failed, from authorized to captured; a refund from pending to processed or failed, and from
// processed to failed.
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

// Refund refunds a captured payment and returns the refund's id. It is refused for the same reasons as a refund of the
// API. It emits refund.created and, as its status is, refund.processed or refund.failed.
func (g *Gateway) Refund(r RefundRequest) (id string, err error) {
	id, refused := g.refund(r)
	if refused != nil {
		return "", refused
	}
	return id, nil
}

// MoveRefund moves a refund on and emits what goes with it.
func (g *Gateway) MoveRefund(refundID string, to Move) error {
	if refused := g.moveRefundOf(refundID, to); refused != nil {
		return refused
	}
	return nil
}

func (g *Gateway) addForeignOrder(r OrderRequest) (orderEntity, *refusal) {
	request := orderRequest{id: r.ID, amount: r.Amount, currency: r.Currency, notes: r.Notes}
	if r.Receipt != "" {
		request.receipt = &r.Receipt
	}
	if refused := checkLabels(request.receipt, request.notes); refused != nil {
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
	if r.ID != "" && g.orders.get(r.ID) != nil {
		return orderEntity{}, badRequest("id", "The id is taken.")
	}
	return *g.addOrder(request), nil
}

func (g *Gateway) pay(r PaymentRequest) (id string, refused *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var of *orderEntity
	if r.OrderID != "" {
		if of = g.orders.get(r.OrderID); of == nil {
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
	p := g.payments.get(id)
	if p == nil {
		return errNoSuchID
	}
	return g.move(p, to.Status, to.Deliver == nil || *to.Deliver)
}

func (g *Gateway) refund(r RefundRequest) (id string, refused *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	request := refundOrder{notes: r.Notes, speed: "normal"}
	if r.Amount != 0 {
		request.amount = &r.Amount
	}
	if r.Receipt != "" {
		request.receipt = &r.Receipt
	}
	status := cmp.Or(r.Status, g.settings.RefundStatus)
	if !isRefundStatus(status) {
		return "", badRequest("status", "The status must be processed, pending or failed.")
	}
	p := g.payments.get(r.PaymentID)
	if p == nil {
		return "", errNoSuchID
	}
	amount, refused := g.checkRefund(p, request)
	if refused != nil {
		return "", refused
	}
	return g.addRefund(p, amount, request, status, r.Deliver == nil || *r.Deliver).ID, nil
}

func (g *Gateway) moveRefundOf(id string, to Move) *refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.refunds.get(id)
	if f == nil {
		return errNoSuchID
	}
	return g.moveRefund(f, to.Status, to.Deliver == nil || *to.Deliver)
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
	mux.HandleFunc("POST /_sim/refunds", command(func(_ *http.Request, body RefundRequest) (any, *refusal) {
		id, refused := g.refund(body)
		return map[string]string{"id": id}, refused
	}))
	mux.HandleFunc("POST /_sim/refunds/{id}", command(func(r *http.Request, body Move) (any, *refusal) {
		id := r.PathValue("id")
		return map[string]string{"id": id}, g.moveRefundOf(id, body)
	}))
	mux.HandleFunc("POST /_sim/settings", command(func(_ *http.Request, body SettingsChange) (any, *refusal) {
		settings, refused := g.changeSettings(body)
		return settings, refused
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
	mux.HandleFunc("GET /_sim/calls", answer(func(*http.Request) (any, *refusal) { return g.Calls(), nil }))
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
