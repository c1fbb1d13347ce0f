package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// fitReason is what must be so of a hold's reason, which goes into a path.
var fitReason = regexp.MustCompile(`^[a-z_]{1,40}$`)

// orderRun does an order command's work once the stack is found. args are those after the order's id.
type orderRun func(ctx context.Context, t target, id string, args []string) (orderReport, error)

// orderReport is what a command has to say: value for programs, or text for people.
type orderReport struct {
	value any
	text  func(*page)
}

func orderCommand(find connector) *cobra.Command {
	var o targetOptions
	var asJSON bool
	group := groupCommand("order", "Make an order, look at it, close it, let a hold pass")
	o.addTo(group)
	group.PersistentFlags().BoolVar(&asJSON, "json", false, "print the answer as JSON, for programs")
	add := func(cmd *cobra.Command, arguments int, run orderRun) {
		cmd.Args = takes(arguments)
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if !isOrderID(args[0]) {
				return fmt.Errorf("%q is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit", args[0])
			}
			t, err := find(cmd.Context(), o)
			if err != nil {
				return t.cure(err)
			}
			report, err := run(cmd.Context(), t, args[0], args[1:])
			if isGone(err) {
				return fmt.Errorf("%s has no order %s: check the id, and the stack", t.name, args[0])
			}
			if err != nil {
				return t.cure(err)
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), report.value)
			}
			p := &page{out: cmd.OutOrStdout()}
			report.text(p)
			return p.err
		}
		group.AddCommand(cmd)
	}

	creating, create := orderCreateCommand()
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
	add(closing, 1, func(ctx context.Context, t target, id string, _ []string) (orderReport, error) {
		return closeOrder(ctx, t, id, reason)
	})

	var said acknowledgement
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
	add(acknowledging, 2, func(ctx context.Context, t target, id string, args []string) (orderReport, error) {
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

func getOrder(ctx context.Context, t target, id string, _ []string) (orderReport, error) {
	o, err := t.api.order(ctx, id)
	return orderReport{o, func(p *page) { showOrder(p, o, t.flags) }}, err
}

func explainOrder(ctx context.Context, t target, id string, _ []string) (orderReport, error) {
	l, err := t.api.timeline(ctx, id)
	return orderReport{l, func(p *page) { showTimeline(p, l, t.flags) }}, err
}

func closeOrder(ctx context.Context, t target, id, reason string) (orderReport, error) {
	o, err := t.api.closeOrder(ctx, id, reason)
	if statusOf(err) == http.StatusConflict {
		return orderReport{}, fmt.Errorf("order %s cannot be closed, it was fulfilled already: if the goods do not go out, refund it", id)
	}
	return orderReport{o, func(p *page) {
		p.line("Closed: money that covers the order from now on is held, not fulfilled.\n")
		showOrder(p, o, t.flags)
	}}, err
}

func acknowledgeHold(ctx context.Context, t target, id, reason string, said acknowledgement) (orderReport, error) {
	if !fitReason.MatchString(reason) {
		return orderReport{}, fmt.Errorf("%q is not the reason of a hold: it is a word such as dispute or paid_after_close", reason)
	}
	o, err := t.api.acknowledge(ctx, id, payment.HoldReason(reason), said)
	if isGone(err) {
		return orderReport{}, noSuchHold(ctx, t, id, payment.HoldKey{Reason: payment.HoldReason(reason), Subject: aws.ToString(said.Subject)})
	}
	return orderReport{o, func(p *page) {
		p.line("Acknowledged: %s.\n", payment.HoldKey{Reason: payment.HoldReason(reason), Subject: aws.ToString(said.Subject)})
		showOrder(p, o, t.flags)
	}}, err
}

// noSuchHold tells an order that has no such hold from an order that is unknown.
func noSuchHold(ctx context.Context, t target, id string, hold payment.HoldKey) error {
	o, err := t.api.order(ctx, id)
	if err != nil {
		return err
	}
	has := "it has none"
	if len(o.Holds) > 0 {
		has = "it has " + printable(names(o.Holds))
	}
	return fmt.Errorf("order %s has no hold %s now: %s", id, printable(hold.String()), has)
}

func names(holds []apigw.Hold) string {
	var list []string
	for _, h := range holds {
		list = append(list, keyOf(h).String())
	}
	return strings.Join(list, ", ")
}
