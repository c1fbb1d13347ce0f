package terminal

import (
	"fmt"
	"strconv"
	"time"
)

// Clip shortens text for a column to its end, which is where an error says its cause.
func Clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return s
}

// Spell is a duration for people, in its two largest units.
func Spell(d time.Duration) string {
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

// Age is how old what began then is; "-" where that is not known.
func Age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return Spell(max(0, now.Sub(since)))
}

// Count is a number of things for people.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// OrDash is the text, or "-" for none.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
