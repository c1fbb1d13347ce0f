package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/cmd/paidonce/terminal/terminaltest"
)

func serveHTTP(t *testing.T, handle http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

// reported is what doctor prints of the patient.
func (p *patient) reported(t *testing.T, asJSON bool) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := p.report(t.Context(), &out, asJSON)
	return p.masked(out.String()), err
}

func TestDoctorOfAHealthyStack(t *testing.T) {
	got, err := newPatient(t).reported(t, false)
	if err != nil {
		t.Error(err)
	}
	const want = `stack shop in ap-south-1

  ok  account and clock    account 123456789012 in ap-south-1, this clock is 1s ahead of AWS's
  ok  stack                UPDATE_COMPLETE, Stage prod
  ok  webhook secret       shop/webhook: live_current
  ok  API key              shop/key: rzp_live_Sample
  ok  test or live         a live key, live webhooks, Stage prod
  ok  gateway              GATEWAY takes the key rzp_live_Sample
  ok  webhook URL          API/webhooks/razorpay answers 401 to a webhook that nobody signed, after 0s
  ok  shop's routes        unsigned calls of them are answered 403
  ok  alarms               all 2 are there, switched on, and tell the topic
  ok  alarms ringing       none of 2
  ok  alarm subscribers    1 confirmed, 0 pending
  ok  table                ACTIVE with index and stream, protected from deletion
  ok  table's backups      point-in-time recovery is on
  ok  table's expiry       settled events expire by expires_at
  ok  event sources        worker's is Enabled; notify's is Enabled
  ok  live versions        all 2 functions run their newest version
  ok  reconcile            its schedule is ENABLED, rate(5 minutes); it ran within the 5 minutes from 2026-11-30 11:50:00 UTC
  ok  scan of the gateway  the last began 2026-11-30 11:40:00 UTC, done up to 2026-11-30 11:39:00 UTC
  ok  events queue         empty
  ok  dead letter queues   all three are empty
  ok  events               none FAILED, none overdue; 1 PARKED until their orders are known
  ok  secret rotation      only live_current: no previous secret that could go

22 ok, 0 warnings, 0 failed, 0 not checked
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDoctorOfASickStack(t *testing.T) {
	p := newPatient(t)
	p.waiting[queueURL+"dlq"] = 2
	p.who.here = p.who.there.Add(time.Minute)
	p.fails["cloudwatch:DescribeAlarms"] = answersWith("AccessDenied")
	got, err := p.reported(t, false)
	if err == nil || err.Error() != "1 of 22 checks failed" {
		t.Errorf("ends with %v", err)
	}
	for _, want := range []string{
		"\n  WARNING      account and clock    account 123456789012 in ap-south-1, this clock is 1m0s ahead of AWS's\n" +
			"                                    -> set the clock of this machine, by NTP: AWS refuses what is signed more than 5 minutes off\n" +
			"  ok           stack                UPDATE_COMPLETE, Stage prod\n",
		"\n  not checked  alarms               the credentials lack cloudwatch:DescribeAlarms\n",
		"\n  FAILED       dead letter queues   events: 2\n                                    -> docs/runbook.md#events-dlq-not-empty\n",
		"\n\n18 ok, 1 warnings, 1 failed, 2 not checked\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
}

func TestWarningsAloneAreNoFailure(t *testing.T) {
	p := newPatient(t)
	p.stack.status = "UPDATE_ROLLBACK_COMPLETE"
	if _, err := p.reported(t, false); err != nil {
		t.Error(err)
	}
}

func TestDoctorForPrograms(t *testing.T) {
	p := newPatient(t)
	p.stack.status = "ROLLBACK_COMPLETE"
	p.fails["scheduler:GetSchedule"] = answersWith("AccessDeniedException")
	got, err := p.reported(t, true)
	if err == nil {
		t.Error("a failure is none")
	}
	type shown struct{ Name, Result, Seen, Cure string }
	var report struct {
		Stack                string
		Checks               []shown
		OK, Warnings, Failed int
		NotChecked           int `json:"not_checked"`
	}
	decoder := json.NewDecoder(strings.NewReader(got))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatal(err)
	}
	if counts := []int{len(report.Checks), report.OK, report.Warnings, report.Failed, report.NotChecked}; !slices.Equal(counts, []int{22, 20, 0, 1, 1}) {
		t.Errorf("counts %v", counts)
	}
	want := shown{"stack", "failed", "ROLLBACK_COMPLETE, Stage prod", "aws cloudformation describe-stack-events --stack-name shop says why: remove the cause and deploy again"}
	if diff := cmp.Diff(want, report.Checks[1]); diff != "" || report.Stack != "stack shop in ap-south-1" {
		t.Errorf("%s: %s", report.Stack, diff)
	}
	if !strings.Contains(got, `"name": "reconcile",
      "result": "not checked",
      "seen": "the credentials lack scheduler:GetSchedule"
    }`) {
		t.Errorf("got %s", got)
	}
}

// TestWhatIsNotAllowedIsNotChecked: without one permission some checks are not made, and say which permission it is. Nothing turns
// out well or badly for it. Every permission that the help names is needed.
func TestWhatIsNotAllowedIsNotChecked(t *testing.T) {
	for _, action := range actions {
		if strings.HasPrefix(action, "cloudformation:") {
			continue // read before the checks
		}
		t.Run(action, func(t *testing.T) {
			p := newPatient(t)
			p.documents["shop/webhook"] = `{"live_current":"a","live_previous":"b"}`
			usedOn(40, nil)(p)
			p.measured["Invocations f-reconcile"] = []point{{checkedAt.Add(-5 * time.Minute), 1}}
			p.waiting[queueURL+"shop-events"] = 1
			well := examine(t.Context(), p.checks(), time.Minute)
			p.fails[action] = answersWith("AccessDeniedException")
			denied := 0
			for i, got := range examine(t.Context(), p.checks(), time.Minute) {
				if got == well[i] {
					continue
				}
				denied++
				if got.Result != skipped || !strings.HasSuffix(got.Seen, "the credentials lack "+action) {
					t.Errorf("%+v", got)
				}
			}
			if denied == 0 {
				t.Error("no check needs it")
			}
		})
	}
}

func TestTroubleRepeatsNothingOfAWS(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{answersWith("AccessDenied"), "the credentials lack sqs:X"},
		{answersWith("AuthorizationError"), "the credentials lack sqs:X"}, // SNS
		{answersWith("InvalidAction"), "AWS answered InvalidAction to sqs:X"},
		{fmt.Errorf("canceled: %w", context.DeadlineExceeded), "no answer in time to sqs:X"},
		{fmt.Errorf("dial %s: refused", stacktest.SecretKey), "no answer to sqs:X"},
	} {
		if got := trouble(called("sqs:X", c.err)); got != (finding{skipped, c.want, ""}) {
			t.Errorf("got %+v, want %s", got, c.want)
		}
	}
}

func TestACheckThatHangsIsNotWaitedFor(t *testing.T) {
	hangs := func(ctx context.Context) finding {
		<-ctx.Done()
		return trouble(called("sqs:X", ctx.Err()))
	}
	passes := func(context.Context) finding { return isFine("good") }
	got := examine(t.Context(), []check{{"hangs", hangs}, {"passes", passes}}, time.Millisecond)
	want := []examined{{"hangs", finding{skipped, "no answer in time to sqs:X", ""}}, {"passes", finding{fine, "good", ""}}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestWithoutAnyPermission runs the command with AWS's own clients, of which AWS refuses all but DescribeStacks, on a stack whose
// first deployment failed.
func TestWithoutAnyPermission(t *testing.T) {
	url := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch {
		case bytes.Contains(body, []byte("Action=DescribeStacks")):
			io.WriteString(w, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>shop</StackName>`+
				`<StackStatus>ROLLBACK_COMPLETE</StackStatus><Parameters>`+
				`<member><ParameterKey>Stage</ParameterKey><ParameterValue>dev</ParameterValue></member>`+
				`<member><ParameterKey>RazorpayWebhookSecretName</ParameterKey><ParameterValue>hook</ParameterValue></member>`+
				`<member><ParameterKey>RazorpayApiKeySecretName</ParameterKey><ParameterValue>key</ParameterValue></member>`+
				`<member><ParameterKey>RazorpayApiUrl</ParameterKey><ParameterValue>http://127.0.0.1:1</ParameterValue></member>`+
				`</Parameters></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`)
		case r.Header.Get("Smithy-Protocol") == "rpc-v2-cbor":
			w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
			w.Header().Set("Content-Type", "application/cbor")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, "\xa1\x66__type\x6cAccessDenied") // a map of one text to another
		case strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`)
		default:
			w.Header().Set("X-Amzn-ErrorType", "AccessDeniedException")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"__type":"AccessDeniedException"}`)
		}
	})
	cfg := stacktest.Config()
	cfg.BaseEndpoint = &url
	out, _, err := terminaltest.Run(t, []*cobra.Command{Command(stacktest.Finds(stack.Target{Name: "stack shop", Deployed: stack.Deployed{Config: cfg, Name: "shop"}}))}, "doctor", "--json")
	if err == nil || err.Error() != "3 of 22 checks failed" {
		t.Errorf("ends with %v", err)
	}
	var report struct{ Checks []examined }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		want := skipped
		if slices.Contains([]string{"stack", "webhook URL", "shop's routes"}, c.Name) {
			want = broken // known without asking
		}
		if c.Result != want || want == skipped && !strings.HasPrefix(c.Seen, "the credentials lack ") && !strings.HasPrefix(c.Seen, "local stack: ") {
			t.Errorf("%+v", c)
		}
	}
}

func TestDoctorWithoutAStack(t *testing.T) {
	url := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `<ErrorResponse><Error><Code>ValidationError</Code><Message>no</Message></Error></ErrorResponse>`)
	})
	cfg := stacktest.Config()
	cfg.BaseEndpoint = &url
	for _, c := range []struct {
		name string
		on   stack.Target
		err  error // of the connector
		want string
	}{
		{"no local one", stack.Target{}, stack.ErrNoLocalStack, stack.ErrNoLocalStack.Error()},
		{"none of that name", stack.Target{Name: "stack shop", Deployed: stack.Deployed{Config: cfg, Name: "shop"}}, stack.ErrNoSuchStack,
			"there is no stack shop for these credentials: check the name, --region and AWS_PROFILE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := Command(func(context.Context, stack.Options) (stack.Target, error) { return c.on, c.err })
			if _, _, err := terminaltest.Run(t, []*cobra.Command{command}, "doctor"); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestCuresLeadSomewhere: each section of the runbook that the doctor's sources name is there.
func TestCuresLeadSomewhere(t *testing.T) {
	text, err := os.ReadFile("../../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(text, -1) {
		sections[strings.ReplaceAll(strings.ToLower(string(heading[1])), " ", "-")] = true
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	cited := 0
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		code, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`[/. ](?:runbook\.md)?#([a-z0-9-]+)["\W]`).FindAllSubmatch(code, -1) {
			cited++
			if !sections[string(link[1])] {
				t.Errorf("%s names the section %s, which the runbook has not", source, link[1])
			}
		}
	}
	if cited < 10 {
		t.Errorf("only %d sections found in the sources", cited)
	}
}
