package main

import (
	"fmt"
	"strconv"
	"time"
)

// clip shortens text for a column to its end, which is where an error says its cause.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return s
}

// spell is a duration for people, in its two largest units.
func spell(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// age is how old what began then is; "-" where that is not known.
func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return spell(max(0, now.Sub(since)))
}

// count is a number of things for people.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// orDash is the text, or "-" for none.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
