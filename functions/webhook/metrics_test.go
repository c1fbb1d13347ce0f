package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/apigw"
	"paidonce/shared/metrics"
	"paidonce/shared/metrics/metricstest"
	"paidonce/shared/payment"
)

func TestWhatADeliveryIsCountedAs(t *testing.T) {
	type sums = map[string]float64
	b := setup()
	b.metrics = metrics.New(b.log, "stack", b.now)
	for _, c := range []struct {
		name     string
		delivery func()
		want     sums
	}{
		{"the first", func() { b.expect(t, signed(current, "evt_1", body("pay_1")), 200, first) },
			sums{"Received": 1, "Received razorpay/test_current": 1}},
		{"again, before the worker has settled it", func() { b.expect(t, signed(current, "evt_1", body("pay_1")), 200, duplicate) },
			sums{"Received": 1, "Received razorpay/test_current": 1, "Duplicate": 1, "Resent": 1}},
		{"again, with another live secret", func() { b.expect(t, signed(previous, "evt_1", body("pay_1")), 200, duplicate) },
			sums{"Received": 1, "Received razorpay/live_previous": 1, "Duplicate": 1, "Resent": 1}},
		{"again, after that", func() {
			if err := b.memory.SettleEvent(t.Context(), b.event(t, "evt_1").Settle(payment.EventApplied, "payment.captured", "o1", "")); err != nil {
				t.Fatal(err)
			}
			b.expect(t, signed(current, "evt_1", body("pay_1")), 200, duplicate)
		}, sums{"Received": 1, "Received razorpay/test_current": 1, "Duplicate": 1}},
		{"forged", func() { b.expect(t, signed("another", "evt_2", body("pay_1")), 401, unsigned) }, sums{"InvalidSignature": 1}},
		{"without a signature: a probe, as doctor's", func() {
			r := signed(current, "evt_2", body("pay_1"))
			delete(r.Headers, "x-razorpay-signature")
			b.expect(t, r, 401, unsigned)
		}, sums{}},
		{"genuine, and not handed over", func() {
			b.queue.err = errors.New("refused")
			b.expect(t, signed(current, "evt_3", body("pay_1")), 500, internal)
		}, sums{"Received": 1, "Received razorpay/test_current": 1}},
		{"of another gateway", func() {
			r := signed(current, "evt_4", body("pay_1"))
			r.PathParameters["gateway"] = "nobody"
			if status, _ := b.deliver(t, r); status != apigw.Error(apigw.ErrUnknownGateway).StatusCode {
				t.Errorf("answered %d", status)
			}
		}, sums{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.log.Reset()
			c.delivery()
			got, err := metricstest.Sums(b.log.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
