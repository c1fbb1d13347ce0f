package payment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

// TestSilence: a payment of which a webhook came ends the silence of those before it.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		name  string
		heard string // payments in the order in which they come: their minute of creation, with ! where a webhook came
		want  string
	}{
		{"a quiet night", "", ""},
		{"all is well", "1! 2! 3!", ""},
		{"one lost webhook", "1! 2 3!", ""},
		{"switched off", "1! 2 3 4", "2 3 4"},
		{"switched on again", "1 2 3 4!", ""},
		{"those after it stay", "1 2! 3 4", "3 4"},
		{"read again by an overlapping pass", "1 2 3 1 2 3", "1 2 3"},
		{"read again, and heard of by then", "1 2 3 1! 2 3", "2 3"},
		{"read again before what ended it", "1! 2 3 1! 2 3 4", "2 3 4"},
		{"too young: its webhook may be on its way", "1 50 2 49 48", "1 2"},
		{"too young to end anything", "1 50!", "1"},
		{"just old enough", "45", "45"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cursor payment.Cursor
			for _, word := range strings.Fields(c.heard) {
				id, heard := strings.CutSuffix(word, "!")
				u := payment.Unheard{PaymentID: id, CreatedAt: scanBegins.Add(duration(t, id+"m"))}
				cursor = cursor.Hear(u, heard, minute, scanBegins.Add(time.Hour))
			}
			if diff := gocmp.Diff(strings.Fields(c.want), silent(cursor)); diff != "" {
				t.Errorf("silent payments (-want +got)\n%s", diff)
			}
		})
	}
}

func silent(c payment.Cursor) []string {
	ids := []string{}
	for _, u := range c.Silent {
		ids = append(ids, u.PaymentID)
	}
	return ids
}

func TestWhatEndsASilence(t *testing.T) {
	c := payment.Cursor{Silent: []payment.Unheard{{PaymentID: "a", CreatedAt: scanBegins}, {PaymentID: "b", CreatedAt: scanBegins.Add(time.Second)}}}
	for until, want := range map[time.Time][]string{
		{}: {"a", "b"}, scanBegins.Add(-time.Second): {"a", "b"}, scanBegins: {"b"}, scanBegins.Add(time.Second): {},
	} {
		if diff := gocmp.Diff(want, silent(c.Heard(until))); diff != "" {
			t.Errorf("heard until %s (-want +got)\n%s", until, diff)
		}
	}
}

// TestSilenceIsBounded: it is kept in one row.
func TestSilenceIsBounded(t *testing.T) {
	var c payment.Cursor
	var ids []string
	for i := range 250 {
		u := payment.Unheard{PaymentID: fmt.Sprint(i), CreatedAt: scanBegins.Add(time.Duration(i) * time.Second)}
		c = c.Hear(u, false, minute, scanBegins.Add(time.Hour))
		ids = append(ids, u.PaymentID)
	}
	if diff := gocmp.Diff(ids[150:], silent(c)); diff != "" {
		t.Errorf("silent payments (-want +got)\n%s", diff)
	}
}

// TestHearLeavesTheCursorBefore: a cursor whose write failed is read again as it was.
func TestHearLeavesTheCursorBefore(t *testing.T) {
	before := payment.Cursor{Silent: []payment.Unheard{{PaymentID: "a", CreatedAt: scanBegins}, {PaymentID: "b", CreatedAt: scanBegins.Add(time.Second)}}}
	kept := slices.Clone(before.Silent)
	at := scanBegins.Add(time.Hour)
	before.Hear(payment.Unheard{PaymentID: "a", CreatedAt: scanBegins}, true, minute, at)
	before.Hear(payment.Unheard{PaymentID: "c", CreatedAt: at.Add(-time.Minute * 20)}, false, minute, at)
	if diff := gocmp.Diff(kept, before.Silent); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}
