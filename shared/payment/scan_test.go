package payment_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"paidonce/shared/payment"
)

const (
	minute = payment.Pace(time.Minute)
	aDay   = 24 * time.Hour
)

// scanBegins is when the simulated scans begin. The odd milliseconds are cut off: the gateway knows seconds.
var scanBegins = time.Date(2026, 11, 30, 10, 0, 0, 789_000_000, time.UTC)

// reading is a slice that was read to its end.
type reading struct{ from, to, done time.Time }

// pass takes a pass as far as so many slices reach, and returns the cursor that is stored then.
func pass(scan payment.Scan, c payment.Cursor, at time.Time, slices int) (payment.Cursor, []reading) {
	var read []reading
	for c = scan.Resume(c, minute, at); c.Underway() && len(read) < slices; c = c.Finished(minute) {
		from, to := c.Slice(minute)
		read = append(read, reading{from, to, at})
	}
	return c, read
}

// gap is the first second from one time to another that no reading has, if there is one.
func gap(readings []reading, from, to time.Time) (time.Time, bool) {
	readings = slices.Clone(readings)
	slices.SortFunc(readings, func(a, b reading) int { return a.from.Compare(b.from) })
	next := from
	for _, r := range readings {
		if r.from.After(next) {
			break
		}
		if !r.to.Before(next) {
			next = r.to.Add(time.Second)
		}
	}
	return next, !next.After(to)
}

func TestThePassesOfAScan(t *testing.T) {
	clock := func(after string) time.Time { return scanBegins.Add(duration(t, after)) }
	for _, c := range []struct {
		name     string
		scan     payment.Scan
		runs     []string // after the beginning
		from, to string   // of the last run's pass; empty: it has nothing to do
	}{
		{"the first hourly one goes back 3 hours", payment.HourlyScan, []string{"0"}, "-3h", "-1m"},
		{"the next is not due yet", payment.HourlyScan, []string{"0", "59m59s"}, "", ""},
		{"the next overlaps it by 2 hours", payment.HourlyScan, []string{"0", "1h"}, "-2h1m", "59m"},
		{"one after an outage overlaps as well", payment.HourlyScan, []string{"0", "50h"}, "-2h1m", "49h59m"},
		{"the first daily one goes back 6 days", payment.DailyScan, []string{"0"}, "-144h", "-1m"},
		{"the next daily one is not due yet", payment.DailyScan, []string{"0", "23h59m59s"}, "", ""},
		{"the next daily one goes back 6 days", payment.DailyScan, []string{"0", "24h10m"}, "-119h50m", "24h9m"},
		{"after the clock was ahead, an hourly one begins at once", payment.HourlyScan, []string{"0", "9000h", "1h"}, "-2h", "59m"},
		{"after the clock was ahead, a daily one begins at once", payment.DailyScan, []string{"0", "9000h", "1h"}, "-143h", "59m"},
		{"once the clock is right, all goes on", payment.HourlyScan, []string{"0", "9000h", "1h", "2h"}, "-1h1m", "1h59m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cursor payment.Cursor
			var read []reading
			for _, at := range c.runs {
				cursor, read = pass(c.scan, cursor, clock(at), 100_000)
			}
			if c.from == "" {
				if len(read) > 0 {
					t.Errorf("read %v", read)
				}
				return
			}
			if len(read) == 0 {
				t.Fatal("read nothing")
			}
			from, to := read[0].from, read[len(read)-1].to
			if want := clock(c.from).Truncate(time.Second); !from.Equal(want) {
				t.Errorf("the pass begins at %s, want %s", from, want)
			}
			if want := clock(c.to).Truncate(time.Second); !to.Equal(want) {
				t.Errorf("the pass ends at %s, want %s", to, want)
			}
			if missed, is := gap(read, from, to); is {
				t.Errorf("the pass misses %s", missed)
			}
		})
	}
}

// TestSlicesAreShortAndClosed: the gateway's offsets shift when something is added, and its list lags.
func TestSlicesAreShortAndClosed(t *testing.T) {
	for _, scan := range []payment.Scan{payment.HourlyScan, payment.DailyScan} {
		_, read := pass(scan, payment.Cursor{}, scanBegins, 100_000)
		for i, r := range read {
			switch {
			case r.to.Sub(r.from) > 10*time.Minute || !r.from.Before(r.to):
				t.Errorf("%s: a slice from %s to %s", scan.Name, r.from, r.to)
			case r.done.Sub(r.to) < time.Minute:
				t.Errorf("%s: a slice ends %s ago", scan.Name, r.done.Sub(r.to))
			case i > 0 && !r.from.Equal(read[i-1].to):
				t.Errorf("%s: a slice begins at %s after one that ends at %s", scan.Name, r.from, read[i-1].to)
			case !r.from.Equal(r.from.Truncate(time.Second)) || !r.to.Equal(r.to.Truncate(time.Second)):
				t.Errorf("%s: a slice from %s to %s: the gateway knows whole seconds", scan.Name, r.from, r.to)
			}
		}
	}
}

// episode is a part of a week in which something is as it is.
type episode struct {
	minutes int           // how long it lasts
	every   int           // minutes between two runs
	slices  int           // that one run has time for; 0: the gateway refuses, or nothing runs
	off     time.Duration // by how much the clock is ahead
}

func (e episode) String() string {
	return fmt.Sprintf("%d min of runs every %d min, %d slices each, clock off by %s", e.minutes, e.every, e.slices, e.off)
}

// live goes through the episodes, and returns what was read, when by the true clock, and that clock at the end.
func live(scan payment.Scan, episodes []episode) (readings []reading, end time.Time) {
	var c payment.Cursor
	at := scanBegins
	for _, e := range episodes {
		for until := at.Add(time.Duration(e.minutes) * time.Minute); at.Before(until); at = at.Add(time.Duration(e.every) * time.Minute) {
			if e.slices == 0 {
				continue // the cursor is not stored
			}
			var read []reading
			c, read = pass(scan, c, at.Add(e.off), e.slices)
			for i := range read {
				read[i].done = at
			}
			readings = append(readings, read...)
		}
	}
	return readings, at
}

// settled are the readings of what had ended a minute before: the others may have missed something.
func settled(readings []reading) []reading {
	var sure []reading
	for _, r := range readings {
		if last := r.done.Add(-time.Minute); r.to.After(last) {
			r.to = last.Truncate(time.Second)
		}
		if !r.to.Before(r.from) {
			sure = append(sure, r)
		}
	}
	return sure
}

// fewerChecks lets rapid draw so many times fewer cases than in the other tests.
func fewerChecks(t *testing.T, times int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	n, err := strconv.Atoi(before)
	if err == nil {
		err = checks.Set(strconv.Itoa(max(1, n/times)))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Set(before) })
}

// TestNoSecondIsMissed lets a week pass with outages, runs that are cut off, and a clock that goes wrong by up to 90 minutes.
func TestNoSecondIsMissed(t *testing.T) {
	fewerChecks(t, 10) // a week is long
	rapid.Check(t, func(t *rapid.T) {
		week := []episode{{minutes: 1, every: 5, slices: 1000}} // what is older than the scan nobody promises
		for left := 7 * 24 * 60; left > 0; {
			e := episode{
				minutes: rapid.IntRange(1, min(left, 2*24*60)).Draw(t, "minutes"),
				every:   rapid.IntRange(5, 30).Draw(t, "every"),
				slices:  rapid.SampledFrom([]int{0, 0, 1, 2, 5, 30, 1000}).Draw(t, "slices"),
				off:     time.Duration(rapid.SampledFrom([]int{0, 0, 0, -90, -5, 5, 90}).Draw(t, "off")) * time.Minute,
			}
			week, left = append(week, e), left-e.minutes
		}
		week = append(week, episode{minutes: 12 * 60, every: 5, slices: 1000}) // all is well again
		readings, end := live(payment.HourlyScan, week)
		first := scanBegins.Add(-3 * time.Hour).Truncate(time.Second)
		if missed, is := gap(settled(readings), first, end.Add(-67*time.Minute)); is {
			t.Fatalf("%s was never read, once a minute had passed since\n%s", missed, week)
		}
	})
}

// TestEverySecondIsReadInTime: where nothing fails, within an hour and one run, and again and again by the daily scan.
func TestEverySecondIsReadInTime(t *testing.T) {
	for _, every := range []int{1, 5, 7, 59, 60} {
		t.Run(fmt.Sprintf("a run every %d minutes", every), func(t *testing.T) {
			days := []episode{{minutes: 14 * 24 * 60, every: every, slices: 1000}}
			hourly, end := live(payment.HourlyScan, days)
			for at := scanBegins; at.Before(end); at = at.Add(59 * time.Minute) {
				before := slices.DeleteFunc(slices.Clone(hourly), func(r reading) bool { return r.done.After(at) })
				last := at.Add(-time.Duration(61+every) * time.Minute)
				if missed, is := gap(before, scanBegins.Add(-3*time.Hour).Truncate(time.Second), last); is {
					t.Fatalf("at %s nobody has read %s", at, missed)
				}
			}
			daily, _ := live(payment.DailyScan, days)
			for created := scanBegins; created.Before(end.Add(-7 * aDay)); created = created.Add(3*time.Hour + 7*time.Second) {
				second, last := created.Truncate(time.Second), created
				for _, r := range daily {
					if second.Before(r.from) || !second.Before(r.to) {
						continue
					}
					if pause := r.done.Sub(last); pause > aDay+time.Duration(every+1)*time.Minute {
						t.Fatalf("what was created at %s is not read for %s", second, pause)
					}
					last = r.done
				}
				if age := last.Sub(created); age < 4*aDay+23*time.Hour { // it may be captured on the third day, and reported as late
					t.Fatalf("what was created at %s is read for the last time after %s", second, age)
				}
			}
		})
	}
}

// TestAFastPaceOnlyShortens: a local stack lives a minute in seconds.
func TestAFastPaceOnlyShortens(t *testing.T) {
	fast := payment.Pace(time.Second)
	c := payment.HourlyScan.Resume(payment.Cursor{}, fast, scanBegins)
	from, to := c.Slice(fast)
	if !from.Equal(scanBegins.Add(-180*time.Second).Truncate(time.Second)) || to.Sub(from) != 10*time.Second || !c.Until.Equal(scanBegins.Add(-time.Second).Truncate(time.Second)) {
		t.Errorf("the first slice is from %s to %s, of a pass until %s", from, to, c.Until)
	}
}
