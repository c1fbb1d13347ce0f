package razorpaytest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/razorpay/razorpaytest"
)

// reply is what the API answers, as far as tests look at it.
type reply struct {
	status         int
	ID             string
	Amount         int64
	Status         string
	Captured       bool
	AmountRefunded int64   `json:"amount_refunded"`
	RefundStatus   *string `json:"refund_status"`
	Error          struct{ Description, Field string }
	raw            string
}

// refund posts a refund with an idempotency key, if there is one.
func refund(t *testing.T, url, paymentID, key, body string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/payments/"+paymentID+"/refund", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(keyID, keySecret)
	if key != "" {
		request.Header.Set("X-Refund-Idempotency", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return decodeReply(t, response.StatusCode, answer)
}

func decodeReply(t *testing.T, status int, answer []byte) reply {
	t.Helper()
	r := reply{status: status, raw: string(answer)}
	if err := json.Unmarshal(answer, &r); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return r
}

// read gets one entity.
func read(t *testing.T, url, path string) reply {
	t.Helper()
	status, answer := call(t, http.MethodGet, url+path, "")
	return decodeReply(t, status, answer)
}

// ids gets a list of entities and returns their ids.
func ids(t *testing.T, url string) []string {
	t.Helper()
	status, answer := call(t, http.MethodGet, url, "")
	var page struct{ Items []struct{ ID string } }
	if err := json.Unmarshal(answer, &page); err != nil || status != 200 {
		t.Fatalf("%s: %d %s", url, status, answer)
	}
	list := []string{}
	for _, item := range page.Items {
		list = append(list, item.ID)
	}
	return list
}

func capturedPayment(t *testing.T, gateway *razorpaytest.Gateway, amount int64) string {
	t.Helper()
	return pay(t, gateway, razorpaytest.PaymentRequest{OrderID: addOrder(t, gateway, amount), Status: "captured"})
}

func settings(t *testing.T, gateway *razorpaytest.Gateway, change razorpaytest.SettingsChange) razorpaytest.Settings {
	t.Helper()
	s, err := gateway.ChangeSettings(change)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRefundEntity(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	id := capturedPayment(t, gateway, 1000)
	got := refund(t, url, id, "", `{"amount":300,"speed":"optimum","receipt":"r-1","notes":{"why":"late"}}`)
	want := fmt.Sprintf(`{"id":%q,"entity":"refund","amount":300,"currency":"INR","payment_id":%q,"notes":{"why":"late"},`+
		`"receipt":"r-1","acquirer_data":{"arn":null},"created_at":%d,"batch_id":null,"status":"processed",`+
		`"speed_processed":"instant","speed_requested":"optimum"}`, got.ID, id, start.Unix())
	if strings.TrimSpace(got.raw) != want || !strings.HasPrefix(got.ID, "rfnd_") {
		t.Errorf("refund\n got %s\nwant %s", got.raw, want)
	}
	if again := read(t, url, "/v1/refunds/"+got.ID); again.raw != got.raw {
		t.Errorf("read by id: %s", again.raw)
	}
	if again := read(t, url, "/v1/payments/"+id+"/refunds/"+got.ID); again.raw != got.raw {
		t.Errorf("read through the payment: %s", again.raw)
	}
	other := capturedPayment(t, gateway, 1000)
	for _, path := range []string{"/v1/refunds/rfnd_Nope", "/v1/payments/" + other + "/refunds/" + got.ID, "/v1/payments/pay_Nope/refunds"} {
		if r := read(t, url, path); r.status != 400 || r.Error.Description != "The id provided does not exist" {
			t.Errorf("%s: %s", path, r.raw)
		}
	}
}

func TestRefundsRefused(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	type request struct{ payment, body string }
	fresh := func(amount int64) string { return capturedPayment(t, gateway, amount) }
	of := func(status string) string {
		return pay(t, gateway, razorpaytest.PaymentRequest{Amount: 1000, Status: status})
	}
	partly := fresh(1000)
	first := refund(t, url, partly, "", `{"amount":400,"receipt":"taken"}`)
	if first.status != 200 {
		t.Fatal(first.raw)
	}
	full := fresh(1000)
	if r := refund(t, url, full, "", ``); r.status != 200 || r.Amount != 1000 {
		t.Fatal(r.raw)
	}
	dinars := pay(t, gateway, razorpaytest.PaymentRequest{Amount: 5000, Currency: "KWD", Status: "captured"})
	const notCaptured = "The payment status should be captured for action to be taken"
	for name, test := range map[string]struct {
		request
		says string
	}{
		"unknown payment":         {request{"pay_Nope", `{}`}, "The id provided does not exist"},
		"unknown field":           {request{fresh(1000), `{"amount":100,"reason":"x"}`}, "reason is/are not required and should not be sent"},
		"no JSON":                 {request{fresh(1000), `amount=100`}, "The request body is not a JSON object."},
		"amount as a string":      {request{fresh(1000), `{"amount":"100"}`}, "The amount must be an integer."},
		"amount with a fraction":  {request{fresh(1000), `{"amount":100.5}`}, "The amount must be an integer."},
		"amount null":             {request{fresh(1000), `{"amount":null}`}, "The amount must be an integer."},
		"amount 0":                {request{fresh(1000), `{"amount":0}`}, "Amount cannot be blank."},
		"amount negative":         {request{fresh(1000), `{"amount":-100}`}, "The amount must be at least INR 1.00"},
		"99 paise":                {request{fresh(1000), `{"amount":99}`}, "The amount must be at least INR 1.00"},
		"dinars with a last 1":    {request{dinars, `{"amount":1001}`}, "The last digit of the amount must be 0 for a currency of three decimals."},
		"speed":                   {request{fresh(1000), `{"speed":"fast"}`}, "The speed must be normal or optimum."},
		"more than captured":      {request{fresh(1000), `{"amount":1001}`}, "The refund amount provided is greater than amount captured"},
		"more than left":          {request{partly, `{"amount":601}`}, "The total refund amount is greater than the refund payment amount"},
		"nothing left":            {request{full, `{"amount":100}`}, "The payment has been fully refunded already."},
		"nothing left, all of it": {request{full, `{}`}, "The payment has been fully refunded already."},
		"begun":                   {request{of("created"), `{}`}, notCaptured},
		"authorized":              {request{of("authorized"), `{}`}, notCaptured},
		"failed":                  {request{of("failed"), `{}`}, notCaptured},
		"receipt again":           {request{partly, `{"amount":100,"receipt":"taken"}`}, "Duplicate receipt found for this refund request."},
		"receipt elsewhere":       {request{fresh(1000), `{"receipt":"taken"}`}, "Duplicate receipt found for this refund request."},
		"receipt of 41":           {request{fresh(1000), `{"receipt":"` + strings.Repeat("x", 41) + `"}`}, "The receipt may not be greater than 40 characters."},
		"a note of 257":           {request{fresh(1000), `{"notes":{"n":"` + strings.Repeat("x", 257) + `"}}`}, "A note may not be longer than 256 characters."},
	} {
		t.Run(name, func(t *testing.T) {
			r := refund(t, url, test.payment, "", test.body)
			if r.status != 400 || r.Error.Description != test.says {
				t.Errorf("%d %s, want %q", r.status, r.raw, test.says)
			}
		})
	}
	if made := ids(t, url+"/v1/refunds"); len(made) != 2 {
		t.Errorf("%d refunds, want the 2 that were allowed", len(made))
	}
}

func TestRefundsWithinLimits(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	id := capturedPayment(t, gateway, 1050)
	for i, body := range []string{`{"amount":500}`, `{"amount":500,"notes":[],"receipt":""}`, `{"receipt":null}`} {
		if r := refund(t, url, id, "", body); r.status != 200 || r.Amount != []int64{500, 500, 50}[i] {
			t.Errorf("%s: %s", body, r.raw) // the last is less than INR 1.00, and all the same all that is left
		}
	}
}

func TestRefundOfAnOldPayment(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	id := capturedPayment(t, gateway, 1000)
	gateway.Advance(start.AddDate(0, 6, 0).Sub(start))
	if r := refund(t, url, id, "", `{"amount":100}`); r.status != 200 {
		t.Errorf("after 6 months: %s", r.raw)
	}
	gateway.Advance(time.Second)
	r := refund(t, url, id, "", `{"amount":100}`)
	if r.status != 400 || r.Error.Description != "Refund is not supported by the bank because the payment is more than 6 months old" {
		t.Errorf("a second later: %s", r.raw)
	}
	if !strings.Contains(r.raw, `"source":null,"step":null,"reason":null`) {
		t.Errorf("not as documented: %s", r.raw)
	}
}

func TestRefundLists(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	id, other := capturedPayment(t, gateway, 100_000), capturedPayment(t, gateway, 1000)
	var made []string
	for range 12 {
		made = append([]string{refund(t, url, id, "", `{"amount":100}`).ID}, made...)
		gateway.Advance(time.Second)
	}
	last := refund(t, url, other, "", `{}`).ID
	at := func(seconds int) int64 { return start.Unix() + int64(seconds) }
	for query, want := range map[string][]string{
		"/v1/payments/" + id + "/refunds":                          made[:10],
		"/v1/payments/" + id + "/refunds?count=100":                made,
		"/v1/payments/" + id + "/refunds?count=3&skip=10":          made[10:],
		"/v1/payments/" + other + "/refunds":                       {last},
		"/v1/payments/" + addPaid(t, gateway) + "/refunds":         {},
		"/v1/refunds?count=1":                                      {last},
		"/v1/refunds?count=100":                                    append([]string{last}, made...),
		fmt.Sprintf("/v1/refunds?from=%d&to=%d", at(3), at(5)):     made[6:9],
		fmt.Sprintf("/v1/payments/%s/refunds?to=%d", id, at(0)):    made[11:],
		fmt.Sprintf("/v1/payments/%s/refunds?from=%d", id, at(11)): made[:1],
	} {
		if diff := cmp.Diff(want, ids(t, url+query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	if r := read(t, url, "/v1/refunds?receipt=x"); r.status != 400 || r.Error.Field != "receipt" {
		t.Errorf("a filter that is not there: %s", r.raw)
	}
}

func addPaid(t *testing.T, gateway *razorpaytest.Gateway) string {
	t.Helper()
	return capturedPayment(t, gateway, 100)
}
