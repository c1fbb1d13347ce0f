package events

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
)

// maxListed is how many events of a status the index is asked for. Their rows are read, and a flood has no end.
const maxListed = 10_000

// afterAll is after everything that the index has, also what waits for a person.
var afterAll = time.Date(9999, 12, 31, 23, 59, 59, int(999*time.Millisecond), time.UTC)

// eventChoice says which events a list or a replay is about.
type eventChoice struct {
	eventFilter
	status string // received, parked, failed; with an order also applied or ignored
}

func (c *eventChoice) addTo(cmd *cobra.Command) {
	c.eventFilter.addTo(cmd)
	cmd.Flags().StringVar(&c.status, "status", "", "only those of this `STATUS`: received, parked or failed; with --order also applied or ignored")
	terminal.Complete(cmd, "status", "received", "parked", "failed", "applied", "ignored")
}

// listed are the statuses of which the index has a list, in the order of how much they need somebody.
var listed = []payment.EventStatus{payment.EventFailed, payment.EventParked, payment.EventReceived}

func (c eventChoice) check() error {
	status := payment.EventStatus(strings.ToUpper(c.status))
	switch {
	case c.status == "" || slices.Contains(listed, status):
	case status != payment.EventApplied && status != payment.EventIgnored:
		return fmt.Errorf("--status %q is none: it is received, parked or failed, and with --order also applied or ignored", c.status)
	case c.order == "":
		return fmt.Errorf("events that are %s are listed with their order only: give --order too", strings.ToLower(c.status))
	}
	return c.eventFilter.check()
}

func (c eventChoice) arguments() (args []string) {
	if c.status != "" {
		args = []string{"--status", c.status}
	}
	return append(args, c.eventFilter.arguments()...)
}

// chosen are the events of a choice, as their rows are now.
type chosen struct {
	entries []entry
	cut     []payment.EventStatus // of which there are more than were looked at
}

// find reads the events of the choice: those that the index lists, or an order's history. What a newer release wrote is
// shown whatever its status.
func (c eventChoice) find(ctx context.Context, table stack.EventKeeper, now time.Time) (found chosen, err error) {
	want := payment.EventStatus(strings.ToUpper(c.status))
	if c.order != "" {
		found.entries, err = ofOrder(ctx, table, c.order)
	} else {
		found, err = ofIndex(ctx, table, want)
	}
	if err != nil {
		return found, err
	}
	found.entries = slices.DeleteFunc(c.only(found.entries, now), func(e entry) bool {
		return e.problem == "" && want != "" && e.event.Status != want || want == "" && e.event.Status == payment.EventReceived && !isLate(e.event, now)
	})
	slices.SortStableFunc(found.entries, func(a, b entry) int {
		if c.order != "" {
			return a.since().Compare(b.since())
		}
		return cmp.Or(cmp.Compare(slices.Index(listed, a.event.Status), slices.Index(listed, b.event.Status)), a.since().Compare(b.since()))
	})
	return found, nil
}

// isLate reports whether the worker should have settled a RECEIVED event: reconcile looked after it, or is about to.
func isLate(e payment.Event, now time.Time) bool { return e.Attempts > 0 || !e.NextAt.After(now) }

func ofOrder(ctx context.Context, table stack.EventKeeper, order string) (all []entry, err error) {
	h, err := table.History(ctx, order)
	for _, e := range h.Events {
		all = append(all, entry{key: e.Key, event: e})
	}
	return all, err
}

// ofIndex lists what the index has of a status, or of all. The row decides: what was settled meanwhile is left out.
func ofIndex(ctx context.Context, table stack.EventKeeper, want payment.EventStatus) (found chosen, err error) {
	for _, status := range listed {
		if want != "" && status != want {
			continue
		}
		var keys []payment.EventKey
		err := table.DueEvents(ctx, status, afterAll, func(k payment.EventKey) bool {
			if len(keys) == maxListed {
				found.cut = append(found.cut, status)
				return false
			}
			keys = append(keys, k)
			return true
		})
		if err != nil {
			return found, err
		}
		rows, err := readEntries(ctx, table, keys)
		if err != nil {
			return found, err
		}
		for _, k := range keys {
			if e := rows[k]; e.event.Status == status || e.problem == newerRow {
				found.entries = append(found.entries, e)
			}
		}
	}
	return found, nil
}

func eventsListCommand(find connector, o *stack.Options, w terminal.Surroundings) *cobra.Command {
	var c eventChoice
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "Which events need somebody, or an order's events",
		Long: `List the events that failed, that are parked, and that were received and are late: what needs somebody, the most urgent first.
--status received lists those that were received just now as well. With --order, list what an order has had: its APPLIED and
IGNORED events, and the FAILED ones. An IGNORED event is listed nowhere else.

NEXT LOOK is when reconcile hands the event to the worker again by itself; those that wait for a person it never does.

--json prints {"events": [...], "more": how many --limit left out, "cut": the statuses of which there are so many that not all
were looked at}. An event is
` + entryJSON,
		Example: `  paidonce events ls --stack paidonce-prod
  paidonce events ls --status parked --older-than 24h
  paidonce events ls --order order-417`,
		Args: terminal.Takes(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return err
			}
			if limit < 1 {
				return fmt.Errorf("--limit %d: it is how many to list at most", limit)
			}
			t, err := find(cmd.Context(), *o)
			if err != nil {
				return t.Cure(err)
			}
			found, err := c.find(cmd.Context(), t.Events, w.Now())
			if err != nil {
				return t.cureEvents(err, mayList)
			}
			shown := found.entries[:min(limit, len(found.entries))]
			more := len(found.entries) - len(shown)
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), eventList{showEntries(shown), more, append([]payment.EventStatus{}, found.cut...)})
			}
			return c.print(cmd.OutOrStdout(), t, found, shown, w.Now())
		},
	}
	c.addTo(cmd)
	cmd.Flags().IntVar(&limit, "limit", 100, "list at most so many")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON, for programs")
	return cmd
}

// eventList is the list for programs.
type eventList struct {
	Events []shownEntry          `json:"events"`
	More   int                   `json:"more"`
	Cut    []payment.EventStatus `json:"cut"`
}

func (c eventChoice) print(out io.Writer, t target, found chosen, shown []entry, now time.Time) error {
	p := &terminal.Page{Out: out}
	switch {
	case len(shown) == 0 && c.order != "":
		p.Line("%s has no such events of order %s. (Those that wait for the worker belong to no order yet.)", t.Name, c.order)
	case len(shown) == 0 && len(c.arguments()) == 0:
		p.Line("No event of %s needs anybody.", t.Name)
	case len(shown) == 0:
		p.Line("No such event of %s needs anybody.", t.Name)
	default:
		rows := [][]string{{"EVENT", "TYPE", "ORDER", "AGE", "STATUS", "NEXT LOOK", "VERDICT"}}
		for _, e := range shown {
			rows = append(rows, []string{
				e.name(), terminal.OrDash(e.event.Type), terminal.OrDash(e.event.OrderID), terminal.Age(e.since(), now), e.status(), nextLook(e, now), terminal.Clip(cmp.Or(e.event.Verdict, e.problem), 100),
			})
		}
		p.Table("", rows)
	}
	if more := len(found.entries) - len(shown); more > 0 {
		p.Line("\n%d more are not listed: --limit %d lists them too.", more, len(found.entries))
	}
	for _, status := range found.cut {
		p.Line("\nThere are over %d events %s: only so many were looked at.", maxListed, status)
	}
	return p.Err
}

// nextLook is when somebody looks at the event again.
func nextLook(e entry, now time.Time) string {
	switch s := e.event.Status; {
	case s == payment.EventApplied || s == payment.EventIgnored:
		return "-"
	case e.event.NextAt.IsZero():
		return "a person"
	case e.event.NextAt.After(now):
		return "in " + terminal.Spell(e.event.NextAt.Sub(now))
	}
	return "overdue " + terminal.Spell(now.Sub(e.event.NextAt))
}
