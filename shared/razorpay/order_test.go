package razorpay

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

func TestCreateOrderRequest(t *testing.T) {
	inr := payment.Money{Amount: 49900, Currency: "INR"}
	for name, test := range map[string]struct {
		request OrderRequest
		want    string
	}{
		"least": {
			OrderRequest{Amount: inr},
			`{"amount":49900,"currency":"INR","payment":{"capture":"automatic"}}`,
		},
		"all": {
			OrderRequest{Amount: inr, Receipt: "shop-1", Notes: map[string]string{"paidonce": "dev/shop-1"}, Partial: true,
				AutomaticExpiry: 30, ManualExpiry: 7200, RefundSpeed: "optimum"},
			`{"amount":49900,"currency":"INR","receipt":"shop-1","notes":{"paidonce":"dev/shop-1"},"partial_payment":true,` +
				`"payment":{"capture":"automatic","capture_options":{"automatic_expiry_period":30,"manual_expiry_period":7200,"refund_speed":"optimum"}}}`,
		},
		"amount that a float would round": {
			OrderRequest{Amount: payment.Money{Amount: 9007199254740993, Currency: "INR"}},
			`{"amount":9007199254740993,"currency":"INR","payment":{"capture":"automatic"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
				id, secret, ok := r.BasicAuth()
				if r.Method != http.MethodPost || r.URL.RequestURI() != "/v1/orders" || !ok || id != "rzp_test_1" || secret != "key secret" {
					t.Errorf("%s %s as %q %q", r.Method, r.URL.RequestURI(), id, secret)
				}
				if auth := r.Header.Get("Authorization"); !strings.HasPrefix(auth, "Basic ") {
					t.Errorf("the gateway wants exactly Basic, got %q", strings.Fields(auth)[0])
				}
				if got := r.Header.Get("Content-Type"); got != "application/json" {
					t.Errorf("Content-Type %q", got)
				}
				if body, _ := io.ReadAll(r.Body); string(body) != test.want {
					t.Errorf("body\n got %s\nwant %s", body, test.want)
				}
				io.WriteString(w, orderJSON)
			})
			got, err := client.CreateOrder(t.Context(), test.request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(order1, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	for name, test := range map[string]struct {
		notes string
		want  map[string]string
	}{
		"array":   {`[]`, nil},
		"null":    {`null`, nil},
		"empty":   {`{}`, nil},
		"pairs":   {`{"paidonce":"dev/shop-1"}`, map[string]string{"paidonce": "dev/shop-1"}},
		"numbers": {`{"n":12345678901234567890,"b":true}`, map[string]string{"n": "12345678901234567890", "b": "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.RequestURI() != "/v1/orders/order_1" {
					t.Errorf("%s %s", r.Method, r.URL.RequestURI())
				}
				io.WriteString(w, strings.Replace(orderJSON, `"notes":[]`, `"notes":`+test.notes, 1))
			})
			got, err := client.Order(t.Context(), "order_1")
			if err != nil {
				t.Fatal(err)
			}
			want := order1
			want.Notes = test.want
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadsRefuseOddIDs(t *testing.T) {
	client := serve(t, nil, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("called %s", r.URL) })
	for _, id := range []string{"", ".", "..", "../payments", "order_1/payments", "order_1?x", "order 1", strings.Repeat("o", 65)} {
		if _, err := client.Order(t.Context(), id); err == nil {
			t.Errorf("Order(%q): no error", id)
		}
		if _, err := client.OrderPayments(t.Context(), id); err == nil {
			t.Errorf("OrderPayments(%q): no error", id)
		}
		if _, err := client.Payment(t.Context(), id); err == nil {
			t.Errorf("Payment(%q): no error", id)
		}
	}
	if _, err := client.OrdersByReceipt(t.Context(), ""); err == nil {
		t.Error(`OrdersByReceipt(""): no error`)
	}
}

// list serves entities the way the gateway pages them.
func list(t *testing.T, entities []string, want url.Values) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		count, _ := strconv.Atoi(query.Get("count"))
		skip, _ := strconv.Atoi(query.Get("skip"))
		query.Del("count")
		query.Del("skip")
		if diff := cmp.Diff(want, query); diff != "" {
			t.Errorf("query (-want +got):\n%s", diff)
		}
		page := entities[min(skip, len(entities)):min(skip+count, len(entities))]
		fmt.Fprintf(w, `{"entity":"collection","count":%d,"items":[%s]}`, len(page), strings.Join(page, ","))
	}
}

func TestOrdersByReceipt(t *testing.T) {
	threePages := slices.Repeat([]string{"shop-12"}, 230)
	threePages[7], threePages[105], threePages[210] = "shop-1", "shop-1", "shop-1"
	for name, test := range map[string]struct {
		receipts []string
		want     []int // indices
	}{
		"none":             {nil, nil},
		"parts only":       {[]string{"shop-10", "xshop-1", "SHOP-1", " shop-1"}, nil},
		"one among parts":  {[]string{"shop-10", "shop-1", "shop-11"}, []int{1}},
		"two orders":       {[]string{"shop-1", "shop-10", "shop-1"}, []int{0, 2}},
		"on the last page": {append(slices.Repeat([]string{"shop-12"}, 250), "shop-1"), []int{250}},
		"three pages":      {threePages, []int{7, 105, 210}},
		"at a page's end":  {append(slices.Repeat([]string{"shop-12"}, 99), "shop-1"), []int{99}},
	} {
		t.Run(name, func(t *testing.T) {
			var entities []string
			for i, receipt := range test.receipts {
				entities = append(entities, strings.NewReplacer("order_1", "order_"+strconv.Itoa(i), "shop-1", receipt).Replace(orderJSON))
			}
			client := serve(t, nil, list(t, entities, url.Values{"receipt": {"shop-1"}}))
			orders, err := client.OrdersByReceipt(t.Context(), "shop-1")
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for _, i := range test.want {
				want = append(want, "order_"+strconv.Itoa(i))
			}
			for _, order := range orders {
				got = append(got, order.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("orders (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrdersByReceiptWhilePagesShift(t *testing.T) {
	client := serve(t, nil, list(t, slices.Repeat([]string{orderJSON}, 201), url.Values{"receipt": {"shop-1"}}))
	orders, err := client.OrdersByReceipt(t.Context(), "shop-1")
	if err != nil || len(orders) != 1 {
		t.Errorf("%d orders, %v, want the one once", len(orders), err)
	}
}
