package razorpaytest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"paidonce/shared/razorpay/razorpaytest"
)

func TestFaults(t *testing.T) {
	for kind, test := range map[razorpaytest.FaultKind]struct {
		done   bool   // the order was made all the same
		status int    // 0: no answer
		says   string // part of the answer, or of why there is none
	}{
		razorpaytest.TimeoutBefore:    {false, 0, context.DeadlineExceeded.Error()},
		razorpaytest.TimeoutAfter:     {true, 0, context.DeadlineExceeded.Error()},
		razorpaytest.Reset:            {false, 0, "reset by peer"},
		razorpaytest.ResetAfter:       {true, 0, "reset by peer"},
		razorpaytest.Throttled:        {false, 429, "Too many requests"},
		razorpaytest.ServerError:      {false, 500, "SERVER_ERROR"},
		razorpaytest.ServerErrorAfter: {true, 500, "SERVER_ERROR"},
		razorpaytest.BadGateway:       {false, 502, "<html>"},
		razorpaytest.BadGatewayAfter:  {true, 502, "<html>"},
		razorpaytest.InProgress:       {false, 409, "Another request with the same idempotency key is still in progress."},
		razorpaytest.PaymentBusy:      {false, 400, "another payment operation is in progress"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			gateway, url, client := newGateway(t, nil)
			if err := gateway.SetFaults(razorpaytest.Fault{Method: http.MethodPost, Path: "/v1/orders", Kind: kind}); err != nil {
				t.Fatal(err)
			}
			const body = `{"amount":100,"currency":"INR","receipt":"shop-1"}`
			status, answer := callWithin(t, 200*time.Millisecond, url+"/v1/orders", body)
			if status != test.status || !strings.Contains(answer, test.says) {
				t.Errorf("%d %s, want %d with %q", status, answer, test.status, test.says)
			}
			found, err := client.OrdersByReceipt(t.Context(), "shop-1")
			if err != nil {
				t.Fatal(err)
			}
			if (len(found) == 1) != test.done {
				t.Errorf("%d orders there, done %t", len(found), test.done)
			}
			if status, answer = callWithin(t, time.Minute, url+"/v1/orders", body); status != 200 {
				t.Errorf("the call after the fault: %d %s", status, answer)
			}
			first := gateway.Calls()[0]
			if first.Fault != kind || first.Status != test.status {
				t.Errorf("recorded as %+v", first)
			}
		})
	}
}

// callWithin posts a body with the key and returns the answer, or 0 and why there was none.
func callWithin(t *testing.T, timeout time.Duration, url, body string) (status int, answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(keyID, keySecret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
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
