package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/logs"
	"paidonce/shared/metrics/metricstest"
	"paidonce/shared/payment"
	"paidonce/shared/telemetry"
)

type sums = map[string]float64

func told(t *testing.T, level string, tell func(telemetry.Telemetry)) (line map[string]any, counted sums) {
	t.Helper()
	var out bytes.Buffer
	tell(telemetry.New(&out, level, "stack", time.Now))
	counted, err := metricstest.Sums(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(out.String()) {
		if !strings.Contains(text, "_aws") {
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatal(err)
			}
			delete(line, "time")
		}
	}
	return line, counted
}

func TestGatewayCalls(t *testing.T) {
	call := payment.Call{Gateway: "razorpay", Name: "GET payments/pay_1", Attempts: 3, Status: 503, Took: 1500 * time.Millisecond, Err: errors.New("HTTP 503")}
	want := map[string]any{
		"level": "WARN", "msg": "gateway call", "gateway": "razorpay", "call": "GET payments/pay_1", "attempts": 3.0, "status": 503.0,
		"took_ms": 1500.0, "error": "HTTP 503", "order": "o1",
	}
	ctx := logs.With(t.Context(), slog.String("order", "o1"))
	line, counted := told(t, "INFO", func(tell telemetry.Telemetry) { tell.GatewayCall(ctx, call) })
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(sums{"GatewayErrors": 1}, counted); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name, served := range map[string]payment.Call{
		"answered": {Status: 200}, "refused": {Status: 400, Err: errors.New("HTTP 400")},
	} {
		line, counted := told(t, "INFO", func(tell telemetry.Telemetry) { tell.GatewayCall(t.Context(), served) })
		if line["level"] != "INFO" || len(counted) > 0 {
			t.Errorf("%s: %v, %v", name, line, counted)
		}
	}
	if line, counted := told(t, "ERROR", func(tell telemetry.Telemetry) { tell.GatewayCall(ctx, call) }); line != nil || counted["GatewayErrors"] != 1 {
		t.Errorf("metrics go by the level: %v, %v", line, counted)
	}
}

func TestChangesOfOrders(t *testing.T) {
	held := func(r payment.HoldReason) payment.Effect {
		return payment.Notification{Key: "hold", Hold: payment.HoldKey{Reason: r}}
	}
	line, counted := told(t, "INFO", func(tell telemetry.Telemetry) {
		tell.Committed(t.Context(), payment.Outcome{Order: payment.Order{ID: "o1"}, Effects: []payment.Effect{
			payment.Fulfilment{}, payment.PaymentPointer{PaymentID: "pay_1"}, payment.Notification{Key: "failed"},
			held(payment.HoldDispute), held(payment.HoldDispute), held(payment.HoldOver),
		}})
		tell.Committed(t.Context(), payment.Outcome{})
	})
	if want := map[string]any{"level": "WARN", "msg": "held", "order": "o1", "outcome": "over"}; !cmp.Equal(want, line) {
		t.Errorf("said %v, want %v", line, want)
	}
	if diff := cmp.Diff(sums{"Fulfilled": 1, "Held": 3, "Held dispute": 2, "Held over": 1}, counted); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
