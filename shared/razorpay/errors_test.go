package razorpay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

// TestOutcome holds what a caller can tell from each failure of the one call that must not be repeated blindly.
func TestOutcome(t *testing.T) {
	const private = "cardholder Asha Rao"
	envelope := `{"error":{"code":"BAD_REQUEST_ERROR","description":"` + private + `","source":"business","step":"payment_initiation",` +
		`"reason":"input_validation_failed","metadata":{},"field":"amount"}}`
	for name, test := range map[string]struct {
		status           int
		body             string
		refused, notDone bool
		text             string
	}{
		"400":              {400, envelope, true, true, "HTTP 400 BAD_REQUEST_ERROR (input_validation_failed)"},
		"400 without JSON": {400, "<h1>" + private + "</h1>", false, false, "HTTP 400"},
		"400 with NA": {400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"` + private + `","reason":"NA"}}`, true, true,
			"HTTP 400 BAD_REQUEST_ERROR"},
		"400 with odd types": {400, `{"error":{"code":["x"],"description":{},"reason":"null","field":false}}`, false, false,
			"HTTP 400"},
		"400 with text for a code": {400, `{"error":{"code":"` + private + `","reason":"` + private + `"}}`, false, false,
			"HTTP 400"},
		"400, something under way": {400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Request failed because another payment operation is in progress"}}`,
			false, false, "HTTP 400 BAD_REQUEST_ERROR"},
		"400 of a bank": {400, `{"error":{"code":"GATEWAY_ERROR"}}`, false, false, "HTTP 400 GATEWAY_ERROR"},
		"401": {401, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Authentication failed"}}`, false, true,
			"HTTP 401 BAD_REQUEST_ERROR"},
		"404": {404, "", false, false, "HTTP 404"},
		"408": {408, "", false, false, "HTTP 408"},
		"409, the other envelope": {409, `{"error":{"code":409,"message":"` + private + `","errors":[{"reason":"duplicate","message":"x"}]}}`,
			false, false, "HTTP 409 409 (duplicate)"},
		"425":               {425, "", false, false, "HTTP 425"},
		"429":               {429, `{"error":{"code":"BAD_REQUEST_ERROR"}}`, false, true, "HTTP 429 BAD_REQUEST_ERROR"},
		"500":               {500, `{"error":{"code":"SERVER_ERROR"}}`, false, false, "HTTP 500 SERVER_ERROR"},
		"502 in HTML":       {502, "<html>Bad Gateway " + private + "</html>", false, false, "HTTP 502"},
		"504 empty":         {504, "", false, false, "HTTP 504"},
		"redirect":          {302, "", false, false, "HTTP 302"},
		"200 empty":         {200, "", false, false, "undecodable: unexpected end of JSON input"},
		"200 without an id": {200, "{}", false, false, "undecodable: an order has no id"},
		"200 with an error": {200, envelope, false, false, "undecodable: an order has no id"},
		"200 with a float":  {200, strings.ReplaceAll(orderJSON, "49900", "499.5"), false, false, "undecodable: wrong JSON type of amount"},
		"200 cut off":       {200, orderJSON[:40], false, false, "undecodable: unexpected end of JSON input"},
		"200 far too large": {200, strings.Repeat(" ", maxAnswer+1) + orderJSON, false, false, "undecodable: the answer is larger than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				w.Header().Set("Location", "/v1/elsewhere")
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			})
			_, err := client.CreateOrder(t.Context(), OrderRequest{Amount: payment.Money{Amount: 100, Currency: "INR"}})
			if err == nil {
				t.Fatal("no error")
			}
			meaning := payment.ErrOutcomeUnknown
			if test.refused {
				meaning = payment.ErrGatewayRefused
			}
			if want := fmt.Sprintf("razorpay: create order: %v: %s", meaning, test.text); err.Error() != want {
				t.Errorf("error\n got %v\nwant %s", err, want)
			}
			if !errors.Is(err, meaning) {
				t.Errorf("error is not %v", meaning)
			}
			if Refused(err) != test.refused || NotDone(err) != test.notDone {
				t.Errorf("Refused %t, NotDone %t, want %t, %t", Refused(err), NotDone(err), test.refused, test.notDone)
			}
			var e *Error
			if test.status != 200 && (!errors.As(err, &e) || e.HTTPStatus != test.status) {
				t.Errorf("status %v, want %d", e, test.status)
			}
			want := 1
			if test.status == 429 {
				want = maxAttempts
			}
			if n := int(calls.Load()); n != want {
				t.Errorf("%d calls, want %d", n, want)
			}
		})
	}
}

func TestErrorDetails(t *testing.T) {
	client := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		io.WriteString(w, `{"error":{"code":"BAD_REQUEST_ERROR","description":"too small","reason":"input_validation_failed","field":"amount"}}`)
	})
	_, err := client.Order(t.Context(), "order_1")
	var got *Error
	if !errors.As(err, &got) {
		t.Fatal(err)
	}
	want := &Error{HTTPStatus: 400, Code: "BAD_REQUEST_ERROR", Reason: "input_validation_failed", Field: "amount", Description: "too small"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestOutcomeOfBrokenConnections(t *testing.T) {
	request := OrderRequest{Amount: payment.Money{Amount: 100, Currency: "INR"}}
	t.Run("nobody listens", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		noPause := func(context.Context, time.Duration) error { return nil }
		client, err := New(server.URL, "rzp_test_1", "s", WithSleep(noPause))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CreateOrder(t.Context(), request)
		if err == nil || Refused(err) || !NotDone(err) {
			t.Errorf("%v: Refused %t, NotDone %t, want false, true", err, Refused(err), NotDone(err))
		}
	})
	t.Run("closed without an answer", func(t *testing.T) {
		client := serve(t, nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		_, err := client.CreateOrder(t.Context(), request)
		if err == nil || Refused(err) || NotDone(err) {
			t.Errorf("%v: Refused %t, NotDone %t, want false, false", err, Refused(err), NotDone(err))
		}
	})
	t.Run("no answer in time", func(t *testing.T) {
		client := serve(t, nil, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, WithAttemptTimeout(20*time.Millisecond))
		_, err := client.CreateOrder(t.Context(), request)
		if !errors.Is(err, context.DeadlineExceeded) || Refused(err) || NotDone(err) {
			t.Errorf("%v: Refused %t, NotDone %t, want false, false", err, Refused(err), NotDone(err))
		}
	})
}
