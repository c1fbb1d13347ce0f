// Package reconcile is `paidonce reconcile`, which compares with what the gateway has, and applies what no webhook told.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/cmd/paidonce/view"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
	"paidonce/shared/reconcile"
)

// options are the command's flags.
type options struct {
	target          stack.Options
	since, from, to string
	dry, asJSON     bool
	rate            int
}

// Command is `paidonce reconcile`, on a clock.
func Command(find stack.Connector, now func() time.Time) *cobra.Command {
	return command(withReconciler(find), now)
}

func command(find connector, now func() time.Time) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "reconcile [ORDER]",
		Short: "Compare with what the gateway has, and apply what no webhook told",
		Long: `Go through the payments and refunds that the gateway has of a time, in slices of 10 minutes, compare them with ours, apply
what we did not know, and say what was found. The schedule does the same by itself, for the last six days; this does it now, or
for older times, such as those from before the deployment. A day takes about a minute at 5 calls a second.

With an order's id, ask the gateway about that order now, whatever its schedule says, and say what was learned.

It runs here, with your AWS credentials, under the stack's own settings, and may be run beside the schedule and as often as
you like. What was done stays done: if it is interrupted, or fails, it says with which command to go on. The exit status is 1
then, and where an order could not be compared.`,
		Example: `  paidonce reconcile --since 48h --dry-run
  paidonce reconcile --from 2026-11-01T00:00:00+05:30 --to 2026-12-01T00:00:00+05:30 --stack paidonce-prod
  paidonce reconcile order-417`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.rate < 1 || o.rate > 100 {
				return fmt.Errorf("--rate %d: it is a number of calls per second, 1 to 100", o.rate)
			}
			switch len(args) {
			case 0:
				w, err := o.window(now())
				if err != nil {
					return err
				}
				return o.reconcileWindow(cmd, find, w)
			case 1:
				return o.reconcileOrder(cmd, find, args[0])
			}
			return fmt.Errorf("%d arguments given, at most 1 taken: %s", len(args), cmd.UseLine())
		},
	}
	o.target.AddTo(cmd)
	cmd.Flags().StringVar(&o.since, "since", "", "compare the last `HOURS`, as 24h, up to a minute ago")
	cmd.Flags().StringVar(&o.from, "from", "", "compare from this `TIME` on, as 2026-11-30T00:00:00Z")
	cmd.Flags().StringVar(&o.to, "to", "", "compare to this `TIME` (default: a minute ago)")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "only count what would be found: write nothing")
	cmd.Flags().IntVar(&o.rate, "rate", defaultRate, "most calls of the gateway per second")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print the answer as JSON, for programs")
	return cmd
}

const defaultRate = 5

// open finds the stack and what reconciles it.
func (o options) open(ctx context.Context, find connector, log io.Writer) (target, reconciler, error) {
	t, err := find(ctx, o.target)
	if err != nil {
		return t, reconciler{}, t.Cure(err)
	}
	r, err := t.reconciler(ctx, o.rate, newLineLog(log))
	return t, r, t.cureReconcile(err)
}

// newLineLog is a log for people: a line for what went wrong, without the time.
func newLineLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// reconcileWindow prints what was found, whether all of the window could be compared or not.
func (o options) reconcileWindow(cmd *cobra.Command, find connector, w window) error {
	bar := terminal.NewBar(cmd, w.slices(), "comparing", o.asJSON)
	t, r, err := o.open(cmd.Context(), find, behind{bar, cmd.ErrOrStderr()})
	if err != nil {
		return err
	}
	c, err := r.compare(cmd.Context(), w, o.dry, func() { bar.Add(1) }) // a bar that cannot be drawn is no reason to stop
	bar.Clear()
	if c.reached.After(w.from) {
		if err := o.printComparison(cmd.OutOrStdout(), t, r, window{w.from, c.reached}, c.found); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w; compared up to %s (%d of %d slices), go on with: %s", t.cureReconcile(err),
			inUTC(c.reached), window{w.from, c.reached}.slices(), w.slices(), o.again(window{c.reached, w.to}, t))
	case c.found.Failed > 0:
		return fmt.Errorf("orders that could not be compared: %d, the lines above say why; once that is put right: %s", c.found.Failed, o.again(c.failed, t))
	}
	return nil
}

// behind writes where a progress bar may be: it goes away first, and comes back with its next step.
type behind struct {
	bar *progressbar.ProgressBar
	io.Writer
}

func (b behind) Write(p []byte) (int, error) {
	b.bar.Clear()
	return b.Writer.Write(p)
}

// again is the command line that compares a window in the same way.
func (o options) again(w window, t target) string {
	line := "paidonce reconcile --from " + inUTC(w.from) + " --to " + inUTC(w.to)
	if o.dry {
		line += " --dry-run"
	}
	if o.asJSON {
		line += " --json"
	}
	if o.rate != defaultRate {
		line += " --rate " + strconv.Itoa(o.rate)
	}
	return line + t.Flags
}

// learned is what asking about an order came to.
type learned struct {
	Learned []string    `json:"learned"` // in words; empty: the gateway had nothing new
	Order   apigw.Order `json:"order"`
}

func (o options) reconcileOrder(cmd *cobra.Command, find connector, id string) error {
	if o.since != "" || o.from != "" || o.to != "" || o.dry {
		return errors.New("an order is asked about as a whole, and what is learned is applied: leave out --since, --from, --to and --dry-run (`paidonce order get ID` only looks)")
	}
	if !stack.IsOrderID(id) {
		return fmt.Errorf("%q is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit", id)
	}
	ctx := cmd.Context()
	t, r, err := o.open(ctx, find, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	asked, err := r.ask(ctx, id)
	if errors.Is(err, errNoSuchOrder) {
		return fmt.Errorf("%s has no order %s: check the id, and the stack", t.Name, id)
	}
	if err != nil {
		return t.cureReconcile(err)
	}
	if o.asJSON {
		return terminal.WriteJSON(cmd.OutOrStdout(), asked)
	}
	p := &terminal.Page{Out: cmd.OutOrStdout()}
	p.Line("%s", asked.summary())
	view.Order(p, asked.Order, t.Flags)
	return p.Err
}

func (l learned) summary() string {
	if len(l.Learned) == 0 {
		return "The gateway has nothing new.\n"
	}
	var text strings.Builder
	text.WriteString("Learned from the gateway:\n")
	for _, said := range l.Learned {
		text.WriteString("  " + terminal.Printable(said) + "\n")
	}
	return text.String()
}

// comparisonReport is what going through a window came to, for programs.
type comparisonReport struct {
	From     time.Time          `json:"from"`
	To       time.Time          `json:"to"` // how far it came, if that is not the end
	DryRun   bool               `json:"dry_run"`
	Findings reconcile.Findings `json:"findings"`
}

func (o options) printComparison(out io.Writer, t target, r reconciler, w window, found reconcile.Findings) error {
	if o.asJSON {
		return terminal.WriteJSON(out, comparisonReport{w.from, w.to, o.dry, found})
	}
	p := &terminal.Page{Out: out}
	p.Line("Captured payments and refunds, %s to %s, at the gateway and in %s.", terminal.Moment(w.from), terminal.Moment(w.to), t.Name)
	if o.dry {
		p.Line("This is a dry run: nothing was written.")
	}
	p.Line("")
	p.Table("", findingRows(found, o.dry, r.Adopts))
	return p.Err
}

func inUTC(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// findingRows say of each finding how often there was, what it means and what to do.
func findingRows(f reconcile.Findings, dry, adopts bool) [][]string {
	applied, unknown := "applied now", "another shop's, or made past POST /orders"
	if dry {
		applied = "without --dry-run they are applied"
	}
	if dry && adopts {
		unknown = "without --dry-run they are adopted, where that can be"
	}
	var rows [][]string
	for _, row := range []struct {
		name  string
		count int
		means string
	}{
		{"matched", f.Matched, "known as the gateway shows them: nothing to do"},
		{"missing_webhook", f.MissingWebhook, "no webhook told us of them: " + applied + "; if many, runbook: webhook-silent"},
		{"stuck", f.Stuck, "captured over 15 minutes ago, not fulfilled; runbook: Paid but not fulfilled"},
		{"amount_mismatch", f.AmountMismatch, "another amount or currency than known or expected: the order's holds say more"},
		{"unknown_order", f.UnknownOrder, "of no order of ours: " + unknown},
		{"refund_unknown", f.RefundUnknown, "refunds that we did not know of: " + applied},
		{"unreadable", f.Unreadable, "not understood: look for them in the gateway's dashboard"},
		{"failed", f.Failed, "orders that could not be compared: the lines on stderr say why"},
	} {
		rows = append(rows, []string{row.name, fmt.Sprintf("%6d", row.count), row.means})
	}
	return rows
}

// errNoSuchOrder: the stack has no order of that id.
var errNoSuchOrder = errors.New("no such order")

// ask asks the gateway about an order and returns what was learned.
func (r reconciler) ask(ctx context.Context, id string) (learned, error) {
	_, err := r.Store.Order(ctx, id)
	if errors.Is(err, payment.ErrNotFound) { // what asking does not find may be something else
		return learned{}, errNoSuchOrder
	}
	if err != nil {
		return learned{}, err
	}
	before, err := r.history.History(ctx, id)
	if err != nil {
		return learned{}, err
	}
	order, err := r.AskNow(ctx, id)
	if err != nil {
		return learned{}, err
	}
	after, err := r.history.History(ctx, id)
	if err != nil {
		return learned{}, err
	}
	l := learned{Learned: []string{}, Order: apigw.ShowOrder(order, r.Advancer.Rules)}
	known := map[payment.Change]bool{}
	for _, c := range before.Changes {
		known[c] = true
	}
	for _, c := range after.Changes {
		if !known[c] {
			l.Learned = append(l.Learned, c.What)
		}
	}
	return l, nil
}
