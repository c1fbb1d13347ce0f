package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/metrics"
	"paidonce/shared/metrics/metricstest"
	"paidonce/shared/payment"
)

func TestWhatAMessageIsCountedAs(t *testing.T) {
	type sums = map[string]float64
	b := setup(t)
	b.metrics = metrics.New(b.log, "stack", b.now)
	at := func(body string, created int64) string {
		return fmt.Sprintf(`%s,"created_at":%d}`, body[:len(body)-1], created)
	}
	b.receive(t, "authorized", at(body("payment.authorized", "1", "authorized"), now.Unix()-90))
	b.receive(t, "captured", body("payment.captured", "1", "captured"))
	b.receive(t, "future", at(body("payment.captured", "2", "captured"), now.Unix()+3600))
	b.receive(t, "unknown", body("payment.captured", "9", "captured"))
	b.receive(t, "odd", `{"event":"payment.captured","payload":{}}`)
	b.receive(t, "settlement", `{"entity":"event","event":"settlement.processed","payload":{}}`)
	for _, c := range []struct {
		name     string
		messages []string
		receives int
		want     sums
	}{
		{"a batch of every kind", []string{"authorized", "unknown", "odd", "settlement", "missing"}, 1,
			sums{"Applied": 1, "SecondsToApplied": 90, "Parked": 2, "Undecodable": 1, "Ignored": 1, "Failed": 1}},
		{"what comes again", []string{"authorized", "captured", "captured"}, 2, sums{"Applied": 1, "SecondsToApplied": 0, "NoEffect": 2}},
		{"the last try", []string{"missing"}, maxReceives, sums{"Failed": 1, "GaveUp": 1}},
		{"from a time that is not yet", []string{"future"}, 1, sums{"Applied": 1, "SecondsToApplied": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.log.Reset()
			var batch []events.SQSMessage
			for _, id := range c.messages {
				batch = append(batch, message(id, c.receives))
			}
			b.work(t, t.Context(), batch...)
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

// An event of another account is of no concern to the order.
func TestAnExcludedEventIsIgnored(t *testing.T) {
	b := setup(t)
	b.metrics = metrics.New(b.log, "stack", b.now)
	b.receive(t, "other", `{"event":"payment.captured","account_id":"acc_2","payload":{"payment":{"entity":{"id":"pay_1","amount":49900,`+
		`"currency":"INR","status":"captured","order_id":"order_1","captured":true}}}}`)
	b.work(t, t.Context(), message("other", 1))
	got, err := metricstest.Sums(b.log.Bytes())
	if diff := cmp.Diff(map[string]float64{"Ignored": 1}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestHowLateAnEventWasApplied(t *testing.T) {
	h := &handler{now: func() time.Time { return now }}
	for _, c := range []struct {
		name         string
		at, received time.Time
		want         float64
	}{
		{"as the gateway says", now.Add(-time.Hour), now.Add(-time.Minute), 3600},
		{"it does not say", time.Time{}, now.Add(-time.Minute), 60},
		{"before it can have been", now.Add(-17 * 24 * time.Hour), now.Add(-time.Minute), 60},
		{"after we received it", now, now.Add(-time.Minute), 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := &task{became: metrics.Applied, event: payment.Event{ReceivedAt: c.received}, notice: payment.Notice{At: c.at}}
			if got, ok := h.late(task); got != c.want || !ok {
				t.Errorf("%v s, %t; want %v s", got, ok, c.want)
			}
		})
	}
}
