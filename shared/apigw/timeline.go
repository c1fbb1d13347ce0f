package apigw

import (
	"time"

	"paidonce/shared/payment"
)

// Timeline is the answer of GET /orders/{id}/timeline.
type Timeline struct {
	Order   Order   `json:"order"`
	Entries []Entry `json:"entries"` // by time
}

// Entry is one line of a timeline.
type Entry struct {
	At         time.Time           `json:"at"`
	Source     string              `json:"source"` // webhook, callback, sweep, api; effect; hold
	What       string              `json:"what"`
	Verdict    string              `json:"verdict,omitempty"` // of an event: what it taught, or why it changed nothing
	EventID    string              `json:"event_id,omitempty"`
	Status     payment.EventStatus `json:"status,omitempty"`      // of the event
	VerifiedBy string              `json:"verified_by,omitempty"` // label of the secret that verified the event
}

// ShowTimeline is o's timeline as answers show it, under the shop's rules.
func ShowTimeline(o payment.Order, h payment.History, r payment.Rules) Timeline {
	shown := Timeline{ShowOrder(o, r), []Entry{}}
	for _, e := range payment.Timeline(o, h) {
		e.At = e.At.UTC()
		shown.Entries = append(shown.Entries, Entry(e))
	}
	return shown
}
