package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

// redriveOptions are the command's arguments and flags.
type redriveOptions struct {
	bulkOptions
	filter eventFilter
	all    bool
	keys   []payment.EventKey
}

func dlqRedriveCommand(find connector, o *stack.Options, w terminal.Surroundings) *cobra.Command {
	var r redriveOptions
	cmd := &cobra.Command{
		Use:   "redrive [GATEWAY/EVENT_ID ...]",
		Short: "Send dead letters to the worker again, once the cause is gone",
		Long: `Send messages of the dead letter queue to the events queue again, and delete them here: those of the events that are named,
those that the flags choose, or with --all every one. First it says what it would do, and asks.

Each message is sent first and deleted then, so that none is lost; one that a crash leaves in both queues does no harm, for an
event that is applied is never applied again. Messages that came after the plan stay. So do those that the worker could make
nothing of: without an event row, not ours, or of a newer release.

After Ctrl-C, what is in hand is finished and the rest stays as it was; the same command does the rest. The exit status is 1
then, if a message could not be moved, and with --wait if an event failed again or was not settled in time.

` + bulkJSON,
		Example: `  paidonce dlq redrive razorpay/Q2bFhX1yZ0aBcD --wait 1m
  paidonce dlq redrive --reason throttl --dry-run --stack paidonce-prod
  paidonce dlq redrive --all --yes --stack paidonce-prod`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if r.keys, err = parseEventKeys(args); err != nil {
				return err
			}
			if err := r.check(); err != nil {
				return err
			}
			return r.run(cmd, find, *o, w)
		},
	}
	r.filter.addTo(cmd)
	r.addTo(cmd)
	cmd.Flags().BoolVar(&r.all, "all", false, "every message")
	return cmd
}

// parseEventKeys reads arguments; a key that is named twice counts once.
func parseEventKeys(args []string) (keys []payment.EventKey, err error) {
	for _, arg := range args {
		key, err := parseEventKey(arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func (r redriveOptions) check() error {
	chosen := len(r.keys) > 0 || r.filter != eventFilter{}
	switch {
	case !chosen && !r.all:
		return errors.New("say which: name events, choose by --reason, --type, --order, --gateway, --older-than or --younger-than, or take --all (`paidonce dlq ls` shows what is there)")
	case chosen && r.all:
		return errors.New("--all takes every message: leave it out, or what else chooses")
	}
	return errors.Join(r.filter.check(), r.bulkOptions.check())
}

// again is the command line that does the same.
func (r redriveOptions) again(t target) string {
	args := []string{"paidonce", "dlq", "redrive"}
	for _, k := range r.keys {
		args = append(args, k.String())
	}
	if r.all {
		args = append(args, "--all")
	}
	return shellWords(slices.Concat(args, r.filter.arguments(), r.arguments())) + t.Flags
}

func (r redriveOptions) run(cmd *cobra.Command, find connector, o stack.Options, w terminal.Surroundings) error {
	l, err := openLetters(cmd, find, o, r.asJSON)
	if err != nil {
		return err
	}
	matching := r.filter.only(l.entries, w.Now())
	if len(r.keys) > 0 {
		if matching, err = r.named(l, matching); err != nil {
			return err
		}
	}
	pl := plan{why: entry.reason}
	for _, e := range matching {
		if e.problem == "" {
			pl.chosen = append(pl.chosen, e)
		} else {
			pl.stay = append(pl.stay, e)
		}
	}
	report := pl.report(r.bulkOptions)
	p := &terminal.Page{Out: cmd.OutOrStdout()}
	if !r.asJSON {
		pl.print(p, l.redriveTitle(len(pl.chosen)), w.Now())
		for _, doubt := range l.doubts() {
			p.Line("%s\n", doubt)
		}
	}
	return r.carryOut(cmd, w, p, terminal.Count(len(pl.chosen), "message"), &report, func() error {
		return r.move(cmd, w, l, pl.chosen, p, &report)
	})
}

func (l letters) redriveTitle(chosen int) string {
	switch {
	case len(l.entries) == 0:
		return fmt.Sprintf("The dead letter queue of %s is empty: nothing to send.", l.target.Name)
	case chosen == 0:
		return fmt.Sprintf("None of %s in the dead letter queue of %s is to be sent.", terminal.Count(len(l.entries), "message"), l.target.Name)
	}
	return fmt.Sprintf("To be sent to the worker again: %s in the dead letter queue of %s.", countOf(chosen, len(l.entries), "message"), l.target.Name)
}

// named keeps the entries of the events that are named, and refuses where one has none: nothing is done by halves.
func (r redriveOptions) named(l letters, matching []entry) ([]entry, error) {
	var absent []string
	for _, k := range r.keys {
		if !slices.ContainsFunc(l.entries, func(e entry) bool { return e.key == k }) {
			absent = append(absent, k.String())
		}
	}
	if len(absent) > 0 {
		err := fmt.Errorf("the dead letter queue of %s has no message of %s, and nothing was sent: if the event needs the worker, %s%s",
			l.target.Name, strings.Join(absent, ", "), shellWords(append([]string{"paidonce", "events", "replay"}, absent...)), l.target.Flags)
		if !l.reach.Complete() {
			err = fmt.Errorf("%w. %s", err, strings.Join(l.doubts(), " "))
		}
		return nil, err
	}
	return slices.DeleteFunc(matching, func(e entry) bool { return !slices.Contains(r.keys, e.key) }), nil
}

// move does what was planned.
func (r redriveOptions) move(cmd *cobra.Command, w terminal.Surroundings, l letters, chosen []entry, p *terminal.Page, report *reportBulk) error {
	byID := map[string]entry{}
	ids := make([]string, len(chosen))
	for i, e := range chosen {
		ids[i], byID[e.message.ID] = e.message.ID, e
	}
	bar := terminal.NewBar(cmd, len(ids), "sending", r.asJSON)
	moved, err := l.queues.dead.Redrive(cmd.Context(), ids, func(n int) { bar.Add(n) })
	bar.Clear()
	warnOfStuck(cmd.ErrOrStderr(), moved.Reach)
	report.Sent, report.Twice = len(moved.Moved)+len(moved.Twice), len(moved.Twice)
	if err == nil {
		report.Missing = len(moved.Missing)
	}
	if !r.asJSON {
		p.Line("%s sent to the worker.", countOf(report.Sent, len(ids), "message"))
		if report.Twice > 0 {
			p.Line("%s could not be deleted here and will be sent once more with the next redrive: harmless, the worker drops what is applied.", terminal.Count(report.Twice, "message"))
		}
		if report.Missing > 0 {
			p.Line("%s of the plan did not come: somebody else has or had them. `paidonce dlq ls%s` shows what is left.", terminal.Count(report.Missing, "message"), l.target.Flags)
		}
	}
	if err != nil {
		why := l.target.cureEvents(err, mayRedrive)
		if errors.Is(err, context.Canceled) {
			why = errors.New("interrupted")
		}
		return fmt.Errorf("%w: %d of %d sent, the rest stays in the dead letter queue; go on with: %s", why, report.Sent, len(ids), r.again(l.target))
	}
	if err := r.follow(cmd, w, l.target, entriesOf(byID, moved), report); err != nil || report.Missing == 0 {
		return err
	}
	return fmt.Errorf("%s of the plan could not be moved", terminal.Count(report.Missing, "message"))
}

// entriesOf are the entries whose messages were sent.
func entriesOf(byID map[string]entry, moved queue.Redriven) (sent []entry) {
	for _, m := range slices.Concat(moved.Moved, moved.Twice) {
		sent = append(sent, byID[m.ID])
	}
	return sent
}
