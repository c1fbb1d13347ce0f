package razorpaytest

import (
	"slices"
)

// The statuses of a payment. It goes from created to authorized to captured, or fails; a failed one may still be
// authorized days later.
const (
	created    = "created"
	authorized = "authorized"
	captured   = "captured"
	failed     = "failed"
)

// order returns an order, or nil. The caller holds mu.
func (g *Gateway) order(id string) *orderEntity {
	i := slices.IndexFunc(g.orders, func(o *orderEntity) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return g.orders[i]
}

// payment returns a payment, or nil. The caller holds mu.
func (g *Gateway) payment(id string) *paymentEntity {
	i := slices.IndexFunc(g.payments, func(p *paymentEntity) bool { return p.ID == id })
	if i < 0 {
		return nil
	}
	return g.payments[i]
}

// addOrder makes an order. The caller holds mu.
func (g *Gateway) addOrder(r orderRequest) *orderEntity {
	if r.id == "" {
		r.id = g.newID("order_")
	}
	o := &orderEntity{
		ID: r.id, Entity: "order", Amount: r.amount, AmountDue: r.amount, Currency: r.currency, Receipt: r.receipt,
		Status: "created", Notes: r.notes, CreatedAt: g.now().Unix(),
	}
	g.orders = append(g.orders, o)
	return o
}

// addPayment makes a payment in the status created, of an order or (nil) of none. The caller holds mu.
func (g *Gateway) addPayment(of *orderEntity, amount int64, currency string) *paymentEntity {
	p := &paymentEntity{
		ID: g.newID("pay_"), Entity: "payment", Amount: amount, Currency: currency, Status: created, Method: "upi",
		International: currency != "INR", VPA: "buyer@okexample", Email: "buyer@example.com", Contact: "+910000000000",
		CreatedAt: g.now().Unix(),
	}
	if of != nil {
		p.OrderID = &of.ID
		of.Attempts++
	}
	g.payments = append(g.payments, p)
	return p
}

// move brings a payment to another status and emits the events that go with it, unless they are to be kept back. A
// capture passes through authorized. The caller holds mu.
func (g *Gateway) move(p *paymentEntity, status string, deliver bool) *refusal {
	emit := func(name string, o *orderEntity) {
		if deliver {
			g.emit(name, *p, o)
		}
	}
	switch {
	case status == failed && p.Status == created:
		g.markFailed(p)
		emit("payment.failed", nil)
	case status == authorized && (p.Status == created || p.Status == failed):
		g.authorize(p)
		emit("payment.authorized", nil)
	case status == captured && (p.Status == created || p.Status == failed):
		g.authorize(p)
		emit("payment.authorized", nil)
		fallthrough
	case status == captured && p.Status == authorized:
		paid := g.capture(p)
		emit("payment.captured", nil)
		if paid != nil {
			emit("order.paid", paid)
		}
	default:
		return badRequest("status", "A payment cannot go from "+p.Status+" to "+status+".")
	}
	return nil
}

func (g *Gateway) markFailed(p *paymentEntity) {
	p.Status = failed
	p.ErrorCode, p.ErrorDescription = new("BAD_REQUEST_ERROR"), new("Payment failed")
	p.ErrorSource, p.ErrorStep, p.ErrorReason = new("bank"), new("payment_authorization"), new("payment_failed")
	g.markAttempted(p)
}

func (g *Gateway) authorize(p *paymentEntity) {
	p.Status = authorized
	p.ErrorCode, p.ErrorDescription, p.ErrorSource, p.ErrorStep, p.ErrorReason = nil, nil, nil, nil, nil
	p.AcquirerData.RRN = new(g.digits(12))
	g.markAttempted(p)
}

// capture takes the money and returns the payment's order if this was what paid it. Money in another currency does not
// count towards the order.
func (g *Gateway) capture(p *paymentEntity) (paid *orderEntity) {
	fee := p.Amount / 50 // 2 %, of which 18 % tax
	p.Status, p.Captured, p.Fee, p.Tax = captured, true, new(fee), new(fee*18/118)
	if p.OrderID == nil {
		return nil
	}
	o := g.order(*p.OrderID)
	if p.Currency != o.Currency {
		return nil
	}
	o.AmountPaid += p.Amount
	o.AmountDue = max(0, o.Amount-o.AmountPaid)
	if o.Status == "paid" || o.AmountDue > 0 {
		return nil
	}
	o.Status = "paid"
	return o
}

func (g *Gateway) markAttempted(p *paymentEntity) {
	if p.OrderID == nil {
		return
	}
	if o := g.order(*p.OrderID); o.Status == "created" {
		o.Status = "attempted"
	}
}

func (g *Gateway) digits(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('0' + g.config.Rand.IntN(10))
	}
	return string(text)
}
