package razorpaytest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/razorpay/razorpaytest"
)

// told is what an event says of a refund and its payment.
type told struct {
	Event, Refund, Payment string // the event's name and the statuses in it
	AmountRefunded         int64
	RefundStatus           string // empty: null
	Captured               bool
	CreatedAt              int64 // the event's time, in seconds after the start
}

// refundEvents settles the gateway and returns what its refund events say.
func refundEvents(t *testing.T, gateway *razorpaytest.Gateway) (all []told) {
	t.Helper()
	settle(t, gateway)
	for _, d := range gateway.Deliveries() {
		if !strings.HasPrefix(d.Event, "refund.") {
			continue
		}
		var e struct {
			Contains []string
			Payload  struct {
				Refund struct {
					Entity struct{ ID, Status string }
				}
				Payment struct {
					Entity struct {
						Status         string
						Captured       bool
						AmountRefunded int64   `json:"amount_refunded"`
						RefundStatus   *string `json:"refund_status"`
					}
				}
			}
			CreatedAt int64 `json:"created_at"`
		}
		if err := json.Unmarshal(d.Body, &e); err != nil {
			t.Fatal(err)
		}
		p := e.Payload.Payment.Entity
		one := told{d.Event, e.Payload.Refund.Entity.Status, p.Status, p.AmountRefunded, "", p.Captured, e.CreatedAt - start.Unix()}
		if p.RefundStatus != nil {
			one.RefundStatus = *p.RefundStatus
		}
		if d.RefundID != e.Payload.Refund.Entity.ID || strings.Join(e.Contains, " ") != "refund payment" {
			t.Errorf("%s of %s contains %v", d.Event, d.RefundID, e.Contains)
		}
		all = append(all, one)
	}
	return all
}

func TestRefundLifecycle(t *testing.T) {
	for name, test := range map[string]struct {
		amount int64
		keep   bool
		path   string // statuses, the first as it is made
		want   []told
	}{
		"part": {400, false, "processed", []told{
			{"refund.created", "processed", "captured", 400, "partial", true, 0},
			{"refund.processed", "processed", "captured", 400, "partial", true, 0},
		}},
		"all": {1000, false, "processed", []told{
			{"refund.created", "processed", "refunded", 1000, "full", true, 0},
			{"refund.processed", "processed", "refunded", 1000, "full", true, 0},
		}},
		"pending": {400, false, "pending", []told{{"refund.created", "pending", "captured", 400, "partial", true, 0}}},
		"pending, then processed": {1000, false, "pending processed", []told{
			{"refund.created", "pending", "refunded", 1000, "full", true, 0},
			{"refund.processed", "processed", "refunded", 1000, "full", true, 0},
		}},
		"pending, then failed": {1000, false, "pending failed", []told{
			{"refund.created", "pending", "refunded", 1000, "full", true, 0},
			{"refund.failed", "failed", "captured", 0, "", true, 0},
		}},
		"processed, then failed": {400, false, "processed failed", []told{
			{"refund.created", "processed", "captured", 400, "partial", true, 0},
			{"refund.processed", "processed", "captured", 400, "partial", true, 0},
			{"refund.failed", "failed", "captured", 0, "", true, 0},
		}},
		"failed at once": {400, false, "failed", []told{
			{"refund.created", "pending", "captured", 400, "partial", true, 0},
			{"refund.failed", "failed", "captured", 0, "", true, 0},
		}},
		"failed, shown on": {400, true, "pending failed", []told{
			{"refund.created", "pending", "captured", 400, "partial", true, 0},
			{"refund.failed", "failed", "captured", 400, "partial", true, 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			gateway, url, _ := newGateway(t, nil)
			newReceiver(t, gateway)
			path := strings.Fields(test.path)
			settings(t, gateway, razorpaytest.SettingsChange{RefundStatus: &path[0], KeepFailed: &test.keep})
			id := capturedPayment(t, gateway, 1000)
			made, err := gateway.Refund(razorpaytest.RefundRequest{PaymentID: id, Amount: test.amount})
			if err != nil {
				t.Fatal(err)
			}
			for _, status := range path[1:] {
				if err := gateway.MoveRefund(made, razorpaytest.Move{Status: status}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, refundEvents(t, gateway)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			last := test.want[len(test.want)-1]
			p := read(t, url, "/v1/payments/"+id)
			if p.Status != last.Payment || p.AmountRefunded != last.AmountRefunded {
				t.Errorf("the payment is %s", p.raw)
			}
			if r := read(t, url, "/v1/refunds/"+made); r.Status != last.Refund {
				t.Errorf("the refund is %s", r.raw)
			}
			left := 1000 - test.amount
			if last.Refund == "failed" {
				left = 1000
			}
			if r := refund(t, url, id, "", `{}`); left > 0 && r.Amount != left || left == 0 && r.status == 200 {
				t.Errorf("the rest is %s, want %d", r.raw, left)
			}
		})
	}
}

func TestRefundMovesThatCannotBe(t *testing.T) {
	gateway, _, _ := newGateway(t, nil)
	for from, tos := range map[string][]string{
		"pending": {"pending", "created", ""}, "processed": {"pending", "processed"}, "failed": {"pending", "processed", "failed"},
	} {
		id, err := gateway.Refund(razorpaytest.RefundRequest{PaymentID: capturedPayment(t, gateway, 100), Status: from})
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range tos {
			if err := gateway.MoveRefund(id, razorpaytest.Move{Status: to}); err == nil {
				t.Errorf("%s went to %q", from, to)
			}
		}
	}
	if err := gateway.MoveRefund("rfnd_Nope", razorpaytest.Move{Status: "failed"}); err == nil {
		t.Error("an unknown refund moved")
	}
	for name, r := range map[string]razorpaytest.RefundRequest{
		"unknown payment": {PaymentID: "pay_Nope"},
		"unknown status":  {PaymentID: capturedPayment(t, gateway, 100), Status: "created"},
		"too much":        {PaymentID: capturedPayment(t, gateway, 100), Amount: 101},
	} {
		if id, err := gateway.Refund(r); err == nil {
			t.Errorf("%s: made %s", name, id)
		}
	}
}

func TestMerchantBalance(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	id := capturedPayment(t, gateway, 1000)
	settings(t, gateway, razorpaytest.SettingsChange{Balance: new(int64(500))})
	first := refund(t, url, id, key, `{"amount":300}`)
	if first.status != 200 {
		t.Fatal(first.raw)
	}
	r := refund(t, url, id, "", `{"amount":201}`)
	if r.status != 400 || !strings.HasPrefix(r.Error.Description, "Your account does not have enough balance to carry out the refund operation.") {
		t.Errorf("beyond the balance: %s", r.raw)
	}
	if err := gateway.MoveRefund(first.ID, razorpaytest.Move{Status: "failed"}); err != nil {
		t.Fatal(err)
	}
	if s := settings(t, gateway, razorpaytest.SettingsChange{}); s.Balance != 500 {
		t.Errorf("balance %d after the refund failed, want 500", s.Balance)
	}
	settings(t, gateway, razorpaytest.SettingsChange{Balance: new(int64(-1))})
	if r := refund(t, url, id, "", `{}`); r.status != 200 || r.Amount != 1000 {
		t.Errorf("without limit: %s", r.raw)
	}
}

// TestDashboardRefunds goes through HTTP alone, as a script would.
func TestDashboardRefunds(t *testing.T) {
	gateway, url, _ := newGateway(t, nil)
	newReceiver(t, gateway)
	id := capturedPayment(t, gateway, 1000)
	post := func(path, body string, want int) reply {
		t.Helper()
		status, answer := call(t, http.MethodPost, url+path, body)
		if status != want {
			t.Fatalf("%s %s: %d %s, want %d", path, body, status, answer, want)
		}
		return decodeReply(t, status, answer)
	}
	post("/_sim/settings", `{"refund_status":"pending","balance":5000,"key_conflict":409,"keep_failed":false,"auto_refund_surplus":false,"refund_takes_seconds":0}`, 200)
	quiet := post("/_sim/refunds", `{"payment_id":"`+id+`","amount":100,"receipt":"desk-1","notes":{"by":"ann"},"deliver":false}`, 200).ID
	post("/_sim/refunds/"+quiet, `{"status":"processed","deliver":false}`, 200)
	loud := post("/_sim/refunds", `{"payment_id":"`+id+`","status":"processed"}`, 200).ID
	post("/_sim/refunds/"+loud, `{"status":"failed"}`, 200)
	if r := read(t, url, "/v1/refunds/"+quiet); !strings.Contains(r.raw, `"notes":{"by":"ann"},"receipt":"desk-1"`) || r.Status != "processed" {
		t.Errorf("refund %s", r.raw)
	}
	want := []told{
		{"refund.created", "processed", "refunded", 1000, "full", true, 0},
		{"refund.processed", "processed", "refunded", 1000, "full", true, 0},
		{"refund.failed", "failed", "captured", 100, "partial", true, 0},
	}
	if diff := cmp.Diff(want, refundEvents(t, gateway)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for path, body := range map[string]string{
		"/_sim/refunds": `{"payment":"x"}`, "/_sim/refunds/" + loud: `{"state":"failed"}`,
		"/_sim/refunds/rfnd_Nope": `{"status":"failed"}`, "/_sim/settings": `{"refund_statuses":"failed"}`,
	} {
		post(path, body, 400)
	}
	for _, body := range []string{
		`{"refund_status":"created"}`, `{"refund_takes_seconds":-1}`, `{"key_conflict":500}`, `{"balance":-2}`,
	} {
		post("/_sim/settings", body, 400)
	}
	got := settings(t, gateway, razorpaytest.SettingsChange{})
	if want := (razorpaytest.Settings{RefundStatus: "pending", KeyConflict: 409, Balance: 4900}); got != want {
		t.Errorf("settings %+v, want %+v", got, want)
	}
}
