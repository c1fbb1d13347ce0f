package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

func dlqCommand(find connector, w terminal.Surroundings) *cobra.Command {
	var o stack.Options
	group := terminal.Group("dlq", "Look into the dead letter queue, and send its events to the worker again")
	o.AddTo(group)
	group.AddCommand(dlqListCommand(find, &o, w), dlqShowCommand(find, &o), dlqRedriveCommand(find, &o, w), dlqDropCommand(find, &o, w))
	return group
}

// leftAsItWas is what each look at the queue promises.
const leftAsItWas = `The queue is left as it was: each message that was looked at is made visible again, also after Ctrl-C. Only a command that
is killed leaves them hidden, for 5 minutes. The alarm of the queue may pause meanwhile.`

// letters are the dead letters of a stack, with their rows.
type letters struct {
	target  target
	queues  eventQueues
	entries []entry // oldest first
	reach   queue.Reach
}

// openLetters finds the stack and reads all of its dead letters.
func openLetters(cmd *cobra.Command, find connector, o stack.Options, asJSON bool) (l letters, err error) {
	ctx := cmd.Context()
	if l.target, err = find(ctx, o); err != nil {
		return l, l.target.Cure(err)
	}
	if l.queues, err = l.target.queues(ctx); err != nil {
		return l, l.target.cureEvents(err, mayLook)
	}
	bar := terminal.NewBar(cmd, -1, "reading the dead letter queue", asJSON)
	all, reach, err := l.queues.dead.List(ctx, func(found int) { bar.Add(found) }) // a bar that cannot be drawn is no reason to stop
	bar.Finish()
	warnOfStuck(cmd.ErrOrStderr(), reach)
	if err != nil {
		return l, l.target.cureEvents(err, mayLook)
	}
	l.reach = reach
	l.entries, err = letterEntries(ctx, l.target.Events, all)
	return l, l.target.cureEvents(err, mayLook)
}

func warnOfStuck(w io.Writer, r queue.Reach) {
	if r.Stuck > 0 {
		fmt.Fprintf(w, "paidonce: %s could not be made visible again: others see them in %s at most\n", terminal.Count(r.Stuck, "message"), terminal.Spell(queue.Hidden))
	}
}

// doubts say what was not seen, or are empty.
func (l letters) doubts() (lines []string) {
	if l.reach.Others > 0 {
		lines = append(lines, fmt.Sprintf("Not shown: about %s that somebody else is looking at or moving. Try again in a minute.", terminal.Count(l.reach.Others, "message")))
	}
	if l.reach.Left > 0 {
		lines = append(lines, fmt.Sprintf("Perhaps not all: SQS counts about %s more than it gave out. Try again in a minute.", terminal.Count(l.reach.Left, "message")))
	}
	return lines
}

func dlqListCommand(find connector, o *stack.Options, w terminal.Surroundings) *cobra.Command {
	var f eventFilter
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "What is in the dead letter queue, and why",
		Long: `List the messages that the worker gave up on, oldest first, with what the table says of their events, and count them by
reason. A message without an event row, or that is not ours, is listed too.

` + leftAsItWas + `

--json prints {"messages": [...], "total", "reasons": [{"reason", "count"}], "complete", "held_by_others", "left"}.
"messages" and "reasons" are those that match, "total" counts all that were seen; "complete" is false where SQS holds about
"held_by_others" messages for somebody else, or about "left" more than it gave out. A message is
` + entryJSON,
		Example: `  paidonce dlq ls --stack paidonce-prod
  paidonce dlq ls --reason throttl --older-than 1h`,
		Args: terminal.Takes(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			l, err := openLetters(cmd, find, *o, asJSON)
			if err != nil {
				return err
			}
			matching := f.only(l.entries, w.Now())
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), letterList{
					showEntries(matching), len(l.entries), byReason(matching), l.reach.Complete(), l.reach.Others, l.reach.Left,
				})
			}
			return l.print(cmd.OutOrStdout(), matching, f, w.Now())
		},
	}
	f.addTo(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON, for programs")
	return cmd
}

// letterList is the list for programs.
type letterList struct {
	Messages []shownEntry  `json:"messages"`
	Total    int           `json:"total"`
	Reasons  []reasonCount `json:"reasons"`
	Complete bool          `json:"complete"`
	Others   int           `json:"held_by_others"`
	Left     int           `json:"left"`
}

func (l letters) print(out io.Writer, matching []entry, f eventFilter, now time.Time) error {
	p := &terminal.Page{Out: out}
	switch {
	case len(l.entries) == 0 && l.reach.Complete():
		p.Line("The dead letter queue of %s is empty.", l.target.Name)
	case len(l.entries) == 0:
		p.Line("No message of the dead letter queue of %s could be seen.", l.target.Name)
	case len(matching) == 0:
		p.Line("None of %s in the dead letter queue of %s matches.", terminal.Count(len(l.entries), "message"), l.target.Name)
	default:
		rows := [][]string{{"EVENT", "TYPE", "ORDER", "AGE", "STATUS", "SENT", "REASON"}}
		for _, e := range matching {
			rows = append(rows, []string{
				e.name(), terminal.OrDash(e.event.Type), terminal.OrDash(e.event.OrderID), terminal.Age(e.since(), now), e.status(), terminal.Moment(e.message.SentAt), terminal.Clip(e.reason(), 70),
			})
		}
		p.Table("", rows)
		p.Line("\n%s:", countOf(len(matching), len(l.entries), "message"))
		p.Table("", reasonRows(byReason(matching)))
	}
	for _, doubt := range l.doubts() {
		p.Line("\n%s", doubt)
	}
	if slices.ContainsFunc(matching, func(e entry) bool { return e.problem == "" }) {
		p.Line("\nOnce the cause is gone, send them again: %s%s", shellWords(append([]string{"paidonce", "dlq", "redrive"}, orAll(f.arguments())...)), l.target.Flags)
	}
	return p.Err
}

// countOf is how many of all.
func countOf(n, all int, thing string) string {
	if n == all {
		return terminal.Count(n, thing)
	}
	return fmt.Sprintf("%d of %s", n, terminal.Count(all, thing))
}

func orAll(arguments []string) []string {
	if len(arguments) == 0 {
		return []string{"--all"}
	}
	return arguments
}

func dlqShowCommand(find connector, o *stack.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show GATEWAY/EVENT_ID",
		Short: "What became of an event in the dead letter queue, and what it said",
		Long: `Show an event as ` + "`events show`" + ` does, its body redacted, and its messages in the dead letter queue.

` + leftAsItWas + `

--json prints {"event": as ` + "`events show --json`" + `, or null where there is no row, "problem": why there is none, or empty,
"messages": [{"id", "sent_at", "receives"}], "redrive": the command that sends it again, or empty}.`,
		Args: terminal.Takes(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := parseEventKey(args[0])
			if err != nil {
				return err
			}
			l, err := openLetters(cmd, find, *o, asJSON)
			if err != nil {
				return err
			}
			return l.show(cmd.Context(), cmd.OutOrStdout(), key, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, for programs")
	return cmd
}

// shownLetter is a dead letter and its event for programs.
type shownLetter struct {
	Event    *shownEvent     `json:"event"`
	Problem  string          `json:"problem"`
	Messages []*shownMessage `json:"messages"`
	Redrive  string          `json:"redrive"`
}

func (l letters) show(ctx context.Context, out io.Writer, key payment.EventKey, asJSON bool) error {
	shown := shownLetter{Messages: []*shownMessage{}}
	for _, e := range l.entries {
		if e.key == key {
			shown.Messages, shown.Problem = append(shown.Messages, showMessage(*e.message)), e.problem
		}
	}
	event, err := l.target.Events.Event(ctx, key)
	switch {
	case errors.Is(err, payment.ErrNotFound) && len(shown.Messages) > 0, errors.Is(err, payment.ErrNewerVersion) && len(shown.Messages) > 0:
	case err != nil:
		_, err := readEvent(ctx, l.target, key) // for its words
		return err
	default:
		e := showEvent(event)
		shown.Event = &e
	}
	again := shellWords([]string{"paidonce", "dlq", "redrive", key.String()}) + l.target.Flags
	if shown.Event != nil && len(shown.Messages) > 0 {
		shown.Redrive = again
	}
	if asJSON {
		return errors.Join(terminal.WriteJSON(out, shown), l.checkShown(shown, event))
	}
	if shown.Event != nil {
		if err := printEvent(out, event); err != nil {
			return err
		}
	}
	p := &terminal.Page{Out: out}
	if shown.Event == nil {
		p.Line("%s: %s: %s", key, shown.Problem, problemCures[shown.Problem])
	}
	l.printMessages(p, key, shown)
	return errors.Join(p.Err, l.checkShown(shown, event))
}

func (l letters) checkShown(shown shownLetter, e payment.Event) error {
	if shown.Event == nil {
		return nil
	}
	return checkBody(e)
}

func (l letters) printMessages(p *terminal.Page, key payment.EventKey, shown shownLetter) {
	if len(shown.Messages) == 0 {
		p.Line("\nIt has no message in the dead letter queue.")
		if shown.Event.Status != payment.EventApplied {
			p.Line("Once the cause is gone, send it again: %s%s", shellWords([]string{"paidonce", "events", "replay", key.String()}), l.target.Flags)
		}
	} else {
		p.Line("\nIn the dead letter queue:")
		rows := [][]string{}
		for _, m := range shown.Messages {
			rows = append(rows, []string{"message " + m.ID, "sent " + terminal.Moment(m.SentAt), terminal.Count(m.Receives, "receive")})
		}
		p.Table("", rows)
	}
	if shown.Redrive != "" {
		p.Line("\nOnce the cause is gone, send it again: %s", shown.Redrive)
	}
	for _, doubt := range l.doubts() {
		p.Line("\n%s", doubt)
	}
}
