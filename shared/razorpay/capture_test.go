package razorpay

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

const capturedJSON = `{"id":"pay_1","entity":"payment","amount":49900,"currency":"INR","status":"captured","order_id":"order_1","captured":true,"notes":[]}`

var (
	authorizedJSON = strings.NewReplacer(`"captured","order`, `"authorized","order`, `true`, `false`).Replace(capturedJSON)
	failedJSON     = strings.NewReplacer(`"captured","order`, `"failed","order`, `true`, `false`).Replace(capturedJSON)
	refundedJSON   = strings.Replace(capturedJSON, `"captured","order`, `"refunded","order`, 1)
	voidedJSON     = strings.Replace(refundedJSON, `true`, `false`, 1)
)

func TestCapture(t *testing.T) {
	type answer struct {
		status int // 0: none, the connection breaks
		body   string
	}
	refusal := func(description string) answer {
		return answer{400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"` + description + `","reason":"NA"}}`}
	}
	refused, already := refusal("Capture amount must be equal to the amount authorized"), refusal("This payment has already been captured")
	noSuch := refusal("The id provided does not exist")
	captured := payment.PaymentFact{
		ID: "pay_1", GatewayOrderID: "order_1", Status: payment.PaymentCaptured, Amount: inr(49900), Confirmed: true,
	}
	refunded := captured
	refunded.Status, refunded.Captured = payment.PaymentRefunded, true
	other := strings.Replace(capturedJSON, "pay_1", "pay_2", 1)
	cheaper := strings.Replace(capturedJSON, "49900", "49800", 1)
	partly := captured
	partly.Amount = inr(49800)

	for name, test := range map[string]struct {
		post, get answer
		reads     int // 3 if the reading fails too
		want      payment.PaymentFact
		err       error
	}{
		"captured":                      {answer{200, capturedJSON}, answer{}, 0, captured, nil},
		"already captured":              {already, answer{200, capturedJSON}, 1, captured, nil},
		"refused, but captured":         {refused, answer{200, capturedJSON}, 1, captured, nil},
		"captured and refunded":         {already, answer{200, refundedJSON}, 1, refunded, nil},
		"answer lost, captured":         {answer{}, answer{200, capturedJSON}, 1, captured, nil},
		"500, captured":                 {answer{500, ""}, answer{200, capturedJSON}, 1, captured, nil},
		"502 in HTML, captured":         {answer{502, "<html>"}, answer{200, capturedJSON}, 1, captured, nil},
		"409, captured":                 {answer{409, ""}, answer{200, capturedJSON}, 1, captured, nil},
		"401, captured":                 {answer{401, ""}, answer{200, capturedJSON}, 1, captured, nil},
		"empty answer, captured":        {answer{200, ""}, answer{200, capturedJSON}, 1, captured, nil},
		"two bytes, captured":           {answer{200, "{}"}, answer{200, capturedJSON}, 1, captured, nil},
		"answer cut off, captured":      {answer{200, capturedJSON[:50]}, answer{200, capturedJSON}, 1, captured, nil},
		"huge answer, captured":         {answer{200, strings.Repeat(" ", maxAnswer+1)}, answer{200, capturedJSON}, 1, captured, nil},
		"odd answer, captured":          {answer{200, authorizedJSON}, answer{200, capturedJSON}, 1, captured, nil},
		"another payment's, captured":   {answer{200, other}, answer{200, capturedJSON}, 1, captured, nil},
		"another amount, so it is":      {answer{200, cheaper}, answer{200, cheaper}, 1, partly, nil},
		"refused, authorized":           {refused, answer{200, authorizedJSON}, 1, payment.PaymentFact{}, payment.ErrGatewayRefused},
		"refused, failed":               {refused, answer{200, failedJSON}, 1, payment.PaymentFact{}, payment.ErrGatewayRefused},
		"refused, voided":               {refused, answer{200, voidedJSON}, 1, payment.PaymentFact{}, payment.ErrGatewayRefused},
		"no such payment":               {noSuch, noSuch, 1, payment.PaymentFact{}, payment.ErrGatewayRefused},
		"refused, not readable":         {refused, answer{500, ""}, 3, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"refused, another's reading":    {refused, answer{200, other}, 1, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"refused, unknown state":        {refused, answer{200, strings.Replace(capturedJSON, `"captured","order`, `"new","order`, 1)}, 1, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"already captured, stale":       {already, answer{200, authorizedJSON}, 1, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"another operation, authorized": {refusal("Request failed because another payment operation is in progress"), answer{200, authorizedJSON}, 1, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"400 in HTML, authorized":       {answer{400, "<html>"}, answer{200, authorizedJSON}, 1, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"answer lost, authorized":       {answer{}, answer{200, authorizedJSON}, 1, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"answer lost, not readable":     {answer{}, answer{}, 3, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"500, authorized":               {answer{500, ""}, answer{200, authorizedJSON}, 1, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"401, not readable":             {answer{401, ""}, answer{401, ""}, 1, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"odd answer, voided":            {answer{200, authorizedJSON}, answer{200, voidedJSON}, 1, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
		"answer lost, no such":          {answer{}, noSuch, 1, payment.PaymentFact{}, payment.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var calls []string
			client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				calls = append(calls, r.Method+" "+r.URL.RequestURI())
				mu.Unlock()
				a := test.get
				if r.Method == http.MethodPost {
					a = test.post
					if body, _ := io.ReadAll(r.Body); string(body) != `{"amount":49900,"currency":"INR"}` {
						t.Errorf("body %s", body)
					}
				}
				if a.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(a.status)
				io.WriteString(w, a.body)
			}, WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}))
			got, err := client.Capture(t.Context(), "pay_1", inr(49900))
			if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) || errors.Is(err, payment.ErrGatewayRefused) && errors.Is(err, payment.ErrOutcomeUnknown) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("payment (-want +got):\n%s", diff)
			}
			mu.Lock()
			defer mu.Unlock()
			want := append([]string{"POST /v1/payments/pay_1/capture"}, slices.Repeat([]string{"GET /v1/payments/pay_1"}, test.reads)...)
			if diff := cmp.Diff(want, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCaptureWhoseAnswerIsLate: the capture takes effect, and its answer does not come in time.
func TestCaptureWhoseAnswerIsLate(t *testing.T) {
	client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		io.WriteString(w, capturedJSON)
	}, WithAttemptTimeout(200*time.Millisecond))
	got, err := client.Capture(t.Context(), "pay_1", inr(49900))
	if err != nil || got.Status != payment.PaymentCaptured || !got.Confirmed {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCaptureOfNothing(t *testing.T) {
	client := serve(t, nil, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("called %s", r.URL) })
	for name, test := range map[string]struct {
		id     string
		amount payment.Money
	}{
		"no id": {"", inr(1)}, "a path": {"pay_1/refund?x=", inr(1)}, "zero": {"pay_1", inr(0)}, "negative": {"pay_1", inr(-1)},
		"out of range": {"pay_1", inr(9007199254740993)}, "no currency": {"pay_1", payment.Money{Amount: 1}},
	} {
		if got, err := client.Capture(t.Context(), test.id, test.amount); !errors.Is(err, payment.ErrGatewayRefused) {
			t.Errorf("%s: %+v, %v, want ErrGatewayRefused", name, got, err)
		}
	}
}
