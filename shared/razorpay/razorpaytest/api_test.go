package razorpaytest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

func TestOrdersThroughTheClient(t *testing.T) {
	gateway, _, client := newGateway(t, nil)
	inr := payment.Money{Amount: 49900, Currency: "INR"}
	first, err := client.CreateOrder(t.Context(), razorpay.OrderRequest{
		Amount: inr, Receipt: "shop-1", Notes: map[string]string{"paidonce": "dev/shop-1"}, Partial: true,
		AutomaticExpiry: 30, ManualExpiry: 7200, RefundSpeed: "normal",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := razorpay.Order{ID: first.ID, Amount: inr, Receipt: "shop-1", Status: "created",
		Notes: map[string]string{"paidonce": "dev/shop-1"}, CreatedAt: start}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	gateway.Advance(time.Hour)
	second, err := client.CreateOrder(t.Context(), razorpay.OrderRequest{Amount: inr, Receipt: "shop-1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = client.CreateOrder(t.Context(), razorpay.OrderRequest{Amount: inr, Receipt: "shop-10"}); err != nil {
		t.Fatal(err)
	}
	found, err := client.OrdersByReceipt(t.Context(), "shop-1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]razorpay.Order{second, first}, found); diff != "" {
		t.Errorf("by receipt, newest first (-want +got):\n%s", diff)
	}
	read, err := client.Order(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestPaymentsThroughTheClient(t *testing.T) {
	gateway, _, client := newGateway(t, nil)
	order := addOrder(t, gateway, 49900)
	failed := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: "failed"})
	gateway.Advance(time.Minute)
	captured := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: "captured"})
	gateway.Advance(time.Minute)
	loose := pay(t, gateway, razorpaytest.PaymentRequest{Amount: 700, Currency: "USD", Status: "authorized"})
	inr := payment.Money{Amount: 49900, Currency: "INR"}
	facts := []payment.PaymentFact{
		{ID: loose, Status: payment.PaymentAuthorized, Amount: payment.Money{Amount: 700, Currency: "USD"}, CreatedAt: start.Add(2 * time.Minute), Confirmed: true},
		{ID: captured, GatewayOrderID: order, Status: payment.PaymentCaptured, Amount: inr, CreatedAt: start.Add(time.Minute), Confirmed: true},
		{ID: failed, GatewayOrderID: order, Status: payment.PaymentCreated, Failed: true, Amount: inr, CreatedAt: start, Confirmed: true},
	}
	got, err := client.OrderPayments(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(facts[1:], got); diff != "" {
		t.Errorf("of the order (-want +got):\n%s", diff)
	}
	if got, err = client.Payments(t.Context(), start, start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(facts[1:], got); diff != "" {
		t.Errorf("of the first minute (-want +got):\n%s", diff)
	}
	one, err := client.Payment(t.Context(), loose)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(facts[0], one); diff != "" {
		t.Errorf("one (-want +got):\n%s", diff)
	}
}

func TestPages(t *testing.T) {
	gateway, url, client := newGateway(t, nil)
	order := addOrder(t, gateway, 100)
	for range 205 {
		pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: "created"})
	}
	if facts, err := client.OrderPayments(t.Context(), order); err != nil || len(facts) != 205 {
		t.Errorf("%d payments of the order, %v, want 205", len(facts), err)
	}
	if facts, err := client.Payments(t.Context(), start, start); err != nil || len(facts) != 205 {
		t.Errorf("%d payments, %v, want 205", len(facts), err)
	}
	for query, want := range map[string]int{"": 10, "?count=100": 100, "?count=100&skip=200": 5, "?skip=300": 0} {
		var page struct {
			Entity string
			Count  int
			Items  []any
		}
		status, body := call(t, http.MethodGet, url+"/v1/payments"+query, "")
		if err := json.Unmarshal(body, &page); err != nil || status != 200 {
			t.Fatalf("%s: %d %s", query, status, body)
		}
		if page.Entity != "collection" || page.Count != want || len(page.Items) != want || page.Items == nil {
			t.Errorf("%q: %s of %d with %d items, want %d", query, page.Entity, page.Count, len(page.Items), want)
		}
	}
}

// call sends a request with the key and returns the answer.
func call(t *testing.T, method, url, body string) (status int, answer []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(keyID, keySecret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

func TestAPIRefuses(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	order := addOrder(t, gateway, 100)
	long := strings.Repeat("x", 41)
	notes := func(n int, value string) string {
		var pairs []string
		for i := range n {
			pairs = append(pairs, fmt.Sprintf(`"n%d":%q`, i, value))
		}
		return "{" + strings.Join(pairs, ",") + "}"
	}
	const good = `"amount":100,"currency":"INR"`
	for name, test := range map[string]struct {
		method, path, body string
		status             int
		field              string
	}{
		"least":                    {"POST", "/v1/orders", `{` + good + `}`, 200, ""},
		"yen":                      {"POST", "/v1/orders", `{"amount":1,"currency":"JPY"}`, 200, ""},
		"dinars":                   {"POST", "/v1/orders", `{"amount":99990,"currency":"KWD"}`, 200, ""},
		"receipt of 40":            {"POST", "/v1/orders", `{` + good + `,"receipt":"` + long[1:] + `"}`, 200, ""},
		"no receipt":               {"POST", "/v1/orders", `{` + good + `,"receipt":null}`, 200, ""},
		"15 notes":                 {"POST", "/v1/orders", `{` + good + `,"notes":` + notes(15, "x") + `}`, 200, ""},
		"notes array":              {"POST", "/v1/orders", `{` + good + `,"notes":[]}`, 200, ""},
		"capture":                  {"POST", "/v1/orders", `{` + good + `,"payment":{"capture":"automatic","capture_options":{"automatic_expiry_period":12}}}`, 200, ""},
		"no JSON":                  {"POST", "/v1/orders", `amount=100`, 400, ""},
		"null":                     {"POST", "/v1/orders", `null`, 400, ""},
		"no amount":                {"POST", "/v1/orders", `{"currency":"INR"}`, 400, "amount"},
		"99 paise":                 {"POST", "/v1/orders", `{"amount":99,"currency":"INR"}`, 400, "amount"},
		"negative":                 {"POST", "/v1/orders", `{"amount":-100,"currency":"INR"}`, 400, "amount"},
		"float":                    {"POST", "/v1/orders", `{"amount":100.5,"currency":"INR"}`, 400, "amount"},
		"string":                   {"POST", "/v1/orders", `{"amount":"100","currency":"INR"}`, 400, "amount"},
		"too much":                 {"POST", "/v1/orders", `{"amount":9223372036854775807,"currency":"INR"}`, 400, "amount"},
		"dinars with a last digit": {"POST", "/v1/orders", `{"amount":99991,"currency":"KWD"}`, 400, "amount"},
		"no currency":              {"POST", "/v1/orders", `{"amount":100}`, 400, "currency"},
		"lower-case currency":      {"POST", "/v1/orders", `{"amount":100,"currency":"inr"}`, 400, "currency"},
		"receipt of 41":            {"POST", "/v1/orders", `{` + good + `,"receipt":"` + long + `"}`, 400, "receipt"},
		"16 notes":                 {"POST", "/v1/orders", `{` + good + `,"notes":` + notes(16, "x") + `}`, 400, "notes"},
		"long note":                {"POST", "/v1/orders", `{` + good + `,"notes":` + notes(1, strings.Repeat("x", 257)) + `}`, 400, "notes"},
		"unknown field":            {"POST", "/v1/orders", `{` + good + `,"order_id":"shop-1"}`, 400, "order_id"},
		"capture of no kind":       {"POST", "/v1/orders", `{` + good + `,"payment":{"capture":"maybe"}}`, 400, "payment.capture"},
		"expiry too short":         {"POST", "/v1/orders", `{` + good + `,"payment":{"capture":"automatic","capture_options":{"automatic_expiry_period":11}}}`, 400, "payment.capture_options"},
		"expiries crossed":         {"POST", "/v1/orders", `{` + good + `,"payment":{"capture":"automatic","capture_options":{"automatic_expiry_period":60,"manual_expiry_period":30}}}`, 400, "payment.capture_options"},
		"refund speed":             {"POST", "/v1/orders", `{` + good + `,"payment":{"capture":"automatic","capture_options":{"refund_speed":"fast"}}}`, 400, "payment.capture_options"},
		"larger than allowed":      {"POST", "/v1/orders", strings.Repeat(" ", 2<<20), 400, ""},

		"unknown order":               {"GET", "/v1/orders/order_Nope", "", 400, ""},
		"payments of an unknown one":  {"GET", "/v1/orders/order_Nope/payments", "", 400, ""},
		"unknown payment":             {"GET", "/v1/payments/pay_Nope", "", 400, ""},
		"count of 0":                  {"GET", "/v1/orders?count=0", "", 400, "count"},
		"count of 101":                {"GET", "/v1/orders?count=101", "", 400, "count"},
		"skip below 0":                {"GET", "/v1/orders?skip=-1", "", 400, "skip"},
		"from before the year 2000":   {"GET", "/v1/payments?from=5", "", 400, "from"},
		"a filter payments lack":      {"GET", "/v1/payments?receipt=x", "", 400, "receipt"},
		"unknown path":                {"GET", "/v1/customers", "", 404, ""},
		"unknown method":              {"DELETE", "/v1/orders/" + order, "", 404, ""},
		"refund of an unknown one":    {"POST", "/v1/payments/pay_1/refund", "{}", 400, ""},
		"outside of the API":          {"GET", "/", "", 404, ""},
		"unknown control path":        {"POST", "/_sim/nothing", "{}", 404, ""},
		"control with another method": {"GET", "/_sim/orders", "", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := call(t, test.method, url+test.path, test.body)
			if status != test.status {
				t.Fatalf("status %d, want %d: %s", status, test.status, body)
			}
			if status == 200 {
				return
			}
			var envelope struct {
				Error struct{ Code, Description, Field string }
			}
			if err := json.Unmarshal(body, &envelope); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			if e := envelope.Error; e.Code != "BAD_REQUEST_ERROR" || e.Description == "" || e.Field != test.field {
				t.Errorf("error %+v, want field %q", e, test.field)
			}
		})
	}
}

func TestAPIWantsTheKey(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	for name, header := range map[string]string{
		"none": "", "another secret": "Basic cnpwX3Rlc3RfU2ltMTp4", "a token": "Bearer x",
		"lower-case scheme": "basic " + basic(t)[len("Basic "):],
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/orders",
			strings.NewReader(`{"amount":100,"currency":"INR"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", header)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: status %d, want 401", name, response.StatusCode)
		}
	}
	client, err := razorpay.New(url, keyID, "another")
	if err != nil {
		t.Fatal(err)
	}
	var refused *razorpay.Error
	if _, err = client.Order(t.Context(), addOrder(t, gateway, 100)); !errors.As(err, &refused) || refused.HTTPStatus != 401 {
		t.Errorf("client with another secret: %v, want 401", err)
	}
}

func basic(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(keyID, keySecret)
	return request.Header.Get("Authorization")
}
