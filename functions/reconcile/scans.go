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
func (s *sweep) scans(ctx context.Context, waiting int) error {
	ctx, cancel := half(ctx) // a day's scan is minutes of calls, and customers wait for the other parts
	defer cancel()
	var errs []error
	for _, gateway := range s.gateways {
		for _, scan := range []payment.Scan{payment.HourlyScan, payment.DailyScan} {
			found, silent, err := s.reconciler.Scan(ctx, gateway, scan, func() bool { return timeLeft(ctx) })
			s.drift(ctx, scan, found)
			if scan.Listens && silent >= 0 && waiting == 0 {
				s.metrics.Put(metrics.SilentPayments.Of(float64(silent)))
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("reconcile: %s scan of %s: %w", scan.Name, gateway, err))
			}
		}
	}
	return errors.Join(errs...)
}

// drift writes the drift report: a line, and metrics. Nothing found is no line.
func (s *sweep) drift(ctx context.Context, scan payment.Scan, f reconcile.Findings) {
	if f == (reconcile.Findings{}) {
		return
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "drift", slog.String("part", scan.Name), slog.Int("matched", f.Matched),
		slog.Int("missing_webhook", f.MissingWebhook), slog.Int("stuck", f.Stuck), slog.Int("amount_mismatch", f.AmountMismatch),
		slog.Int("unknown_order", f.UnknownOrder), slog.Int("refund_unknown", f.RefundUnknown), slog.Int("unreadable", f.Unreadable),
		slog.Int("failed", f.Failed))
	s.metrics.Put(
		metrics.Matched.Add(f.Matched), metrics.MissingWebhook.Add(f.MissingWebhook), metrics.Stuck.Add(f.Stuck),
		metrics.AmountMismatch.Add(f.AmountMismatch), metrics.UnknownOrder.Add(f.UnknownOrder),
		metrics.RefundUnknown.Add(f.RefundUnknown), metrics.Undecodable.Add(f.Unreadable),
	)
}
