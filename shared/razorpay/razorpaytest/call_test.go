package razorpaytest_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/razorpay/razorpaytest"
)

func TestCalls(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	id := capturedPayment(t, gateway, 1000)
	path := "/v1/payments/" + id + "/refund"
	if got := gateway.Calls(); len(got) != 0 {
		t.Errorf("what tests do counts as calls: %+v", got)
	}
	refund(t, url, id, key, `{"amount":100}`)
	gateway.Advance(time.Minute)
	err := gateway.SetFaults(
		razorpaytest.Fault{Method: "POST", Path: "/v1/payments/*/refund", Kind: razorpaytest.ServerErrorAfter},
		razorpaytest.Fault{Method: "POST", Path: "/v1/payments/*/refund", Kind: razorpaytest.ResetAfter},
	)
	if err != nil {
		t.Fatal(err)
	}
	refund(t, url, id, "", `{"amount":200}`)
	if status, answer := callWithin(t, time.Minute, url+path, `{"amount":300}`); status != 0 {
		t.Fatalf("answered %d %s", status, answer)
	}
	refund(t, url, id, "", `?`)
	read(t, url, "/v1/refunds?count=2")
	response, err := http.Get(url + "/v1/refunds")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	later := start.Add(time.Minute)
	want := []razorpaytest.Call{
		{Method: "POST", Path: path, Key: key, Body: `{"amount":100}`, Status: 200, At: start},
		{Method: "POST", Path: path, Body: `{"amount":200}`, Status: 500, Fault: razorpaytest.ServerErrorAfter, At: later},
		{Method: "POST", Path: path, Body: `{"amount":300}`, Fault: razorpaytest.ResetAfter, At: later},
		{Method: "POST", Path: path, Body: `?`, Status: 400, At: later},
		{Method: "GET", Path: "/v1/refunds", Query: "count=2", Status: 200, At: later},
		{Method: "GET", Path: "/v1/refunds", Status: 401, At: later},
	}
	if diff := cmp.Diff(want, gateway.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	var shown []razorpaytest.Call
	if _, answer := call(t, http.MethodGet, url+"/_sim/calls", ""); json.Unmarshal(answer, &shown) != nil {
		t.Fatalf("calls: %s", answer)
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("calls through the control interface (-want +got):\n%s", diff)
	}
	if made := ids(t, url+"/v1/payments/"+id+"/refunds"); len(made) != 3 {
		t.Errorf("%d refunds, want 3: what failed after the deed was done", len(made))
	}
}

func TestReusedKeys(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	id, other := capturedPayment(t, gateway, 1000), capturedPayment(t, gateway, 1000)
	for range 3 {
		refund(t, url, id, key, `{"amount":100}`)
		refund(t, url, id, "", `{"amount":100}`)
		refund(t, url, other, key+"-2", `{"amount":100}`)
	}
	if keys := gateway.ReusedKeys(); len(keys) != 0 {
		t.Errorf("reused keys %v, want none", keys)
	}
	for range 2 {
		refund(t, url, other, key, `{"amount":100}`)
		refund(t, url, other, key+"-2", `{"amount": 100}`)
	}
	if diff := cmp.Diff([]string{key, key + "-2"}, gateway.ReusedKeys()); diff != "" {
		t.Errorf("reused keys (-want +got):\n%s", diff)
	}
}
