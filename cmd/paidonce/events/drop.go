package events

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
)

func dlqDropCommand(find connector, o *stack.Options, w terminal.Surroundings) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop MESSAGE_ID|GATEWAY/EVENT_ID ...",
		Short: "Take messages out that name no event of ours",
		Long: `Delete messages of the dead letter queue that the worker could make nothing of: those that are not ours, and those whose event
has no row (it has expired, or somebody sent the message by hand). They are named as ` + "`dlq ls`" + ` names them. It asks first.

Nothing else is ever deleted: an event that has a row is sent again by ` + "`dlq redrive`" + `, and what a newer release wrote waits for
that release. If one of those that are named may not be deleted, none is.`,
		Example: `  paidonce dlq drop 4f7e6a1c-8a52-4a7e-9c0b-0d3a51c5e9b2
  paidonce dlq drop razorpay/Q2bFhX1yZ0aBcD --yes --stack paidonce-prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("say which: `paidonce dlq ls` names them")
			}
			l, err := openLetters(cmd, find, *o, false)
			if err != nil {
				return err
			}
			chosen, err := l.unusable(args)
			if err != nil {
				return err
			}
			return l.drop(cmd, w, chosen, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask: needed where there is no terminal")
	return cmd
}

// unusable are the entries that are named, all of which the worker could make nothing of.
func (l letters) unusable(names []string) (chosen []entry, err error) {
	for _, name := range names {
		id := strings.TrimPrefix(name, "message ")
		found := false
		for _, e := range l.entries {
			if e.message.ID != id && e.name() != name {
				continue
			}
			found = true
			if e.problem != noRow && e.problem != notOurs {
				why := "its event has a row: send it again with `paidonce dlq redrive " + e.name() + l.target.Flags + "`, the worker drops what is applied"
				if e.problem != "" {
					why = e.problem + ", and waits for it"
				}
				return nil, fmt.Errorf("nothing was deleted: %s: %s", name, why)
			}
			if !slices.ContainsFunc(chosen, func(c entry) bool { return c.message.ID == e.message.ID }) {
				chosen = append(chosen, e)
			}
		}
		if !found {
			return nil, fmt.Errorf("nothing was deleted: the dead letter queue of %s has no message %s: `paidonce dlq ls%s` names those that it has. %s",
				l.target.Name, name, l.target.Flags, strings.Join(l.doubts(), " "))
		}
	}
	return chosen, nil
}

func (l letters) drop(cmd *cobra.Command, w terminal.Surroundings, chosen []entry, yes bool) error {
	p := &terminal.Page{Out: cmd.OutOrStdout()}
	p.Line("To be deleted from the dead letter queue of %s:", l.target.Name)
	rows := [][]string{}
	ids := []string{}
	for _, e := range chosen {
		rows = append(rows, []string{e.name(), "message " + e.message.ID, "sent " + terminal.Moment(e.message.SentAt), e.problem})
		ids = append(ids, e.message.ID)
	}
	p.Table("", rows)
	if p.Err != nil {
		return p.Err
	}
	if !yes {
		if !w.Asks(cmd) {
			return errors.New("nothing was deleted: there is no terminal to ask on, so give --yes")
		}
		agreed, err := terminal.Agrees(cmd, fmt.Sprintf("Delete %s?", terminal.Count(len(ids), "message")))
		if err != nil {
			return errors.New("interrupted: nothing was deleted")
		}
		if !agreed {
			p.Line("Nothing was deleted.")
			return p.Err
		}
	}
	dropped, err := l.queues.dead.Drop(cmd.Context(), ids)
	warnOfStuck(cmd.ErrOrStderr(), dropped.Reach)
	p.Line("%s deleted.", countOf(dropped.Gone, len(ids), "message"))
	if err != nil {
		return l.target.cureEvents(err, mayDrop)
	}
	if len(dropped.Missing) > 0 {
		return fmt.Errorf("%s could not be deleted, or somebody else has them: try again in a minute", terminal.Count(len(dropped.Missing), "message"))
	}
	return p.Err
}
