package logs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/cmd/paidonce/terminal/terminaltest"
)

// TestLogsOnTheEmulator finds a stack's real log groups, and reads them.
func TestLogsOnTheEmulator(t *testing.T) {
	var groups []string
	for _, g := range logGroupIDs {
		groups = append(groups, g.logicalID)
	}
	d := stacktest.Emulated(t, nil, "AWS::Logs::LogGroup", groups...)
	found, err := d.Parts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logs := cloudwatchlogs.NewFromConfig(d.Config)
	for id, line := range map[string]string{
		"WebhookLogGroup": `{"level":"INFO","msg":"webhook","event":"razorpay/evt_1","invocation":"call-1"}`,
		"WorkerLogGroup":  `{"level":"ERROR","msg":"message","event":"razorpay/evt_1","order":"o1","error":"no luck"}`,
		"NotifyLogGroup":  `{"level":"INFO","msg":"announcement","order":"o1"}`,
		"OrdersLogGroup":  `{"level":"INFO","msg":"orders","order":"o10"}`,
	} {
		group := found.Resources[id]
		if _, err := logs.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: aws.String("x")}); err != nil {
			t.Fatal(err)
		}
		if _, err := logs.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{
			LogGroupName: &group, LogStreamName: aws.String("x"),
			LogEvents: []types.InputLogEvent{{Timestamp: aws.Int64(time.Now().UnixMilli()), Message: &line}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{"logs evt_1": "notify webhook worker", "logs --errors": "worker", "logs --function orders,notify": "notify orders"} {
		out, _, err := terminaltest.Run(t, []*cobra.Command{Command(stacktest.Finds(stack.Target{Name: "the emulator", Deployed: d}), terminal.RealWorld())}, append(strings.Fields(args), "--json")...)
		if err != nil {
			t.Fatal(args, err)
		}
		var from []string
		for line := range strings.Lines(out) {
			var l shownLogLine
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			from = append(from, l.Function)
		}
		slices.Sort(from)
		if got := strings.Join(from, " "); got != want {
			t.Errorf("%s: lines of %s, want %s", args, got, want)
		}
	}
}
