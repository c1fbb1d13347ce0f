package razorpaytest_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

func TestFaults(t *testing.T) {
	for kind, test := range map[razorpaytest.FaultKind]struct {
		done    bool // the order was made all the same
		status  int  // 0: no answer
		notDone bool // as far as the client can know
	}{
		razorpaytest.TimeoutBefore: {false, 0, false},
		razorpaytest.TimeoutAfter:  {true, 0, false},
		razorpaytest.Reset:         {false, 0, false},
		razorpaytest.Throttled:     {false, 429, true},
		razorpaytest.ServerError:   {false, 500, false},
		razorpaytest.BadGateway:    {false, 502, false},
	} {
		t.Run(string(kind), func(t *testing.T) {
			gateway, url, _ := newGateway(t, nil)
			client, err := razorpay.New(url, keyID, keySecret, razorpay.WithAttemptTimeout(200*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			if err := gateway.SetFaults(razorpaytest.Fault{Method: http.MethodPost, Path: "/v1/orders", Kind: kind}); err != nil {
				t.Fatal(err)
			}
			request := razorpay.OrderRequest{Amount: payment.Money{Amount: 100, Currency: "INR"}, Receipt: "shop-1"}
			_, err = client.CreateOrder(t.Context(), request)
			if err == nil {
				t.Fatal("no error")
			}
			var answer *razorpay.Error
			if errors.As(err, &answer) != (test.status != 0) || answer != nil && answer.HTTPStatus != test.status {
				t.Errorf("error %v, want status %d", err, test.status)
			}
			if got := razorpay.NotDone(err); got != test.notDone {
				t.Errorf("NotDone = %t, want %t: %v", got, test.notDone, err)
			}
			if timeout := kind == razorpaytest.TimeoutBefore || kind == razorpaytest.TimeoutAfter; timeout != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, a timeout: %t", err, timeout)
			}
			found, err := client.OrdersByReceipt(t.Context(), "shop-1")
			if err != nil {
				t.Fatal(err)
			}
			if (len(found) == 1) != test.done {
				t.Errorf("%d orders there, done %t", len(found), test.done)
			}
			if _, err = client.CreateOrder(t.Context(), request); err != nil {
				t.Errorf("the call after the fault: %v", err)
			}
		})
	}
}

func TestFaultsFit(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	order := addOrder(t, gateway, 100)
	err := gateway.SetFaults(
		razorpaytest.Fault{Method: "GET", Path: "/v1/orders/*/payments", Kind: razorpaytest.ServerError, Count: 2},
		razorpaytest.Fault{Path: "/v1/orders", Kind: razorpaytest.Throttled},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1/orders/" + order, 200},
		{"POST", "/v1/orders/" + order + "/payments", 404},
		{"GET", "/v1/orders//payments", 400},
		{"GET", "/v1/orders/" + order + "/payments", 500},
		{"GET", "/v1/orders", 429},
		{"GET", "/v1/orders", 200},
		{"GET", "/v1/orders/" + order + "/payments", 500},
		{"GET", "/v1/orders/" + order + "/payments", 200},
	} {
		if status, body := call(t, step.method, url+step.path, ""); status != step.status {
			t.Errorf("%s %s: %d, want %d: %s", step.method, step.path, status, step.status, body)
		}
	}
	if err := gateway.SetFaults(razorpaytest.Fault{Path: "/v1/orders", Kind: razorpaytest.Throttled}); err != nil {
		t.Fatal(err)
	}
	if err := gateway.SetFaults(); err != nil {
		t.Fatal(err)
	}
	if status, _ := call(t, "GET", url+"/v1/orders", ""); status != 200 {
		t.Errorf("cleared faults still answer %d", status)
	}
}

func TestFaultsThatCannotBe(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	for name, fault := range map[string]razorpaytest.Fault{
		"no kind":        {Path: "/v1/orders"},
		"unknown kind":   {Path: "/v1/orders", Kind: "503"},
		"no path":        {Kind: razorpaytest.Reset},
		"without v1":     {Path: "/orders", Kind: razorpaytest.Reset},
		"negative count": {Path: "/v1/orders", Kind: razorpaytest.Reset, Count: -1},
	} {
		if err := gateway.SetFaults(fault); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestReadsSurviveFaults shows the client's retries against the gateway's faults.
func TestReadsSurviveFaults(t *testing.T) {
	gateway, _, client := newGateway(t, nil)
	order := addOrder(t, gateway, 100)
	for _, kind := range []razorpaytest.FaultKind{
		razorpaytest.Reset, razorpaytest.Throttled, razorpaytest.ServerError, razorpaytest.BadGateway,
	} {
		if err := gateway.SetFaults(razorpaytest.Fault{Path: "/v1/orders/*", Kind: kind, Count: 2}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Order(t.Context(), order); err != nil {
			t.Errorf("%s twice: %v", kind, err)
		}
	}
}
