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

func TestPaymentReads(t *testing.T) {
	const captured = `{"id":"pay_2","entity":"payment","amount":49900,"currency":"INR","status":"captured","order_id":"order_1","captured":true,"notes":[]}`
	const failed = `{"id":"pay_1","entity":"payment","amount":49900,"currency":"INR","status":"failed","order_id":"order_1","captured":false,"notes":[]}`
	inr := payment.Money{Amount: 49900, Currency: "INR"}
	facts := []payment.PaymentFact{
		{ID: "pay_1", GatewayOrderID: "order_1", Status: payment.PaymentCreated, Failed: true, Amount: inr, Confirmed: true},
		{ID: "pay_2", GatewayOrderID: "order_1", Status: payment.PaymentCaptured, Amount: inr, Confirmed: true},
	}
	client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/payments/pay_2":
			io.WriteString(w, captured)
		case "/v1/orders/order_1/payments":
			io.WriteString(w, `{"entity":"collection","count":2,"items":[`+failed+`,`+captured+`]}`)
		case "/v1/orders/order_2/payments":
			io.WriteString(w, `{"entity":"collection","count":0,"items":[]}`)
		case "/v1/orders/order_3/payments":
			io.WriteString(w, `{"entity":"collection","count":2,"items":[`+failed+`]}`)
		case "/v1/orders/order_4/payments":
			io.WriteString(w, `{}`)
		case "/v1/orders/order_5/payments":
			io.WriteString(w, `{"entity":"collection","count":1,"items":[null]}`)
		default:
			t.Errorf("called %s", r.URL)
		}
	})
	one, err := client.Payment(t.Context(), "pay_2")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(facts[1], one); diff != "" {
		t.Errorf("payment (-want +got):\n%s", diff)
	}
	got, err := client.OrderPayments(t.Context(), "order_1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(facts, got); diff != "" {
		t.Errorf("payments (-want +got):\n%s", diff)
	}
	if got, err = client.OrderPayments(t.Context(), "order_2"); err != nil || len(got) != 0 {
		t.Errorf("an order without payments: %v, %v", got, err)
	}
	for _, id := range []string{"order_3", "order_4", "order_5"} {
		if got, err = client.OrderPayments(t.Context(), id); !errors.Is(err, ErrUndecodable) {
			t.Errorf("%s: %v, %v, want ErrUndecodable", id, got, err)
		}
	}
}

func TestPayments(t *testing.T) {
	var entities []string
	for i := range 120 {
		entities = append(entities, fmt.Sprintf(`{"id":"pay_%d","amount":100,"currency":"INR","status":"captured"}`, i))
	}
	client := serve(t, nil, list(t, entities, url.Values{"from": {"1700000000"}, "to": {"1700000600"}}))
	facts, err := client.Payments(t.Context(), time.Unix(1700000000, 0), time.Unix(1700000600, 0))
	if err != nil || len(facts) != 120 || facts[119].ID != "pay_119" {
		t.Fatalf("%d payments, %v, want 120", len(facts), err)
	}
	for _, fact := range facts {
		if !fact.Confirmed {
			t.Errorf("%s is not confirmed", fact.ID)
		}
	}
}

func TestPagesWithoutEnd(t *testing.T) {
	page := `{"entity":"collection","count":100,"items":[` + strings.Join(slices.Repeat([]string{`{"id":"pay_1"}`}, 100), ",") + `]}`
	client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, page) })
	if _, err := client.Payments(t.Context(), time.Unix(0, 0), time.Unix(1, 0)); err == nil {
		t.Error("no error")
	}
}

// TestReadErrors holds what every read's failure comes to for a consumer that knows package payment alone.
func TestReadErrors(t *testing.T) {
	from, to := time.Unix(1700000000, 0), time.Unix(1700000600, 0)
	reads := map[string]func(*Client) error{
		"Order":         func(c *Client) error { _, err := c.Order(t.Context(), "order_1"); return err },
		"GatewayOrder":  func(c *Client) error { _, err := c.GatewayOrder(t.Context(), "order_1"); return err },
		"OrderPayments": func(c *Client) error { _, err := c.OrderPayments(t.Context(), "order_1"); return err },
		"Payment":       func(c *Client) error { _, err := c.Payment(t.Context(), "pay_1"); return err },
		"Refunds":       func(c *Client) error { _, err := c.Refunds(t.Context(), "pay_1"); return err },
	}
	lists := map[string]func(*Client) error{
		"OrdersByReceipt": func(c *Client) error { _, err := c.OrdersByReceipt(t.Context(), "shop-1"); return err },
		"FindOrder": func(c *Client) error {
			_, err := c.FindOrder(t.Context(), payment.Order{ID: "shop-1"}, "dev/shop-1")
			return err
		},
		"Payments":       func(c *Client) error { _, err := c.Payments(t.Context(), from, to); return err },
		"RefundsBetween": func(c *Client) error { _, err := c.RefundsBetween(t.Context(), from, to); return err },
	}
	const private = "cardholder Asha Rao"
	refusal := func(description string) string {
		return `{"error":{"code":"BAD_REQUEST_ERROR","description":"` + description + `","source":"NA","step":"NA","reason":"NA","metadata":{}}}`
	}
	for name, answer := range map[string]struct {
		status  int
		body    string
		missing bool // of one entity; a list cannot be missing
	}{
		"no such id":           {400, refusal("The id provided does not exist"), true},
		"no such id, 404":      {404, refusal("The ID provided does not exist."), true},
		"not an id":            {400, refusal("pay_1 is not a valid id"), true},
		"no such URL":          {404, refusal("The requested URL was not found on the server."), false},
		"another refusal":      {400, refusal(private), false},
		"no key":               {401, refusal("The id provided does not exist"), false},
		"500":                  {500, refusal("The id provided does not exist"), false},
		"502 in HTML":          {502, "<html>" + private, false},
		"404 in HTML":          {404, "<html>" + private, false},
		"the other envelope":   {400, `{"error":{"code":400,"message":"` + private + `","errors":[{"reason":"x"}]}}`, false},
		"200 in HTML":          {200, "<html>" + private, false},
		"200 empty":            {200, "", false},
		"200 with two bytes":   {200, "{}", false},
		"200 with null":        {200, "null", false},
		"200 with a list":      {200, "[]", false},
		"200 with wrong types": {200, `{"id":["` + private + `"],"count":"` + private + `","items":{}}`, false},
		"200 cut off":          {200, `{"entity":"collection","count":1,"items":[{"id":"pay_1"`, false},
		"200 far too large":    {200, strings.Repeat(" ", maxAnswer+1) + "{}", false},
	} {
		client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(answer.status)
			io.WriteString(w, answer.body)
		})
		check := func(call string, err, want error) {
			if !errors.Is(err, want) {
				t.Errorf("%s, %s: %v, want %v", name, call, err, want)
			}
			if err != nil && strings.Contains(err.Error(), private) {
				t.Errorf("%s, %s: the error repeats the answer: %v", name, call, err)
			}
		}
		for call, read := range reads {
			want := payment.ErrOutcomeUnknown
			if answer.missing {
				want = payment.ErrNotFound
			}
			check(call, read(client), want)
		}
		for call, read := range lists {
			check(call, read(client), payment.ErrOutcomeUnknown)
		}
	}
}

func TestAnswersAboutSomethingElse(t *testing.T) {
	client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/orders") {
			io.WriteString(w, orderJSON)
			return
		}
		io.WriteString(w, `{"id":"pay_2","amount":100,"currency":"INR","status":"captured"}`)
	})
	if got, err := client.Payment(t.Context(), "pay_1"); !errors.Is(err, payment.ErrOutcomeUnknown) {
		t.Errorf("payment: %+v, %v", got, err)
	}
	if got, err := client.Payment(t.Context(), "PAY_2"); !errors.Is(err, payment.ErrOutcomeUnknown) {
		t.Errorf("ids differ in case: %+v, %v", got, err)
	}
	if got, err := client.GatewayOrder(t.Context(), "order_2"); !errors.Is(err, payment.ErrOutcomeUnknown) {
		t.Errorf("order: %+v, %v", got, err)
	}
}

func TestAmountsOfPaymentsAreExact(t *testing.T) {
	for amount, want := range map[string]int64{
		"999999999999999": 999_999_999_999_999, "1000000000000000": payment.MaxAmount,
		"1000000000000001": 0, "9007199254740993": 0, "18446744073709551617": 0, "1e3": 0, "100.0": 0, `"100"`: 0, "-1": 0, "null": 0,
	} {
		client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"id":"pay_1","amount":%s,"currency":"INR","status":"captured"}`, amount)
		})
		got, err := client.Payment(t.Context(), "pay_1")
		if got.Amount.Amount != want || (err == nil) != (want != 0) || err != nil && !errors.Is(err, payment.ErrOutcomeUnknown) {
			t.Errorf("%s: %d, %v, want %d", amount, got.Amount.Amount, err, want)
		}
	}
}

func TestWebhooksDoNotConfirm(t *testing.T) {
	payments := 0
	for name, body := range bodies(t) {
		notice, err := Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		for _, fact := range notice.Facts {
			if p, ok := fact.(payment.PaymentFact); ok {
				payments++
				if p.Confirmed {
					t.Errorf("%s: %s is confirmed", name, p.ID)
				}
			}
		}
	}
	if payments == 0 {
		t.Error("no payment among the samples")
	}
}
