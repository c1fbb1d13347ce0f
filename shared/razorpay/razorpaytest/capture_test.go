package razorpaytest_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/razorpay/razorpaytest"
)

func capturePayment(t *testing.T, url, id, body string) reply {
	t.Helper()
	status, answer := call(t, http.MethodPost, url+"/v1/payments/"+id+"/capture", body)
	return decodeReply(t, status, answer)
}

func TestCapture(t *testing.T) {
	gateway, url, client := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	order := addOrder(t, gateway, 1000)
	id := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: "authorized"})
	r := capturePayment(t, url, id, `{"amount":1000,"currency":"INR"}`)
	if r.status != 200 || r.ID != id || r.Status != "captured" || !r.Captured {
		t.Errorf("%d %s", r.status, r.raw)
	}
	got, err := client.Order(t.Context(), order)
	if err != nil || got.Status != "paid" || got.AmountPaid != 1000 {
		t.Errorf("order %+v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"payment.authorized", "payment.captured", "order.paid"}, receiver.names(t, gateway)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestCapturesRefused(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	of := func(status string) string {
		return pay(t, gateway, razorpaytest.PaymentRequest{Amount: 1000, Status: status})
	}
	raced := addOrder(t, gateway, 1000)
	second := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: raced, Status: "authorized"})
	pay(t, gateway, razorpaytest.PaymentRequest{OrderID: raced, Status: "captured"})
	returned := of("captured")
	if r := refund(t, url, returned, "", `{}`); r.status != 200 {
		t.Fatal(r.raw)
	}
	const good = `{"amount":1000,"currency":"INR"}`
	for name, test := range map[string]struct{ id, body, says string }{
		"unknown payment":  {"pay_Nope", good, "The id provided does not exist"},
		"less":             {of("authorized"), `{"amount":999,"currency":"INR"}`, "Capture amount must be equal to the amount authorized"},
		"more":             {of("authorized"), `{"amount":1001,"currency":"INR"}`, "Capture amount must be equal to the amount authorized"},
		"another currency": {of("authorized"), `{"amount":1000,"currency":"USD"}`, "Capture currency must be that of the payment"},
		"no currency":      {of("authorized"), `{"amount":1000}`, "The currency is not supported."},
		"no amount":        {of("authorized"), `{"currency":"INR"}`, "Amount cannot be blank."},
		"a fraction":       {of("authorized"), `{"amount":1000.5,"currency":"INR"}`, "The amount must be an integer."},
		"unknown field":    {of("authorized"), `{"amount":1000,"currency":"INR","notes":{}}`, "notes is/are not required and should not be sent"},
		"no body":          {of("authorized"), ``, "The request body is not a JSON object."},
		"captured":         {of("captured"), good, "This payment has already been captured"},
		"refunded":         {returned, good, "This payment has already been captured"},
		"begun":            {of("created"), good, "Payment is not in authorized state."},
		"failed":           {of("failed"), good, "Payment is not in authorized state."},
		"order paid":       {second, good, "Your payment has been declined as the order is already paid. Please initiate the payment with a new order."},
	} {
		t.Run(name, func(t *testing.T) {
			if r := capturePayment(t, url, test.id, test.body); r.status != 400 || r.Error.Description != test.says {
				t.Errorf("%d %s, want %q", r.status, r.raw, test.says)
			}
		})
	}
	if p := read(t, url, "/v1/payments/"+second); p.Status != "authorized" {
		t.Errorf("the surplus payment is %s", p.raw)
	}
}
