package doctor

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/shared/payment"
)

// checkedAt is the time of every check in the tests.
var checkedAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// patient is a production stack that is well, with its doctor. It answers as AWS, the gateway and the API do; tests make it ill.
type patient struct {
	doctor
	fails     map[string]error // by IAM action
	who       identity
	documents map[string]string // of the secrets, by name
	changedAt time.Time         // of the secrets
	alarmed   []cloudwatchtypes.MetricAlarm
	measured  map[string][]point // by the metric's name and the value of its dimension that says of what
	confirmed []string           // ARNs of the topic's subscriptions
	table     dynamodbtypes.TableDescription
	recovery  dynamodbtypes.PointInTimeRecoveryStatus
	expiry    dynamodbtypes.TimeToLiveDescription
	mappings  map[string]*lambda.GetEventSourceMappingOutput // by UUID
	aliases   map[string]*lambda.GetAliasOutput              // by function
	newest    map[string]int                                 // published version, by function
	schedule  scheduler.GetScheduleOutput
	waiting   map[string]int // messages, by queue URL
	inHand    map[string]int
	due       map[payment.EventStatus][]time.Time // of the events
	cursor    payment.Cursor
	routes    map[string]stacktest.Answer // of the API, by method and path
	listed    stacktest.Answer            // of the gateway's list of payments
	key       string                      // with which the gateway was asked
}

const (
	queueURL = "https://sqs.ap-south-1.amazonaws.com/123456789012/"
	topicARN = "arn:aws:sns:ap-south-1:123456789012:alarms"
	forbid   = `{"message":"Forbidden"}`
)

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{
		fails: map[string]error{},
		who:   identity{"123456789012", "ap-south-1", checkedAt.Add(time.Second), checkedAt},
		documents: map[string]string{
			"shop/webhook": `{"live_current":"` + stacktest.SecretKey + `"}`,
			"shop/key":     `{"key_id":"rzp_live_Sample","key_secret":"` + stacktest.SecretKey + `"}`,
		},
		changedAt: checkedAt.AddDate(0, -3, 0),
		measured:  map[string][]point{"Invocations f-reconcile": {{checkedAt.Add(-10 * time.Minute), 1}, {checkedAt.Add(-5 * time.Minute), 0}}},
		confirmed: []string{topicARN + ":1"},
		table: dynamodbtypes.TableDescription{
			TableStatus:               dynamodbtypes.TableStatusActive,
			GlobalSecondaryIndexes:    []dynamodbtypes.GlobalSecondaryIndexDescription{{IndexName: aws.String("index1"), IndexStatus: dynamodbtypes.IndexStatusActive}},
			StreamSpecification:       &dynamodbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: dynamodbtypes.StreamViewTypeNewImage},
			DeletionProtectionEnabled: aws.Bool(true),
		},
		recovery: dynamodbtypes.PointInTimeRecoveryStatusEnabled,
		expiry:   dynamodbtypes.TimeToLiveDescription{AttributeName: aws.String("expires_at"), TimeToLiveStatus: dynamodbtypes.TimeToLiveStatusEnabled},
		mappings: map[string]*lambda.GetEventSourceMappingOutput{},
		aliases:  map[string]*lambda.GetAliasOutput{},
		newest:   map[string]int{},
		schedule: scheduler.GetScheduleOutput{State: schedulertypes.ScheduleStateEnabled, ScheduleExpression: aws.String("rate(5 minutes)")},
		waiting:  map[string]int{},
		inHand:   map[string]int{},
		due:      map[payment.EventStatus][]time.Time{payment.EventParked: {checkedAt.Add(time.Hour)}},
		cursor:   payment.Cursor{BeganAt: checkedAt.Add(-20 * time.Minute), Next: checkedAt.Add(-21 * time.Minute), Until: checkedAt.Add(-21 * time.Minute)},
		routes: map[string]stacktest.Answer{
			"POST /webhooks/razorpay":            {Status: 401, Body: `{"error":"bad signature"}`},
			"GET /orders/no-such-order":          {Status: 403, Body: forbid},
			"POST /orders":                       {Status: 403, Body: forbid},
			"POST /orders/no-such-order/refunds": {Status: 403, Body: forbid},
		},
		listed: stacktest.Answer{Status: 200, Body: `{"entity":"collection","count":0,"items":[]}`},
	}
	resources := map[string]string{
		"Table": "t", "AlarmTopic": topicARN, "ReconcileFunctionSweep": "sweep", "WorkerFunctionEvents": "m-worker", "NotifyFunctionWritten": "m-notify",
		"WorkerFunction": "f-worker", "ReconcileFunction": "f-reconcile", "OverdueAlarm": "shop-overdue", "Api5xxAlarm": "shop-api-5xx",
		"EventsQueue": queueURL + "shop-events", "EventsDlq": queueURL + "dlq", "AsyncDlq": queueURL + "async", "NotifyDlq": queueURL + "notify",
	}
	p.stack = inspected{
		Parts: stack.Parts{
			Parameters: map[string]string{
				"Stage": "prod", "RazorpayWebhookSecretName": "shop/webhook", "RazorpayApiKeySecretName": "shop/key", "RazorpayApiUrl": p.serveGateway(t),
			},
			Resources: resources,
		},
		name: "shop", status: "UPDATE_COMPLETE", created: checkedAt.AddDate(-1, 0, 0),
		kinds: map[string]string{
			"WorkerFunction": "AWS::Lambda::Function", "ReconcileFunction": "AWS::Lambda::Function",
			"OverdueAlarm": "AWS::CloudWatch::Alarm", "Api5xxAlarm": "AWS::CloudWatch::Alarm",
			"RollbackWorkerAlarm": "AWS::CloudWatch::Alarm", // which tells nobody, by the template
		},
	}
	resources["RollbackWorkerAlarm"] = "shop-rollback-worker"
	for id, kind := range p.stack.kinds {
		switch name := resources[id]; kind {
		case "AWS::Lambda::Function":
			p.newest[name] = 42
			p.aliases[name] = &lambda.GetAliasOutput{FunctionVersion: aws.String("42")}
		case "AWS::CloudWatch::Alarm":
			p.alarmed = append(p.alarmed, cloudwatchtypes.MetricAlarm{
				AlarmName: &name, AlarmActions: []string{topicARN}, ActionsEnabled: aws.Bool(true), StateValue: cloudwatchtypes.StateValueOk,
				AlarmDescription: aws.String("What happened. See docs/runbook.md#" + name[len("shop-"):]), StateUpdatedTimestamp: &checkedAt,
			})
		}
	}
	p.alarmed[slices.IndexFunc(p.alarmed, func(a cloudwatchtypes.MetricAlarm) bool { return *a.AlarmName == "shop-rollback-worker" })].AlarmActions = nil
	for _, uuid := range []string{"m-worker", "m-notify"} {
		p.mappings[uuid] = &lambda.GetEventSourceMappingOutput{
			State: aws.String("Enabled"), FunctionArn: aws.String("arn:aws:lambda:ap-south-1:123456789012:function:f:live"),
		}
	}
	p.name, p.now = "stack shop in ap-south-1", func() time.Time { return checkedAt }
	p.identify = func(context.Context) (identity, error) { return p.who, p.fails["sts:GetCallerIdentity"] }
	p.secrets, p.metrics, p.topics, p.tables, p.functions, p.schedules, p.queues, p.store = p, p, p, p, p, p, p, p
	p.api = unsignedAPI{p.serveAPI(t), http.DefaultClient}
	return p
}

// serve answers with what the test has last set.
func serveAnswers(t *testing.T, find func(*http.Request) stacktest.Answer) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := find(r)
		w.Header().Set("Retry-After", "3600") // whoever would try again gives up at once
		w.WriteHeader(a.Status)
		io.WriteString(w, a.Body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func (p *patient) serveGateway(t *testing.T) string {
	return serveAnswers(t, func(r *http.Request) stacktest.Answer {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/payments" {
			t.Errorf("the gateway is asked for %s %s", r.Method, r.URL)
		}
		p.key, _, _ = r.BasicAuth()
		return p.listed
	})
}

func (p *patient) serveAPI(t *testing.T) string {
	return serveAnswers(t, func(r *http.Request) stacktest.Answer {
		if r.Header.Get("Authorization") != "" || r.Header.Get("X-Razorpay-Signature") != "" {
			t.Errorf("%s %s is signed", r.Method, r.URL)
		}
		a, known := p.routes[r.Method+" "+r.URL.Path]
		if !known {
			t.Errorf("the API is asked for %s %s", r.Method, r.URL)
		}
		return a
	})
}

// answersWith is the error of an AWS service that refuses with a code.
func answersWith(code string) error {
	return &smithy.OperationError{Err: &smithy.GenericAPIError{Code: code, Message: "signed was " + stacktest.SecretKey}}
}

func (p *patient) DescribeSecret(context.Context, *secretsmanager.DescribeSecretInput, ...func(*secretsmanager.Options)) (*secretsmanager.DescribeSecretOutput, error) {
	return &secretsmanager.DescribeSecretOutput{LastChangedDate: &p.changedAt}, p.fails["secretsmanager:DescribeSecret"]
}

func (p *patient) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	document, there := p.documents[*in.SecretId]
	if err := p.fails["secretsmanager:GetSecretValue"]; err != nil || !there {
		if err == nil {
			err = answersWith("ResourceNotFoundException")
		}
		return nil, err
	}
	return &secretsmanager.GetSecretValueOutput{SecretString: &document}, nil
}

func (p *patient) DescribeAlarms(_ context.Context, in *cloudwatch.DescribeAlarmsInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.DescribeAlarmsOutput, error) {
	out := &cloudwatch.DescribeAlarmsOutput{}
	for _, a := range p.alarmed {
		if slices.Contains(in.AlarmNames, *a.AlarmName) {
			out.MetricAlarms = append(out.MetricAlarms, a)
		}
	}
	slices.SortFunc(out.MetricAlarms, func(a, b cloudwatchtypes.MetricAlarm) int { return strings.Compare(*a.AlarmName, *b.AlarmName) })
	return out, p.fails["cloudwatch:DescribeAlarms"]
}

// GetMetricData answers one point a page, so that whoever reads the first page only is found out.
func (p *patient) GetMetricData(_ context.Context, in *cloudwatch.GetMetricDataInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error) {
	if err := p.fails["cloudwatch:GetMetricData"]; err != nil {
		return nil, err
	}
	type measurement struct {
		query string
		point
	}
	var all []measurement
	for _, q := range in.MetricDataQueries {
		of := ""
		for _, d := range q.MetricStat.Metric.Dimensions {
			if *d.Name != "Stack" {
				of = *d.Value
			}
		}
		for _, m := range p.measured[*q.MetricStat.Metric.MetricName+" "+of] {
			if !m.at.Before(*in.StartTime) && m.at.Before(*in.EndTime) {
				all = append(all, measurement{*q.Id, m})
			}
		}
	}
	out := &cloudwatch.GetMetricDataOutput{}
	at, _ := strconv.Atoi(aws.ToString(in.NextToken))
	if at < len(all) {
		out.MetricDataResults = []cloudwatchtypes.MetricDataResult{{Id: &all[at].query, Timestamps: []time.Time{all[at].at}, Values: []float64{all[at].value}}}
	}
	if at+1 < len(all) {
		out.NextToken = aws.String(strconv.Itoa(at + 1))
	}
	return out, nil
}

func (p *patient) ListSubscriptionsByTopic(context.Context, *sns.ListSubscriptionsByTopicInput, ...func(*sns.Options)) (*sns.ListSubscriptionsByTopicOutput, error) {
	out := &sns.ListSubscriptionsByTopicOutput{}
	for _, arn := range p.confirmed {
		out.Subscriptions = append(out.Subscriptions, snstypes.Subscription{SubscriptionArn: &arn, Endpoint: aws.String("somebody@example.com")})
	}
	return out, p.fails["sns:ListSubscriptionsByTopic"]
}

func (p *patient) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: &p.table}, p.fails["dynamodb:DescribeTable"]
}

func (p *patient) DescribeContinuousBackups(context.Context, *dynamodb.DescribeContinuousBackupsInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeContinuousBackupsOutput, error) {
	return &dynamodb.DescribeContinuousBackupsOutput{ContinuousBackupsDescription: &dynamodbtypes.ContinuousBackupsDescription{
		PointInTimeRecoveryDescription: &dynamodbtypes.PointInTimeRecoveryDescription{PointInTimeRecoveryStatus: p.recovery},
	}}, p.fails["dynamodb:DescribeContinuousBackups"]
}

func (p *patient) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: &p.expiry}, p.fails["dynamodb:DescribeTimeToLive"]
}

func (p *patient) GetEventSourceMapping(_ context.Context, in *lambda.GetEventSourceMappingInput, _ ...func(*lambda.Options)) (*lambda.GetEventSourceMappingOutput, error) {
	return p.mappings[*in.UUID], p.fails["lambda:GetEventSourceMapping"]
}

func (p *patient) GetAlias(_ context.Context, in *lambda.GetAliasInput, _ ...func(*lambda.Options)) (*lambda.GetAliasOutput, error) {
	if *in.Name != "live" {
		return nil, answersWith(gone)
	}
	return p.aliases[*in.FunctionName], p.fails["lambda:GetAlias"]
}

// ListVersionsByFunction answers on two pages, in no order.
func (p *patient) ListVersionsByFunction(_ context.Context, in *lambda.ListVersionsByFunctionInput, _ ...func(*lambda.Options)) (*lambda.ListVersionsByFunctionOutput, error) {
	out := &lambda.ListVersionsByFunctionOutput{Versions: []lambdatypes.FunctionConfiguration{{Version: aws.String("$LATEST")}, {Version: aws.String("9")}}, NextMarker: aws.String("more")}
	if in.Marker != nil {
		out = &lambda.ListVersionsByFunctionOutput{Versions: []lambdatypes.FunctionConfiguration{{Version: aws.String(strconv.Itoa(p.newest[*in.FunctionName]))}, {Version: aws.String("10")}}}
	}
	return out, p.fails["lambda:ListVersionsByFunction"]
}

func (p *patient) GetSchedule(context.Context, *scheduler.GetScheduleInput, ...func(*scheduler.Options)) (*scheduler.GetScheduleOutput, error) {
	return &p.schedule, p.fails["scheduler:GetSchedule"]
}

func (p *patient) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{
		"ApproximateNumberOfMessages":           strconv.Itoa(p.waiting[*in.QueueUrl]),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(p.inHand[*in.QueueUrl]),
	}}, p.fails["sqs:GetQueueAttributes"]
}

func (p *patient) DueEvents(_ context.Context, status payment.EventStatus, before time.Time, found func(payment.EventKey) bool) error {
	for _, at := range p.due[status] {
		if at.Before(before) && !found(payment.EventKey{Gateway: "razorpay", ID: "evt"}) {
			break
		}
	}
	return p.fails["dynamodb:Query"]
}

func (p *patient) Cursor(_ context.Context, gateway, scan string) (payment.Cursor, error) {
	if gateway != "razorpay" || scan != "hourly" {
		return payment.Cursor{}, nil
	}
	return p.cursor, p.fails["dynamodb:GetItem"]
}

// checkCase is one way in which a check goes.
type checkCase struct {
	name string
	ill  func(*patient)
	want finding
}

// expectChecks runs the check of that name on each case's patient.
func expectChecks(t *testing.T, name string, cases []checkCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(name+"/"+c.name, func(t *testing.T) {
			p := newPatient(t)
			if c.ill != nil {
				c.ill(p)
			}
			if diff := cmp.Diff(c.want, p.look(t, name)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// look makes one check. Addresses of the test's servers are replaced by API and GATEWAY.
func (p *patient) look(t *testing.T, name string) finding {
	t.Helper()
	checks := p.checks()
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no check is called %s", name)
	}
	f := checks[i].look(t.Context())
	f.Seen = p.masked(f.Seen)
	return f
}

// masked is text without the addresses of the test's servers.
func (p *patient) masked(text string) string {
	if p.api.url != "" {
		text = strings.ReplaceAll(text, p.api.url, "API")
	}
	return strings.ReplaceAll(text, p.stack.Parameters["RazorpayApiUrl"], "GATEWAY")
}
