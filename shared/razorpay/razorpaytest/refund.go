package razorpaytest

import "time"

// The statuses of a refund, beside failed. It goes from pending to processed or failed; even a processed one may come
// back from the bank as failed.
const (
	pending   = "pending"
	processed = "processed"
)

// refundOrder is a request for a refund.
type refundOrder struct {
	amount  *int64 // nil: all that is left
	speed   string // normal or optimum
	receipt *string
	notes   pairs
}

// parseRefund reads the body of POST /v1/payments/{id}/refund. No body at all will do for an empty object.
func parseRefund(body []byte) (refundOrder, *refusal) {
	r := refundOrder{speed: "normal"}
	if len(body) == 0 {
		return r, nil
	}
	fields, refused := parseFields(body, map[string]any{
		"amount": &r.amount, "speed": &r.speed, "receipt": &r.receipt, "notes": &r.notes,
	})
	if refused != nil {
		return refundOrder{}, refused
	}
	if _, there := fields["amount"]; there && r.amount == nil {
		return refundOrder{}, badRequest("amount", "The amount must be an integer.") // null must not refund everything
	}
	if r.receipt != nil && *r.receipt == "" {
		r.receipt = nil
	}
	if r.speed != "normal" && r.speed != "optimum" {
		return refundOrder{}, badRequest("speed", "The speed must be normal or optimum.")
	}
	return r, nil
}

// checkRefund refuses a refund of a payment that cannot be, or returns its amount. The caller holds mu.
func (g *Gateway) checkRefund(p *paymentEntity, r refundOrder) (amount int64, refused *refusal) {
	if refused := checkLabels(r.receipt, r.notes); refused != nil {
		return 0, refused
	}
	left := p.Amount - p.returned()
	amount = value(r.amount, left)
	switch {
	case p.busy:
		return 0, errPaymentBusy
	case p.Status == refunded && left == 0:
		return 0, business("The payment has been fully refunded already.")
	case !p.Captured:
		return 0, business("The payment status should be captured for action to be taken")
	case r.receipt != nil && g.isReceiptTaken(*r.receipt):
		return 0, business("Duplicate receipt found for this refund request.")
	case amount == 0:
		return 0, badRequest("amount", "Amount cannot be blank.")
	case amount > p.Amount:
		return 0, business("The refund amount provided is greater than amount captured")
	case amount > left:
		return 0, business("The total refund amount is greater than the refund payment amount")
	}
	if r.amount != nil {
		if refused := checkAmount(amount, p.Currency); refused != nil {
			return 0, refused
		}
	}
	switch {
	case time.Unix(p.CreatedAt, 0).UTC().AddDate(0, 6, 0).Before(g.now()):
		tooOld := business("Refund is not supported by the bank because the payment is more than 6 months old")
		tooOld.reason = ""
		return 0, tooOld
	case g.settings.Balance >= 0 && g.settings.Balance < amount:
		return 0, business("Your account does not have enough balance to carry out the refund operation. You can add funds to your account from your Razorpay dashboard or capture new payments.")
	}
	return amount, nil
}

// isReceiptTaken reports whether a refund of the account has this receipt. A failed one counts.
func (g *Gateway) isReceiptTaken(receipt string) bool {
	for _, f := range g.refunds.all {
		if f.Receipt != nil && *f.Receipt == receipt {
			return true
		}
	}
	return false
}

// returned is the sum of the payment's refunds, without those that failed.
func (p *paymentEntity) returned() (sum int64) {
	for _, f := range p.refunds {
		if f.Status != failed {
			sum += f.Amount
		}
	}
	return sum
}

// addRefund makes a refund that was checked, brings it to a status, and emits the events that go with it, unless they
// are to be kept back. The caller holds mu.
func (g *Gateway) addRefund(p *paymentEntity, amount int64, r refundOrder, status string, deliver bool) *refundEntity {
	f := &refundEntity{
		ID: g.newID("rfnd_"), Entity: "refund", Amount: amount, Currency: p.Currency, PaymentID: p.ID, Notes: r.notes,
		Receipt: r.receipt, CreatedAt: g.now().Unix(), Status: pending, SpeedProcessed: "normal", SpeedRequested: r.speed,
	}
	if r.speed == "optimum" && p.Captured {
		f.SpeedProcessed = "instant"
	}
	if status == processed {
		f.Status = processed // refund.created says so already
	}
	g.refunds.add(f.ID, f)
	p.refunds = append(p.refunds, f)
	if p.Captured {
		g.draw(amount)
	}
	g.showRefunds(p)
	if deliver {
		g.emit("refund.created", p, nil, f)
	}
	switch {
	case status == failed:
		g.moveRefund(f, failed, deliver)
	case status == processed && deliver:
		g.emit("refund.processed", p, nil, f)
	}
	return f
}

// refundUncaptured gives an authorized payment back. The money never was the merchant's. The caller holds mu.
func (g *Gateway) refundUncaptured(p *paymentEntity, deliver bool) {
	r := refundOrder{speed: "normal"}
	if o := g.orderOf(p); o != nil && o.refundSpeed != "" {
		r.speed = o.refundSpeed
	}
	g.addRefund(p, p.Amount, r, g.settings.RefundStatus, deliver)
}

// moveRefund brings a refund to another status and emits the event that goes with it, unless it is to be kept back. The
// caller holds mu.
func (g *Gateway) moveRefund(f *refundEntity, status string, deliver bool) *refusal {
	p := g.payments.get(f.PaymentID)
	switch {
	case status == processed && f.Status == pending:
	case status == failed && f.Status != failed:
		if p.Captured {
			g.draw(-f.Amount)
		}
	default:
		return badRequest("status", "A refund cannot go from "+f.Status+" to "+status+".")
	}
	f.Status = status
	g.showRefunds(p)
	if deliver {
		g.emit("refund."+status, p, nil, f)
	}
	return nil
}

// draw takes money from the merchant's balance. The caller holds mu.
func (g *Gateway) draw(amount int64) {
	if g.settings.Balance >= 0 {
		g.settings.Balance -= amount
	}
}

// showRefunds brings what the payment says of its refunds up to date. The caller holds mu.
func (g *Gateway) showRefunds(p *paymentEntity) {
	p.AmountRefunded = p.returned()
	if g.settings.KeepFailed {
		p.AmountRefunded = 0
		for _, f := range p.refunds {
			p.AmountRefunded += f.Amount
		}
		p.AmountRefunded = min(p.AmountRefunded, p.Amount)
	}
	p.Status, p.RefundStatus = authorized, nil
	if p.Captured {
		p.Status = captured
	}
	switch p.AmountRefunded {
	case 0:
	case p.Amount:
		p.Status, p.RefundStatus = refunded, new("full")
	default:
		p.RefundStatus = new("partial")
	}
}
