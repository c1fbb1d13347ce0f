package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
)

// bulkOptions are the flags of the commands that send many events to the worker again.
type bulkOptions struct {
	yes, dry, asJSON bool
	wait             time.Duration
}

func (o *bulkOptions) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask: needed where there is no terminal")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "end after the plan: send nothing")
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "then wait this long, as 30s, for what becomes of them, and say so")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print the plan and what came of it as JSON, for programs")
	cmd.MarkFlagsMutuallyExclusive("yes", "dry-run")
}

func (o bulkOptions) check() error {
	switch {
	case o.wait < 0:
		return errors.New("--wait is how long to wait at most: write it as 30s or 5m")
	case o.asJSON && !o.yes && !o.dry:
		return errors.New("--json is for programs, which cannot be asked: give --yes, or --dry-run")
	}
	return nil
}

// arguments are the flags that make these options.
func (o bulkOptions) arguments() (args []string) {
	if o.yes {
		args = append(args, "--yes")
	}
	if o.wait > 0 {
		args = append(args, "--wait", o.wait.String())
	}
	if o.asJSON {
		args = append(args, "--json")
	}
	return args
}

// plan is what a command is about to do.
type plan struct {
	chosen []entry // to be sent
	stay   []entry // those that match and are not sent
	why    func(entry) string
}

// reportBulk is what a command planned and did, for programs; bulkJSON documents it.
type reportBulk struct {
	DryRun  bool          `json:"dry_run"`
	Plan    []shownEntry  `json:"plan"`
	Reasons []reasonCount `json:"reasons"`
	Stay    []reasonCount `json:"stay"`
	Sent    int           `json:"sent"`
	Twice   int           `json:"twice"`
	Missing int           `json:"missing"`
	Became  *outcome      `json:"became,omitempty"`
}

const bulkJSON = `--json prints {"dry_run", "plan": [...], "reasons": [{"reason", "count"}] of the plan, "stay": [{"reason", "count"}] of what
matches and is not sent, "sent": how many were, "twice": sent, but still in the dead letter queue too, "missing": planned, but
somebody else has them, "became" with --wait}. "became" is {"applied", "failed", "parked", "ignored", "waiting": how many,
"reasons": [{"reason", "count"}] of those that failed}. An entry of the plan is
` + entryJSON

func (pl plan) report(o bulkOptions) reportBulk {
	return reportBulk{DryRun: o.dry, Plan: showEntries(pl.chosen), Reasons: byReason(pl.chosen), Stay: pl.staying()}
}

// staying counts what is not sent by the reasons why.
func (pl plan) staying() []reasonCount {
	counts := map[string]int{}
	for _, e := range pl.stay {
		counts[pl.why(e)]++
	}
	all := []reasonCount{}
	for _, why := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, reasonCount{why, counts[why]})
	}
	return all
}

// shownOfPlan is how many events a plan names.
const shownOfPlan = 5

// print says what would be sent, and what not.
func (pl plan) print(p *terminal.Page, title string, now time.Time) {
	p.Line("%s", title)
	if len(pl.chosen) > 0 {
		p.Line("")
		p.Table("", reasonRows(byReason(pl.chosen)))
		p.Line("")
		rows := [][]string{}
		for _, e := range pl.chosen[:min(shownOfPlan, len(pl.chosen))] {
			rows = append(rows, []string{e.name(), terminal.OrDash(e.event.Type), terminal.OrDash(e.event.OrderID), terminal.Age(e.since(), now), e.status()})
		}
		p.Table("", rows)
		if more := len(pl.chosen) - shownOfPlan; more > 0 {
			p.Line("  ... and %d more", more)
		}
	}
	if len(pl.stay) > 0 {
		p.Line("\nNot sent:")
		p.Table("", reasonRows(pl.staying()))
	}
	p.Line("")
}

// goesOn asks whether to do what was planned, unless that is said already.
func (o bulkOptions) goesOn(cmd *cobra.Command, w terminal.Surroundings, question string) (bool, error) {
	switch {
	case o.dry:
		return false, nil
	case o.yes:
		return true, nil
	case !w.Asks(cmd):
		return false, errors.New("nothing was sent: there is no terminal to ask on, so give --yes (or --dry-run, to end here)")
	}
	yes, err := terminal.Agrees(cmd, question)
	if err != nil {
		return false, errors.New("interrupted: nothing was sent")
	}
	return yes, nil
}

// carryOut asks about what was planned, has it sent, and prints the report for programs. chosen are the words for what is to be sent.
func (o bulkOptions) carryOut(cmd *cobra.Command, w terminal.Surroundings, p *terminal.Page, chosen string, report *reportBulk, send func() error) (err error) {
	goesOn := false
	if len(report.Plan) > 0 {
		if goesOn, err = o.goesOn(cmd, w, fmt.Sprintf("Send %s to the worker?", chosen)); err != nil {
			return err
		}
	}
	if goesOn {
		err = send()
	} else if len(report.Plan) > 0 && !o.asJSON {
		p.Line("Nothing was sent.")
	}
	if o.asJSON {
		err = errors.Join(terminal.WriteJSON(cmd.OutOrStdout(), report), err)
	}
	return errors.Join(p.Err, err)
}

// outcome is what became of events that were sent.
type outcome struct {
	Applied int           `json:"applied"`
	Failed  int           `json:"failed"`
	Parked  int           `json:"parked"`
	Ignored int           `json:"ignored"`
	Waiting int           `json:"waiting"` // not settled when the time was up
	Reasons []reasonCount `json:"reasons"` // of those that failed
}

// firstPoll is how long the first look at what became of events waits; each later one waits longer, up to lastPoll.
const (
	firstPoll = 500 * time.Millisecond
	lastPoll  = 5 * time.Second
)

// await looks at the rows of events that were sent until all are settled or the time is up. An event is settled once it is
// applied, or was settled once more than it had been: FAILED it was all the time.
func await(ctx context.Context, w terminal.Surroundings, table stack.EventKeeper, sent []entry, patience time.Duration, step func(settled int)) (outcome, error) {
	until := w.Now().Add(patience)
	open := map[payment.EventKey]payment.Event{}
	for _, e := range sent {
		open[e.key] = e.event
	}
	o := outcome{Reasons: []reasonCount{}}
	var failed []entry
	for pause := firstPoll; len(open) > 0; pause = min(2*pause, lastPoll) {
		left := until.Sub(w.Now())
		if left <= 0 {
			break
		}
		if err := w.Sleep(ctx, min(pause, left)); err != nil {
			o.Waiting = len(open)
			return o, err
		}
		rows, err := readEntries(ctx, table, slices.Collect(maps.Keys(open)))
		if err != nil {
			o.Waiting = len(open)
			return o, err
		}
		before := len(open)
		for k, e := range rows {
			if !settled(open[k], e.event) {
				continue
			}
			delete(open, k)
			o.add(e.event.Status)
			if e.event.Status == payment.EventFailed {
				failed = append(failed, e)
			}
		}
		step(before - len(open))
	}
	o.Waiting, o.Reasons = len(open), byReason(failed)
	return o, nil
}

func settled(before, now payment.Event) bool {
	switch now.Status {
	case payment.EventApplied:
		return true
	case payment.EventFailed, payment.EventParked, payment.EventIgnored:
		return now.Attempts > before.Attempts
	}
	return false
}

func (o *outcome) add(s payment.EventStatus) {
	switch s {
	case payment.EventApplied:
		o.Applied++
	case payment.EventFailed:
		o.Failed++
	case payment.EventParked:
		o.Parked++
	case payment.EventIgnored:
		o.Ignored++
	}
}

// print says what became of the events.
func (o outcome) print(p *terminal.Page, waited time.Duration) {
	p.Line("\nWhat became of %s within %s:", terminal.Count(o.Applied+o.Failed+o.Parked+o.Ignored+o.Waiting, "event"), terminal.Spell(waited))
	var rows [][]string
	for _, row := range []struct {
		count int
		what  string
	}{
		{o.Applied, "APPLIED"}, {o.Failed, "FAILED again"}, {o.Parked, "PARKED: tried again by itself, or a person's; the verdict says more"},
		{o.Ignored, "IGNORED"}, {o.Waiting, "not settled yet: the worker tries an event several times before it gives up"},
	} {
		if row.count > 0 {
			rows = append(rows, []string{fmt.Sprintf("%6d", row.count), row.what})
		}
	}
	p.Table("", rows)
	if o.Failed > 0 {
		p.Table("Failed again because of:", reasonRows(o.Reasons))
	}
}

// err is what a command ends with whose events did not all get anywhere.
func (o outcome) err(waited time.Duration, flags string) error {
	if o.Failed == 0 && o.Waiting == 0 {
		return nil
	}
	return fmt.Errorf("%d failed again, %d not settled after %s; later: paidonce events ls%s", o.Failed, o.Waiting, terminal.Spell(waited), flags)
}

// follow waits for what becomes of what was sent, if that is wanted, and puts it into the report.
func (o bulkOptions) follow(cmd *cobra.Command, w terminal.Surroundings, t target, sent []entry, report *reportBulk) error {
	if o.wait == 0 || len(sent) == 0 {
		return nil
	}
	bar := terminal.NewBar(cmd, len(sent), "waiting for the worker", o.asJSON)
	began := w.Now()
	became, err := await(cmd.Context(), w, t.Events, sent, o.wait, func(n int) { bar.Add(n) })
	bar.Clear()
	report.Became = &became
	waited := w.Now().Sub(began)
	if !o.asJSON {
		p := &terminal.Page{Out: cmd.OutOrStdout()}
		became.print(p, waited)
		err = errors.Join(err, p.Err)
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("interrupted while waiting: all were sent; look later with: paidonce events ls%s", t.Flags)
	}
	if err != nil {
		return t.cureEvents(err, mayLook)
	}
	return became.err(waited, t.Flags)
}
