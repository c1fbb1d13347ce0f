package razorpaytest

import (
	"net/http"

	"paidonce/shared/payment"
)

// capturePayment captures all of an authorized payment: the gateway knows no partial captures.
func (g *Gateway) capturePayment(r *http.Request) (any, *refusal) {
	body, refused := readBody(r)
	if refused != nil {
		return nil, refused
	}
	var (
		amount   int64
		currency string
	)
	if _, refused := parseFields(body, map[string]any{"amount": &amount, "currency": &currency}); refused != nil {
		return nil, refused
	}
	switch {
	case amount == 0:
		return nil, badRequest("amount", "Amount cannot be blank.")
	case !payment.IsCurrency(currency):
		return nil, badRequest("currency", "The currency is not supported.")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.payments.get(r.PathValue("id"))
	if p == nil {
		return nil, errNoSuchID
	}
	if refused := g.checkCapture(p, amount, currency); refused != nil {
		return nil, refused
	}
	g.capture(p, true)
	return *p, nil
}

func (g *Gateway) checkCapture(p *paymentEntity, amount int64, currency string) *refusal {
	o := g.orderOf(p)
	switch {
	case p.busy:
		return errPaymentBusy
	case p.Captured:
		return business("This payment has already been captured")
	case p.Status != authorized:
		return business("Payment is not in authorized state.")
	case o != nil && o.Status == "paid":
		return business("Your payment has been declined as the order is already paid. Please initiate the payment with a new order.")
	case amount != p.Amount:
		return business("Capture amount must be equal to the amount authorized")
	case currency != p.Currency:
		return business("Capture currency must be that of the payment")
	}
	return nil
}
