package view

import (
	"fmt"
	"time"

	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// Timeline says where an order stands and what happened to it.
func Timeline(p *terminal.Page, l apigw.Timeline, flags string) {
	Order(p, l.Order, flags)
	p.Line("\nWhat happened (UTC)")
	day := ""
	for _, e := range l.Entries {
		if d := e.At.UTC().Format(time.DateOnly); d != day {
			day = d
			p.Line("  %s", day)
		}
		p.Line("    %s  %-8s  %s", e.At.UTC().Format("15:04:05.000"), terminal.Printable(e.Source), terminal.Printable(e.What))
		if e.EventID != "" {
			detail(p, "%s, verified by %s, event %s", e.Status, e.VerifiedBy, e.EventID)
		}
		if e.Verdict != "" {
			detail(p, "%s", e.Verdict)
		}
	}
	if l.Order.FulfilledAt == nil && l.Order.Status != payment.Refunded {
		p.Line("\nAn event that still waits is not listed: docs/runbook.md says how to find it.")
	}
}

// detail continues an entry of the timeline, below what happened.
func detail(p *terminal.Page, format string, args ...any) {
	p.Line("%28s%s", "", terminal.Printable(fmt.Sprintf(format, args...)))
}
