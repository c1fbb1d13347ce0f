package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
)

// tableDescriber is what is needed of a *dynamodb.Client.
type tableDescriber interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeContinuousBackups(context.Context, *dynamodb.DescribeContinuousBackupsInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeContinuousBackupsOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// functionReader is what is needed of a *lambda.Client.
type functionReader interface {
	GetEventSourceMapping(context.Context, *lambda.GetEventSourceMappingInput, ...func(*lambda.Options)) (*lambda.GetEventSourceMappingOutput, error)
	GetAlias(context.Context, *lambda.GetAliasInput, ...func(*lambda.Options)) (*lambda.GetAliasOutput, error)
	lambda.ListVersionsByFunctionAPIClient
}

// scheduleReader is what is needed of a *scheduler.Client.
type scheduleReader interface {
	GetSchedule(context.Context, *scheduler.GetScheduleInput, ...func(*scheduler.Options)) (*scheduler.GetScheduleOutput, error)
}

const gone = "ResourceNotFoundException" // how DynamoDB, Lambda and EventBridge Scheduler say that there is none

func (d *doctor) tableItself(ctx context.Context) finding {
	name, err := d.stack.resource("Table")
	if err != nil {
		return trouble(err)
	}
	out, err := d.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if stack.CodeOf(err) == gone {
		return finding{broken, "the table " + name + " is gone", "restore it from a backup or to a point in time, before anything else is deployed"}
	}
	if err != nil {
		return trouble(called("dynamodb:DescribeTable", err))
	}
	table := out.Table
	var wrong []finding
	if table.TableStatus != dynamodbtypes.TableStatusActive {
		wrong = append(wrong, finding{broken, fmt.Sprintf("the table is %s", table.TableStatus), "wait, and ask again; AWS's health dashboard says whether it is theirs"})
	}
	isOurs := func(i dynamodbtypes.GlobalSecondaryIndexDescription) bool {
		return aws.ToString(i.IndexName) == "index1"
	}
	switch i := slices.IndexFunc(table.GlobalSecondaryIndexes, isOurs); {
	case i < 0:
		wrong = append(wrong, finding{broken, "index1 is missing: reconcile finds nothing", revertDrift})
	case table.GlobalSecondaryIndexes[i].IndexStatus != dynamodbtypes.IndexStatusActive && !d.local: // the emulator leaves it out
		wrong = append(wrong, finding{broken, fmt.Sprintf("index1 is %s: reconcile may find nothing", table.GlobalSecondaryIndexes[i].IndexStatus), "wait until it is ACTIVE, and ask again"})
	}
	if s := table.StreamSpecification; s == nil || !aws.ToBool(s.StreamEnabled) || s.StreamViewType != dynamodbtypes.StreamViewTypeNewImage {
		wrong = append(wrong, finding{broken, "there is no stream of new images: notify hears nothing, subscribers hear late", revertDrift})
	}
	protected := aws.ToBool(table.DeletionProtectionEnabled)
	if d.stack.isProd() && !protected {
		wrong = append(wrong, finding{broken, "anybody may delete it", "aws dynamodb update-table --deletion-protection-enabled --table-name " + name})
	}
	switch {
	case len(wrong) > 0:
		return worst(wrong...)
	case protected:
		return isFine("ACTIVE with index and stream, protected from deletion")
	}
	return isFine("ACTIVE with index and stream; not protected from deletion, as in every dev stack")
}

func (d *doctor) tableBackups(ctx context.Context) finding {
	if d.local {
		return onlyOnAWS("it keeps no backups")
	}
	name, err := d.stack.resource("Table")
	if err != nil {
		return trouble(err)
	}
	out, err := d.tables.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &name})
	if err != nil {
		return trouble(called("dynamodb:DescribeContinuousBackups", err))
	}
	var state *dynamodbtypes.PointInTimeRecoveryDescription
	if out.ContinuousBackupsDescription != nil {
		state = out.ContinuousBackupsDescription.PointInTimeRecoveryDescription
	}
	if state != nil && state.PointInTimeRecoveryStatus == dynamodbtypes.PointInTimeRecoveryStatusEnabled {
		return isFine("point-in-time recovery is on")
	}
	result := warning
	if d.stack.isProd() {
		result = broken
	}
	return finding{result, "point-in-time recovery is off: a bad write or delete would stay", "aws dynamodb update-continuous-backups --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true --table-name " + name}
}

func (d *doctor) tableExpiry(ctx context.Context) finding {
	if d.local {
		return onlyOnAWS("nothing expires there")
	}
	name, err := d.stack.resource("Table")
	if err != nil {
		return trouble(err)
	}
	out, err := d.tables.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return trouble(called("dynamodb:DescribeTimeToLive", err))
	}
	const attribute = "expires_at"
	if ttl := out.TimeToLiveDescription; ttl != nil && aws.ToString(ttl.AttributeName) == attribute &&
		(ttl.TimeToLiveStatus == dynamodbtypes.TimeToLiveStatusEnabled || ttl.TimeToLiveStatus == dynamodbtypes.TimeToLiveStatusEnabling) {
		return isFine("settled events expire by %s", attribute)
	}
	return finding{warning, "settled events never expire: with them customers' data stays", "aws dynamodb update-time-to-live --time-to-live-specification Enabled=true,AttributeName=" + attribute + " --table-name " + name}
}

// live is the alias by which everything calls the functions.
const live = "live"

// eventSources are what hands events to the functions that nobody calls.
func (d *doctor) eventSources(ctx context.Context) finding {
	var found []finding
	for _, s := range []struct{ name, logicalID string }{{"worker", "WorkerFunctionEvents"}, {"notify", "NotifyFunctionWritten"}} {
		found = append(found, d.eventSource(ctx, s.name, s.logicalID))
	}
	return worst(found...)
}

func (d *doctor) eventSource(ctx context.Context, name, logicalID string) finding {
	id, err := d.stack.resource(logicalID)
	if err != nil {
		return trouble(err)
	}
	out, err := d.functions.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &id})
	if stack.CodeOf(err) == gone {
		return finding{broken, name + "'s is gone: it gets no events", revertDrift}
	}
	if err != nil {
		return trouble(called("lambda:GetEventSourceMapping", err))
	}
	if arn := aws.ToString(out.FunctionArn); !strings.HasSuffix(arn, ":"+live) {
		return finding{broken, fmt.Sprintf("%s's calls %s, not the alias live", name, terminal.Printable(arn[strings.LastIndex(arn, ":")+1:])), revertDrift}
	}
	switch state := aws.ToString(out.State); state {
	case "Enabled":
	case "Creating", "Enabling", "Updating":
		return finding{warning, fmt.Sprintf("%s's is %s", name, state), "wait a minute, and ask again"}
	default: // Disabled, Disabling, Deleting
		return finding{broken, fmt.Sprintf("%s's is %s: it gets no events", name, terminal.Printable(state)), "aws lambda update-event-source-mapping --enabled --uuid " + id}
	}
	if last := aws.ToString(out.LastProcessingResult); strings.HasPrefix(last, "PROBLEM") {
		return finding{warning, name + "'s says " + terminal.Printable(last), "docs/runbook.md#" + name + "-errors"}
	}
	return isFine("%s's is Enabled", name)
}

// liveVersions compares what runs with what was deployed last.
func (d *doctor) liveVersions(ctx context.Context) finding {
	functions, err := d.stack.ofKind("AWS::Lambda::Function")
	if err != nil {
		return trouble(err)
	}
	var found []finding
	for _, id := range slices.Sorted(maps.Keys(functions)) {
		if f := d.liveVersion(ctx, id, functions[id]); f.Result != fine {
			found = append(found, f)
		}
	}
	if len(found) > 0 {
		return worst(found...)
	}
	return isFine("all %d functions run their newest version", len(functions))
}

func (d *doctor) liveVersion(ctx context.Context, id, function string) finding {
	alias, err := d.functions.GetAlias(ctx, &lambda.GetAliasInput{FunctionName: &function, Name: aws.String(live)})
	if stack.CodeOf(err) == gone {
		return finding{broken, id + " has no alias live: nobody can call it", revertDrift}
	}
	if err != nil {
		return trouble(called("lambda:GetAlias", err))
	}
	newest := 0
	pages := lambda.NewListVersionsByFunctionPaginator(d.functions, &lambda.ListVersionsByFunctionInput{FunctionName: &function})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return trouble(called("lambda:ListVersionsByFunction", err))
		}
		for _, v := range page.Versions {
			if n, err := strconv.Atoi(aws.ToString(v.Version)); err == nil { // $LATEST is no number
				newest = max(newest, n)
			}
		}
	}
	runs := aws.ToString(alias.FunctionVersion)
	if r := alias.RoutingConfig; r != nil && len(r.AdditionalVersionWeights) > 0 {
		other := slices.Sorted(maps.Keys(r.AdditionalVersionWeights))[0]
		return finding{warning, fmt.Sprintf("%s runs version %s and, for %.0f %% of its calls, %s", id, runs, 100*r.AdditionalVersionWeights[other], other),
			"a gradual deployment is under way, or was left unfinished: wait, or docs/runbook.md#go-back-to-the-release-before"}
	}
	if runs != strconv.Itoa(newest) {
		return finding{warning, fmt.Sprintf("%s runs version %s, the newest is %d", id, runs, newest),
			"it was rolled back, by hand or by a deployment that went wrong: deploy what should run; docs/runbook.md#go-back-to-the-release-before"}
	}
	return isFine("")
}

const (
	// reconcileSilence is how long reconcile may not run: its alarm's time, twice the slowest SweepRate.
	reconcileSilence = 2 * time.Hour
	// scanSilence is how long ago the last pass through the gateway's lists may have begun: it is made each hour, by a run.
	scanSilence = 3 * time.Hour
)

func (d *doctor) reconcileRuns(ctx context.Context) finding {
	schedule, err := d.stack.resource("ReconcileFunctionSweep")
	if err != nil {
		return trouble(err)
	}
	out, err := d.schedules.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: &schedule})
	if stack.CodeOf(err) == gone {
		return finding{broken, "its schedule is gone: nothing that is left open is looked after", revertDrift + "; docs/runbook.md#reconcile-silent"}
	}
	if err != nil {
		return trouble(called("scheduler:GetSchedule", err))
	}
	if out.State != schedulertypes.ScheduleStateEnabled {
		return finding{broken, fmt.Sprintf("its schedule is %s: nothing that is left open is looked after", out.State), revertDrift + "; docs/runbook.md#reconcile-silent"}
	}
	every := terminal.Printable(aws.ToString(out.ScheduleExpression))
	function, err := d.stack.resource("ReconcileFunction")
	if err != nil {
		return trouble(err)
	}
	runs, err := d.points(ctx, d.now().Add(-reconcileSilence), series{
		namespace: "AWS/Lambda", name: "Invocations", stat: "Sum", period: 5 * time.Minute, dimensions: map[string]string{"FunctionName": function},
	})
	if err != nil {
		return trouble(err)
	}
	if last := lastAbove(runs[0], 0); !last.IsZero() {
		return isFine("its schedule is ENABLED, %s; it ran within the 5 minutes from %s", every, terminal.Moment(last))
	}
	if d.now().Sub(d.stack.created) < reconcileSilence {
		return notChecked("its schedule is ENABLED, %s; it has not run in this new stack yet, ask again later", every)
	}
	return finding{broken, fmt.Sprintf("its schedule is ENABLED, %s, and it has not run for 2 hours", every), "docs/runbook.md#reconcile-silent"}
}
