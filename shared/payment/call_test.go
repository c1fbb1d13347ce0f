package payment_test

import (
	"errors"
	"testing"

	"paidonce/shared/payment"
)

func TestWhichCallsTheGatewayFailed(t *testing.T) {
	err := errors.New("any")
	for _, c := range []struct {
		call payment.Call
		want bool
	}{
		{payment.Call{Status: 200}, false},
		{payment.Call{Status: 0, Err: err}, true},    // no answer
		{payment.Call{Status: 200, Err: err}, true},  // one that cannot be read
		{payment.Call{Status: 302, Err: err}, true},  // not the API
		{payment.Call{Status: 400, Err: err}, false}, // refused
		{payment.Call{Status: 404, Err: err}, false},
		{payment.Call{Status: 409, Err: err}, false},
		{payment.Call{Status: 401, Err: err}, true},
		{payment.Call{Status: 403, Err: err}, true},
		{payment.Call{Status: 408, Err: err}, true},
		{payment.Call{Status: 425, Err: err}, true},
		{payment.Call{Status: 429, Err: err}, true},
		{payment.Call{Status: 500, Err: err}, true},
		{payment.Call{Status: 599, Err: err}, true},
	} {
		if got := c.call.Failed(); got != c.want {
			t.Errorf("%+v: failed %t, want %t", c.call, got, c.want)
		}
	}
}
