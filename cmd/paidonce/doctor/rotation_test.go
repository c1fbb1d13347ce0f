package doctor

import (
	"testing"
	"time"

	"paidonce/cmd/paidonce/stack/stacktest"
)

// usedOn is a patient whose webhooks were counted: every hour of those days before the check some webhook, and under each label
// in the hours that began so long ago.
func usedOn(daysCounted int, labels map[string][]time.Duration) func(*patient) {
	return func(p *patient) {
		p.measured = map[string][]point{}
		for hour := range daysCounted * 24 {
			at := checkedAt.Add(-time.Duration(daysCounted*24-hour) * time.Hour)
			p.measured["Received "] = append(p.measured["Received "], point{at, 3})
		}
		for label, hours := range labels {
			for _, ago := range hours {
				p.measured["Received razorpay/"+label] = append(p.measured["Received razorpay/"+label], point{checkedAt.Add(-ago), 1})
			}
		}
	}
}

// quiet takes the numbers of a time away, from so long ago to so long ago.
func quiet(from, to time.Duration) func(*patient) {
	return func(p *patient) {
		var kept []point
		for _, n := range p.measured["Received "] {
			if ago := checkedAt.Sub(n.at); ago > from || ago <= to {
				kept = append(kept, n)
			}
		}
		p.measured["Received "] = kept
	}
}

func changedAgo(d time.Duration) func(*patient) {
	return func(p *patient) { p.changedAt = checkedAt.Add(-d) }
}

// days are whole days as a duration.
func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

func TestCheckSecretRotation(t *testing.T) {
	two := secretIs("shop/webhook", `{"live_current":"b","live_previous":"`+stacktest.SecretKey+`"}`)
	four := secretIs("shop/webhook", `{"live_current":"b","live_previous":"a","test_current":"d","test_previous":"c"}`)
	type hits = map[string][]time.Duration
	const (
		current = "live_current last verified one in the hour from 2026-11-30 11:00:00 UTC; "
		remove  = "remove it as docs/runbook.md#rotate-the-webhook-secret says"
		enter   = "enter it in the gateway's dashboard, which still signs with the one before: docs/runbook.md#rotate-the-webhook-secret"
		again   = ", which proves nothing: keep it, and ask again when they have come for 16 days"
	)
	now := []time.Duration{time.Hour}
	expectChecks(t, "secret rotation", []checkCase{
		{"one label", nil, finding{fine, "only live_current: no previous secret that could go", ""}},
		{"one of each mode", secretIs("shop/webhook", `{"live_current":"b","test_current":"a"}`),
			finding{fine, "only live_current, test_current: no previous secret that could go", ""}},

		// The table of truth: is it used, was the secret changed long ago, is there history without a hole?
		{"used", allOf(two, usedOn(40, hits{"live_current": now, "live_previous": {days(2)}})),
			finding{fine, current + "live_previous is still used, last in the hour from 2026-11-28 12:00:00 UTC: keep it until 2026-12-14 13:00:00 UTC", ""}},
		{"used, changed lately, no history", allOf(two, changedAgo(days(3)), usedOn(3, hits{"live_current": now, "live_previous": {days(2)}})),
			finding{fine, current + "live_previous is still used, last in the hour from 2026-11-28 12:00:00 UTC: keep it until 2026-12-14 13:00:00 UTC", ""}},
		{"used up to 16 days ago", allOf(two, usedOn(40, hits{"live_current": now, "live_previous": {days(16)}})),
			finding{fine, current + "live_previous is still used, last in the hour from 2026-11-14 12:00:00 UTC: keep it until 2026-11-30 13:00:00 UTC", ""}},
		{"used more than 16 days ago", allOf(two, usedOn(40, hits{"live_current": now, "live_previous": {days(20), days(16) + time.Hour}})),
			finding{warning, current + "live_previous can go: no webhook was signed with it since the hour from 2026-11-14 11:00:00 UTC", remove}},
		{"not used", allOf(two, usedOn(40, hits{"live_current": now})),
			finding{warning, current + "live_previous can go: no webhook was signed with it for 16 days", remove}},
		{"not used, changed lately", allOf(two, changedAgo(days(15)), usedOn(40, hits{"live_current": now})),
			finding{fine, current + "live_previous is not used, but the secret was changed only on 2026-11-15 12:00:00 UTC: keep it until 2026-12-01 12:00:00 UTC", ""}},
		{"not used, changed just long enough ago", allOf(two, changedAgo(days(16)), usedOn(40, hits{"live_current": now})),
			finding{warning, current + "live_previous can go: no webhook was signed with it for 16 days", remove}},
		{"used only under this label's value before", allOf(two, changedAgo(days(5)), usedOn(40, hits{"live_current": now, "live_previous": {days(6)}})),
			finding{fine, current + "live_previous is not used, but the secret was changed only on 2026-11-25 12:00:00 UTC: keep it until 2026-12-11 12:00:00 UTC", ""}},
		{"not used, changed lately, no history", allOf(two, changedAgo(days(15)), usedOn(0, nil)),
			finding{fine, "live_current verified none in 63 days; live_previous is not used, but the secret was changed only on 2026-11-15 12:00:00 UTC: keep it until 2026-12-01 12:00:00 UTC", ""}},
		{"no history", allOf(two, usedOn(0, nil)),
			finding{skipped, "live_current verified none in 63 days; live_previous: not enough history, no webhook was counted yet", ""}},
		{"short history", allOf(two, usedOn(15, hits{"live_current": now})),
			finding{skipped, current + "live_previous: not enough history, counting since 2026-11-15 12:00:00 UTC: ask again after 2026-12-01 12:00:00 UTC", ""}},
		{"just enough history", allOf(two, usedOn(16, hits{"live_current": now})),
			finding{warning, current + "live_previous can go: no webhook was signed with it for 16 days", remove}},
		{"a hole", allOf(two, usedOn(40, hits{"live_current": now}), quiet(days(10), days(6))),
			finding{skipped, current + "live_previous: no webhook at all was counted from 2026-11-20 12:00:00 UTC to 2026-11-24 12:00:00 UTC" + again, ""}},
		{"a hole at the beginning", allOf(two, usedOn(40, hits{"live_current": now}), quiet(days(20), days(12))),
			finding{skipped, current + "live_previous: no webhook at all was counted from 2026-11-14 12:00:00 UTC to 2026-11-18 12:00:00 UTC" + again, ""}},
		{"a hole up to now", allOf(two, usedOn(40, nil), quiet(days(4), 0)),
			finding{skipped, "live_current verified none in 63 days; live_previous: no webhook at all was counted from 2026-11-26 12:00:00 UTC to 2026-11-30 12:00:00 UTC" + again, ""}},
		{"a long weekend", allOf(two, usedOn(40, hits{"live_current": now}), quiet(days(9), days(6))),
			finding{warning, current + "live_previous can go: no webhook was signed with it for 16 days", remove}},
		{"a hole before", allOf(two, usedOn(40, hits{"live_current": now}), quiet(days(30), days(17))),
			finding{warning, current + "live_previous can go: no webhook was signed with it for 16 days", remove}},

		{"the new one is not entered", allOf(two, changedAgo(days(3)), usedOn(40, hits{"live_current": {days(3) + 2*time.Hour}, "live_previous": {time.Hour}})),
			finding{warning, "live_current has verified none since the secret was changed (2026-11-27 12:00:00 UTC); " +
				"live_previous is still used, last in the hour from 2026-11-30 11:00:00 UTC: keep it until 2026-12-16 12:00:00 UTC", enter}},
		{"repeats of the first day", allOf(two, changedAgo(days(1)), usedOn(40, hits{"live_previous": {time.Hour}})),
			finding{fine, "live_current verified none in 63 days; live_previous is still used, last in the hour from 2026-11-30 11:00:00 UTC: keep it until 2026-12-16 12:00:00 UTC", ""}},
		{"both modes", allOf(four, usedOn(40, hits{"live_current": now, "test_previous": {days(1)}})),
			finding{warning, current + "live_previous can go: no webhook was signed with it for 16 days; " +
				"test_current has verified none since the secret was changed (2026-08-30 12:00:00 UTC); " +
				"test_previous is still used, last in the hour from 2026-11-29 12:00:00 UTC: keep it until 2026-12-15 13:00:00 UTC", remove + "; " + enter}},

		{"dates are hidden", allOf(two, awsFails("secretsmanager:DescribeSecret", "AccessDeniedException")), finding{skipped, "the credentials lack secretsmanager:DescribeSecret", ""}},
		{"no secret", noSecret("shop/webhook"), finding{skipped, "the secret shop/webhook cannot be used", ""}},
	})
}
