package razorpay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

func inr(amount int64) payment.Money { return payment.Money{Amount: amount, Currency: "INR"} }

const receipt1 = "po_0123456789abcdef0123456789abcdef"

var call1 = payment.RefundCall{
	Method: "POST", Path: "/v1/payments/pay_1/refund", Key: receipt1,
	Body: []byte(`{"amount":45600,"speed":"normal","receipt":"` + receipt1 + `","notes":{"paidonce":"dev/shop-1"}}`),
}

const refundJSON = `{"id":"rfnd_1","entity":"refund","amount":45600,"receipt":"` + receipt1 + `","currency":"INR","payment_id":"pay_1",` +
	`"notes":[],"acquirer_data":{"arn":null},"created_at":1700000100,"batch_id":null,"status":"pending","speed_processed":"normal","speed_requested":"normal"}`

var refund1 = payment.RefundFact{ID: "rfnd_1", PaymentID: "pay_1", Status: payment.RefundPending, Amount: inr(45600), Receipt: receipt1}

func TestDraftRefund(t *testing.T) {
	client := &Client{}
	for range 2 { // the same bytes each time
		got, err := client.DraftRefund("pay_1", inr(45600), receipt1, "dev/shop-1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(call1, got); diff != "" {
			t.Errorf("call (-want +got):\n%s", diff)
		}
	}
	if got, err := client.DraftRefund("pay_1", inr(payment.MaxAmount-1), receipt1, "x"); err != nil || !strings.Contains(string(got.Body), `"amount":999999999999999,`) {
		t.Errorf("large amount: %s, %v", got.Body, err)
	}
	for name, test := range map[string]struct {
		id      string
		amount  payment.Money
		receipt string
	}{
		"no id":            {"", inr(1), receipt1},
		"a path":           {"pay_1/capture?x=", inr(1), receipt1},
		"dots":             {"..", inr(1), receipt1},
		"zero":             {"pay_1", inr(0), receipt1},
		"negative":         {"pay_1", inr(-1), receipt1},
		"out of range":     {"pay_1", inr(9007199254740993), receipt1},
		"no currency":      {"pay_1", payment.Money{Amount: 1}, receipt1},
		"no receipt":       {"pay_1", inr(1), ""},
		"short receipt":    {"pay_1", inr(1), "po_012345"},
		"long receipt":     {"pay_1", inr(1), strings.Repeat("r", 41)},
		"receipt of words": {"pay_1", inr(1), "refund of shop-1"},
		"receipt of lines": {"pay_1", inr(1), receipt1 + "\n"},
	} {
		if call, err := client.DraftRefund(test.id, test.amount, test.receipt, "x"); err == nil {
			t.Errorf("%s: %+v", name, call)
		}
	}
}

func TestSendRefund(t *testing.T) {
	for name, answer := range map[string]struct {
		body string
		want payment.RefundStatus
	}{
		"pending":        {refundJSON, payment.RefundPending},
		"processed":      {strings.Replace(refundJSON, "pending", "processed", 1), payment.RefundProcessed},
		"failed":         {strings.Replace(refundJSON, "pending", "failed", 1), payment.RefundFailed},
		"receipt twice":  {strings.Replace(refundJSON, `"notes"`, `"receipt":null,"notes"`, 1), payment.RefundPending},
		"with our notes": {strings.Replace(refundJSON, `[]`, `{"paidonce":"dev/shop-1"}`, 1), payment.RefundPending},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.URL.RequestURI() != call1.Path {
					t.Errorf("%s %s", r.Method, r.URL.RequestURI())
				}
				if diff := cmp.Diff([]string{receipt1}, r.Header.Values("X-Refund-Idempotency")); diff != "" {
					t.Errorf("idempotency key (-want +got):\n%s", diff)
				}
				if body, _ := io.ReadAll(r.Body); string(body) != string(call1.Body) {
					t.Errorf("body\n got %s\nwant %s", body, call1.Body)
				}
				io.WriteString(w, answer.body)
			})
			got, err := client.SendRefund(t.Context(), call1)
			if err != nil {
				t.Fatal(err)
			}
			want := refund1
			want.Status = answer.want
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("refund (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSendRefundKeepsTheBytes sends a call as an earlier release may have written it.
func TestSendRefundKeepsTheBytes(t *testing.T) {
	call := call1
	call.Body = []byte("{ \"receipt\":\"" + receipt1 + "\",\n\"amount\" : 45600, \"later\":\"\u20b9 <x>\" }")
	client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != string(call.Body) {
			t.Errorf("body\n got %s\nwant %s", body, call.Body)
		}
		io.WriteString(w, refundJSON)
	})
	if _, err := client.SendRefund(t.Context(), call); err != nil {
		t.Error(err)
	}
}

func TestSendRefundRefusesOtherCalls(t *testing.T) {
	client := serve(t, nil, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("called %s", r.URL) })
	for name, change := range map[string]func(*payment.RefundCall){
		"nothing":          func(c *payment.RefundCall) { *c = payment.RefundCall{} },
		"a read":           func(c *payment.RefundCall) { c.Method = "GET" },
		"a capture":        func(c *payment.RefundCall) { c.Path = "/v1/payments/pay_1/capture" },
		"an order":         func(c *payment.RefundCall) { c.Path = "/v1/orders" },
		"another host":     func(c *payment.RefundCall) { c.Path = "//example.com/v1/payments/pay_1/refund" },
		"a query":          func(c *payment.RefundCall) { c.Path += "?x=1" },
		"a query inside":   func(c *payment.RefundCall) { c.Path = "/v1/payments/pay_1?x=/refund" },
		"dots":             func(c *payment.RefundCall) { c.Path = "/v1/payments/../refund" },
		"no id":            func(c *payment.RefundCall) { c.Path = "/v1/payments//refund" },
		"only an end":      func(c *payment.RefundCall) { c.Path = "/refund" },
		"no key":           func(c *payment.RefundCall) { c.Key = "" },
		"another key":      func(c *payment.RefundCall) { c.Key = "po_another_key" },
		"a key with lines": func(c *payment.RefundCall) { c.Key += "\r\nX: y" },
		"no body":          func(c *payment.RefundCall) { c.Body = nil },
		"no amount":        func(c *payment.RefundCall) { c.Body = []byte(`{"receipt":"` + receipt1 + `"}`) },
		"amount as text":   func(c *payment.RefundCall) { c.Body = []byte(`{"amount":"45600","receipt":"` + receipt1 + `"}`) },
	} {
		call := call1
		change(&call)
		if got, err := client.SendRefund(t.Context(), call); !errors.Is(err, payment.ErrOutcomeUnknown) {
			t.Errorf("%s: %+v, %v, want ErrOutcomeUnknown", name, got, err)
		}
	}
}

func TestSendRefundOutcomeUnknown(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(refundJSON, old, new, 1) }
	for name, answer := range map[string]struct {
		status int
		body   string
		text   string // in the error
	}{
		"another payment":     {200, change("pay_1", "pay_2"), "something else"},
		"another amount":      {200, change("45600", "45601"), "another amount"},
		"another receipt":     {200, change("po_0", "po_1"), "another receipt"},
		"no receipt":          {200, change(`"`+receipt1+`"`, "null"), "another receipt"},
		"no payment":          {200, change(`"pay_1"`, "null"), "undecodable"},
		"no amount":           {200, change(`45600`, "null"), "undecodable"},
		"amount as a float":   {200, change(`45600`, "45600.0"), "wrong JSON type of amount"},
		"amount out of range": {200, change(`45600`, "9007199254740993"), "out of range"},
		"unknown status":      {200, change(`pending`, "initiated"), "unknown status initiated"},
		"no status":           {200, change(`"pending"`, "null"), "unknown status"},
		"no id":               {200, change(`"rfnd_1"`, `""`), "no id"},
		"an error with 200":   {200, `{"error":{"code":"BAD_REQUEST_ERROR","description":"The payment has been fully refunded already"}}`, "no id"},
		"empty":               {200, "", "undecodable"},
		"no content":          {204, "", "undecodable"},
		"two bytes":           {200, "{}", "no id"},
		"null":                {200, "null", "no id"},
		"a list":              {200, "[]", "wrong JSON type"},
		"cut off":             {200, refundJSON[:90], "undecodable"},
		"HTML":                {200, "<html>", "undecodable"},
		"far too large":       {200, strings.Repeat(" ", maxAnswer+1) + refundJSON, "larger"},
		"502 in HTML":         {502, "<html>Bad Gateway", "HTTP 502"},
		"500 of the key":      {500, `{"error":{"code":"SERVER_ERROR","description":"Different request with the same idempotency key"}}`, "HTTP 500"},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(answer.status)
				io.WriteString(w, answer.body)
			})
			got, err := client.SendRefund(t.Context(), call1)
			if !errors.Is(err, payment.ErrOutcomeUnknown) || errors.Is(err, payment.ErrGatewayRefused) || errors.Is(err, payment.ErrKeyUsed) {
				t.Fatalf("%+v, %v, want ErrOutcomeUnknown alone", got, err)
			}
			if !strings.Contains(err.Error(), answer.text) {
				t.Errorf("error %v, want it to say %s", err, answer.text)
			}
		})
	}
}

// refundOf is a refund of pay_1 with number i.
func refundOf(i int) string {
	return strings.Replace(refundJSON, "rfnd_1", fmt.Sprintf("rfnd_%d", i), 1)
}

func TestRefunds(t *testing.T) {
	for _, n := range []int{0, 1, 11, 100, 250} {
		var entities []string
		for i := range n {
			entities = append(entities, refundOf(i))
		}
		client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != "/v1/payments/pay_1/refunds" {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			list(t, entities, url.Values{})(w, r)
		})
		got, err := client.Refunds(t.Context(), "pay_1")
		if err != nil || len(got) != n {
			t.Errorf("%d refunds, %v, want %d", len(got), err, n)
			continue
		}
		if n == 1 {
			want := refund1
			want.ID = "rfnd_0"
			if diff := cmp.Diff([]payment.RefundFact{want}, got); diff != "" {
				t.Errorf("refunds (-want +got):\n%s", diff)
			}
		}
	}
}

// TestRefundsWhilePagesShift makes two refunds between the first page and the second. What was read last counts.
func TestRefundsWhilePagesShift(t *testing.T) {
	var entities []string
	for i := range 150 {
		entities = append(entities, refundOf(i))
	}
	client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		list(t, entities, url.Values{})(w, r)
		entities = append([]string{refundOf(1001), refundOf(1000)}, entities...)
		for i := range entities {
			entities[i] = strings.Replace(entities[i], "pending", "processed", 1)
		}
	})
	got, err := client.Refunds(t.Context(), "pay_1")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, fact := range got {
		ids = append(ids, fact.ID)
	}
	slices.Sort(ids)
	if len(ids) != 150 || len(slices.Compact(ids)) != 150 {
		t.Errorf("%d refunds, %d of them different, want 150", len(got), len(slices.Compact(ids)))
	}
	if got[97].Status != payment.RefundPending || got[98].Status != payment.RefundProcessed || got[99].Status != payment.RefundProcessed {
		t.Errorf("refunds 97 to 99 are %s, %s, %s, want the last two as the second page has them", got[97].Status, got[98].Status, got[99].Status)
	}
}

func TestRefundsOfAnotherPayment(t *testing.T) {
	for name, test := range map[string]struct {
		id   string
		want error
	}{
		`another`: {`"pay_2"`, payment.ErrOutcomeUnknown},
		`none`:    {`null`, nil}, // it is in the list of this payment
	} {
		entity := strings.Replace(refundJSON, `"pay_1"`, test.id, 1)
		client := serve(t, nil, list(t, []string{entity}, url.Values{}))
		got, err := client.Refunds(t.Context(), "pay_1")
		if !errors.Is(err, test.want) || err == nil && got[0].PaymentID != "pay_1" {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, test.want)
		}
	}
	client := serve(t, nil, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("called %s", r.URL) })
	for _, id := range []string{"", "..", "pay_1?count=1", "pay_1/x"} {
		if _, err := client.Refunds(t.Context(), id); !errors.Is(err, payment.ErrNotFound) {
			t.Errorf("%q: %v, want ErrNotFound", id, err)
		}
	}
}

func TestRefundsBetween(t *testing.T) {
	var entities []string
	for i := range 120 {
		entities = append(entities, strings.Replace(refundOf(i), "pay_1", fmt.Sprintf("pay_%d", i/2), 1))
	}
	client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/refunds" {
			t.Errorf("called %s", r.URL)
		}
		list(t, entities, url.Values{"from": {"1700000000"}, "to": {"1700000600"}})(w, r)
	})
	got, err := client.RefundsBetween(t.Context(), time.Unix(1700000000, 0), time.Unix(1700000600, 0))
	if err != nil || len(got) != 120 || got[119].PaymentID != "pay_59" || got[119].GatewayOrderID != "" {
		t.Errorf("%d refunds, %v, want 120", len(got), err)
	}
}
