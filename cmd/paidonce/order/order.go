// Package order is `paidonce order` and `paidonce refund`: make an order, look at it, close it, let a hold pass, give its money back.
package order

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/cmd/paidonce/view"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// fitReason is what must be so of a hold's reason, which goes into a path.
var fitReason = regexp.MustCompile(`^[a-z_]{1,40}$`)

// work does an order command's work once the stack is found. args are those after the order's id.
type work func(ctx context.Context, t stack.Target, id string, args []string) (report, error)

// report is what a command has to say: value for programs, or text for people.
type report struct {
	value any
	text  func(*terminal.Page)
}

// Command is `paidonce order`.
func Command(find stack.Connector) *cobra.Command {
	var o stack.Options
	var asJSON bool
	group := terminal.Group("order", "Make an order, look at it, close it, let a hold pass")
	o.AddTo(group)
	group.PersistentFlags().BoolVar(&asJSON, "json", false, "print the answer as JSON, for programs")
	add := func(cmd *cobra.Command, arguments int, run work) {
		cmd.Args = terminal.Takes(arguments)
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if !stack.IsOrderID(args[0]) {
				return fmt.Errorf("%q is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit", args[0])
			}
			t, err := find(cmd.Context(), o)
			if err != nil {
				return t.Cure(err)
			}
			report, err := run(cmd.Context(), t, args[0], args[1:])
			if stack.IsGone(err) {
				return fmt.Errorf("%s has no order %s: check the id, and the stack", t.Name, args[0])
			}
			if err != nil {
				return t.Cure(err)
			}
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), report.value)
			}
			p := &terminal.Page{Out: cmd.OutOrStdout()}
			report.text(p)
			return p.Err
		}
		group.AddCommand(cmd)
	}

	creating, create := createCommand()
	add(creating, 1, create)
	add(&cobra.Command{Use: "get ID", Short: "Where an order stands"}, 1, getOrder)
	add(&cobra.Command{
		Use:   "explain ID",
		Short: "Where an order stands and everything that happened to it",
		Long: `Say where an order stands: what was paid, whether it was fulfilled, and if not, why not. Then list everything that
happened to it: each delivery of the gateway and what it taught, each effect, hold and acknowledgement.`,
	}, 1, explainOrder)

	var reason string
	closing := &cobra.Command{
		Use:   "close ID --reason WHY",
		Short: "Release an order's stock: money that comes after this is held, not fulfilled",
	}
	closing.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the order later")
	require(closing, "reason")
	add(closing, 1, func(ctx context.Context, t stack.Target, id string, _ []string) (report, error) {
		return closeOrder(ctx, t, id, reason)
	})

	var said stack.Acknowledgement
	var subject string
	acknowledging := &cobra.Command{
		Use:   "acknowledge ID REASON --by WHO --why WHY",
		Short: "Let a hold pass; the order is fulfilled if nothing else blocks it",
		Long: `Let the holds of a reason pass that stand now: all of them, or the one about --subject. If nothing else blocks the order
it is fulfilled at once. It counts for what is known now: a hold that gets worse holds again. "paidonce order explain ID"
lists the holds.`,
	}
	acknowledging.Flags().StringVar(&said.By, "by", "", "who answers for it")
	acknowledging.Flags().StringVar(&said.Why, "why", "", "why, for whoever looks at the order later")
	acknowledging.Flags().StringVar(&subject, "subject", "", "the payment, refund or dispute that the hold is about (default: all)")
	require(acknowledging, "by", "why")
	add(acknowledging, 2, func(ctx context.Context, t stack.Target, id string, args []string) (report, error) {
		if acknowledging.Flags().Changed("subject") {
			said.Subject = &subject
		}
		return acknowledgeHold(ctx, t, id, args[0], said)
	})
	return group
}

func require(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // there is no such flag: a mistake in the code
		}
	}
}

func getOrder(ctx context.Context, t stack.Target, id string, _ []string) (report, error) {
	o, err := t.API.Order(ctx, id)
	return report{o, func(p *terminal.Page) { view.Order(p, o, t.Flags) }}, err
}

func explainOrder(ctx context.Context, t stack.Target, id string, _ []string) (report, error) {
	l, err := t.API.Timeline(ctx, id)
	return report{l, func(p *terminal.Page) { view.Timeline(p, l, t.Flags) }}, err
}

func closeOrder(ctx context.Context, t stack.Target, id, reason string) (report, error) {
	o, err := t.API.CloseOrder(ctx, id, reason)
	if stack.StatusOf(err) == http.StatusConflict {
		return report{}, fmt.Errorf("order %s cannot be closed, it was fulfilled already: if the goods do not go out, refund it", id)
	}
	return report{o, func(p *terminal.Page) {
		p.Line("Closed: money that covers the order from now on is held, not fulfilled.\n")
		view.Order(p, o, t.Flags)
	}}, err
}

func acknowledgeHold(ctx context.Context, t stack.Target, id, reason string, said stack.Acknowledgement) (report, error) {
	if !fitReason.MatchString(reason) {
		return report{}, fmt.Errorf("%q is not the reason of a hold: it is a word such as dispute or paid_after_close", reason)
	}
	o, err := t.API.Acknowledge(ctx, id, payment.HoldReason(reason), said)
	if stack.IsGone(err) {
		return report{}, noSuchHold(ctx, t, id, payment.HoldKey{Reason: payment.HoldReason(reason), Subject: aws.ToString(said.Subject)})
	}
	return report{o, func(p *terminal.Page) {
		p.Line("Acknowledged: %s.\n", payment.HoldKey{Reason: payment.HoldReason(reason), Subject: aws.ToString(said.Subject)})
		view.Order(p, o, t.Flags)
	}}, err
}

// noSuchHold tells an order that has no such hold from an order that is unknown.
func noSuchHold(ctx context.Context, t stack.Target, id string, hold payment.HoldKey) error {
	o, err := t.API.Order(ctx, id)
	if err != nil {
		return err
	}
	has := "it has none"
	if len(o.Holds) > 0 {
		has = "it has " + terminal.Printable(names(o.Holds))
	}
	return fmt.Errorf("order %s has no hold %s now: %s", id, terminal.Printable(hold.String()), has)
}

func names(holds []apigw.Hold) string {
	var list []string
	for _, h := range holds {
		list = append(list, view.KeyOf(h).String())
	}
	return strings.Join(list, ", ")
}
