package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/metrics"
	"paidonce/shared/payment"
	"paidonce/shared/reconcile"
)

func newMetrics(out io.Writer, now func() time.Time) *metrics.Writer {
	return metrics.New(out, "paidonce-test", now)
}

// lines are the JSON lines that were written.
func lines(t *testing.T, out *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for decoder := json.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		var line map[string]any
		if err := decoder.Decode(&line); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
}

// gauge lists the values of a metric, oldest first.
func gauge(t *testing.T, out *bytes.Buffer, name string) []float64 {
	t.Helper()
	var values []float64
	for _, line := range lines(t, out) {
		if _, metric := line["_aws"]; !metric {
			continue
		}
		if v, ok := line[name].(float64); ok {
			values = append(values, v)
		}
	}
	return values
}

// TestTheDriftReport is what an operator's query and the alarms read.
func TestTheDriftReport(t *testing.T) {
	b := setup()
	out := b.measured()
	s := &sweep{handler: b.handler}
	s.drift(t.Context(), payment.HourlyScan, reconcile.Findings{})
	if out.Len() > 0 {
		t.Errorf("nothing found is %s", out)
	}
	s.drift(t.Context(), payment.DailyScan, reconcile.Findings{
		Matched: 1, MissingWebhook: 2, Stuck: 3, AmountMismatch: 4, UnknownOrder: 5, RefundUnknown: 6, Unreadable: 7, Failed: 8,
	})
	got := lines(t, out)
	if len(got) != 2 {
		t.Fatalf("%d lines", len(got))
	}
	delete(got[0], "time")
	want := []map[string]any{
		{
			"level": "INFO", "msg": "drift", "part": "daily", "matched": 1.0, "missing_webhook": 2.0, "stuck": 3.0,
			"amount_mismatch": 4.0, "unknown_order": 5.0, "refund_unknown": 6.0, "unreadable": 7.0, "failed": 8.0,
		},
		{
			"Stack": "paidonce-test", "Matched": 1.0, "MissingWebhook": 2.0, "Stuck": 3.0, "AmountMismatch": 4.0, "UnknownOrder": 5.0,
			"RefundUnknown": 6.0, "Undecodable": 7.0,
		},
	}
	aws, _ := got[1]["_aws"].(map[string]any)
	if aws["Timestamp"] != float64(received.UnixMilli()) {
		t.Errorf("the metrics are of %v", aws["Timestamp"])
	}
	delete(got[1], "_aws")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestWhatAScanFoundIsReported even if it could not go on.
func TestWhatAScanFoundIsReported(t *testing.T) {
	s := newSweeping(t, payment.Rules{})
	s.gateways = []string{"razorpay"}
	s.to(received.Add(3 * time.Minute))
	o := s.open("o1")
	s.pay(o, "captured")
	o = s.open("o2")
	s.pay(o, "captured")
	out := s.measured()
	s.swept(10 * time.Minute) // before the orders are due
	s.expect("o1", payment.Paid, true)
	if diff := cmp.Diff([]float64{2}, gauge(t, out, "MissingWebhook")); diff != "" { // the daily scan comes second
		t.Errorf("missing webhooks (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]float64{2}, gauge(t, out, "Matched")); diff != "" {
		t.Errorf("matched (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]float64{0}, gauge(t, out, "Overdue")); diff != "" {
		t.Errorf("overdue (-want +got)\n%s", diff)
	}
}

// TestASweepIsOneLine, whatever it did.
func TestASweepIsOneLine(t *testing.T) {
	b := setup()
	out := b.measured()
	b.put(t, "e1", payment.EventReceived, received.Add(10*time.Minute))
	b.put(t, "e2", payment.EventReceived, received.Add(10*time.Minute))
	b.queue.refuse = "e2"
	b.at = received.Add(time.Hour)
	if err := b.Handle(t.Context()); err != nil {
		t.Fatal(err)
	}
	var sweeps []map[string]any
	for _, l := range lines(t, out) {
		if l["msg"] == "sweep" {
			delete(l, "time")
			sweeps = append(sweeps, l)
		}
	}
	want := []map[string]any{{
		"level": "INFO", "msg": "sweep", "parts": "RECEIVED events handed over: 1 done, 1 failed", "done": 1.0, "failed": 1.0,
		"finished": true, "waiting": 0.0, "overdue": 0.0, "took_ms": 0.0,
	}}
	if diff := cmp.Diff(want, sweeps); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
