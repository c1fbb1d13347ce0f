package events

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
)

// fitEventKey is what an event's name must look like: the gateway, and its event id or the body's digest. A second body
// under a known id has its digest behind an exclamation mark.
var fitEventKey = regexp.MustCompile(`^([a-z0-9_-]{1,40})/((?:[A-Za-z0-9_-]{1,64}|sha256:[0-9a-f]{64})(?:![0-9a-f]{64})?)$`)

func eventsCommand(find connector, w terminal.Surroundings) *cobra.Command {
	var o stack.Options
	group := terminal.Group("events", "Look at what a gateway delivered, and send it to the worker again")
	o.AddTo(group)
	var asJSON, raw bool
	show := &cobra.Command{
		Use:   "show GATEWAY/EVENT_ID",
		Short: "What became of an event, and what it said",
		Long: `Show what became of an event and its body, in which everything that may be about a person is replaced by "REDACTED".
--raw prints the stored bytes instead, exactly and nothing else: they hold what the gateway knows of the customer. The
exit status is 1 if the bytes are not those that were received.`,
		Args: terminal.Takes(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := parseEventKey(args[0])
			if err != nil {
				return err
			}
			t, err := find(cmd.Context(), o)
			if err != nil {
				return t.Cure(err)
			}
			e, err := readEvent(cmd.Context(), t, key)
			if err != nil {
				return err
			}
			render := printEvent
			switch {
			case raw:
				render = printRaw
				if e.Reduced {
					fmt.Fprintln(cmd.ErrOrStderr(), "paidonce: the body was too large to keep: these bytes say the same, and are not what was received")
				}
			case asJSON:
				render = printEventJSON
			}
			return errors.Join(render(cmd.OutOrStdout(), e), checkBody(e))
		},
	}
	show.Flags().BoolVar(&asJSON, "json", false, "print the event as JSON, for programs; its body is redacted too")
	show.Flags().BoolVar(&raw, "raw", false, "print the stored body, byte for byte")
	show.MarkFlagsMutuallyExclusive("json", "raw")
	group.AddCommand(show, eventsListCommand(find, &o, w), eventsReplayCommand(find, &o, w), eventsIgnoreCommand(find, &o))
	return group
}

func parseEventKey(s string) (payment.EventKey, error) {
	m := fitEventKey.FindStringSubmatch(s)
	if m == nil {
		return payment.EventKey{}, fmt.Errorf("%q is not an event: write it as the logs do, razorpay/Q2bFhX1yZ0aBcD or razorpay/sha256:<64 hex digits>", s)
	}
	return payment.EventKey{Gateway: m[1], ID: m[2]}, nil
}

func readEvent(ctx context.Context, t target, key payment.EventKey) (payment.Event, error) {
	e, err := t.Events.Event(ctx, key)
	switch {
	case errors.Is(err, payment.ErrNotFound):
		return e, fmt.Errorf("%s has no event %s: check the id, and the stack; old events are dropped", t.Name, key)
	case errors.Is(err, payment.ErrNewerVersion):
		return e, fmt.Errorf("event %s was written by a newer release: use the paidonce of that one", key)
	}
	return e, t.Cure(err)
}

// checkBody says whether the stored bytes are those that were received. Of a reduced body that cannot be told.
func checkBody(e payment.Event) error {
	sum := sha256.Sum256(e.Body)
	if got := hex.EncodeToString(sum[:]); !e.Reduced && got != e.SHA256 {
		return fmt.Errorf("event %s: the stored body is not the one that was received: its sha256 is %s, the row says %s", e.Key, got, terminal.Printable(e.SHA256))
	}
	return nil
}

func printRaw(w io.Writer, e payment.Event) error {
	_, err := w.Write(e.Body)
	return err
}

// shownEvent is an event for programs.
type shownEvent struct {
	Gateway    string              `json:"gateway"`
	EventID    string              `json:"event_id"`
	Type       string              `json:"type"` // empty until decoded
	Status     payment.EventStatus `json:"status"`
	Verdict    string              `json:"verdict"`
	OrderID    string              `json:"order_id"` // empty until known
	VerifiedBy string              `json:"verified_by"`
	Mode       payment.Mode        `json:"mode"`
	SHA256     string              `json:"sha256"` // of the body as received
	Reduced    bool                `json:"reduced"`
	Attempts   int                 `json:"attempts"`
	ReceivedAt time.Time           `json:"received_at"`
	NextAt     time.Time           `json:"next_at,omitzero"`
	KeepUntil  time.Time           `json:"keep_until,omitzero"` // at least
	Body       json.RawMessage     `json:"body"`                // redacted; null if it is not JSON
}

func printEventJSON(w io.Writer, e payment.Event) error {
	return terminal.WriteJSON(w, showEvent(e))
}

func showEvent(e payment.Event) shownEvent {
	body, err := redact(e.Body)
	if err != nil {
		body = []byte("null")
	}
	return shownEvent{
		Gateway: e.Key.Gateway, EventID: e.Key.ID, Type: e.Type, Status: e.Status, Verdict: e.Verdict,
		OrderID: e.OrderID, VerifiedBy: e.VerifiedBy, Mode: e.Mode, SHA256: e.SHA256, Reduced: e.Reduced,
		Attempts: e.Attempts, ReceivedAt: e.ReceivedAt.UTC(), NextAt: e.NextAt.UTC(), KeepUntil: e.KeepUntil.UTC(), Body: body,
	}
}

func printEvent(w io.Writer, e payment.Event) error {
	p := &terminal.Page{Out: w}
	p.Line("%s: %s, %s", e.Key, e.Status, terminal.Printable(e.Verdict))
	p.Line("")
	rows := [][]string{
		{"type", terminal.OrDash(e.Type)},
		{"order", terminal.OrDash(e.OrderID)},
		{"received", terminal.Moment(e.ReceivedAt)},
		{"verified by", e.VerifiedBy},
		{"mode", string(e.Mode)},
		{"attempts", strconv.Itoa(e.Attempts)},
		{"next look", terminal.Moment(e.NextAt)},
		{"kept until at least", terminal.Moment(e.KeepUntil)},
		{"sha256", e.SHA256},
	}
	p.Table("", rows)
	p.Line("\n%s", bodyTitle(e))
	if body, err := redact(e.Body); err == nil {
		p.Line("%s", body)
	}
	return p.Err
}

func bodyTitle(e payment.Event) string {
	_, err := redact(e.Body)
	switch {
	case len(e.Body) == 0:
		return "No body is kept: it was too large, and it could not be decoded."
	case err != nil:
		return fmt.Sprintf("The body (%d bytes) is not JSON and is not shown; --raw prints it.", len(e.Body))
	case e.Reduced:
		return "The body was too large to keep. What it said, redacted:"
	}
	return "The body, redacted (--raw prints it as it is):"
}
