package logs

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"golang.org/x/sync/errgroup"

	"paidonce/cmd/paidonce/stack"
)

// logGroup is the log of a function, or of the API.
type logGroup struct{ function, name string }

// logGroupIDs are the log groups of template.yaml.
var logGroupIDs = []struct{ function, logicalID string }{
	{"webhook", "WebhookLogGroup"}, {"worker", "WorkerLogGroup"}, {"orders", "OrdersLogGroup"}, {"checkout", "CheckoutLogGroup"},
	{"refunds", "RefundsLogGroup"}, {"notify", "NotifyLogGroup"}, {"reconcile", "ReconcileLogGroup"}, {"api", "ApiLogGroup"},
}

func logNames() (names []string) {
	for _, g := range logGroupIDs {
		names = append(names, g.function)
	}
	return names
}

// logFilter is what is needed of a *cloudwatchlogs.Client.
type logFilter interface {
	FilterLogEvents(context.Context, *cloudwatchlogs.FilterLogEventsInput, ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.FilterLogEventsOutput, error)
}

// logReader reads the log groups of a stack, over a span of time.
type logReader struct {
	client   logFilter
	groups   []logGroup
	patterns bool // whether the service filters as CloudWatch Logs does: an emulator takes simple patterns only, or gets them wrong
	from, to time.Time
	page     func() // called for each page that was read, by one goroutine at a time
}

// readPatience is how often a call is tried that is throttled: CloudWatch Logs takes few FilterLogEvents a second.
const readPatience = 8

// openLogs finds the log groups of a stack.
func openLogs(ctx context.Context, d stack.Deployed) (logReader, error) {
	found, err := d.Parts(ctx)
	if err != nil {
		return logReader{}, err
	}
	r := logReader{
		client: cloudwatchlogs.NewFromConfig(d.Config, func(o *cloudwatchlogs.Options) {
			o.Retryer = retry.AddWithMaxAttempts(o.Retryer, readPatience)
		}),
		patterns: d.Config.BaseEndpoint == nil,
	}
	for _, g := range logGroupIDs {
		name := found.Resources[g.logicalID]
		if name == "" {
			return logReader{}, fmt.Errorf("stack %s has no log group %s: it is of another release, use the paidonce of that one", d.Name, g.logicalID)
		}
		r.groups = append(r.groups, logGroup{g.function, name})
	}
	return r, nil
}

// logLines are lines in the order of time.
type logLines struct {
	lines     []logLine
	left      int                 // how many older ones there are
	failures  map[failureKind]int // counted, those that are left out too
	truncated bool                // more is related than was looked at
}

// tail reads the newest lines that are wanted: so many of all, or of errors so many of each function.
func (r logReader) tail(ctx context.Context, wanted func(logLine) bool, failures bool, limit int) (logLines, error) {
	newest := map[string]*newestLines{}
	for _, g := range r.groups {
		newest[g.function] = &newestLines{limit: limit, failures: map[failureKind]int{}}
	}
	pattern := func(logGroup) []string { return nil }
	if failures {
		pattern = failurePatterns
	}
	err := r.read(ctx, pattern, func(l logLine) {
		if wanted(l) {
			newest[l.function].add(l)
		}
	})
	all := logLines{failures: map[failureKind]int{}}
	for _, n := range newest {
		n.trim()
		all.lines, all.left = append(all.lines, n.lines...), all.left+n.left
		for kind, times := range n.failures {
			all.failures[kind] += times
		}
	}
	if !failures {
		all.keep(limit)
	}
	slices.SortStableFunc(all.lines, byTime)
	return all, err
}

// newestLines keeps the newest of the lines that are added.
type newestLines struct {
	limit    int
	lines    []logLine
	left     int
	failures map[failureKind]int
}

func (n *newestLines) add(l logLine) {
	if l.failed {
		n.failures[kindOf(l)]++
	}
	if n.lines = append(n.lines, l); len(n.lines) >= 2*n.limit+100 {
		n.trim()
	}
}

func (n *newestLines) trim() {
	all := logLines{lines: n.lines, left: n.left}
	all.keep(n.limit)
	n.lines, n.left = all.lines, all.left
}

// keep leaves out all but the newest lines.
func (f *logLines) keep(limit int) {
	slices.SortStableFunc(f.lines, byTime)
	if over := len(f.lines) - limit; over > 0 {
		f.lines, f.left = slices.Clone(f.lines[over:]), f.left+over
	}
}

// failurePatterns find what [parseLogLine] calls failed, and some more: terms of which any will do.
func failurePatterns(g logGroup) []string {
	if g.function == "api" {
		return []string{`{ $.status = "5*" }`}
	}
	return []string{`?ERROR ?error ?Error ?errorType ?panic ?fatal ?goroutine ?timeout ?failure ?"timed out" ?"secret:" ?"env:" ?"awsclient:"`}
}

// maxPattern is the longest filter pattern (AWS, "FilterLogEvents"), in characters.
const maxPattern = 1024

// wordPatterns find the lines that have any of the words, in as few patterns as hold them.
func wordPatterns(words []string) (patterns []string) {
	pattern := ""
	for _, w := range words {
		term := `?"` + w + `"`
		if len(pattern)+1+len(term) > maxPattern {
			patterns, pattern = append(patterns, pattern), ""
		}
		pattern = strings.TrimPrefix(pattern+" "+term, " ")
	}
	return append(patterns, pattern)
}

// namesAny finds a word as a whole, with what is around it as $1 and $2: an order o1 is not in o10.
func namesAny(words []string) *regexp.Regexp {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = regexp.QuoteMeta(w)
	}
	return regexp.MustCompile(`(^|[^A-Za-z0-9_-])(?:` + strings.Join(quoted, "|") + `)($|[^A-Za-z0-9_-])`)
}

// concurrentReads keeps below what CloudWatch Logs takes of one account.
const concurrentReads = 4

// read calls each with the lines of the groups, by one goroutine at a time. The patterns only spare reading what nobody wants: a
// line may come that none of them fits, and one that fits two comes twice. No patterns: all lines.
func (r logReader) read(ctx context.Context, patterns func(logGroup) []string, each func(logLine)) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(concurrentReads)
	var mu sync.Mutex
	for _, g := range r.groups {
		wanted := []string{""}
		if chosen := patterns(g); r.patterns && len(chosen) > 0 {
			wanted = chosen
		}
		for _, pattern := range wanted {
			work.Go(func() error {
				return r.readGroup(ctx, g, pattern, func(page []types.FilteredLogEvent) {
					mu.Lock()
					defer mu.Unlock()
					r.page()
					for _, e := range page {
						each(parseLogLine(g.function, time.UnixMilli(aws.ToInt64(e.Timestamp)), aws.ToString(e.Message)))
					}
				})
			})
		}
	}
	return work.Wait()
}

// mostOfPage is how many lines come at once at most, by FilterLogEvents' own limit.
const mostOfPage = 10_000

// readGroup reads a group page by page. The emulator has no token for a next page: after a full one it goes on by time.
func (r logReader) readGroup(ctx context.Context, g logGroup, pattern string, each func([]types.FilteredLogEvent)) error {
	in := &cloudwatchlogs.FilterLogEventsInput{
		LogGroupName: &g.name, StartTime: aws.Int64(r.from.UnixMilli()), EndTime: aws.Int64(r.to.UnixMilli()),
	}
	if pattern != "" {
		in.FilterPattern = &pattern
	}
	for {
		out, err := r.client.FilterLogEvents(ctx, in)
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", g.function, err)
		}
		events, full := out.Events, len(out.Events) == mostOfPage && out.NextToken == nil
		if full {
			last := aws.ToInt64(events[len(events)-1].Timestamp)
			first, _ := slices.BinarySearchFunc(events, last, func(e types.FilteredLogEvent, at int64) int { return int(aws.ToInt64(e.Timestamp) - at) })
			if in.StartTime = aws.Int64(last); first > 0 {
				events = events[:first] // the last moment's lines come with the next page, whole
			} else {
				in.StartTime = aws.Int64(last + 1)
			}
		}
		each(events)
		if in.NextToken = out.NextToken; in.NextToken == nil && !full {
			return nil
		}
	}
}
