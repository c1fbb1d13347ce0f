package doctor

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/shared/payment"
)

func clockOff(d time.Duration) func(*patient) {
	return func(p *patient) { p.who.here = p.who.there.Add(d) }
}

func withParameter(name, value string) func(*patient) {
	return func(p *patient) { p.stack.Parameters[name] = value }
}

func withoutResource(logicalID string) func(*patient) {
	return func(p *patient) { delete(p.stack.Resources, logicalID); delete(p.stack.kinds, logicalID) }
}

func awsFails(action, code string) func(*patient) {
	return func(p *patient) { p.fails[action] = answersWith(code) }
}

func onLocal(p *patient) { p.local = true }

// both makes a patient ill in several ways.
func allOf(ways ...func(*patient)) func(*patient) {
	return func(p *patient) {
		for _, ill := range ways {
			ill(p)
		}
	}
}

func inDev(p *patient) { p.stack.Parameters["Stage"] = "dev" }

func TestCheckAccountAndClock(t *testing.T) {
	const cure = "set the clock of this machine, by NTP: AWS refuses what is signed more than 5 minutes off"
	expectChecks(t, "account and clock", []checkCase{
		{"good", nil, finding{fine, "account 123456789012 in ap-south-1, this clock is 1s ahead of AWS's", ""}},
		{"30 seconds", clockOff(30 * time.Second), finding{fine, "account 123456789012 in ap-south-1, this clock is 30s ahead of AWS's", ""}},
		{"31 seconds", clockOff(-31 * time.Second), finding{warning, "account 123456789012 in ap-south-1, this clock is 31s behind AWS's", cure}},
		{"5 minutes", clockOff(5 * time.Minute), finding{warning, "account 123456789012 in ap-south-1, this clock is 5m0s ahead of AWS's", cure}},
		{"more than 5 minutes", clockOff(-5*time.Minute - time.Second), finding{broken, "account 123456789012 in ap-south-1, this clock is 5m1s behind AWS's", cure}},
		{"no answer", func(p *patient) {
			p.fails["sts:GetCallerIdentity"] = called("sts:GetCallerIdentity", context.DeadlineExceeded)
		},
			finding{skipped, "no answer in time to sts:GetCallerIdentity", ""}},
		{"locally", onLocal, finding{skipped, "local stack: any credentials will do", ""}},
	})
}

func TestCheckStack(t *testing.T) {
	const why = "aws cloudformation describe-stack-events --stack-name shop says why: remove the cause and deploy again"
	status := func(s string) func(*patient) { return func(p *patient) { p.stack.status = s } }
	expectChecks(t, "stack", []checkCase{
		{"good", nil, finding{fine, "UPDATE_COMPLETE, Stage prod", ""}},
		{"new", allOf(status("CREATE_COMPLETE"), inDev), finding{fine, "CREATE_COMPLETE, Stage dev", ""}},
		{"under way", status("UPDATE_IN_PROGRESS"), finding{warning, "UPDATE_IN_PROGRESS, Stage prod: something is under way", "wait for its end, and ask again"}},
		{"cleaning up", status("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"), finding{warning, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS, Stage prod: something is under way", "wait for its end, and ask again"}},
		{"undone", status("UPDATE_ROLLBACK_COMPLETE"), finding{warning, "UPDATE_ROLLBACK_COMPLETE, Stage prod: the last deployment was undone, the release before it runs", why}},
		{"never made", status("ROLLBACK_COMPLETE"), finding{broken, "ROLLBACK_COMPLETE, Stage prod", why}},
		{"failed", status("UPDATE_ROLLBACK_FAILED"), finding{broken, "UPDATE_ROLLBACK_FAILED, Stage prod", why}},
		{"another's", func(p *patient) { delete(p.stack.Parameters, "Stage") }, finding{broken, "the stack has no parameter Stage", deployAgain}},
	})
}

func apiAnswers(call string, status int, body string) func(*patient) {
	return func(p *patient) { p.routes[call] = stacktest.Answer{Status: status, Body: body} }
}

func TestCheckWebhookURL(t *testing.T) {
	const call = "POST /webhooks/razorpay"
	const elsewhere = "check the network from here; does another machine reach it? If not: " + revertDrift
	expectChecks(t, "webhook URL", []checkCase{
		{"good", nil, finding{fine, "API/webhooks/razorpay answers 401 to a webhook that nobody signed, after 0s", ""}},
		{"another's 401", apiAnswers(call, 401, `{"message":"Unauthorized"}`),
			finding{broken, "API/webhooks/razorpay answers 401 to a webhook that nobody signed: that is not our webhook function", revertDrift}},
		{"taken", apiAnswers(call, 200, `{"received":true}`),
			finding{broken, "API/webhooks/razorpay answers 200 to a webhook that nobody signed: that is not our webhook function", revertDrift}},
		{"no route", apiAnswers(call, 404, `{"message":"Not Found"}`),
			finding{broken, "API/webhooks/razorpay answers 404 to a webhook that nobody signed: the route is missing", revertDrift}},
		{"no function", apiAnswers(call, 500, `{"message":"Internal Server Error"}`),
			finding{broken, "API/webhooks/razorpay answers 500 to a webhook that nobody signed: the function does not run", "docs/runbook.md#webhook-errors, docs/runbook.md#webhook-throttled"}},
		{"throttled", apiAnswers(call, 429, `{"message":"Too Many Requests"}`),
			finding{warning, "API/webhooks/razorpay answers 429 to a webhook that nobody signed: the API throttles", "raise the parameters ThrottleRate and ThrottleBurst, if those calls are the gateway's"}},
		{"too slow", cutOff(context.DeadlineExceeded), finding{broken, "API/webhooks/razorpay did not answer in time", elsewhere}},
		{"nobody there", cutOff(errors.New("no such host")), finding{broken, "API/webhooks/razorpay did not answer", elsewhere}},
		{"no URL", func(p *patient) { p.api.url = "" }, finding{broken, "the stack has no output ApiUrl", deployAgain}},
	})
}

// noNetwork lets no request out, for a reason.
type noNetwork struct{ why error }

func (n noNetwork) RoundTrip(*http.Request) (*http.Response, error) { return nil, n.why }

func cutOff(why error) func(*patient) {
	return func(p *patient) { p.api.client = &http.Client{Transport: noNetwork{why}} }
}

func TestCheckShopsRoutes(t *testing.T) {
	const open = "the route has lost its AWS_IAM authorizer: " + revertDrift
	expectChecks(t, "shop's routes", []checkCase{
		{"good", nil, finding{fine, "unsigned calls of them are answered 403", ""}},
		{"orders can be read", apiAnswers("GET /orders/no-such-order", 404, `{"error":"not found"}`),
			finding{broken, "an unsigned GET /orders/no-such-order reaches our code, which answers 404: anybody can make orders and refunds", open}},
		{"orders can be made", apiAnswers("POST /orders", 400, `{"error":"must be set","field":"id"}`),
			finding{broken, "an unsigned POST /orders reaches our code, which answers 400: anybody can make orders and refunds", open}},
		{"refunds can be made", apiAnswers("POST /orders/no-such-order/refunds", 400, `{"error":"must be set","field":"id"}`),
			finding{broken, "an unsigned POST /orders/no-such-order/refunds reaches our code, which answers 400: anybody can make orders and refunds", open}},
		{"no route", apiAnswers("POST /orders", 404, `{"message":"Not Found"}`),
			finding{broken, "an unsigned POST /orders is answered 404 instead of 403", revertDrift}},
		{"locally not enforced", allOf(onLocal, apiAnswers("GET /orders/no-such-order", 404, `{"error":"not found"}`)),
			finding{skipped, "local stack: it lets unsigned calls pass, unless told otherwise", ""}},
		{"locally enforced", onLocal, finding{fine, "unsigned calls of them are answered 403", ""}},
		{"nobody there", cutOff(errors.New("no such host")),
			finding{skipped, "no answer to GET /orders/no-such-order", ""}},
		{"no URL", func(p *patient) { p.api.url = "" }, finding{broken, "the stack has no output ApiUrl", deployAgain}},
	})
}

func alarmHas(name string, change func(*cloudwatchtypes.MetricAlarm)) func(*patient) {
	return func(p *patient) {
		for i := range p.alarmed {
			if *p.alarmed[i].AlarmName == name {
				change(&p.alarmed[i])
			}
		}
	}
}

func TestCheckAlarms(t *testing.T) {
	mute := alarmHas("shop-overdue", func(a *cloudwatchtypes.MetricAlarm) { a.ActionsEnabled = aws.Bool(false) })
	lost := func(p *patient) {
		p.stack.kinds["LostAlarm"], p.stack.Resources["LostAlarm"] = "AWS::CloudWatch::Alarm", "shop-lost"
	}
	expectChecks(t, "alarms", []checkCase{
		{"good", nil, finding{fine, "all 2 are there, switched on, and tell the topic", ""}},
		{"gone", lost, finding{broken, "gone: shop-lost", revertDrift}},
		{"switched off", mute, finding{broken, "switched off: shop-overdue", "aws cloudwatch enable-alarm-actions --alarm-names shop-overdue"}},
		{"telling nobody", alarmHas("shop-overdue", func(a *cloudwatchtypes.MetricAlarm) { a.AlarmActions = nil }),
			finding{broken, "not telling the stack's topic: shop-overdue", revertDrift}},
		{"two things", allOf(lost, mute), finding{broken, "gone: shop-lost; switched off: shop-overdue",
			revertDrift + "; aws cloudwatch enable-alarm-actions --alarm-names shop-overdue"}},
		{"no topic", withoutResource("AlarmTopic"), finding{broken, "the stack has no resource AlarmTopic", deployAgain}},
		{"none at all", allOf(withoutResource("OverdueAlarm"), withoutResource("Api5xxAlarm"), withoutResource("RollbackWorkerAlarm")), finding{broken, "the stack has no resource of type AWS::CloudWatch::Alarm", deployAgain}},
	})
}

func TestCheckAlarmsRinging(t *testing.T) {
	state := func(name string, s cloudwatchtypes.StateValue) func(*patient) {
		return alarmHas(name, func(a *cloudwatchtypes.MetricAlarm) { a.StateValue = s })
	}
	expectChecks(t, "alarms ringing", []checkCase{
		{"good", nil, finding{fine, "none of 2", ""}},
		{"new", state("shop-overdue", cloudwatchtypes.StateValueInsufficientData), finding{fine, "none, and 1 of 2 have no numbers yet", ""}},
		{"two", allOf(state("shop-overdue", cloudwatchtypes.StateValueAlarm), state("shop-api-5xx", cloudwatchtypes.StateValueAlarm)),
			finding{warning, "shop-api-5xx since 2026-11-30 12:00:00 UTC, shop-overdue since 2026-11-30 12:00:00 UTC", "docs/runbook.md#api-5xx, docs/runbook.md#overdue"}},
		{"without a link", allOf(state("shop-overdue", cloudwatchtypes.StateValueAlarm), alarmHas("shop-overdue", func(a *cloudwatchtypes.MetricAlarm) { a.AlarmDescription = nil })),
			finding{warning, "shop-overdue since 2026-11-30 12:00:00 UTC", "docs/runbook.md#alarms"}},
	})
}

func TestCheckAlarmSubscribers(t *testing.T) {
	subscribed := func(arns ...string) func(*patient) { return func(p *patient) { p.confirmed = arns } }
	const none = "set the parameter AlarmEmail and confirm by the mail of SNS, or subscribe something to the stack's output AlarmTopicArn"
	const pending = "follow the link in the mail of SNS to the address in the parameter AlarmEmail, within 3 days; after that deploy another address and back"
	expectChecks(t, "alarm subscribers", []checkCase{
		{"good", nil, finding{fine, "1 confirmed, 0 pending", ""}},
		{"one of two", subscribed(topicARN+":1", "PendingConfirmation"), finding{fine, "1 confirmed, 1 pending", ""}},
		{"pending", subscribed("PendingConfirmation"), finding{broken, "none confirmed, 1 pending: nobody hears an alarm", pending}},
		{"pending in dev", allOf(inDev, subscribed("PendingConfirmation")), finding{warning, "none confirmed, 1 pending: nobody hears an alarm", pending}},
		{"none", subscribed(), finding{broken, "none: nobody hears an alarm", none}},
		{"unsubscribed", subscribed("Deleted"), finding{broken, "none: nobody hears an alarm", none}},
		{"none in dev", allOf(inDev, subscribed()), finding{warning, "none: nobody hears an alarm", none}},
		{"no topic any more", awsFails("sns:ListSubscriptionsByTopic", "NotFound"), finding{broken, "the topic is gone: nobody hears an alarm", revertDrift}},
		{"locally", onLocal, finding{skipped, "local stack: it mails nobody", ""}},
	})
}

func tableHas(change func(*dynamodbtypes.TableDescription)) func(*patient) {
	return func(p *patient) { change(&p.table) }
}

func TestCheckTable(t *testing.T) {
	unprotected := tableHas(func(d *dynamodbtypes.TableDescription) { d.DeletionProtectionEnabled = aws.Bool(false) })
	noIndex := tableHas(func(d *dynamodbtypes.TableDescription) { d.GlobalSecondaryIndexes = nil })
	const protect = "aws dynamodb update-table --deletion-protection-enabled --table-name t"
	const noStream = "there is no stream of new images: notify hears nothing, subscribers hear late"
	expectChecks(t, "table", []checkCase{
		{"good", nil, finding{fine, "ACTIVE with index and stream, protected from deletion", ""}},
		{"dev", allOf(inDev, unprotected), finding{fine, "ACTIVE with index and stream; not protected from deletion, as in every dev stack", ""}},
		{"unprotected", unprotected, finding{broken, "anybody may delete it", protect}},
		{"not active", tableHas(func(d *dynamodbtypes.TableDescription) { d.TableStatus = "INACCESSIBLE_ENCRYPTION_CREDENTIALS" }),
			finding{broken, "the table is INACCESSIBLE_ENCRYPTION_CREDENTIALS", "wait, and ask again; AWS's health dashboard says whether it is theirs"}},
		{"index missing", noIndex, finding{broken, "index1 is missing: reconcile finds nothing", revertDrift}},
		{"index being built", tableHas(func(d *dynamodbtypes.TableDescription) { d.GlobalSecondaryIndexes[0].IndexStatus = "CREATING" }),
			finding{broken, "index1 is CREATING: reconcile may find nothing", "wait until it is ACTIVE, and ask again"}},
		{"no stream", tableHas(func(d *dynamodbtypes.TableDescription) { d.StreamSpecification = nil }), finding{broken, noStream, revertDrift}},
		{"stream off", tableHas(func(d *dynamodbtypes.TableDescription) { d.StreamSpecification.StreamEnabled = aws.Bool(false) }), finding{broken, noStream, revertDrift}},
		{"stream of keys", tableHas(func(d *dynamodbtypes.TableDescription) { d.StreamSpecification.StreamViewType = "KEYS_ONLY" }), finding{broken, noStream, revertDrift}},
		{"two things", allOf(noIndex, unprotected), finding{broken, "index1 is missing: reconcile finds nothing; anybody may delete it", revertDrift + "; " + protect}},
		{"gone", awsFails("dynamodb:DescribeTable", gone), finding{broken, "the table t is gone", "restore it from a backup or to a point in time, before anything else is deployed"}},
		{"never made", withoutResource("Table"), finding{broken, "the stack has no resource Table", deployAgain}},
	})
	recovery := func(p *patient) { p.recovery = dynamodbtypes.PointInTimeRecoveryStatusDisabled }
	const off, on = "point-in-time recovery is off: a bad write or delete would stay",
		"aws dynamodb update-continuous-backups --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true --table-name t"
	expectChecks(t, "table's backups", []checkCase{
		{"good", nil, finding{fine, "point-in-time recovery is on", ""}},
		{"off", recovery, finding{broken, off, on}},
		{"off in dev", allOf(inDev, recovery), finding{warning, off, on}},
		{"locally", onLocal, finding{skipped, "local stack: it keeps no backups", ""}},
	})
	const never, expire = "settled events never expire: with them customers' data stays",
		"aws dynamodb update-time-to-live --time-to-live-specification Enabled=true,AttributeName=expires_at --table-name t"
	expectChecks(t, "table's expiry", []checkCase{
		{"good", nil, finding{fine, "settled events expire by expires_at", ""}},
		{"off", func(p *patient) { p.expiry.TimeToLiveStatus = "DISABLED" }, finding{warning, never, expire}},
		{"by another attribute", func(p *patient) { p.expiry.AttributeName = aws.String("ttl") }, finding{warning, never, expire}},
		{"locally", onLocal, finding{skipped, "local stack: nothing expires there", ""}},
	})
}

func mappingHas(change func(*lambda.GetEventSourceMappingOutput)) func(*patient) {
	return func(p *patient) { change(p.mappings["m-worker"]) }
}

func TestCheckEventSources(t *testing.T) {
	state := func(s string) func(*patient) {
		return mappingHas(func(m *lambda.GetEventSourceMappingOutput) { m.State = &s })
	}
	expectChecks(t, "event sources", []checkCase{
		{"good", nil, finding{fine, "worker's is Enabled; notify's is Enabled", ""}},
		{"off", state("Disabled"), finding{broken, "worker's is Disabled: it gets no events", "aws lambda update-event-source-mapping --enabled --uuid m-worker"}},
		{"coming", state("Enabling"), finding{warning, "worker's is Enabling", "wait a minute, and ask again"}},
		{"around the alias", mappingHas(func(m *lambda.GetEventSourceMappingOutput) {
			m.FunctionArn = aws.String("arn:aws:lambda:r:1:function:f")
		}),
			finding{broken, "worker's calls f, not the alias live", revertDrift}},
		{"failing", mappingHas(func(m *lambda.GetEventSourceMappingOutput) {
			m.LastProcessingResult = aws.String("PROBLEM: Function call failed")
		}),
			finding{warning, "worker's says PROBLEM: Function call failed", "docs/runbook.md#worker-errors"}},
		{"gone", awsFails("lambda:GetEventSourceMapping", gone), finding{broken, "worker's is gone: it gets no events; notify's is gone: it gets no events", revertDrift}},
		{"never made", withoutResource("NotifyFunctionWritten"), finding{broken, "the stack has no resource NotifyFunctionWritten", deployAgain}},
	})
}

func TestCheckLiveVersions(t *testing.T) {
	runs := func(function, version string) func(*patient) {
		return func(p *patient) { p.aliases[function].FunctionVersion = &version }
	}
	const back = "it was rolled back, by hand or by a deployment that went wrong: deploy what should run; docs/runbook.md#go-back-to-the-release-before"
	expectChecks(t, "live versions", []checkCase{
		{"good", nil, finding{fine, "all 2 functions run their newest version", ""}},
		{"rolled back", runs("f-worker", "41"), finding{warning, "WorkerFunction runs version 41, the newest is 42", back}},
		{"both rolled back", allOf(runs("f-worker", "41"), runs("f-reconcile", "9")),
			finding{warning, "ReconcileFunction runs version 9, the newest is 42; WorkerFunction runs version 41, the newest is 42", back}},
		{"gradual", func(p *patient) {
			p.aliases["f-worker"].FunctionVersion = aws.String("41")
			p.aliases["f-worker"].RoutingConfig = &lambdatypes.AliasRoutingConfiguration{AdditionalVersionWeights: map[string]float64{"42": 0.1}}
		}, finding{warning, "WorkerFunction runs version 41 and, for 10 % of its calls, 42",
			"a gradual deployment is under way, or was left unfinished: wait, or docs/runbook.md#go-back-to-the-release-before"}},
		{"no alias", awsFails("lambda:GetAlias", gone), finding{broken, "ReconcileFunction has no alias live: nobody can call it; WorkerFunction has no alias live: nobody can call it", revertDrift}},
	})
}

func TestCheckReconcile(t *testing.T) {
	silent := func(p *patient) { p.measured = nil }
	const cure = revertDrift + "; docs/runbook.md#reconcile-silent"
	expectChecks(t, "reconcile", []checkCase{
		{"good", nil, finding{fine, "its schedule is ENABLED, rate(5 minutes); it ran within the 5 minutes from 2026-11-30 11:50:00 UTC", ""}},
		{"switched off", func(p *patient) { p.schedule.State = schedulertypes.ScheduleStateDisabled },
			finding{broken, "its schedule is DISABLED: nothing that is left open is looked after", cure}},
		{"gone", awsFails("scheduler:GetSchedule", gone), finding{broken, "its schedule is gone: nothing that is left open is looked after", cure}},
		{"silent", silent, finding{broken, "its schedule is ENABLED, rate(5 minutes), and it has not run for 2 hours", "docs/runbook.md#reconcile-silent"}},
		{"long ago", func(p *patient) {
			p.measured["Invocations f-reconcile"][0].at = checkedAt.Add(-2*time.Hour - time.Minute)
		},
			finding{broken, "its schedule is ENABLED, rate(5 minutes), and it has not run for 2 hours", "docs/runbook.md#reconcile-silent"}},
		{"new", allOf(silent, func(p *patient) { p.stack.created = checkedAt.Add(-time.Hour) }),
			finding{skipped, "its schedule is ENABLED, rate(5 minutes); it has not run in this new stack yet, ask again later", ""}},
		{"never made", withoutResource("ReconcileFunctionSweep"), finding{broken, "the stack has no resource ReconcileFunctionSweep", deployAgain}},
	})
	began := func(ago time.Duration) func(*patient) {
		return func(p *patient) { p.cursor.BeganAt = checkedAt.Add(-ago) }
	}
	never := func(p *patient) { p.cursor = payment.Cursor{} }
	expectChecks(t, "scan of the gateway", []checkCase{
		{"good", nil, finding{fine, "the last began 2026-11-30 11:40:00 UTC, done up to 2026-11-30 11:39:00 UTC", ""}},
		{"stands", began(3 * time.Hour), finding{warning, "the last began 2026-11-30 09:00:00 UTC, done up to 2026-11-30 11:39:00 UTC: payments without a webhook are found late", "docs/runbook.md#reconcile-errors"}},
		{"never", never, finding{warning, "never begun: payments without a webhook are found late", "docs/runbook.md#reconcile-errors"}},
		{"new", allOf(never, func(p *patient) { p.stack.created = checkedAt.Add(-time.Hour) }), finding{skipped, "not begun in this new stack yet, ask again later", ""}},
	})
}

func TestCheckQueues(t *testing.T) {
	waits := func(queue string, n int) func(*patient) { return func(p *patient) { p.waiting[queueURL+queue] = n } }
	age := func(seconds float64) func(*patient) {
		return func(p *patient) {
			p.measured["ApproximateAgeOfOldestMessage shop-events"] = []point{{checkedAt.Add(-3 * time.Minute), 999}, {checkedAt.Add(-time.Minute), seconds}}
		}
	}
	worked := func(p *patient) { p.inHand[queueURL+"shop-events"] = 2 }
	expectChecks(t, "events queue", []checkCase{
		{"good", nil, finding{fine, "empty", ""}},
		{"moving", allOf(waits("shop-events", 7), worked, age(299)), finding{fine, "7 wait, 2 in work, the oldest for 4m59s", ""}},
		{"standing", allOf(waits("shop-events", 7), age(300)), finding{warning, "7 wait, 0 in work, the oldest for 5m0s: paid orders are late", "docs/runbook.md#events-backlog-age"}},
		{"of unknown age", allOf(worked, awsFails("cloudwatch:GetMetricData", "AccessDenied")), finding{skipped, "0 wait, 2 in work, age unknown: the credentials lack cloudwatch:GetMetricData", ""}},
		{"gone", awsFails("sqs:GetQueueAttributes", "AWS.SimpleQueueService.NonExistentQueue"), finding{broken, "the queue EventsQueue is gone", revertDrift}},
		{"never made", withoutResource("EventsQueue"), finding{broken, "the stack has no resource EventsQueue", deployAgain}},
	})
	expectChecks(t, "dead letter queues", []checkCase{
		{"good", nil, finding{fine, "all three are empty", ""}},
		{"events", waits("dlq", 3), finding{broken, "events: 3", "docs/runbook.md#events-dlq-not-empty"}},
		{"runs", waits("async", 1), finding{warning, "runs of reconcile: 1", "docs/runbook.md#async-dlq-not-empty"}},
		{"the milder two", allOf(waits("async", 1), waits("notify", 2)), finding{warning, "runs of reconcile: 1; notifications: 2", "docs/runbook.md#async-dlq-not-empty; docs/runbook.md#notify-dlq-not-empty"}},
		{"in somebody's hand", func(p *patient) { p.inHand[queueURL+"dlq"] = 1 }, finding{broken, "events: 1", "docs/runbook.md#events-dlq-not-empty"}},
	})
}

func TestCheckEvents(t *testing.T) {
	due := func(status payment.EventStatus, n int, at time.Time) func(*patient) {
		return func(p *patient) {
			for range n {
				p.due[status] = append(p.due[status], at)
			}
		}
	}
	never := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	long := checkedAt.Add(-31 * time.Minute)
	expectChecks(t, "events", []checkCase{
		{"good", nil, finding{fine, "none FAILED, none overdue; 1 PARKED until their orders are known", ""}},
		{"FAILED", due(payment.EventFailed, 2, long), finding{broken, "2 FAILED", "docs/runbook.md#heal-a-failed-event"}},
		{"many", due(payment.EventFailed, 1001, long), finding{broken, "1000 or more FAILED", "docs/runbook.md#heal-a-failed-event"}},
		{"just due", due(payment.EventReceived, 1, checkedAt.Add(-30*time.Minute)), finding{fine, "none FAILED, none overdue; 1 PARKED until their orders are known", ""}},
		{"overdue", allOf(due(payment.EventReceived, 3, long), due(payment.EventParked, 2, long)),
			finding{warning, "3 RECEIVED and due for over 30 minutes; 2 PARKED and due for over 30 minutes", "docs/runbook.md#overdue"}},
		{"undecodable", due(payment.EventParked, 4, never), finding{warning, "4 PARKED that nobody could decode", "docs/runbook.md#undecodable"}},
	})
}
