package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/refund"
	"paidonce/shared/storetest"
)

const good = `{"id":"r1","amount":19900,"reason":"one of two came back"}`

type fields = map[string]any

func TestRefund(t *testing.T) {
	b := setup(t)
	made := b.call(t, orderID, good).want(t, http.StatusCreated, fields{
		"id": "r1", "order": orderID, "status": "processed", "payment_id": b.payment, "amount": 19900.0, "currency": "INR",
		"receipt": payment.Receipt("shop", orderID, "r1"), "created_at": "2026-11-30T10:00:05Z",
	})
	id, _ := made.body["refund_id"].(string)
	if !strings.HasPrefix(id, "rfnd_") {
		t.Errorf("refund %q", id)
	}
	logged := fields{
		"msg": "refund", "level": "INFO", "order": orderID, "refund_request": "r1", "payment": b.payment, "refund": id,
		"outcome": "processed", "request_id": "req-1", "route": "POST /orders/{id}/refunds",
	}
	for name, want := range logged {
		if made.log[name] != want {
			t.Errorf("logged %s = %v, want %v", name, made.log[name], want)
		}
	}
	b.call(t, orderID, good).want(t, http.StatusOK, fields{"refund_id": id, "status": "processed"})
	b.call(t, orderID, fmt.Sprintf(`{"id":"r1","amount":19900,"payment_id":%q}`, b.payment)).want(t, http.StatusOK, fields{"refund_id": id})
	b.call(t, orderID, `{"id":"r1","amount":19901}`).want(t, http.StatusConflict, fields{"error": payment.ErrDifferentRefund.Error()})
	b.call(t, orderID, `{"id":"r1","amount":19900,"payment_id":"pay_other"}`).want(t, http.StatusConflict, fields{"error": payment.ErrDifferentRefund.Error()})
	b.call(t, orderID, `{"id":"r2","amount":30001}`).want(t, http.StatusUnprocessableEntity, fields{"error": "more than is refundable"})
	b.call(t, orderID, `{"id":"r2","amount":30000}`).want(t, http.StatusCreated, nil)
}

func TestPendingThenFailed(t *testing.T) {
	b := setup(t)
	_, err := b.gateway.ChangeSettings(razorpaytest.SettingsChange{RefundStatus: new("pending")})
	b.must(t, err)
	id := b.call(t, orderID, good).want(t, http.StatusCreated, fields{"status": "pending"}).body["refund_id"]
	b.gatewaySays(t, payment.RefundFact{
		ID: id.(string), PaymentID: b.payment, Status: payment.RefundFailed, Amount: rupees(19900), Receipt: payment.Receipt("shop", orderID, "r1"),
	})
	b.call(t, orderID, good).want(t, http.StatusOK, fields{"status": "failed", "refund_id": id})
}

func TestBadRequests(t *testing.T) {
	b := setup(t)
	for _, test := range []struct{ name, body, field string }{
		{"no id", `{"amount":100}`, "id"},
		{"id empty", `{"id":"","amount":100}`, "id"},
		{"id a path", `{"id":"../x","amount":100}`, "id"},
		{"id too long", `{"id":"` + strings.Repeat("r", 41) + `","amount":100}`, "id"},
		{"id a number", `{"id":7,"amount":100}`, "id"},
		{"no amount", `{"id":"r1"}`, "amount"},
		{"amount null", `{"id":"r1","amount":null}`, "amount"},
		{"amount 0", `{"id":"r1","amount":0}`, "amount"},
		{"amount negative", `{"id":"r1","amount":-100}`, "amount"},
		{"amount 1.5", `{"id":"r1","amount":1.5}`, "amount"},
		{"amount 100.0", `{"id":"r1","amount":100.0}`, "amount"},
		{"amount 1e2", `{"id":"r1","amount":1e2}`, "amount"},
		{"amount a text", `{"id":"r1","amount":"1"}`, "amount"},
		{"amount too large", `{"id":"r1","amount":1000000000000001}`, "amount"},
		{"amount beyond 64 bits", `{"id":"r1","amount":18446744073709551716}`, "amount"},
		{"payment_id odd", `{"id":"r1","amount":100,"payment_id":"pay_1/refund"}`, "payment_id"},
		{"payment_id a number", `{"id":"r1","amount":100,"payment_id":1}`, "payment_id"},
		{"reason too long", `{"id":"r1","amount":100,"reason":"` + strings.Repeat("x", 501) + `"}`, "reason"},
		{"force a text", `{"id":"r1","amount":100,"force":"yes"}`, "force"},
		{"unknown field", `{"id":"r1","amount":100,"currency":"INR"}`, "body"},
		{"empty", ``, "body"},
		{"not JSON", `id=r1&amount=100`, "body"},
		{"a list", `[{"id":"r1","amount":100}]`, "body"},
		{"null", `null`, "id"},
		{"second value", good + `{}`, "body"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.call(t, orderID, test.body).want(t, http.StatusBadRequest, fields{"field": test.field})
		})
	}
	base64 := events.APIGatewayV2HTTPRequest{PathParameters: map[string]string{"id": orderID}, Body: "{", IsBase64Encoded: true}
	b.handle(t, base64).want(t, http.StatusBadRequest, fields{"field": "body"})
	if calls := b.gateway.Calls(); len(calls) > 0 {
		t.Errorf("the gateway was called: %v", calls)
	}
	b.call(t, orderID, `{"id":"r1","amount":100,"reason":"`+strings.Repeat("₹", 500)+`"}`).want(t, http.StatusCreated, nil)
}

func TestUnknownOrder(t *testing.T) {
	b := setup(t)
	for _, id := range []string{"nobody", strings.Repeat("x", 3000), ""} {
		b.call(t, id, good).want(t, http.StatusNotFound, fields{"error": "not found"})
	}
}

func TestDisputed(t *testing.T) {
	b := setup(t)
	b.gatewaySays(t, payment.DisputeFact{ID: "disp_1", PaymentID: b.payment, Status: payment.DisputeOpen, Phase: payment.PhaseChargeback, Amount: rupees(paid)})
	b.call(t, orderID, good).want(t, http.StatusConflict, fields{"error": "disputed"})
	b.call(t, orderID, `{"id":"r1","amount":19900,"force":true}`).want(t, http.StatusCreated, nil)
}

func TestPaymentNeeded(t *testing.T) {
	b := setup(t)
	second := b.pay(t)
	b.call(t, orderID, good).want(t, http.StatusUnprocessableEntity, fields{"error": payment.ErrPaymentNeeded.Error()})
	b.call(t, orderID, fmt.Sprintf(`{"id":"r1","amount":19900,"payment_id":%q}`, second)).want(t, http.StatusCreated, fields{"payment_id": second})
	b.call(t, orderID, `{"id":"r2","amount":1,"payment_id":"pay_nobody"}`).want(t, http.StatusUnprocessableEntity, fields{"error": "more than is refundable"})
}

func TestOutcomeUnknown(t *testing.T) {
	b := setup(t)
	b.fail(t, razorpaytest.ServerErrorAfter, 1)
	r := b.call(t, orderID, good).want(t, http.StatusAccepted, fields{"id": "r1", "status": "unknown", "refund_id": nil})
	if r.log["outcome"] != "open" || r.log["level"] != "INFO" {
		t.Errorf("logged %v", r.log)
	}
	b.call(t, orderID, good).want(t, http.StatusOK, fields{"status": "processed"})
}

// TestRefused has the gateway refuse. The shop is told why in our words, every time that it asks.
func TestRefused(t *testing.T) {
	balance := int64(100)
	for name, test := range map[string]struct {
		set    func(t *testing.T, b *bench)
		status int
		reason string
	}{
		"amount exceeded": {func(t *testing.T, b *bench) {
			_, err := b.gateway.Refund(razorpaytest.RefundRequest{PaymentID: b.payment, Amount: 40000})
			b.must(t, err)
		}, http.StatusUnprocessableEntity, "amount_exceeded"},
		"already refunded": {func(t *testing.T, b *bench) {
			_, err := b.gateway.Refund(razorpaytest.RefundRequest{PaymentID: b.payment})
			b.must(t, err)
		}, http.StatusUnprocessableEntity, "already_refunded"},
		"insufficient balance": {func(t *testing.T, b *bench) {
			_, err := b.gateway.ChangeSettings(razorpaytest.SettingsChange{Balance: &balance})
			b.must(t, err)
		}, http.StatusBadGateway, "insufficient_balance"},
		"too old": {func(_ *testing.T, b *bench) { b.gateway.Advance(200 * 24 * time.Hour) }, http.StatusBadGateway, "payment_too_old"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			test.set(t, b)
			for range 2 {
				r := b.call(t, orderID, good).want(t, test.status, fields{"error": "the gateway refused", "reason": test.reason})
				if len(r.body) != 2 || r.log["outcome"] != "failed: "+test.reason || r.log["refund_request"] != "r1" {
					t.Errorf("answered %s, logged %v", r.text, r.log)
				}
			}
		})
	}
}

func TestStoreFails(t *testing.T) {
	for method, status := range map[string]int{"RefundRequest": 500, "Commit": 503, "PutRefundRequest": 503} {
		t.Run(method, func(t *testing.T) {
			b := setup(t)
			commits := 0
			b.memory.Faults = func(called string) storetest.Fault {
				if called == "Commit" {
					commits++
				}
				if called == method && (method != "Commit" || commits == 2) { // what the gateway answered is not written down
					return storetest.NotDone
				}
				return storetest.None
			}
			r := b.call(t, orderID, good).want(t, status, nil)
			if r.log["level"] != "ERROR" || !strings.Contains(fmt.Sprint(r.log["error"]), storetest.ErrFault.Error()) || strings.Contains(r.text, "storetest") {
				t.Errorf("answered %s, logged %v", r.text, r.log)
			}
			b.memory.Faults = nil
			if again := b.call(t, orderID, good); again.status != http.StatusOK && again.status != http.StatusCreated {
				t.Errorf("called again: %d %s", again.status, again.text)
			}
		})
	}
}

// refunderOf answers with an error.
type refunderOf struct{ err error }

func (r refunderOf) Request(context.Context, string, refund.Ask) (refund.Answer, error) {
	return refund.Answer{}, r.err
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		says   string
	}{
		{payment.ErrVersionConflict, http.StatusServiceUnavailable, "order was changed by somebody else"},
		{fmt.Errorf("refund: %w: %w", payment.ErrOutcomeUnknown, errors.New("inner")), http.StatusServiceUnavailable, "outcome unknown"},
		{&payment.Refusal{Reason: payment.RefusedUnknownID, Cause: errors.New("inner")}, http.StatusBadGateway, "the gateway refused"},
		{errors.New("inner"), http.StatusInternalServerError, "internal error"},
	} {
		b := setup(t)
		b.refunder = refunderOf{test.err}
		r := b.call(t, orderID, good).want(t, test.status, fields{"error": test.says})
		if strings.Contains(r.text, "inner") {
			t.Errorf("answered %s", r.text)
		}
	}
}
