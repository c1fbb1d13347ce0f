package main

import (
	"fmt"
	"time"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// showTimeline says where an order stands and what happened to it.
func showTimeline(p *page, l apigw.Timeline, flags string) {
	showOrder(p, l.Order, flags)
	p.line("\nWhat happened (UTC)")
	day := ""
	for _, e := range l.Entries {
		if d := e.At.UTC().Format(time.DateOnly); d != day {
			day = d
			p.line("  %s", day)
		}
		p.line("    %s  %-8s  %s", e.At.UTC().Format("15:04:05.000"), printable(e.Source), printable(e.What))
		if e.EventID != "" {
			showDetail(p, "%s, verified by %s, event %s", e.Status, e.VerifiedBy, e.EventID)
		}
		if e.Verdict != "" {
			showDetail(p, "%s", e.Verdict)
		}
	}
	if l.Order.FulfilledAt == nil && l.Order.Status != payment.Refunded {
		p.line("\nAn event that still waits is not listed: docs/runbook.md says how to find it.")
	}
}

// showDetail continues an entry of the timeline, below what happened.
func showDetail(p *page, format string, args ...any) {
	p.line("%28s%s", "", printable(fmt.Sprintf(format, args...)))
}
