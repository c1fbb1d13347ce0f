package stacktest

import (
	"encoding/json"
	"testing"
	"time"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// OrderTime is when [Order] was made.
var OrderTime = time.Date(2026, 11, 30, 15, 30, 0, 0, time.FixedZone("IST", 5*3600+1800))

// Order is an order that waits for its money, changed.
func Order(changes ...func(*apigw.Order)) apigw.Order {
	gatewayID := "order_1"
	o := apigw.Order{
		ID: "o1", Status: payment.Pending, Derived: payment.Pending, Amount: 49900, Currency: "INR", Mode: payment.Test,
		Gateway: "razorpay", GatewayOrderID: &gatewayID, CreatedAt: OrderTime, UpdatedAt: OrderTime, Version: 2,
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

// Is makes the order one of these statuses, of which so much was captured.
func Is(s, derived payment.Status, paid int64) func(*apigw.Order) {
	return func(o *apigw.Order) { o.Status, o.Derived, o.AmountPaid = s, derived, paid }
}

// Held adds a hold to the order, a minute after it was made.
func Held(r payment.HoldReason, subject string, acknowledged bool) func(*apigw.Order) {
	return func(o *apigw.Order) {
		since := OrderTime.Add(time.Minute)
		o.Holds = append(o.Holds, apigw.Hold{Reason: r, Subject: subject, Blocking: r.Blocking(), Since: &since, Acknowledged: acknowledged})
	}
}

// AsJSON is v as the API answers it.
func AsJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
