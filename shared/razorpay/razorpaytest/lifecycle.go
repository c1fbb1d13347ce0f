package razorpaytest

import (
	"cmp"
	"time"
)

// The statuses of a payment. It goes from created to authorized to captured to refunded, or fails; a failed one may still
// be authorized days later, and one that nobody captures is refunded without having been captured.
const (
	created    = "created"
	authorized = "authorized"
	captured   = "captured"
	refunded   = "refunded"
	failed     = "failed"
)

// addOrder makes an order. The caller holds mu.
func (g *Gateway) addOrder(r orderRequest) *orderEntity {
	if r.id == "" {
		r.id = g.newID("order_")
	}
	o := &orderEntity{
		ID: r.id, Entity: "order", Amount: r.amount, AmountDue: r.amount, Currency: r.currency, Receipt: r.receipt,
		Status: "created", Notes: r.notes, CreatedAt: g.now().Unix(),
		manualExpiry: cmp.Or(r.manualExpiry, g.config.ManualExpiry), refundSpeed: r.refundSpeed,
	}
	g.orders.add(o.ID, o)
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
		of.payments = append(of.payments, p)
	}
	g.payments.add(p.ID, p)
	return p
}

// orderOf returns a payment's order, or nil. The caller holds mu.
func (g *Gateway) orderOf(p *paymentEntity) *orderEntity {
	if p.OrderID == nil {
		return nil
	}
	return g.orders.get(*p.OrderID)
}

// move brings a payment to another status and emits the events that go with it, unless they are to be kept back. A
// capture passes through authorized. The caller holds mu.
func (g *Gateway) move(p *paymentEntity, status string, deliver bool) *refusal {
	fresh := p.Status == created || p.Status == failed
	switch {
	case status == failed && p.Status == created:
		g.markFailed(p)
		if deliver {
			g.emit("payment.failed", p, nil, nil)
		}
	case fresh && (status == authorized || status == captured):
		g.authorize(p)
		if deliver {
			g.emit("payment.authorized", p, nil, nil)
		}
		o := g.orderOf(p)
		switch {
		case g.settings.AutoRefundSurplus && o != nil && o.Status == "paid":
			g.refundUncaptured(p, deliver)
		case status == captured:
			g.capture(p, deliver)
		default:
			g.awaitCapture(p, deliver)
		}
	case status == captured && p.Status == authorized:
		g.capture(p, deliver)
	default:
		return badRequest("status", "A payment cannot go from "+p.Status+" to "+status+".")
	}
	return nil
}

// awaitCapture refunds an authorized payment once its time to be captured is over: now, if it was authorized too late.
func (g *Gateway) awaitCapture(p *paymentEntity, deliver bool) {
	expiry := g.config.ManualExpiry
	if o := g.orderOf(p); o != nil {
		expiry = o.manualExpiry
	}
	over := time.Unix(p.CreatedAt, 0).UTC().Add(expiry)
	if !over.After(g.now()) {
		g.refundUncaptured(p, deliver)
		return
	}
	g.schedule(over, func() {
		if p.Status == authorized {
			g.refundUncaptured(p, true)
		}
	})
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

// capture takes the money of an authorized payment. The caller holds mu.
func (g *Gateway) capture(p *paymentEntity, deliver bool) {
	fee := p.Amount / 50 // 2 %, of which 18 % tax
	p.Status, p.Captured, p.Fee, p.Tax = captured, true, new(fee), new(fee*18/118)
	o := g.orderOf(p)
	completes := o != nil && o.receive(p)
	if !deliver {
		return
	}
	g.emit("payment.captured", p, nil, nil)
	if completes {
		g.emit("order.paid", p, o, nil)
	}
}

// receive counts a payment towards the order, unless it is in another currency, and reports whether this was what paid
// the order.
func (o *orderEntity) receive(p *paymentEntity) (completes bool) {
	if p.Currency != o.Currency {
		return false
	}
	o.AmountPaid += p.Amount
	o.AmountDue = max(0, o.Amount-o.AmountPaid)
	if o.Status == "paid" || o.AmountDue > 0 {
		return false
	}
	o.Status = "paid"
	return true
}

func (g *Gateway) markAttempted(p *paymentEntity) {
	if o := g.orderOf(p); o != nil && o.Status == "created" {
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
