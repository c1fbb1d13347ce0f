package dev

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/view"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

func (t *tourist) comeBack(ctx context.Context) error {
	t.title("The customer's browser comes back, and the webhooks do not")
	o, err := t.shop.CreateOrder(ctx, browserOrder, price)
	if err != nil {
		return err
	}
	id, err := t.gateway.Pay(razorpaytest.PaymentRequest{OrderID: *o.GatewayOrderID, Status: "captured", Deliver: new(false)})
	if err != nil {
		return err
	}
	form, err := t.gateway.Checkout(id)
	if err != nil {
		return err
	}
	t.say("The gateway captured %s for %s and keeps its webhooks back. The browser posts the gateway's signed form:", id, browserOrder)
	location, err := t.postCallback(ctx, form)
	if err != nil {
		return err
	}
	t.say("  303 to %s", location)
	paid, err := t.shop.Order(ctx, browserOrder)
	if err != nil {
		return err
	}
	if location.Query().Get("status") != string(payment.Paid) || paid.Status != payment.Paid || paid.FulfilledAt == nil {
		return promised("a paid order by the callback alone", paid)
	}
	t.say("The signature proves whose payment it is, so the application asked the gateway what was paid: %s is %s, fulfilled.", paid.ID, paid.Status)

	form.Set("razorpay_payment_id", "pay_TamperedWith01")
	t.say("Somebody posts the form again, with another payment in it:")
	if location, err = t.postCallback(ctx, form); err != nil {
		return err
	}
	now, err := t.shop.Order(ctx, browserOrder)
	if err != nil {
		return err
	}
	if location.Query().Get("status") != "unknown" || now.Version != paid.Version {
		return promised("status=unknown, and the order as it was", []any{location, now})
	}
	t.say("  303 to %s, and the order is as it was.", location)
	return nil
}

// postCallback posts the form as the browser of browserOrder's customer does, and returns where it is sent on to.
func (t *tourist) postCallback(ctx context.Context, form url.Values) (*url.URL, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, checkoutURL(t.stack.APIURL, browserOrder), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	stay := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := stay.Do(request)
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusSeeOther {
		return nil, promised("303", response.Status)
	}
	return response.Location()
}

func (t *tourist) giveBack(ctx context.Context) error {
	ask := stack.RefundAsk{ID: "refund-1", Amount: 10000}
	t.title("The shop refunds %s of it, twice with the same id", payment.Money{Amount: ask.Amount, Currency: "INR"})
	first, status, err := t.shop.Refund(ctx, browserOrder, ask)
	if err != nil {
		return err
	}
	if status != http.StatusCreated || first.RefundID == nil {
		return promised("201 and the gateway's refund", first)
	}
	t.say("POST /orders/%s/refunds, id %s: 201, the gateway made %s, %s", browserOrder, ask.ID, *first.RefundID, first.Status)
	again, status, err := t.shop.Refund(ctx, browserOrder, ask)
	if err != nil {
		return err
	}
	if status == http.StatusCreated || again.RefundID == nil || *again.RefundID != *first.RefundID {
		return promised("200 and the same refund", again)
	}
	calls := 0
	for _, c := range t.gateway.Calls() {
		if c.Method == http.MethodPost && c.Path == "/v1/payments/"+first.PaymentID+"/refund" {
			calls++
		}
	}
	if calls != 1 {
		return promised("one refund at the gateway", calls)
	}
	t.say("The same again: 200, still %s; the gateway was asked once.", *again.RefundID)
	o, err := t.waitFor(ctx, browserOrder, func(o apigw.Order) bool { return o.Status == payment.PartiallyRefunded })
	if err != nil {
		return err
	}
	t.say("%s is %s: %s refunded.", o.ID, view.InWords(o.Status), payment.Money{Amount: o.AmountRefunded, Currency: o.Currency})
	return nil
}
