package events

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
)

// maxWords is the longest text, in characters, that is written into an event's verdict.
const maxWords = 200

func eventsIgnoreCommand(find connector, o *stack.Options) *cobra.Command {
	var by, why string
	cmd := &cobra.Command{
		Use:   "ignore GATEWAY/EVENT_ID --by WHO --why WHY",
		Short: "Settle an event that no order needs: a test, or junk that nobody can decode",
		Long: `Settle a PARKED or FAILED event as IGNORED: somebody has looked, and no order needs it. It is listed no more, and its row may expire.
WHO and WHY are written into its verdict. ` + "`events show`" + ` finds it as before, and ` + "`events replay`" + ` with its name sends it to the worker
all the same. An event that is APPLIED stays so.`,
		Example: `  paidonce events ignore razorpay/Q2bFhX1yZ0aBcD --by asha --why "sent by hand while testing"`,
		Args:    terminal.Takes(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := parseEventKey(args[0])
			if err != nil {
				return err
			}
			for flag, text := range map[string]string{"--by": by, "--why": why} {
				if strings.TrimSpace(text) == "" || utf8.RuneCountInString(text) > maxWords {
					return fmt.Errorf("%s says who looked and why it is of no concern: 1 to %d characters, without anything about a customer", flag, maxWords)
				}
			}
			t, err := find(cmd.Context(), *o)
			if err != nil {
				return t.Cure(err)
			}
			e, err := readEvent(cmd.Context(), t, key)
			if err != nil {
				return err
			}
			switch e.Status {
			case payment.EventParked, payment.EventFailed:
			case payment.EventReceived:
				return fmt.Errorf("event %s is RECEIVED: the worker has yet to look at it", key)
			default:
				return fmt.Errorf("event %s is %s already: nothing to do", key, e.Status)
			}
			verdict := fmt.Sprintf("ignored by %s: %s; before: %s", terminal.Printable(by), terminal.Printable(why), e.Verdict)
			err = t.Events.SettleEvent(cmd.Context(), e.Settle(payment.EventIgnored, e.Type, e.OrderID, verdict))
			if errors.Is(err, payment.ErrEventApplied) {
				return fmt.Errorf("event %s is APPLIED meanwhile: nothing to do", key)
			}
			if err != nil {
				return t.cureEvents(err, "cloudformation:DescribeStacks, and dynamodb:GetItem and UpdateItem on the table")
			}
			p := &terminal.Page{Out: cmd.OutOrStdout()}
			p.Line("%s: IGNORED", key)
			if e.Status == payment.EventFailed {
				p.Line("Its message may still be in the dead letter queue: `paidonce dlq redrive %s%s` lets the worker have a last look at it.", key, t.Flags)
			}
			return p.Err
		},
	}
	cmd.Flags().StringVar(&by, "by", "", "`WHO` looked at it")
	cmd.Flags().StringVar(&why, "why", "", "`WHY` no order needs it")
	return cmd
}
