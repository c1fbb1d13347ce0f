// Package doctor is `paidonce doctor`, which looks at a deployed stack: will it do its job, what is wrong, what to do.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
)

// checkPatience bounds each check.
const checkPatience = 15 * time.Second

// actions are the IAM actions that the checks call, all of them reads.
var actions = []string{
	"cloudformation:DescribeStacks", "cloudformation:ListStackResources",
	"secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret",
	"cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData", "sns:ListSubscriptionsByTopic",
	"dynamodb:DescribeTable", "dynamodb:DescribeContinuousBackups", "dynamodb:DescribeTimeToLive", "dynamodb:GetItem", "dynamodb:Query",
	"lambda:GetEventSourceMapping", "lambda:GetAlias", "lambda:ListVersionsByFunction", "scheduler:GetSchedule",
	"sqs:GetQueueAttributes",
}

// Command is `paidonce doctor`.
func Command(find stack.Connector) *cobra.Command {
	var o stack.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at a deployed stack: will it do its job, what is wrong, what to do",
		Long: `Look at a deployed stack, check by check, and say what was seen and, where something is wrong, what to do. Each check is ok,
warning, failed, or not checked, with the reason. The exit status is 1 if any failed.

It changes nothing. It reads both secrets, and never prints them; asks the gateway for one short list, with the stack's API key;
and calls the stack's own API four times without a signature, to see that it is refused. The one call of the webhook is a line in
its log, "bad signature: none", and counts in no metric.

"secret rotation" says whether the previous webhook secret may go: whether any webhook was signed with it in the last 16 days.
It says so only where the metric Received was counted all that time.

The AWS credentials need these actions. A check that lacks one is not made, and names it; without the first there are none:
  ` + strings.Join(actions, "\n  ") + `
and kms:Decrypt, where a KMS key of yours encrypts a secret or the table.`,
		Args: terminal.Takes(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := find(cmd.Context(), o)
			if t.Deployed.Name == "" {
				return t.Cure(err)
			}
			// Another error is about what the stack lacks, and that is what the checks are for.
			d, err := newDoctor(cmd.Context(), t)
			if err != nil {
				return t.Cure(err)
			}
			return d.report(cmd.Context(), cmd.OutOrStdout(), asJSON)
		},
	}
	o.AddTo(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the checks as JSON, for programs")
	return cmd
}

// verdict is what a check came to.
type verdict string

const (
	fine    verdict = "ok"
	warning verdict = "warning"
	broken  verdict = "failed"
	skipped verdict = "not checked"
)

// finding is what one check saw.
type finding struct {
	Result verdict `json:"result"`
	Seen   string  `json:"seen"`           // in one line; of what was not checked: why not
	Cure   string  `json:"cure,omitempty"` // what to do, for a warning or failure
}

func isFine(format string, args ...any) finding {
	return finding{fine, fmt.Sprintf(format, args...), ""}
}

func notChecked(format string, args ...any) finding {
	return finding{skipped, fmt.Sprintf(format, args...), ""}
}

// onlyOnAWS is what a check says on the local stack, where it would say nothing.
func onlyOnAWS(why string) finding { return notChecked("local stack: %s", why) }

// worst puts findings about one thing together: the worst result, and all that was seen of that kind.
func worst(all ...finding) finding {
	badness := map[verdict]int{fine: 0, skipped: 1, warning: 2, broken: 3}
	var result finding
	for _, f := range all {
		switch {
		case result.Result == "" || badness[f.Result] > badness[result.Result]:
			result = f
		case f.Result == result.Result:
			result.Seen += "; " + f.Seen
			if !strings.Contains(result.Cure, f.Cure) {
				result.Cure += "; " + f.Cure
			}
		}
	}
	return result
}

// check looks at one thing that the stack needs to do its job.
type check struct {
	name string
	look func(context.Context) finding
}

// checks are in the order in which one would ask: is it there, does it let events in, would anybody hear, does it work them off.
func (d *doctor) checks() []check {
	return []check{
		{"account and clock", d.account},
		{"stack", d.deployment},
		{"webhook secret", d.webhookSecret},
		{"API key", d.apiKey},
		{"test or live", d.modes},
		{"gateway", d.gateway},
		{"webhook URL", d.webhookURL},
		{"shop's routes", d.shopRoutes},
		{"alarms", d.alarms},
		{"alarms ringing", d.ringing},
		{"alarm subscribers", d.subscribers},
		{"table", d.tableItself},
		{"table's backups", d.tableBackups},
		{"table's expiry", d.tableExpiry},
		{"event sources", d.eventSources},
		{"live versions", d.liveVersions},
		{"reconcile", d.reconcileRuns},
		{"scan of the gateway", d.gatewayScan},
		{"events queue", d.eventsQueue},
		{"dead letter queues", d.deadLetters},
		{"events", d.events},
		{"secret rotation", d.rotation},
	}
}

// examined is a check that was made.
type examined struct {
	Name string `json:"name"`
	finding
}

// examine makes the checks side by side.
func examine(ctx context.Context, checks []check, patience time.Duration) []examined {
	results := make([]examined, len(checks))
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			results[i] = examined{c.name, c.look(ctx)}
		})
	}
	running.Wait()
	return results
}

func (d *doctor) report(ctx context.Context, w io.Writer, asJSON bool) error {
	results := examine(ctx, d.checks(), checkPatience)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	counts := map[verdict]int{}
	for _, r := range results {
		counts[r.Result]++
	}
	render := printChecks
	if asJSON {
		render = printChecksJSON
	}
	if err := render(w, d.name, results, counts); err != nil {
		return err
	}
	if n := counts[broken]; n > 0 {
		return fmt.Errorf("%d of %d checks failed", n, len(results))
	}
	return nil
}

func printChecks(w io.Writer, name string, results []examined, counts map[verdict]int) error {
	p := &terminal.Page{Out: w}
	p.Line("%s\n", name)
	var rows [][]string
	for _, r := range results {
		result := string(r.Result)
		if r.Cure != "" {
			result = strings.ToUpper(result) // to be found at a glance
		}
		rows = append(rows, []string{result, r.Name, r.Seen})
		if r.Cure != "" {
			rows = append(rows, []string{"", "", "-> " + r.Cure})
		}
	}
	p.Table("", rows)
	p.Line("\n%d ok, %d warnings, %d failed, %d not checked", counts[fine], counts[warning], counts[broken], counts[skipped])
	return p.Err
}

func printChecksJSON(w io.Writer, name string, results []examined, counts map[verdict]int) error {
	return terminal.WriteJSON(w, struct {
		Stack      string     `json:"stack"`
		Checks     []examined `json:"checks"`
		OK         int        `json:"ok"`
		Warnings   int        `json:"warnings"`
		Failed     int        `json:"failed"`
		NotChecked int        `json:"not_checked"`
	}{name, results, counts[fine], counts[warning], counts[broken], counts[skipped]})
}
