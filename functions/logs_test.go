package functions_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

// What is about a person, or a secret: each must be in no log line, whatever carries it.
const (
	anEmail = "asha.rao@example.com"
	aPhone  = "+919876543210"
	aCard   = "4111111111111111"
	aName   = "Asha-Venkataraman-Rao"
	aVPA    = "asharao@okexamplebank"
	anIP    = "203.0.113.77"
)

var private = []string{anEmail, url.QueryEscape(anEmail), aPhone, "9876543210", aCard, aName, aVPA, anIP}

// talkative is a webhook's body that says all of it, in every field that could hold it.
func talkative(gatewayOrderID, paymentID string, amount int64) []byte {
	return fmt.Appendf(nil, `{"entity":"event","account_id":%q,"event":"payment.captured","contains":["payment"],"payload":{"payment":{"entity":{`+
		`"id":%q,"entity":"payment","amount":%d,"currency":"INR","status":"captured","order_id":%q,"captured":true,`+
		`"email":%q,"contact":%q,"vpa":%q,"description":%q,"error_description":%q,"ip":%q,`+
		`"card":{"name":%q,"number":%q},"acquirer_data":{"rrn":%q},"notes":{"name":%q,"phone":%q}}}}}`,
		accountID, paymentID, amount, gatewayOrderID, anEmail, aPhone, aVPA, aName, aName, anIP, aName, aCard, aPhone, aName, aPhone)
}

// logLine is a line of a function's log.
type logLine struct {
	text  string
	attrs map[string]any // nil unless it is JSON
}

func (l logLine) is(msg string, attrs ...string) bool {
	for i := 0; i < len(attrs); i += 2 {
		if l.attrs[attrs[i]] != attrs[i+1] {
			return false
		}
	}
	return l.attrs["msg"] == msg
}

// allLines reads every log group of the stack whole.
func allLines(t *testing.T) []logLine {
	t.Helper()
	client := cloudwatchlogs.NewFromConfig(stack.Config())
	groups, err := client.DescribeLogGroups(t.Context(), &cloudwatchlogs.DescribeLogGroupsInput{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []logLine
	for _, g := range groups.LogGroups {
		pages := cloudwatchlogs.NewFilterLogEventsPaginator(client, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: g.LogGroupName})
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Events {
				l := logLine{text: aws.ToString(e.Message)}
				_ = json.Unmarshal([]byte(l.text), &l.attrs) // the platform's own lines are no JSON
				lines = append(lines, l)
			}
		}
	}
	return lines
}

// find returns the first line that is so, once it is there.
func find(t *testing.T, msg string, attrs ...string) map[string]any {
	t.Helper()
	var found logLine
	eventually(t, fmt.Sprintf("logged %s %v", msg, attrs), func() bool {
		lines := allLines(t)
		i := slices.IndexFunc(lines, func(l logLine) bool { return l.is(msg, attrs...) })
		if i >= 0 {
			found = lines[i]
		}
		return i >= 0
	})
	return found.attrs
}

// From an event's id the logs lead to its message, its order, the call of the gateway that was made for it, and what subscribers
// were told; each line names the invocation that wrote it.
func TestLogsLeadFromAnEventToItsOrder(t *testing.T) {
	request := fmt.Sprintf(`{"id":"traced-%d","amount":%d,"currency":"INR","gateway":"razorpay"}`, orderNumber.Add(1), confirmAbove+1)
	status, answer := call(t, http.MethodPost, "/orders", []byte(request), nil)
	var o apigw.Order
	if err := json.Unmarshal(answer, &o); err != nil || status != http.StatusCreated {
		t.Fatalf("answered %d %s", status, answer)
	}
	deliver := true
	paymentID, err := gateway.Pay(razorpaytest.PaymentRequest{OrderID: *o.GatewayOrderID, Status: "captured", Deliver: &deliver})
	if err != nil {
		t.Fatal(err)
	}
	message := find(t, "message", "order", o.ID, "event_type", "payment.captured")
	eventKey := fmt.Sprint(message["event"])
	received := find(t, "webhook", "event", eventKey)
	asked := find(t, "gateway call", "order", o.ID, "call", "GET orders/"+*o.GatewayOrderID+"/payments")
	told := find(t, "announcement", "order", o.ID, "announcement", "FULFILMENT")
	opened := find(t, "gateway call", "order", o.ID, "call", "POST orders")
	for name, l := range map[string]map[string]any{"webhook": received, "message": message, "gateway call": asked, "announcement": told, "order": opened} {
		if l["invocation"] == nil || l["invocation"] == "" {
			t.Errorf("%s: no invocation: %v", name, l)
		}
	}
	if asked["invocation"] == received["invocation"] {
		t.Error("the webhook waits for a call of the gateway")
	}
	paidOnce(t, o.ID)
	if paymentID == "" || received["verified_by"] != "test_current" || received["status"] != 200.0 {
		t.Errorf("the delivery's line says %v", received)
	}
}

// Whatever comes in, good or bad, through each door: nothing of a person is in any line of any function, and nothing of a secret.
func TestNothingPersonalIsLogged(t *testing.T) {
	o := newOrder(t)
	paymentID := pay(t, o, "captured", false)
	id := uniqueEvent()
	if status, answer := deliver(t, id, talkative(*o.GatewayOrderID, paymentID, price), stack.WebhookSecret); status != http.StatusOK {
		t.Fatalf("answered %d %s", status, answer)
	}
	becomes(t, id, payment.EventApplied)
	deliver(t, uniqueEvent(), talkative(*o.GatewayOrderID, paymentID, price), anEmail) // forged
	deliver(t, anEmail, talkative(*o.GatewayOrderID, paymentID, price+1), stack.WebhookSecret)
	odd := uniqueEvent()
	for i, body := range []string{ // signed, and cannot be read
		`{"event":"payment.captured","payload":{"payment":{"entity":{"id":"pay_1","amount":"` + aPhone + `","email":"` + anEmail + `"}}}}`,
		`{"event":"` + anEmail + `","payload":{}}`,
		`{"event":"payment.captured","account_id":"` + anEmail + `","payload":{"payment":{"entity":{"id":"` + anEmail + `"}}}}`,
		`{"event":"refund.processed","payload":{"refund":{"entity":{"id":"` + aCard + ` ","status":"` + aName + `"}}}}`,
		anEmail, `{"` + anEmail, `"` + aCard + `"`,
	} {
		each := fmt.Sprint(odd, "_", i)
		deliver(t, each, []byte(body), stack.WebhookSecret)
		eventually(t, "parked or ignored "+each, func() bool { return event(t, each).Status != payment.EventReceived })
	}
	form := url.Values{"razorpay_payment_id": {paymentID}, "razorpay_order_id": {*o.GatewayOrderID}, "razorpay_signature": {anEmail},
		"email": {anEmail}, "contact": {aPhone}}
	call(t, http.MethodPost, "/checkout/razorpay/"+o.ID, []byte(form.Encode()), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	form = url.Values{"error[description]": {aName}, "error[metadata]": {anEmail}, "razorpay_payment_id": {anEmail}}
	call(t, http.MethodPost, "/checkout/razorpay/"+o.ID, []byte(form.Encode()), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	call(t, http.MethodPost, "/checkout/razorpay/"+url.PathEscape(anEmail), []byte(form.Encode()), nil)
	call(t, http.MethodPost, "/checkout/"+url.PathEscape(aPhone)+"/x", nil, nil)
	call(t, http.MethodPost, "/webhooks/"+url.PathEscape(aPhone), nil, nil)
	call(t, http.MethodPost, "/orders", []byte(`{"id":"`+anEmail+`","amount":"`+aPhone+`","currency":"`+aName+`","gateway":"`+anEmail+`","x":"`+aCard+`"}`), nil)
	call(t, http.MethodPost, "/orders", []byte(`{"id":"x","amount":1,"currency":"INR","gateway":"`+anEmail+`"}`), nil)
	call(t, http.MethodGet, "/orders/"+url.PathEscape(anEmail), nil, nil)
	call(t, http.MethodPost, "/orders/"+o.ID+"/close", []byte(`{"by":"`+anEmail+`","reason":"`+aPhone+` asked for it"}`), nil)
	call(t, http.MethodPost, "/orders/"+o.ID+"/holds/dispute/acknowledge", []byte(`{"by":"`+aName+`","why":"`+anEmail+` wrote"}`), nil)
	call(t, http.MethodPost, "/orders/"+o.ID+"/holds/"+url.PathEscape(anEmail)+"/acknowledge", []byte(`{"by":"x","why":"y"}`), nil)
	refund(t, o.ID, `{"id":"talk","amount":100,"reason":"`+aName+` called from `+aPhone+`"}`)
	refund(t, o.ID, `{"id":"`+anEmail+`","amount":100}`)
	refund(t, o.ID, `{"id":"talk-2","amount":100,"payment_id":"`+anEmail+`"}`)
	sweep(t)

	find(t, "refund", "order", o.ID, "refund_request", "talk") // the last of them is written
	secrets := []string{stack.WebhookSecret, stack.PreviousWebhookSecret, stack.KeySecret}
	lines := allLines(t)
	for _, l := range lines {
		for _, p := range slices.Concat(private, secrets) {
			if strings.Contains(l.text, p) {
				t.Errorf("%q is in %s", p, l.text)
			}
		}
	}
	for _, msg := range []string{"webhook", "message", "orders", "checkout", "refund", "sweep", "gateway call", "announcement"} {
		if !slices.ContainsFunc(lines, func(l logLine) bool { return l.is(msg) }) {
			t.Errorf("no line %q among %d: what was looked at?", msg, len(lines))
		}
	}
}
