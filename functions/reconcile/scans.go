package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"paidonce/shared/metrics"
	"paidonce/shared/payment"
	"paidonce/shared/reconcile"
)

// scans goes through what the gateway has, and reports what it found. waiting are the messages that the worker has not got to: a
// webhook may be among them, so that nothing is said of silence then.
func (h *handler) scans(ctx context.Context, waiting int) error {
	ctx, cancel := half(ctx) // a day's scan is minutes of calls, and customers wait for the other parts
	defer cancel()
	var errs []error
	for _, gateway := range h.gateways {
		for _, scan := range []payment.Scan{payment.HourlyScan, payment.DailyScan} {
			found, silent, err := h.reconciler.Scan(ctx, gateway, scan, func() bool { return timeLeft(ctx) })
			h.report(ctx, scan, found)
			if scan.Listens && silent >= 0 && waiting == 0 {
				h.put(map[string]float64{"SilentPayments": float64(silent)})
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("reconcile: %s scan of %s: %w", scan.Name, gateway, err))
			}
		}
	}
	return errors.Join(errs...)
}

// report writes the drift report: a line, and metrics. Nothing found is no line.
func (h *handler) report(ctx context.Context, scan payment.Scan, f reconcile.Findings) {
	if f == (reconcile.Findings{}) {
		return
	}
	h.log.LogAttrs(ctx, slog.LevelInfo, "drift", slog.String("part", scan.Name), slog.Int("matched", f.Matched),
		slog.Int("missing_webhook", f.MissingWebhook), slog.Int("stuck", f.Stuck), slog.Int("amount_mismatch", f.AmountMismatch),
		slog.Int("unknown_order", f.UnknownOrder), slog.Int("refund_unknown", f.RefundUnknown), slog.Int("unreadable", f.Unreadable),
		slog.Int("failed", f.Failed))
	h.put(map[string]float64{
		"Matched": float64(f.Matched), "MissingWebhook": float64(f.MissingWebhook), "Stuck": float64(f.Stuck),
		"AmountMismatch": float64(f.AmountMismatch), "UnknownOrder": float64(f.UnknownOrder), "RefundUnknown": float64(f.RefundUnknown),
	})
}

func (h *handler) put(counts map[string]float64) { h.metrics.Put(metrics.Count, counts) }
