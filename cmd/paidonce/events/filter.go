package events

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
)

// eventFilter chooses entries. Its zero value takes all.
type eventFilter struct {
	reason, gateway, kind, order string
	older, younger               time.Duration
}

func (f *eventFilter) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.reason, "reason", "", "only those whose reason or verdict contains this `TEXT`, in whatever case")
	flags.StringVar(&f.gateway, "gateway", "", "only those of this gateway")
	flags.StringVar(&f.kind, "type", "", "only those of this `TYPE`, as payment.captured")
	flags.StringVar(&f.order, "order", "", "only those of this `ORDER`")
	flags.DurationVar(&f.older, "older-than", 0, "only those received longer ago than this, as 90m or 24h")
	flags.DurationVar(&f.younger, "younger-than", 0, "only those received less long ago than this")
	terminal.Complete(cmd, "gateway", "razorpay")
	terminal.Complete(cmd, "type", "payment.authorized", "payment.captured", "payment.failed", "order.paid", "refund.created", "refund.processed", "refund.failed")
}

func (f eventFilter) check() error {
	switch {
	case f.order != "" && !stack.IsOrderID(f.order):
		return fmt.Errorf("--order %q is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit", f.order)
	case f.older < 0 || f.younger < 0:
		return errors.New("--older-than and --younger-than say how long ago: write them as 90m or 24h")
	case f.younger > 0 && f.older >= f.younger:
		return fmt.Errorf("nothing is older than %s and younger than %s", f.older, f.younger)
	}
	return nil
}

func (f eventFilter) matches(e entry, now time.Time) bool {
	gateway := e.key.Gateway
	old := now.Sub(e.since())
	return (f.gateway == "" || f.gateway == gateway) &&
		(f.kind == "" || f.kind == e.event.Type) &&
		(f.order == "" || f.order == e.event.OrderID) &&
		(f.older == 0 || old > f.older) &&
		(f.younger == 0 || old < f.younger) &&
		(f.reason == "" || f.says(e.reason()) || f.says(e.event.Verdict))
}

// says reports whether the text is what --reason looks for. That may be copied from a list, which cuts off the beginning.
func (f eventFilter) says(text string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(strings.TrimPrefix(f.reason, "…")))
}

// only keeps the entries that match.
func (f eventFilter) only(entries []entry, now time.Time) []entry {
	var kept []entry
	for _, e := range entries {
		if f.matches(e, now) {
			kept = append(kept, e)
		}
	}
	return kept
}

// arguments are the flags that make this filter.
func (f eventFilter) arguments() (args []string) {
	for _, flag := range []struct{ name, value string }{
		{"--reason", f.reason}, {"--gateway", f.gateway}, {"--type", f.kind}, {"--order", f.order},
	} {
		if flag.value != "" {
			args = append(args, flag.name, flag.value)
		}
	}
	if f.older > 0 {
		args = append(args, "--older-than", f.older.String())
	}
	if f.younger > 0 {
		args = append(args, "--younger-than", f.younger.String())
	}
	return args
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// shellWords writes arguments so that a shell reads them as they are.
func shellWords(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		if words[i] = a; !plainWord.MatchString(a) {
			words[i] = "'" + strings.ReplaceAll(terminal.Printable(a), "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
