package razorpay

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"paidonce/shared/payment"
)

func TestCallsAreWatched(t *testing.T) {
	type key struct{}
	for _, c := range []struct {
		name     string
		answers  []int // statuses, the last for ever
		want     payment.Call
		isFailed bool
	}{
		{"answered", []int{200}, payment.Call{Attempts: 1, Status: 200}, false},
		{"answered at last", []int{503, 429, 200}, payment.Call{Attempts: 3, Status: 200}, false},
		{"never", []int{503}, payment.Call{Attempts: 3, Status: 503}, true},
		{"another key", []int{401}, payment.Call{Attempts: 1, Status: 401}, true},
		{"refused", []int{400}, payment.Call{Attempts: 1, Status: 400}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []payment.Call
			asked := 0
			client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				status := c.answers[min(asked, len(c.answers)-1)]
				asked++
				w.WriteHeader(status)
				w.Write([]byte(orderJSON))
			}, WithWatch(func(ctx context.Context, call payment.Call) {
				if ctx.Value(key{}) != "here" {
					t.Error("not in the caller's context")
				}
				got = append(got, call)
			}))
			_, err := client.GatewayOrder(context.WithValue(t.Context(), key{}, "here"), "order_1")
			c.want.Gateway, c.want.Name = "razorpay", "GET orders/order_1"
			if diff := cmp.Diff([]payment.Call{c.want}, got, cmpopts.IgnoreFields(payment.Call{}, "Took", "Err")); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			if (got[0].Err == nil) != (err == nil) || got[0].Failed() != c.isFailed || got[0].Took <= 0 || got[0].Took > time.Minute {
				t.Errorf("%+v, failed %t; the caller got %v", got[0], got[0].Failed(), err)
			}
		})
	}
}
