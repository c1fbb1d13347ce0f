package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

func rupees(amount int64) payment.Money { return payment.Money{Amount: amount, Currency: "INR"} }

func captured(id string, amount int64) payment.PaymentFact {
	return payment.PaymentFact{ID: id, Status: payment.PaymentCaptured, Amount: rupees(amount)}
}

func dispute(id string) payment.DisputeFact {
	return payment.DisputeFact{ID: id, PaymentID: "pay_1", Status: payment.DisputeOpen, Phase: payment.PhaseChargeback, Amount: rupees(49900)}
}

// operate calls a route of one order and returns the order, or the error text.
func (b *bundle) operate(t *testing.T, route, id string, parameters map[string]string, body string) (int, map[string]any) {
	t.Helper()
	r := events.APIGatewayV2HTTPRequest{RouteKey: route, PathParameters: map[string]string{"id": id}, Body: body}
	for k, v := range parameters {
		r.PathParameters[k] = v
	}
	response, err := b.Handle(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(response.Body), &answer); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode == 200 {
		b.checker.Check(t, id)
	}
	return response.StatusCode, answer
}

func (b *bundle) acknowledgeHold(t *testing.T, id, reason, body string) (int, map[string]any) {
	t.Helper()
	return b.operate(t, "POST /orders/{id}/holds/{reason}/acknowledge", id, map[string]string{"reason": reason}, body)
}

func (b *bundle) closeOrder(t *testing.T, id, body string) (int, map[string]any) {
	t.Helper()
	return b.operate(t, "POST /orders/{id}/close", id, nil, body)
}

// alerts counts how often subscribers are told of a hold.
func (b *bundle) alerts(t *testing.T, id string) map[string]int {
	t.Helper()
	effects, err := b.memory.Effects(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, e := range effects {
		if n, ok := e.(payment.Notification); ok && n.Hold != (payment.HoldKey{}) {
			counts[n.Hold.String()]++
		}
	}
	return counts
}

func TestAnAcknowledgementThatClearsTheWayFulfils(t *testing.T) {
	b := setup()
	b.create(t, good)
	b.gatewaySays(t, "o1", dispute("disp_1"), dispute("disp_2"), captured("pay_1", 49900))
	for _, step := range []struct {
		name, body string
		status     int
		fulfilled  bool
		open       int // holds not acknowledged
	}{
		{"of another subject", `{"by":"ann","why":"spoke to the bank","subject":"disp_9"}`, 404, false, 2},
		{"of the first", `{"by":"ann","why":"spoke to the bank","subject":"disp_1"}`, 200, false, 1},
		{"of the first again", `{"by":"bob","why":"me too","subject":"disp_1"}`, 200, false, 1},
		{"of all that are left", `{"by":"ann","why":"both are mistakes"}`, 200, true, 0},
		{"of all again", `{"by":"bob","why":"me too"}`, 200, true, 0},
	} {
		t.Run(step.name, func(t *testing.T) {
			status, answer := b.acknowledgeHold(t, "o1", "dispute", step.body)
			if status != step.status {
				t.Fatalf("answered %d %v, want %d", status, answer, step.status)
			}
			if status != 200 {
				return
			}
			open := 0
			for _, hold := range answer["holds"].([]any) {
				if hold.(map[string]any)["acknowledged"] == false {
					open++
				}
			}
			if open != step.open || (answer["fulfilled_at"] != nil) != step.fulfilled {
				t.Errorf("%d holds open, fulfilled at %v; want %d, %t", open, answer["fulfilled_at"], step.open, step.fulfilled)
			}
		})
	}
	o, err := b.memory.Order(t.Context(), "o1")
	if err != nil {
		t.Fatal(err)
	}
	kept := o.Holds[payment.HoldKey{Reason: payment.HoldDispute, Subject: "disp_1"}].Acknowledged
	if diff := cmp.Diff(&payment.Acknowledgement{By: "ann", Why: "spoke to the bank", At: now, Detail: "open in phase chargeback"}, kept); diff != "" {
		t.Errorf("kept (-want +got)\n%s", diff)
	}
	// Repeated facts neither alarm again nor put the hold back.
	b.gatewaySays(t, "o1", dispute("disp_1"), captured("pay_1", 49900))
	if diff := cmp.Diff(map[string]int{"dispute disp_1": 1, "dispute disp_2": 1}, b.alerts(t, "o1")); diff != "" {
		t.Errorf("alerts (-want +got)\n%s", diff)
	}
}

func TestAnAcknowledgementCountsForWhatThePersonSaw(t *testing.T) {
	b := setup()
	b.create(t, good)
	b.closeOrder(t, "o1", `{"reason":"out of stock"}`)
	b.gatewaySays(t, "o1", dispute("disp_1"), captured("pay_1", 49900))
	b.acknowledgeHold(t, "o1", "dispute", `{"by":"ann","why":"spoke to the bank"}`)
	if status, answer := b.acknowledgeHold(t, "o1", "dispute", `{"by":"ann","why":"seen","detail":"lost in phase chargeback"}`); status != 409 {
		t.Errorf("another detail: answered %d %v, want 409", status, answer)
	}
	if status, answer := b.acknowledgeHold(t, "o1", "dispute", `{"by":"ann","why":"seen","detail":"open in phase chargeback"}`); status != 200 {
		t.Errorf("the detail as it is: answered %d %v", status, answer)
	}
	lost := dispute("disp_1")
	lost.Status, lost.Deducted = payment.DisputeLost, 49900
	b.gatewaySays(t, "o1", lost)
	_, answer := b.acknowledgeHold(t, "o1", "paid_after_close", `{"by":"ann","why":"one was left after all"}`)
	if answer["fulfilled_at"] != nil {
		t.Error("the goods went out for a lost dispute, because it was acknowledged while it was open")
	}
	_, answer = b.acknowledgeHold(t, "o1", "dispute", `{"by":"ann","why":"we send it all the same"}`)
	if answer["fulfilled_at"] == nil {
		t.Error("not fulfilled after everything was acknowledged")
	}
}

func TestCloseHoldsWhatIsPaidLater(t *testing.T) {
	b := setup()
	b.create(t, good)
	for range 2 {
		status, answer := b.closeOrder(t, "o1", `{"reason":"out of stock"}`)
		if status != 200 || answer["closed_at"] != "2026-11-30T10:00:05Z" || answer["version"] != 3.0 {
			t.Fatalf("answered %d %v", status, answer)
		}
	}
	b.gatewaySays(t, "o1", captured("pay_1", 49900))
	_, answer := b.call(t, "GET /orders/{id}", "o1", "")
	if answer["status"] != "paid" || answer["fulfilled_at"] != nil {
		t.Errorf("the closed order is %v, fulfilled at %v; want paid, never", answer["status"], answer["fulfilled_at"])
	}
	status, answer := b.acknowledgeHold(t, "o1", "paid_after_close", `{"by":"ann","why":"one was left after all"}`)
	if status != 200 || answer["fulfilled_at"] == nil {
		t.Errorf("acknowledged: answered %d, fulfilled at %v", status, answer["fulfilled_at"])
	}
}

func TestCloseAfterFulfilmentIsRefused(t *testing.T) {
	b := setup()
	b.create(t, good)
	b.gatewaySays(t, "o1", captured("pay_1", 49900))
	if status, answer := b.closeOrder(t, "o1", `{"reason":"out of stock"}`); status != 409 || answer["error"] != "fulfilled" {
		t.Errorf("answered %d %v, want 409 fulfilled", status, answer)
	}
}

func TestOperatingNamesTheFieldAtFault(t *testing.T) {
	b := setup()
	b.create(t, good)
	long := strings.Repeat("x", apigw.MaxWords+1)
	for _, c := range []struct{ field, reason, body string }{
		{"reason", "", `{}`}, {"reason", "", `{"reason":" "}`}, {"reason", "", `{"reason":"` + long + `"}`}, {"body", "", `{"why":"x"}`}, {"body", "", ``},
		{"by", "short", `{"why":"x"}`}, {"why", "short", `{"by":"x"}`}, {"subject", "short", `{"by":"x","why":"x","subject":7}`},
	} {
		status, answer := b.closeOrder(t, "o1", c.body)
		if c.reason != "" {
			status, answer = b.acknowledgeHold(t, "o1", c.reason, c.body)
		}
		if status != 400 || answer["field"] != c.field {
			t.Errorf("%s answered %d %v, want 400 about %s", c.body, status, answer, c.field)
		}
	}
	for _, route := range []string{"POST /orders/{id}/close", "GET /orders/{id}/timeline"} {
		if status, _ := b.operate(t, route, "none", nil, `{"reason":"x"}`); status != 404 {
			t.Errorf("%s of an unknown order: %d, want 404", route, status)
		}
	}
}

func TestTimeline(t *testing.T) {
	b := setup()
	b.create(t, good)
	b.gatewaySays(t, "o1", dispute("disp_1"), captured("pay_1", 49900))
	b.acknowledgeHold(t, "o1", "dispute", `{"by":"ann","why":"spoke to the bank"}`)
	status, answer := b.call(t, "GET /orders/{id}/timeline", "o1", "")
	var got []string
	for _, e := range answer["entries"].([]any) {
		line := e.(map[string]any)
		got = append(got, line["source"].(string)+": "+line["what"].(string))
	}
	want := []string{
		"api: order created: 499.00 INR by razorpay",
		"api: gateway order order_1 created",
		"sweep: dispute disp_1 of payment pay_1 open in phase chargeback; payment pay_1 captured 499.00 INR; order pending → paid; held: dispute disp_1",
		"api: hold dispute disp_1 acknowledged by ann: spoke to the bank; fulfilled",
		"hold: held: dispute disp_1",
		"hold: dispute disp_1 acknowledged by ann: spoke to the bank",
		"effect: fulfilled, with 499.00 INR captured",
		"effect: ledger: captured pay_1 499.00 INR",
		"effect: notification: hold#dispute#disp_1",
	}
	if diff := cmp.Diff(want, got); diff != "" || status != 200 {
		t.Errorf("status %d (-want +got)\n%s", status, diff)
	}
}
