package logs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/smithy-go"
	gocmp "github.com/google/go-cmp/cmp"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/cmd/paidonce/terminal/terminaltest"
)

// day is when the tests look.
var day = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// logsBench is a stack's log groups in memory, named as their functions.
type logsBench struct {
	*testing.T
	mu       sync.Mutex
	groups   map[string][]types.FilteredLogEvent // in the order of time
	page     int                                 // lines of a page
	noTokens bool                                // like the emulator
	patterns map[string][]string                 // asked for, by group
	err      error
	calls    int
}

func newLogsBench(t *testing.T) *logsBench {
	return &logsBench{T: t, groups: map[string][]types.FilteredLogEvent{}, page: 3, patterns: map[string][]string{}}
}

// put writes a line so many seconds after the day began, as the log service has it.
func (b *logsBench) put(group string, second float64, text string) {
	at := day.Add(time.Duration(second * float64(time.Second)))
	b.groups[group] = append(b.groups[group], types.FilteredLogEvent{Timestamp: aws.Int64(at.UnixMilli()), Message: &text})
	slices.SortStableFunc(b.groups[group], func(a, c types.FilteredLogEvent) int { return cmp.Compare(*a.Timestamp, *c.Timestamp) })
}

// say writes a function's own line.
func (b *logsBench) say(group string, second float64, level, msg string, attributes ...any) {
	text := fmt.Sprintf(`{"time":%q,"level":%q,"msg":%q`, day.Add(time.Duration(second*float64(time.Second))).Format(time.RFC3339Nano), level, msg)
	for i := 0; i < len(attributes); i += 2 {
		value, err := json.Marshal(attributes[i+1])
		if err != nil {
			b.Fatal(err)
		}
		text += fmt.Sprintf(`,%q:%s`, attributes[i], value)
	}
	b.put(group, second, text+"}")
}

// FilterLogEvents has all lines of the time, whatever the pattern: the reader must not rely on it.
func (b *logsBench) FilterLogEvents(_ context.Context, in *cloudwatchlogs.FilterLogEventsInput, _ ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.FilterLogEventsOutput, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.err != nil {
		return nil, b.err
	}
	group := aws.ToString(in.LogGroupName)
	if in.NextToken == nil && in.FilterPattern != nil {
		b.patterns[group] = append(b.patterns[group], *in.FilterPattern)
	}
	var events []types.FilteredLogEvent
	for _, e := range b.groups[group] {
		if *e.Timestamp >= *in.StartTime && *e.Timestamp <= *in.EndTime {
			events = append(events, e)
		}
	}
	from := 0
	if in.NextToken != nil {
		fmt.Sscan(*in.NextToken, &from)
	}
	to := min(len(events), from+b.page)
	out := &cloudwatchlogs.FilterLogEventsOutput{Events: events[from:to]}
	if to < len(events) && !b.noTokens {
		out.NextToken = aws.String(fmt.Sprint(to))
	}
	return out, nil
}

func (b *logsBench) reader() logReader {
	r := logReader{client: b, patterns: true, page: func() {}, from: day.Add(-time.Hour), to: day.Add(time.Hour)}
	for _, name := range logNames() {
		r.groups = append(r.groups, logGroup{name, name})
	}
	return r
}

func (b *logsBench) run(args ...string) (stdout, stderr string, err error) {
	b.Helper()
	on := target{Target: stack.Target{Name: "the test's stack", Flags: " --stack test"}, logs: func(context.Context) (logReader, error) { return b.reader(), nil }}
	cmd := command(func(context.Context, stack.Options) (target, error) { return on, nil }, terminal.Surroundings{Now: func() time.Time { return day.Add(time.Hour) }})
	var out, errOut strings.Builder
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(b.Context())
	return out.String(), errOut.String(), err
}

const (
	call1 = "11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	call2 = "22222222-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	call3 = "33333333-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
)

// aPaidOrder is what is logged of order o1, made and paid by two events, beside order o10 in the same invocation of the worker.
func aPaidOrder(b *logsBench) {
	b.say("orders", 1, "INFO", "gateway call", "gateway", "razorpay", "call", "POST orders", "status", 200, "order", "o1", "invocation", "call-o")
	b.say("webhook", 2, "INFO", "webhook", "status", 200, "request_id", "req-1=", "duplicate", false, "event", "razorpay/evt_1", "invocation", call1)
	b.put("webhook", 2, `{"Received":1,"Stack":"s","event":"razorpay/evt_1","_aws":{"Timestamp":1}}`)
	b.put("api", 2.25, `{"requestId":"req-1=","requestTime":"30/Nov/2026:12:00:02 +0000","routeKey":"POST /webhooks/{gateway}","status":"200","integrationError":"-"}`)
	b.put("api", 2.5, `{"requestId":"req-9=","routeKey":"POST /webhooks/{gateway}","status":"200"}`)
	b.say("worker", 3, "WARN", "secret not read again", "error", "no answer from\x1b[31m AWS", "invocation", call2)
	b.say("worker", 3.5, "INFO", "message", "event", "razorpay/evt_1", "event_type", "payment.captured", "order", "o1", "outcome", "payment pay_1 captured", "message_id", "m-1", "late_s", 1.5, "invocation", call2)
	b.say("worker", 3.6, "INFO", "message", "event", "razorpay/evt_7", "order", "o10", "outcome", "payment pay_10 captured", "invocation", call2)
	b.put("worker", 4, `{"time":"2026-11-30T12:00:04.000Z","type":"platform.report","record":{"requestId":"`+call2+`","status":"success"}}`)
	b.say("notify", 4.5, "INFO", "announcement", "order", "o1", "announcement", "FULFILMENT", "invocation", call3)
	b.say("notify", 4.5, "INFO", "announcement", "order", "o10", "announcement", "FULFILMENT", "invocation", call3)
	b.say("notify", 4.6, "INFO", "announcement", "order", "no1", "announcement", "FULFILMENT", "invocation", call3)
	b.say("worker", 5, "INFO", "message", "event", "razorpay/evt_2", "order", "o1", "outcome", "nothing new", "invocation", "call-w")
	b.say("webhook", 4.9, "INFO", "webhook", "status", 200, "event", "razorpay/evt_2", "invocation", "call-x")
	b.say("reconcile", 6, "INFO", "gateway call", "call", "GET payments", "invocation", "call-r")
	b.say("reconcile", 6.1, "INFO", "gateway call", "call", "GET orders/order_1/payments", "item", "o1", "invocation", "call-r")
	b.say("reconcile", 6.2, "ERROR", "sweep", "error", "no time left", "invocation", "call-r")
}

func TestLogsOfAnEvent(t *testing.T) {
	b := newLogsBench(t)
	aPaidOrder(b)
	out, errOut, err := b.run("razorpay/evt_1")
	if err != nil || errOut != "" {
		t.Fatal(err, errOut)
	}
	terminaltest.Golden(t, "event.txt", out)
	for _, id := range []string{"evt_1", "o1", "pay_1", "evt_2", "m-1", "req-1="} { // wherever one begins, it is the same story
		if same, _, err := b.run(id); err != nil || same != out {
			t.Errorf("%s: %v (-want +got)\n%s", id, err, gocmp.Diff(out, same))
		}
	}
	out, _, err = b.run("evt_1", "--platform")
	if err != nil || strings.Count(out, "platform.report") != 1 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestLogsOfAnIDAlone(t *testing.T) {
	b := newLogsBench(t)
	aPaidOrder(b)
	for _, c := range []struct {
		args string
		want int
	}{
		{"o1 --related=false", 5}, // and not o10
		{"evt_1 --related=false", 2},
		{call2, 3},                     // of an invocation its own lines, and not all the orders' of its batch
		{"evt_1 --function notify", 1}, // which does not name the event: the order does
		{"evt_1 --function notify --related=false --errors", 0},
		{"evt_1 --errors", 1},
		{"order_1 --related=false", 1}, // of the gateway, in a call
	} {
		out, _, err := b.run(append(strings.Fields(c.args), "--json")...)
		if got := strings.Count(out, "\n"); err != nil || got != c.want {
			t.Errorf("%s: %d lines, want %d, %v\n%s", c.args, got, c.want, err, out)
		}
	}
	out, _, err := b.run("evt_1", "--related=false", "--json", "--function", "webhook")
	want := `{"function":"webhook","time":"2026-11-30T12:00:02Z","line":"{\"time\":\"2026-11-30T12:00:02Z\",\"level\":\"INFO\",\"msg\":\"webhook\",\"status\":200,\"request_id\":\"req-1=\",\"duplicate\":false,\"event\":\"razorpay/evt_1\",\"invocation\":\"` + call1 + `\"}"}` + "\n"
	if err != nil || out != want {
		t.Errorf("%v (-want +got)\n%s", err, gocmp.Diff(want, out))
	}
}

func TestLogsOfErrors(t *testing.T) {
	b := newLogsBench(t)
	aPaidOrder(b)
	for i := range 3 {
		id := fmt.Sprintf("evt_%d", 10+i)
		b.say("worker", 10+float64(i), "ERROR", "message", "event", "razorpay/"+id, "order", fmt.Sprint("o", i), "error", fmt.Sprintf("dynamo: commit order o%d of event %s: changed", i, id))
	}
	b.say("worker", 13, "ERROR", "panic", "event", "razorpay/evt_13", "stack", "goroutine 1\n\tmain.go:7\x1b[31m\n")
	b.put("webhook", 20, "START RequestId: "+call1+" Version: 1")
	b.put("webhook", 21, "2026-11-30T12:00:21.000Z "+call1+" Task timed out after 5.00 seconds")
	b.put("webhook", 21.1, "REPORT RequestId: "+call1+"\tDuration: 5000.00 ms\tStatus: timeout")
	b.put("webhook", 21.2, "REPORT RequestId: "+call2+"\tDuration: 5.00 ms")
	b.put("orders", 22, `{"time":"2026-11-30T12:00:22.000Z","type":"platform.initReport","record":{"status":"error","errorType":"Runtime.ExitError","metrics":{"durationMs":5}}}`)
	b.put("orders", 22, `2026/11/30 12:00:22 secret: read paidonce/razorpay/api-key: AccessDeniedException`)
	b.put("api", 23, `{"requestId":"req-5=","routeKey":"POST /orders","status":"503","integrationError":"timed out"}`)
	b.put("api", 24, `{"requestId":"req-6=","routeKey":"POST /orders","status":"401"}`)
	out, _, err := b.run("--errors")
	if err != nil {
		t.Fatal(err)
	}
	terminaltest.Golden(t, "errors.txt", out)
	out, _, err = b.run("--errors", "--limit", "1", "--function", "worker,webhook")
	if err != nil || !strings.HasPrefix(out, "4 older lines left out: --limit 1\n") || strings.Count(out, "\n  12:00:") != 2 || !strings.Contains(out, "       3  worker   message: dynamo: commit order … of event …: changed\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if got := b.patterns["api"]; len(got) != 1 || got[0] != `{ $.status = "5*" }` {
		t.Errorf("asked the API's log for %q", got)
	}
}

func TestLogsOfNothing(t *testing.T) {
	b := newLogsBench(t)
	aPaidOrder(b)
	for _, c := range []struct{ args, out, err string }{
		{"evt_99", "", "the test's stack logged no line about evt_99 in the last 1d00h: check the id, and the stack, or look further back with --since"},
		{"o1 --function checkout --since 2h", "", "the test's stack logged no line of checkout about o1 in the last 2h00m: check the id, and the stack, or look further back with --since"},
		{"o1 --errors --function checkout", "the test's stack logged no error of checkout about o1 in the last 1d00h.\n", ""},
		{"--errors --function checkout", "the test's stack logged no error of checkout in the last 1d00h.\n", ""},
		{"--function refunds", "the test's stack logged no line of refunds in the last 1h00m.\n", ""},
		{"a\"b", "", `"a\"b" is not an id: it has 2 to 200 letters, digits and _ . : / ! = + @ -`},
		{"--function nope", "", `--function "nope" is none: it is webhook, worker, orders, checkout, refunds, notify, reconcile, api`},
		{"--since -1h", "", "--since is how far back, as 90m or 24h, and --limit a number of lines"},
	} {
		out, _, err := b.run(strings.Fields(c.args)...)
		if got := ""; out != c.out || err != nil && err.Error() != c.err || err == nil && c.err != got {
			t.Errorf("%s: %q, %v", c.args, out, err)
		}
	}
}

func TestTheNewestLinesCount(t *testing.T) {
	b := newLogsBench(t)
	b.page = 100
	for i := range 2000 {
		b.say([]string{"webhook", "worker"}[i%2], float64(i), "INFO", "tick", "n", i)
	}
	out, _, err := b.run("--limit", "3")
	want := `1997 older lines left out: --limit 3
2026-11-30
  12:33:17.000  worker     INFO   tick  n=1997
  12:33:18.000  webhook    INFO   tick  n=1998
  12:33:19.000  worker     INFO   tick  n=1999
`
	if diff := gocmp.Diff(want, out); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	out, errOut, err := b.run("--limit", "3", "--json")
	if err != nil || strings.Count(out, "\n") != 3 || errOut != "paidonce: 1997 older lines left out: --limit 3\n" {
		t.Errorf("%v, %q\n%s", err, errOut, out)
	}
}

// The emulator gives 10,000 lines and no token for more.
func TestLogsAreReadToTheEnd(t *testing.T) {
	for _, noTokens := range []bool{false, true} {
		b := newLogsBench(t)
		b.page, b.noTokens = mostOfPage, noTokens
		var all []types.FilteredLogEvent
		for i := range 25_001 {
			all = append(all, types.FilteredLogEvent{
				Timestamp: aws.Int64(day.UnixMilli() + int64(i/700)), Message: aws.String(fmt.Sprintf(`{"level":"INFO","msg":"tick","n":%d}`, i)),
			})
		}
		b.groups["worker"] = all
		seen := map[string]int{}
		r := b.reader()
		if err := r.read(t.Context(), func(logGroup) []string { return nil }, func(l logLine) { seen[l.text]++ }); err != nil {
			t.Fatal(err)
		}
		most := 0
		for _, n := range seen {
			most = max(most, n)
		}
		if len(seen) != len(all) || most != 1 {
			t.Errorf("without tokens %v: %d of %d lines, up to %d times", noTokens, len(seen), len(all), most)
		}
	}
}

func TestPatternsAreShortAndWhole(t *testing.T) {
	var words []string
	for i := range 300 {
		words = append(words, fmt.Sprintf("%08d-aaaa-4aaa-8aaa-aaaaaaaaaaaa", i))
	}
	patterns := wordPatterns(words)
	if joined := strings.Join(patterns, " "); joined != `?"`+strings.Join(words, `" ?"`)+`"` {
		t.Errorf("%d patterns lose words", len(patterns))
	}
	for _, p := range patterns {
		if len(p) > maxPattern {
			t.Errorf("a pattern of %d characters", len(p))
		}
	}
	b := newLogsBench(t)
	aPaidOrder(b)
	if _, _, err := b.run("evt_1"); err != nil {
		t.Fatal(err)
	}
	want := []string{`?"evt_1"`, `?"o1" ?"razorpay/evt_1"`, `?"razorpay/evt_2"`, `?"` + call1 + `" ?"call-x"`}
	if diff := gocmp.Diff(want, b.patterns["webhook"]); diff != "" {
		t.Errorf("asked for (-want +got)\n%s", diff)
	}
	if got := b.patterns["api"]; got[len(got)-1] != `?"req-1="` {
		t.Errorf("asked the API's log for %q", got)
	}
}

func TestLogErrorsHaveCures(t *testing.T) {
	for code, want := range map[string]string{
		"AccessDeniedException":     "the AWS credentials do not allow this: they need cloudformation:DescribeStacks and ListStackResources, and logs:FilterLogEvents on the stack's log groups",
		"ResourceNotFoundException": "the test's stack has lost a log group that belongs to it: deploy it again",
		"ThrottlingException":       "CloudWatch Logs throttles the calls: try again in a minute, with a shorter --since or a --function",
		"ExpiredTokenException":     "the AWS credentials have expired (ExpiredTokenException): sign in again (`aws sso login`)",
	} {
		b := newLogsBench(t)
		b.err = &smithy.GenericAPIError{Code: code}
		for _, args := range [][]string{{"o1"}, {"--errors"}} {
			if out, _, err := b.run(args...); err == nil || err.Error() != want || out != "" {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		}
	}
}

func TestEveryLogGroupOfTheTemplateIsRead(t *testing.T) {
	template, err := os.ReadFile("../../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(template), "Type: AWS::Logs::LogGroup\n"); n != len(logGroupIDs) {
		t.Errorf("the template has %d log groups, %d are read", n, len(logGroupIDs))
	}
	for _, g := range logGroupIDs {
		if !strings.Contains(string(template), "\n  "+g.logicalID+":\n") {
			t.Errorf("the template has no %s", g.logicalID)
		}
	}
}
