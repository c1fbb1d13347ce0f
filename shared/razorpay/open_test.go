package razorpay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"paidonce/shared/payment"
)

var shop1 = payment.Order{ID: "shop-1", Amount: inr(49900), Partial: true, Notes: map[string]string{"colour": "red", noteKey: "forged"}}

func TestOpenOrder(t *testing.T) {
	const want = `{"amount":49900,"currency":"INR","receipt":"shop-1","notes":{"colour":"red","paidonce":"dev/shop-1"},"partial_payment":true,` +
		`"payment":{"capture":"automatic","capture_options":{"automatic_expiry_period":4320,"manual_expiry_period":7200,"refund_speed":"normal"}}}`
	client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != want {
			t.Errorf("body\n got %s\nwant %s", body, want)
		}
		io.WriteString(w, orderJSON)
	})
	if id, err := client.OpenOrder(t.Context(), shop1, "dev/shop-1"); id != "order_1" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

// TestFindOrder: only exactly our order is found, whatever else shares parts of its receipt.
func TestFindOrder(t *testing.T) {
	order := func(id, receipt, note, currency string, amount, created int64) string {
		return fmt.Sprintf(`{"id":%q,"entity":"order","amount":%d,"amount_paid":0,"currency":%q,"receipt":%q,"status":"created","notes":{"paidonce":%q},"created_at":%d}`,
			id, amount, currency, receipt, note, created)
	}
	const note = "dev/shop-1"
	ours := order("order_ours", "shop-1", note, "INR", 49900, 1700000500)
	unnoted := orderJSON // the same receipt, amount and currency
	strangers := []string{
		unnoted,
		order("order_longer", "shop-10", note, "INR", 49900, 1700000000),
		order("order_prefixed", "xshop-1", note, "INR", 49900, 1700000000),
		order("order_upper", "SHOP-1", note, "INR", 49900, 1700000000),
		order("order_stack", "shop-1", "prod/shop-1", "INR", 49900, 1700000000),
		order("order_note", "shop-1", "dev/shop-10", "INR", 49900, 1700000000),
		order("order_amount", "shop-1", note, "INR", 49901, 1700000000),
		order("order_currency", "shop-1", note, "JPY", 49900, 1700000000),
	}
	var crowd []string // two pages and a half
	for i := range 250 {
		crowd = append(crowd, order(fmt.Sprintf("order_%d", i), fmt.Sprintf("shop-1%d", i), note, "INR", 49900, 1700000000))
	}
	for name, test := range map[string]struct {
		entities []string
		want     string // empty: ErrNotFound
	}{
		"none":                    {nil, ""},
		"strangers":               {strangers, ""},
		"among strangers":         {slices.Concat(strangers, []string{ours}), "order_ours"},
		"on the third page":       {slices.Concat(strangers, crowd, []string{ours}), "order_ours"},
		"three pages of others":   {slices.Concat(crowd, strangers), ""},
		"the first of several":    {[]string{order("order_later", "shop-1", note, "INR", 49900, 1700000501), ours}, "order_ours"},
		"several of one second":   {[]string{ours, order("order_other", "shop-1", note, "INR", 49900, 1700000500)}, "order_other"},
		"several, pages apart":    {slices.Concat([]string{order("order_later", "shop-1", note, "INR", 49900, 1700000501)}, crowd, []string{ours}), "order_ours"},
		"twice, for pages shift":  {[]string{ours, ours}, "order_ours"},
		"ours, without its notes": {[]string{unnoted}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reversed := range []bool{false, true} { // the answer does not depend on the order of the list
				entities := slices.Clone(test.entities)
				if reversed {
					slices.Reverse(entities)
				}
				client := serve(t, nil, list(t, entities, url.Values{"receipt": {"shop-1"}}))
				id, err := client.FindOrder(t.Context(), shop1, note)
				wanted := error(nil)
				if test.want == "" {
					wanted = payment.ErrNotFound
				}
				if id != test.want || !errors.Is(err, wanted) {
					t.Errorf("reversed %t: %q, %v, want %q, %v", reversed, id, err, test.want, wanted)
				}
			}
		})
	}
}

// TestFindOrderIncomplete: an order that could not be looked for everywhere was not looked for.
func TestFindOrderIncomplete(t *testing.T) {
	var entities []string
	for range 150 {
		entities = append(entities, orderJSON)
	}
	for name, fail := range map[string]http.HandlerFunc{
		"500": status(500, nil),
		"400": status(400, nil),
		"no such id": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			io.WriteString(w, `{"error":{"code":"BAD_REQUEST_ERROR","description":"The id provided does not exist"}}`)
		},
		"cut off":    cutOff,
		"short":      func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"count":50,"items":[]}`) },
		"not a list": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{}`) },
		"odd amounts": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"count":1,"items":[{"id":"order_1","receipt":"shop-1","amount":1.5,"currency":"INR","status":"created"}]}`)
		},
	} {
		client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("skip") == "0" {
				list(t, entities, url.Values{"receipt": {"shop-1"}})(w, r)
				return
			}
			fail(w, r)
		})
		if id, err := client.FindOrder(t.Context(), shop1, "dev/shop-1"); !errors.Is(err, payment.ErrOutcomeUnknown) || errors.Is(err, payment.ErrNotFound) {
			t.Errorf("%s: %q, %v, want ErrOutcomeUnknown", name, id, err)
		}
	}
}
