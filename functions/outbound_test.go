package functions_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/storetest"
)

const (
	shopPage = "http://127.0.0.1:1/thanks?shop=1" // nobody listens there: the redirect itself is looked at
	// confirmAbove is the amount above which captures are confirmed on this stack; price is below it.
	confirmAbove = 1_000_000
)

// pay lets a customer pay the order at the gateway, and keeps the webhooks back unless deliver.
func pay(t *testing.T, o apigw.Order, status string, deliver bool) string {
	t.Helper()
	id, err := gateway.Pay(razorpaytest.PaymentRequest{OrderID: *o.GatewayOrderID, Status: status, Deliver: &deliver})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// comeBack posts the checkout's form, as the browser does, and returns the status in the redirect.
func comeBack(t *testing.T, orderID string, form url.Values) (status string) {
	t.Helper()
	response, err := client.PostForm(stack.APIURL+"/checkout/razorpay/"+orderID, form)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	to, err := response.Location()
	if response.StatusCode != http.StatusSeeOther || err != nil || !strings.HasPrefix(to.String(), shopPage+"&") {
		t.Errorf("the callback answered %d to %v (%v)", response.StatusCode, to, err)
		return ""
	}
	return to.Query().Get("status")
}

func form(t *testing.T, paymentID string) url.Values {
	t.Helper()
	fields, err := gateway.Checkout(paymentID)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// callsOf counts the gateway calls of a method and path.
func callsOf(method, path string) int {
	n := 0
	for _, c := range gateway.Calls() {
		if c.Method == method && c.Path == path {
			n++
		}
	}
	return n
}

// A callback races the webhook of the same payment, now one and now the other first: one move, one fulfilment, one booking.
func TestCallbackRacesItsWebhook(t *testing.T) {
	const rounds, atOnce = 100, 4
	callbackFirst := make(chan bool, rounds)
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for round := range rounds {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			o := newOrder(t)
			paymentID := pay(t, o, "captured", false)
			fields, eventID := form(t, paymentID), uniqueEvent()
			var race sync.WaitGroup
			race.Go(func() { deliver(t, eventID, body(o, paymentID), stack.WebhookSecret) })
			if round%2 == 1 { // the webhook gets a head start, in each round a little more, up to the whole way
				for reads := 0; (reads < round || round > rounds*9/10) && storedOrder(t, o.ID).FulfilledAt.IsZero(); reads++ {
				}
			}
			comeBack(t, o.ID, fields)
			race.Wait()
			verdict := settled(t, eventID)
			callbackFirst <- !strings.Contains(verdict, "order pending → paid")
			paidOnce(t, o.ID)
			var moves, captures int
			h, err := table.History(t.Context(), o.ID)
			if err != nil {
				t.Error(err)
			}
			for _, e := range h.Effects {
				if entry, ok := e.Effect.(payment.LedgerEntry); ok && entry.Type == payment.LedgerCaptured {
					captures++
				}
			}
			for _, said := range append(changes(h), verdict) {
				moves += strings.Count(said, "order pending → paid; fulfilled")
			}
			if moves != 1 || captures != 1 {
				t.Errorf("order %s moved %d times and was booked %d times: %v, %q", o.ID, moves, captures, changes(h), verdict)
			}
			if n := callsOf(http.MethodGet, "/v1/payments/"+paymentID); n > 1 {
				t.Errorf("payment %s was read back %d times", paymentID, n)
			}
		})
	}
	all.Wait()
	close(callbackFirst)
	won := 0
	for first := range callbackFirst {
		if first {
			won++
		}
	}
	t.Logf("of %d races the callback won %d", rounds, won)
	if won == 0 || won == rounds {
		t.Errorf("one side always won: that was no race")
	}
}

func changes(h payment.History) []string {
	var said []string
	for _, c := range h.Changes {
		said = append(said, c.What)
	}
	return said
}

func TestWhatIsNotSignedForTheOrderHasNoEffect(t *testing.T) {
	o, other := newOrder(t), newOrder(t)
	paymentID := pay(t, o, "captured", false)
	good := form(t, paymentID)
	with := func(name, value string) url.Values {
		changed := url.Values{}
		for k, v := range good {
			changed[k] = v
		}
		changed.Set(name, value)
		return changed
	}
	for what, attempt := range map[string]struct {
		order string
		form  url.Values
	}{
		"another order":         {other.ID, good},
		"another payment":       {o.ID, with("razorpay_payment_id", "pay_Tampered00001")},
		"another signature":     {o.ID, with("razorpay_signature", strings.Repeat("0", 64))},
		"an unknown order":      {"no-such-order", good},
		"another order's order": {other.ID, with("razorpay_order_id", *other.GatewayOrderID)},
	} {
		if status := comeBack(t, attempt.order, attempt.form); status != "unknown" {
			t.Errorf("%s: the browser is told %q", what, status)
		}
	}
	if n := callsOf(http.MethodGet, "/v1/payments/"+paymentID); n != 0 {
		t.Errorf("the payment was read %d times", n)
	}
	for _, id := range []string{o.ID, other.ID} {
		if now := storedOrder(t, id); now.Status != payment.Pending || len(now.Payments) > 0 {
			t.Errorf("order %s is %s with %d payments", id, now.Status, len(now.Payments))
		}
	}
	for range 3 {
		if status := comeBack(t, o.ID, good); status != "paid" {
			t.Errorf("the real callback is told %q", status)
		}
	}
	paidOnce(t, o.ID)
	if n := callsOf(http.MethodGet, "/v1/payments/"+paymentID); n != 1 {
		t.Errorf("three callbacks read the payment %d times, want once", n)
	}
	failed := form(t, pay(t, other, "failed", false))
	if status := comeBack(t, other.ID, failed); status != "pending" {
		t.Errorf("a failure callback is told %q, want the state", status)
	}
}

// refunds asks for a refund and returns the answer.
func refund(t *testing.T, orderID, body string) (int, apigw.RefundRequest, string) {
	t.Helper()
	status, answer := call(t, http.MethodPost, "/orders/"+orderID+"/refunds", []byte(body), nil)
	var r apigw.RefundRequest
	if status < 300 {
		if err := json.Unmarshal(answer, &r); err != nil {
			t.Fatal(err)
		}
	}
	return status, r, string(answer)
}

func paidOrder(t *testing.T) (apigw.Order, string) {
	t.Helper()
	o := newOrder(t)
	paymentID := pay(t, o, "captured", true)
	eventually(t, "fulfilled", func() bool { return !storedOrder(t, o.ID).FulfilledAt.IsZero() })
	return o, paymentID
}

func TestARefundIsMadeOnce(t *testing.T) {
	o, paymentID := paidOrder(t)
	checker := storetest.Checker{Store: table}
	checker.Check(t, o.ID)
	const ask = `{"id":"r1","amount":10000,"reason":"one item came back"}`
	status, made, answer := refund(t, o.ID, ask)
	if status != http.StatusCreated || made.Status != "processed" || made.PaymentID != paymentID {
		t.Fatalf("the first call answered %d %s", status, answer)
	}
	checker.Check(t, o.ID)
	status, again, answer := refund(t, o.ID, ask)
	if status != http.StatusOK || *again.RefundID != *made.RefundID {
		t.Errorf("the second call answered %d %s, want refund %s", status, answer, *made.RefundID)
	}
	if status, _, answer = refund(t, o.ID, `{"id":"r1","amount":20000}`); status != http.StatusConflict {
		t.Errorf("the same id with another amount answered %d %s", status, answer)
	}
	if status, _, answer = refund(t, o.ID, `{"id":"r2","amount":39901}`); status != http.StatusUnprocessableEntity {
		t.Errorf("more than is left answered %d %s", status, answer)
	}
	eventually(t, "the refund's own webhooks applied", func() bool {
		checker.Check(t, o.ID)
		return appliedEvents(t, o.ID, "refund.") >= 2
	})
	now := storedOrder(t, o.ID)
	if now.Status != payment.PartiallyRefunded || len(now.Refunds) != 1 || len(now.Reserved) != 0 {
		t.Errorf("order is %s with refunds %v and reservations %v", now.Status, now.Refunds, now.Reserved)
	}
	if n := callsOf(http.MethodPost, "/v1/payments/"+paymentID+"/refund"); n != 1 {
		t.Errorf("the gateway was asked %d times", n)
	}
	if keys := gateway.ReusedKeys(); len(keys) > 0 {
		t.Errorf("idempotency keys %v came with more than one body", keys)
	}
}

// appliedEvents counts the order's events of a kind.
func appliedEvents(t *testing.T, orderID, kind string) int {
	t.Helper()
	h, err := table.History(t.Context(), orderID)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range h.Events {
		if strings.HasPrefix(e.Type, kind) && e.Status == payment.EventApplied {
			n++
		}
	}
	return n
}

// The gateway made the refund and its answer was lost. Nobody calls again: reconcile reads it back.
func TestALostAnswerToARefundIsReadBack(t *testing.T) {
	o, paymentID := paidOrder(t)
	path := "/v1/payments/" + paymentID + "/refund"
	if err := gateway.SetFaults(razorpaytest.Fault{Method: http.MethodPost, Path: path, Kind: razorpaytest.ResetAfter}); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.ChangeDelivery(razorpaytest.DeliveryChange{Enabled: new(false)}); err != nil {
		t.Fatal(err)
	}
	defer gateway.ChangeDelivery(razorpaytest.DeliveryChange{Enabled: new(true)})
	status, r, answer := refund(t, o.ID, `{"id":"lost","amount":49900}`)
	if status != http.StatusAccepted || r.Status != "unknown" || r.RefundID != nil {
		t.Fatalf("the call answered %d %s", status, answer)
	}
	eventually(t, "read back", func() bool {
		sweep(t)
		request, err := table.RefundRequest(t.Context(), o.ID, "lost")
		return err == nil && request.Status == payment.RequestAccepted
	})
	now := storedOrder(t, o.ID)
	if now.Status != payment.Refunded || len(now.Refunds) != 1 || len(now.Reserved) != 0 {
		t.Errorf("order is %s with refunds %v and reservations %v", now.Status, now.Refunds, now.Reserved)
	}
	if n := callsOf(http.MethodPost, path); n != 1 {
		t.Errorf("the gateway was asked %d times", n)
	}
	if status, r, answer = refund(t, o.ID, `{"id":"lost","amount":49900}`); status != http.StatusOK || r.Status != "processed" {
		t.Errorf("later the call answers %d %s", status, answer)
	}
}

func TestTwentyRefundsNeverExceedWhatWasCaptured(t *testing.T) {
	o, paymentID := paidOrder(t)
	const each = 12000 // four fit into 499.00
	var wg sync.WaitGroup
	answers := make(chan int, 20)
	for i := range cap(answers) {
		wg.Go(func() {
			status, _, _ := refund(t, o.ID, fmt.Sprintf(`{"id":"many-%d","amount":%d}`, i, each))
			answers <- status
		})
	}
	wg.Wait()
	close(answers)
	counts := map[int]int{}
	for a := range answers {
		counts[a]++
	}
	t.Logf("answers %v", counts)
	now := storedOrder(t, o.ID)
	var sum int64
	for _, r := range now.Refunds {
		sum += r.Amount.Amount
	}
	if counts[http.StatusCreated]*each != int(sum) || sum > price || counts[http.StatusCreated]+counts[http.StatusUnprocessableEntity]+counts[http.StatusServiceUnavailable] != 20 {
		t.Errorf("answers %v, refunded %d of %d", counts, sum, price)
	}
	if n := callsOf(http.MethodPost, "/v1/payments/"+paymentID+"/refund"); n != counts[http.StatusCreated] {
		t.Errorf("the gateway was asked %d times for %d refunds", n, counts[http.StatusCreated])
	}
	(&storetest.Checker{Store: table}).Check(t, o.ID)
}

// The gateway did not capture by itself, and no webhook ever came.
func TestAPaymentLeftAuthorizedIsCapturedOnce(t *testing.T) {
	o := newOrder(t)
	paymentID := pay(t, o, "authorized", false)
	eventually(t, "captured by reconcile and fulfilled", func() bool {
		sweep(t)
		return !storedOrder(t, o.ID).FulfilledAt.IsZero()
	})
	paidOnce(t, o.ID)
	if n := callsOf(http.MethodPost, "/v1/payments/"+paymentID+"/capture"); n != 1 {
		t.Errorf("captured %d times", n)
	}
}

// With the webhook's secret alone nothing is bought: the order's amount is above what is taken on a webhook's word.
func TestACaptureIsConfirmedBeforeTheGoodsGo(t *testing.T) {
	create := func() apigw.Order {
		body := fmt.Sprintf(`{"id":"dear-%d","amount":%d,"currency":"INR","gateway":"razorpay"}`, orderNumber.Add(1), confirmAbove+1)
		status, answer := call(t, http.MethodPost, "/orders", []byte(body), nil)
		var o apigw.Order
		if err := json.Unmarshal(answer, &o); status != http.StatusCreated || err != nil {
			t.Fatalf("POST /orders answered %d %s", status, answer)
		}
		return o
	}
	forged, honest := create(), create()
	claim := strings.Replace(string(body(forged, "pay_Forged0000001")), fmt.Sprint(price), fmt.Sprint(confirmAbove+1), 1)
	id := uniqueEvent()
	deliver(t, id, []byte(claim), stack.WebhookSecret)
	if verdict := settled(t, id); !strings.Contains(verdict, "held: unconfirmed") {
		t.Errorf("the forged capture: %s", verdict)
	}
	if o := storedOrder(t, forged.ID); !o.FulfilledAt.IsZero() {
		t.Error("a forged capture was fulfilled")
	}
	paymentID := pay(t, honest, "captured", true)
	eventually(t, "fulfilled", func() bool { return !storedOrder(t, honest.ID).FulfilledAt.IsZero() })
	if o := storedOrder(t, honest.ID); !o.Payments[paymentID].Confirmed || len(o.Holds) != 0 {
		t.Errorf("fulfilled with payment %+v and holds %v", o.Payments[paymentID], o.Holds)
	}
}

func TestTheTimelineShowsWhatWentOut(t *testing.T) {
	o, _ := paidOrder(t)
	refund(t, o.ID, `{"id":"shown","amount":100}`)
	status, answer := call(t, http.MethodGet, "/orders/"+o.ID+"/timeline", nil, nil)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	for _, step := range []string{
		"gateway order " + *o.GatewayOrderID + " created",
		"refund request shown: asked for: 1.00 INR of payment",
		"refund request shown: the gateway has it: rfnd_",
		"ledger: refunded rfnd_",
	} {
		if !strings.Contains(string(answer), step) {
			t.Errorf("the timeline does not say %q", step)
		}
	}
}
