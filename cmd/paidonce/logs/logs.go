// Package logs is `paidonce logs`, which tells from the logs of all functions the story of an event, order or payment.
package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
)

// options are the command's flags.
type options struct {
	target                            stack.Options
	functions                         []string
	since                             time.Duration
	limit                             int
	errors, related, platform, asJSON bool
}

// What --since and --limit are where they are not given.
const (
	sinceAll    = time.Hour      // of everything there is much
	sinceChosen = 24 * time.Hour // of one id, or of errors, little
	limitAll    = 500
	limitErrors = 20 // of each function
)

// fitID is what can be looked for: an id as the logs write it, whosever it is.
var fitID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/!=+@-]{1,199}$`)

// target is the stack that the command is about, with its log groups.
type target struct {
	stack.Target
	logs func(context.Context) (logReader, error)
}

// connector finds the stack that the options name.
type connector func(context.Context, stack.Options) (target, error)

// Command is `paidonce logs`.
func Command(find stack.Connector, w terminal.Surroundings) *cobra.Command {
	return command(withLogs(find), w)
}

// withLogs finds the log groups of the stack that is found, once they are needed.
func withLogs(find stack.Connector) connector {
	return func(ctx context.Context, o stack.Options) (target, error) {
		t, err := find(ctx, o)
		return target{t, func(ctx context.Context) (logReader, error) { return openLogs(ctx, t.Deployed) }}, err
	}
}

func command(find connector, w terminal.Surroundings) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "logs [ID]",
		Short: "What the functions logged: about an event, order or payment, or their last errors",
		Long: `Show the log lines of all functions in the order of time, in UTC.

With an ID (of an event, order, payment, refund, refund request, message, request or invocation) the lines that name it, and what
belongs to them: from an event's delivery to its order, what was made of it, and what subscribers were told. With --errors what
went wrong: errors, crashes, timeouts, failed starts, and answers of 5xx; at the end they are counted.

The newest lines count where --limit leaves some out. Left out are metrics, and without --platform what Lambda itself writes of
each call. The ids of messages, requests and invocations are shown where something went wrong; --json has every line as it was written:
{"function", "time", "line"}, one object a line. In AWS the newest lines may take some seconds to appear.`,
		Example: `  paidonce logs razorpay/Q2bFhX1yZ0aBcD
  paidonce logs order-417 --since 72h --stack paidonce-prod
  paidonce logs --errors --since 2h --function worker`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			if err := o.settle(cmd, id); err != nil {
				return err
			}
			return o.run(cmd, find, w, id)
		},
	}
	o.target.AddTo(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&o.functions, "function", nil, "only the lines of this `FUNCTION`; may be repeated: "+strings.Join(logNames(), ", "))
	flags.DurationVar(&o.since, "since", 0, "how far back, as 90m (default 24h with an ID or --errors, else 1h)")
	flags.IntVar(&o.limit, "limit", 0, "show this many lines at most (default 500; of errors 20 of each function)")
	flags.BoolVar(&o.errors, "errors", false, "only what went wrong, and how often")
	flags.BoolVar(&o.related, "related", true, "with an ID also the lines of the events, orders and invocations that its lines name")
	flags.BoolVar(&o.platform, "platform", false, "also what Lambda itself writes of each call")
	flags.BoolVar(&o.asJSON, "json", false, "print each line as JSON, for programs")
	terminal.Complete(cmd, "function", logNames()...)
	return cmd
}

// settle checks the flags, and sets those that were not given.
func (o *options) settle(cmd *cobra.Command, id string) error {
	switch {
	case id != "" && !fitID.MatchString(id):
		return fmt.Errorf("%q is not an id: it has 2 to 200 letters, digits and _ . : / ! = + @ -", id)
	case o.since < 0 || o.limit < 0:
		return errors.New("--since is how far back, as 90m or 24h, and --limit a number of lines")
	}
	for _, f := range o.functions {
		if !slices.Contains(logNames(), f) {
			return fmt.Errorf("--function %q is none: it is %s", f, strings.Join(logNames(), ", "))
		}
	}
	chosen := id != "" || o.errors
	if !cmd.Flags().Changed("since") {
		if o.since = sinceAll; chosen {
			o.since = sinceChosen
		}
	}
	if o.limit == 0 {
		if o.limit = limitAll; o.errors && id == "" {
			o.limit = limitErrors
		}
	}
	return nil
}

func (o options) run(cmd *cobra.Command, find connector, w terminal.Surroundings, id string) error {
	ctx := cmd.Context()
	t, err := find(ctx, o.target)
	if err != nil {
		return t.Cure(err)
	}
	reader, err := t.logs(ctx)
	if err != nil {
		return t.cureLogs(err)
	}
	if id == "" || !o.related { // else the way to a line leads through other functions' lines
		reader.groups = slices.DeleteFunc(reader.groups, func(g logGroup) bool { return !o.takes(g.function) })
	}
	reader.from, reader.to = w.Now().Add(-o.since), w.Now()
	bar := terminal.NewBar(cmd, -1, "reading the logs", o.asJSON)
	reader.page = func() { bar.Add(1) } // a bar that cannot be drawn is no reason to stop
	var found logLines
	if id == "" {
		found, err = reader.tail(ctx, o.wanted, o.errors, o.limit)
	} else {
		found, err = reader.about(ctx, id, o.related, o.wanted, o.limit)
	}
	bar.Clear()
	if err != nil {
		return t.cureLogs(err)
	}
	if o.asJSON {
		err = found.writeJSON(cmd.OutOrStdout())
		if found.left > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "paidonce: %s left out: --limit %d\n", terminal.Count(found.left, "older line"), o.limit)
		}
		if err == nil && id != "" && !o.errors && len(found.lines) == 0 {
			return o.nothing(cmd, t, id)
		}
		return err
	}
	if len(found.lines) == 0 {
		return o.nothing(cmd, t, id)
	}
	p := &terminal.Page{Out: cmd.OutOrStdout()}
	showLines(p, found, o.limit)
	if found.truncated {
		p.Line("\nMore is related to this than was looked at (%d events and orders, %d invocations of a function).", maxRelated, maxCalls)
	}
	if o.errors {
		showFailures(p, found.failures)
	}
	return p.Err
}

// wanted reports whether a line is to be shown.
func (o options) wanted(l logLine) bool {
	switch {
	case l.kind == metricLine, !o.takes(l.function):
		return false
	case o.errors:
		return l.failed
	}
	return o.platform || l.kind != platformLine
}

func (o options) takes(function string) bool {
	return len(o.functions) == 0 || slices.Contains(o.functions, function)
}

// nothing says that there is no line: of an id that is an error.
func (o options) nothing(cmd *cobra.Command, t target, id string) error {
	what := "line"
	if o.errors {
		what = "error"
	}
	if len(o.functions) > 0 {
		what += " of " + strings.Join(o.functions, ", ")
	}
	if id == "" || o.errors {
		about := ""
		if id != "" {
			about = " about " + id
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s logged no %s%s in the last %s.\n", t.Name, what, about, terminal.Spell(o.since))
		return err
	}
	return fmt.Errorf("%s logged no %s about %s in the last %s: check the id, and the stack, or look further back with --since", t.Name, what, id, terminal.Spell(o.since))
}

// mayReadLogs is what the command needs to be allowed.
const mayReadLogs = "cloudformation:DescribeStacks and ListStackResources, and logs:FilterLogEvents on the stack's log groups"

// cureLogs is cure for what goes wrong with the log groups.
func (t target) cureLogs(err error) error {
	switch code := stack.CodeOf(err); code {
	case "ResourceNotFoundException":
		return fmt.Errorf("%s has lost a log group that belongs to it: deploy it again", t.Name)
	case "ThrottlingException":
		return fmt.Errorf("CloudWatch Logs throttles the calls: try again in a minute, with a shorter --since or a --function")
	}
	return t.CureFor(err, mayReadLogs)
}

// shownLogLine is a line for programs.
type shownLogLine struct {
	Function string    `json:"function"`
	Time     time.Time `json:"time"`
	Line     string    `json:"line"` // as it was written
}

func (f logLines) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, l := range f.lines {
		if err := e.Encode(shownLogLine{l.function, l.at, l.text}); err != nil {
			return err
		}
	}
	return nil
}
