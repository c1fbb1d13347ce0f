package razorpaytest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/razorpay/razorpaytest"
)

// TestControlInterface plays one scenario through HTTP alone, as a script would.
func TestControlInterface(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	post := func(path, body string) string {
		t.Helper()
		status, answer := call(t, http.MethodPost, url+path, body)
		if status != http.StatusOK {
			t.Fatalf("%s %s: %d %s", path, body, status, answer)
		}
		var fields struct{ ID string }
		if err := json.Unmarshal(answer, &fields); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		return fields.ID
	}
	if id := post("/_sim/orders", `{"id":"order_Foreign1","amount":900,"currency":"INR","receipt":"their-7","notes":{"a":"b"}}`); id != "order_Foreign1" {
		t.Errorf("order %q", id)
	}
	first := post("/_sim/payments", `{"order_id":"order_Foreign1","status":"failed"}`)
	post("/_sim/payments/"+first, `{"status":"authorized","deliver":false}`)
	settle(t, gateway)
	post("/_sim/delivery", `{"delay_ms":1000,"duplicate":0,"drop":0,"shuffle":false,"enabled":true}`)
	post("/_sim/payments/"+first, `{"status":"captured"}`)
	settle(t, gateway)
	if n := len(receiver.deliveries()); n != 1 {
		t.Errorf("%d arrived before the delay was over, want 1", n)
	}
	status, answer := call(t, http.MethodPost, url+"/_sim/clock", `{"advance_seconds":1}`)
	if want := `{"now":"2026-03-01T12:00:01Z"}`; status != 200 || strings.TrimSpace(string(answer)) != want {
		t.Errorf("clock: %d %s, want %s", status, answer, want)
	}
	if diff := cmp.Diff([]string{"payment.failed", "payment.captured", "order.paid"}, receiver.names(t, gateway)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	var deliveries []razorpaytest.Delivery
	if _, answer = call(t, http.MethodGet, url+"/_sim/deliveries?body=true", ""); json.Unmarshal(answer, &deliveries) != nil {
		t.Fatalf("deliveries: %s", answer)
	}
	if len(deliveries) != 3 {
		t.Fatalf("%d deliveries, want 3: %s", len(deliveries), answer)
	}
	last := receiver.deliveries()[2]
	want := razorpaytest.Delivery{
		EventID: last.id, Event: "order.paid", OrderID: "order_Foreign1", PaymentID: first, Attempt: 1, Status: 200,
		At: start.Add(time.Second), Body: last.body,
	}
	if diff := cmp.Diff(want, deliveries[2]); diff != "" {
		t.Errorf("last delivery (-want +got):\n%s", diff)
	}
	if _, answer = call(t, http.MethodGet, url+"/_sim/deliveries", ""); strings.Contains(string(answer), `"body"`) {
		t.Errorf("bodies nobody asked for: %s", answer)
	}

	post("/_sim/faults", `[{"method":"GET","path":"/v1/payments","kind":"502_html","count":1}]`)
	if status, _ = call(t, http.MethodGet, url+"/v1/payments", ""); status != http.StatusBadGateway {
		t.Errorf("fault: %d, want 502", status)
	}
}

func TestControlWithoutDeliveries(t *testing.T) {
	_, url, _ := newGateway(t, nil)
	if _, answer := call(t, http.MethodGet, url+"/_sim/deliveries", ""); strings.TrimSpace(string(answer)) != "[]" {
		t.Errorf("deliveries %s, want []", answer)
	}
}

func TestControlRefuses(t *testing.T) {
	_, url, _ := newGateway(t, nil)
	for _, test := range []struct{ path, body string }{
		{"/_sim/orders", `{"amount":100}`},
		{"/_sim/orders", `{"amount":1.5,"currency":"INR"}`},
		{"/_sim/orders", ``},
		{"/_sim/payments", `{"order_id":"order_Nope","status":"captured"}`},
		{"/_sim/payments", `{"amount":100,"state":"captured"}`},
		{"/_sim/payments/pay_Nope", `{"status":"captured"}`},
		{"/_sim/delivery", `{"drop":50}`},
		{"/_sim/delivery", `{"dropp":0.5}`},
		{"/_sim/faults", `{"path":"/v1/orders","kind":"500"}`},
		{"/_sim/faults", `[{"path":"/v1/orders","kind":"418"}]`},
		{"/_sim/clock", `{"advance_seconds":-1}`},
		{"/_sim/clock", `{"advance":1}`},
	} {
		if status, answer := call(t, http.MethodPost, url+test.path, test.body); status != http.StatusBadRequest {
			t.Errorf("%s %s: %d %s, want 400", test.path, test.body, status, answer)
		}
	}
}
