package razorpaytest_test

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

func TestCheckout(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	order := addOrder(t, gateway, 1000)
	for _, status := range []string{"authorized", "captured"} {
		id := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: status})
		got, err := gateway.Checkout(id)
		if err != nil {
			t.Fatal(err)
		}
		signature := got.Get("razorpay_signature")
		if !razorpay.VerifyCheckout(order, id, signature, keySecret) {
			t.Errorf("%s: signature %q does not verify", status, signature)
		}
		want := url.Values{"razorpay_payment_id": {id}, "razorpay_order_id": {order}, "razorpay_signature": {signature}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
	}
	loose := pay(t, gateway, razorpaytest.PaymentRequest{Amount: 100, Status: "captured"})
	got, err := gateway.Checkout(loose)
	if diff := cmp.Diff(url.Values{"razorpay_payment_id": {loose}}, got); diff != "" || err != nil {
		t.Errorf("without an order: %v (-want +got):\n%s", err, diff)
	}
	lost := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: "failed"})
	got, err = gateway.Checkout(lost)
	want := url.Values{
		"error[code]": {"BAD_REQUEST_ERROR"}, "error[description]": {"Payment failed"}, "error[source]": {"bank"},
		"error[step]": {"payment_authorization"}, "error[reason]": {"payment_failed"},
		"error[metadata]": {`{"payment_id":"` + lost + `","order_id":"` + order + `"}`},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("failed: %v (-want +got):\n%s", err, diff)
	}
	for _, id := range []string{"pay_Nope", pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: "created"})} {
		if got, err := gateway.Checkout(id); err == nil {
			t.Errorf("%s: %v", id, got)
		}
	}
}
