package events

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
)

// replayOptions are the command's arguments and flags.
type replayOptions struct {
	bulkOptions
	choice eventChoice
	keys   []payment.EventKey
}

func eventsReplayCommand(find connector, o *stack.Options, w terminal.Surroundings) *cobra.Command {
	var r replayOptions
	cmd := &cobra.Command{
		Use:   "replay [GATEWAY/EVENT_ID ...]",
		Short: "Hand stored events to the worker again, once the cause is gone",
		Long: `Send the keys of stored events to the events queue, as the webhook did when they came in: of those that are named, or of those
that ` + "`events ls`" + ` lists with the same flags. It is for PARKED events, for IGNORED ones (after a wrong account or secret label;
name them, or their --order), for RECEIVED ones that are late, and for FAILED ones whose message is gone: while it is in the dead
letter queue, ` + "`dlq redrive`" + ` sends it and takes it out. An event that is APPLIED is never sent: nothing is left to do. Sending one
twice does no harm.

First it says what it would do, and asks. After Ctrl-C the same command does the rest. The exit status is 1 then, and with
--wait if an event failed again or was not settled in time.

` + bulkJSON,
		Example: `  paidonce events replay razorpay/Q2bFhX1yZ0aBcD --wait 1m
  paidonce events replay --status parked --type payment.captured --dry-run
  paidonce events replay --order order-417 --status ignored --yes --stack paidonce-prod`,
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
	r.choice.addTo(cmd)
	r.addTo(cmd)
	return cmd
}

func (r replayOptions) check() error {
	switch {
	case len(r.keys) == 0 && r.choice == eventChoice{}:
		return errors.New("say which: name events, or choose by --status, --reason, --type, --order, --gateway, --older-than or --younger-than (`paidonce events ls` shows what needs it)")
	case len(r.keys) > 0 && r.choice != eventChoice{}:
		return errors.New("events that are named are taken as they are: leave out the flags that choose")
	}
	return errors.Join(r.choice.check(), r.bulkOptions.check())
}

func (r replayOptions) again(t target) string {
	args := []string{"paidonce", "events", "replay"}
	for _, k := range r.keys {
		args = append(args, k.String())
	}
	return shellWords(slices.Concat(args, r.choice.arguments(), r.arguments())) + t.Flags
}

func (r replayOptions) run(cmd *cobra.Command, find connector, o stack.Options, w terminal.Surroundings) error {
	ctx := cmd.Context()
	t, err := find(ctx, o)
	if err != nil {
		return t.Cure(err)
	}
	found, err := r.find(ctx, t, w)
	if err != nil {
		return err
	}
	pl := r.plan(found.entries, w)
	report := pl.report(r.bulkOptions)
	p := &terminal.Page{Out: cmd.OutOrStdout()}
	if !r.asJSON {
		pl.print(p, replayTitle(len(pl.chosen), t), w.Now())
		if slices.ContainsFunc(pl.chosen, func(e entry) bool { return e.event.Status == payment.EventFailed }) {
			p.Line("The message of a FAILED event is as a rule in the dead letter queue for 14 days: until then `paidonce dlq redrive%s` sends it and takes it out.\n", t.Flags)
		}
		for _, status := range found.cut {
			p.Line("There are over %d events %s: only so many were looked at. Run it again for the rest.\n", maxListed, status)
		}
	}
	return r.carryOut(cmd, w, p, terminal.Count(len(pl.chosen), "event"), &report, func() error {
		return r.send(cmd, w, t, pl.chosen, p, &report)
	})
}

// find reads the events that are named, all of which must be there, or those that the flags choose.
func (r replayOptions) find(ctx context.Context, t target, w terminal.Surroundings) (chosen, error) {
	if len(r.keys) == 0 {
		found, err := r.choice.find(ctx, t.Events, w.Now())
		return found, t.cureEvents(err, mayReplay)
	}
	rows, err := readEntries(ctx, t.Events, r.keys)
	if err != nil {
		return chosen{}, t.cureEvents(err, mayReplay)
	}
	var found chosen
	for _, k := range r.keys {
		if rows[k].problem == noRow {
			return chosen{}, fmt.Errorf("%s has no event %s, and nothing was sent: check the id, and the stack; old events are dropped", t.Name, k)
		}
		found.entries = append(found.entries, rows[k])
	}
	return found, nil
}

// Why an event is not sent.
const (
	nothingToDo = "already applied: nothing to do"
	justNow     = "received just now: the worker has it"
)

func (r replayOptions) plan(found []entry, w terminal.Surroundings) plan {
	why := func(e entry) string {
		switch {
		case e.problem != "":
			return e.problem
		case e.event.Status == payment.EventApplied:
			return nothingToDo
		case len(r.keys) == 0 && e.event.Status == payment.EventReceived && !isLate(e.event, w.Now()):
			return justNow
		}
		return ""
	}
	pl := plan{why: why}
	for _, e := range found {
		if why(e) == "" {
			pl.chosen = append(pl.chosen, e)
		} else {
			pl.stay = append(pl.stay, e)
		}
	}
	return pl
}

func replayTitle(n int, t target) string {
	if n == 0 {
		return fmt.Sprintf("No event of %s is to be sent.", t.Name)
	}
	return fmt.Sprintf("To be handed to the worker of %s again: %s.", t.Name, terminal.Count(n, "event"))
}

func (r replayOptions) send(cmd *cobra.Command, w terminal.Surroundings, t target, chosen []entry, p *terminal.Page, report *reportBulk) error {
	queues, err := t.queues(cmd.Context())
	if err != nil {
		return t.cureEvents(err, mayReplay)
	}
	byKey := map[payment.EventKey]entry{}
	keys := make([]payment.EventKey, len(chosen))
	for i, e := range chosen {
		keys[i], byKey[e.key] = e.key, e
	}
	bar := terminal.NewBar(cmd, len(keys), "sending", r.asJSON)
	taken, err := queues.events.SendAll(cmd.Context(), keys, func(n int) { bar.Add(n) })
	bar.Clear()
	report.Sent = len(taken)
	if !r.asJSON {
		p.Line("%s sent to the worker.", countOf(len(taken), len(keys), "event"))
	}
	if err != nil {
		return fmt.Errorf("%w: %d of %d sent; go on with: %s", t.cureEvents(err, mayReplay), len(taken), len(keys), r.again(t))
	}
	var sent []entry
	for _, k := range taken {
		sent = append(sent, byKey[k])
	}
	return r.follow(cmd, w, t, sent, report)
}
