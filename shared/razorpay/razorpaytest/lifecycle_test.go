package razorpaytest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

func TestLifecycle(t *testing.T) {
	type attempt struct {
		amount   int64
		currency string
		path     string // statuses, the first as it is made
	}
	for name, test := range map[string]struct {
		attempts []attempt
		events   string
		status   string
		paid     int64
	}{
		"nothing":                {nil, "", "created", 0},
		"begun":                  {[]attempt{{path: "created"}}, "", "created", 0},
		"authorized":             {[]attempt{{path: "authorized"}}, "payment.authorized", "attempted", 0},
		"captured":               {[]attempt{{path: "captured"}}, "payment.authorized payment.captured order.paid", "paid", 1000},
		"step by step":           {[]attempt{{path: "created authorized captured"}}, "payment.authorized payment.captured order.paid", "paid", 1000},
		"failed":                 {[]attempt{{path: "failed"}}, "payment.failed", "attempted", 0},
		"begun, then failed":     {[]attempt{{path: "created failed"}}, "payment.failed", "attempted", 0},
		"late authorization":     {[]attempt{{path: "failed authorized captured"}}, "payment.failed payment.authorized payment.captured order.paid", "paid", 1000},
		"late capture":           {[]attempt{{path: "failed captured"}}, "payment.failed payment.authorized payment.captured order.paid", "paid", 1000},
		"second attempt":         {[]attempt{{path: "failed"}, {path: "captured"}}, "payment.failed payment.authorized payment.captured order.paid", "paid", 1000},
		"in parts":               {[]attempt{{amount: 400, path: "captured"}, {path: "captured"}}, "payment.authorized payment.captured payment.authorized payment.captured order.paid", "paid", 1000},
		"too little":             {[]attempt{{amount: 999, path: "captured"}}, "payment.authorized payment.captured", "attempted", 999},
		"too much":               {[]attempt{{amount: 1020, path: "captured"}}, "payment.authorized payment.captured order.paid", "paid", 1020},
		"twice":                  {[]attempt{{path: "captured"}, {path: "captured"}}, "payment.authorized payment.captured order.paid payment.authorized payment.captured", "paid", 2000},
		"other money, same sum":  {[]attempt{{currency: "USD", path: "captured"}}, "payment.authorized payment.captured", "attempted", 0},
		"failed after it's paid": {[]attempt{{path: "captured"}, {path: "failed"}}, "payment.authorized payment.captured order.paid payment.failed", "paid", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			gateway, _, client := newGateway(t, nil)
			receiver := newReceiver(t, gateway)
			order := addOrder(t, gateway, 1000)
			for _, a := range test.attempts {
				statuses := strings.Fields(a.path)
				id := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Amount: a.amount, Currency: a.currency, Status: statuses[0]})
				for _, status := range statuses[1:] {
					if err := gateway.Move(id, razorpaytest.Move{Status: status}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := strings.Join(receiver.names(t, gateway), " "); got != test.events {
				t.Errorf("events\n got %s\nwant %s", got, test.events)
			}
			got, err := client.Order(t.Context(), order)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != test.status || got.AmountPaid != test.paid {
				t.Errorf("order is %s with %d, want %s with %d", got.Status, got.AmountPaid, test.status, test.paid)
			}
		})
	}
}

func TestMovesThatCannotBe(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	for from, tos := range map[string][]string{
		"created":    {"created", "refunded", ""},
		"authorized": {"created", "authorized", "failed"},
		"captured":   {"created", "authorized", "captured", "failed"},
		"failed":     {"created", "failed"},
	} {
		id := pay(t, gateway, razorpaytest.PaymentRequest{Amount: 100, Status: from})
		for _, to := range tos {
			if err := gateway.Move(id, razorpaytest.Move{Status: to}); err == nil {
				t.Errorf("%s went to %q", from, to)
			}
		}
	}
	if err := gateway.Move("pay_Nope", razorpaytest.Move{Status: "captured"}); err == nil {
		t.Error("an unknown payment moved")
	}
}

func TestPaymentsThatCannotBe(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	order := addOrder(t, gateway, 100)
	for name, request := range map[string]razorpaytest.PaymentRequest{
		"unknown order":         {OrderID: "order_Nope", Status: "captured"},
		"unknown status":        {OrderID: order, Status: "refunded"},
		"no status":             {OrderID: order},
		"negative amount":       {OrderID: order, Amount: -1, Status: "captured"},
		"huge amount":           {OrderID: order, Amount: 1 << 60, Status: "captured"},
		"no amount, no order":   {Status: "captured"},
		"lower-case currency":   {OrderID: order, Currency: "inr", Status: "captured"},
		"currency of one digit": {Amount: 100, Currency: "1", Status: "captured"},
	} {
		if id, err := gateway.Pay(request); err == nil {
			t.Errorf("%s: made %s", name, id)
		}
	}
	if deliveries := gateway.Deliveries(); len(deliveries) != 0 {
		t.Errorf("refused payments made events: %v", deliveries)
	}
	for name, request := range map[string]razorpaytest.OrderRequest{
		"taken id":            {ID: order, Amount: 100, Currency: "INR"},
		"negative amount":     {Amount: -1, Currency: "INR"},
		"no currency":         {Amount: 100},
		"receipt of 41 chars": {Amount: 100, Currency: "INR", Receipt: strings.Repeat("x", 41)},
	} {
		if id, err := gateway.AddOrder(request); err == nil {
			t.Errorf("%s: made %s", name, id)
		}
	}
}

// TestEventBodies checks that each event is a signed snapshot that says what had happened by then.
func TestEventBodies(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	receiver := newReceiver(t, gateway)
	order := addOrder(t, gateway, 1000)
	id := pay(t, gateway, razorpaytest.PaymentRequest{OrderID: order, Status: "failed"})
	if err := gateway.Move(id, razorpaytest.Move{Status: "captured"}); err != nil {
		t.Fatal(err)
	}
	settle(t, gateway)
	inr := payment.Money{Amount: 1000, Currency: "INR"}
	fact := func(status payment.PaymentStatus, failed bool) payment.Fact {
		return payment.PaymentFact{ID: id, GatewayOrderID: order, Status: status, Failed: failed, Amount: inr, CreatedAt: start}
	}
	want := []payment.Notice{
		{Type: "payment.failed", Account: "acc_Sim1", Facts: []payment.Fact{fact(payment.PaymentCreated, true)}},
		{Type: "payment.authorized", Account: "acc_Sim1", Facts: []payment.Fact{fact(payment.PaymentAuthorized, false)}},
		{Type: "payment.captured", Account: "acc_Sim1", Facts: []payment.Fact{fact(payment.PaymentCaptured, false)}},
		{Type: "order.paid", Account: "acc_Sim1", Facts: []payment.Fact{
			fact(payment.PaymentCaptured, false), payment.OrderFact{GatewayOrderID: order, Paid: true, Amount: inr},
		}},
	}
	var got []payment.Notice
	ids := map[string]bool{}
	for _, d := range receiver.deliveries() {
		event, err := razorpay.Decode(d.body)
		if err != nil {
			t.Fatal(err)
		}
		if event.At.IsZero() {
			t.Errorf("%s does not say when it came about", event.Type)
		}
		event.At = time.Time{}
		got = append(got, event)
		ids[d.id] = true
		if _, ok := razorpay.Verify(d.body, d.signature, []razorpay.Secret{{Label: "test_current", Value: webhookSecret}}); !ok {
			t.Errorf("%s: bad signature %q", event.Type, d.signature)
		}
		if d.contentType != "application/json" {
			t.Errorf("%s: Content-Type %q", event.Type, d.contentType)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(ids) != 4 || ids[""] {
		t.Errorf("event ids %v, want 4", ids)
	}
}
