package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"paidonce/cmd/paidonce/stack"
	"paidonce/shared/dynamo"
)

// doctor looks at one stack. Its clients are named by what they reach.
type doctor struct {
	name  string // of the stack, for people
	local bool   // on an emulator, which measures, mails and guards less than AWS
	now   func() time.Time
	stack inspected

	identify  func(context.Context) (identity, error)
	secrets   secretDescriber
	api       unsignedAPI
	metrics   metricReader
	topics    subscriptionLister
	tables    tableDescriber
	functions functionReader
	schedules scheduleReader
	queues    queueReader
	store     dueReader
}

func newDoctor(ctx context.Context, t stack.Target) (*doctor, error) {
	cfg := t.Deployed.Config
	inspected, err := inspect(ctx, cloudformation.NewFromConfig(cfg), t.Deployed.Name)
	if err != nil {
		return nil, err
	}
	db := dynamodb.NewFromConfig(cfg)
	return &doctor{
		name: t.Name, local: cfg.BaseEndpoint != nil, now: time.Now, stack: inspected,
		identify:  identifier(sts.NewFromConfig(cfg), cfg.Region),
		secrets:   secretsmanager.NewFromConfig(cfg),
		api:       unsignedAPI{cmp.Or(t.API.URL, strings.TrimSuffix(inspected.Outputs["ApiUrl"], "/")), http.DefaultClient},
		metrics:   cloudwatch.NewFromConfig(cfg),
		topics:    sns.NewFromConfig(cfg),
		tables:    db,
		functions: lambda.NewFromConfig(cfg),
		schedules: scheduler.NewFromConfig(cfg),
		queues:    sqs.NewFromConfig(cfg),
		store:     dynamo.New(db, inspected.Outputs["TableName"]),
	}, nil
}

// inspected is a stack as CloudFormation knows it.
type inspected struct {
	stack.Parts
	name    string
	status  string
	created time.Time
	kinds   map[string]string // types of the resources, by their logical ids
	listErr error             // why the resources could not be listed
}

// stackLister is what is needed of a *cloudformation.Client.
type stackLister interface {
	stack.Describer
	cloudformation.ListStackResourcesAPIClient
}

// inspect reads what the stack is made of. [stack.ErrNoSuchStack] if there is none of that name.
func inspect(ctx context.Context, c stackLister, name string) (inspected, error) {
	described, err := stack.Describe(ctx, c, name)
	if err != nil {
		return inspected{}, err
	}
	s := inspected{
		Parts: stack.PartsOf(described), name: name, status: string(described.StackStatus),
		created: aws.ToTime(described.CreationTime), kinds: map[string]string{},
	}
	pages := cloudformation.NewListStackResourcesPaginator(c, &cloudformation.ListStackResourcesInput{StackName: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			s.listErr = called("cloudformation:ListStackResources", err)
			break
		}
		for _, r := range page.StackResourceSummaries {
			id := aws.ToString(r.LogicalResourceId)
			s.Resources[id], s.kinds[id] = aws.ToString(r.PhysicalResourceId), aws.ToString(r.ResourceType)
		}
	}
	return s, nil
}

// resource is the physical id of the resource that template.yaml calls so.
func (s inspected) resource(logicalID string) (string, error) {
	id := s.Resources[logicalID]
	if id == "" && s.listErr != nil {
		return "", s.listErr
	}
	return id, s.needed("resource "+logicalID, id)
}

// ofKind are the physical ids of all resources of a type, by their logical ids.
func (s inspected) ofKind(kind string) (map[string]string, error) {
	found := map[string]string{}
	for id, its := range s.kinds {
		if its == kind {
			found[id] = s.Resources[id]
		}
	}
	if len(found) == 0 && s.listErr == nil {
		return nil, missingPart("resource of type " + kind)
	}
	return found, s.listErr
}

func (s inspected) parameter(name string) (string, error) {
	value := s.Parameters[name]
	return value, s.needed("parameter "+name, value)
}

func (s inspected) needed(what, value string) error {
	if value == "" {
		return missingPart(what)
	}
	return nil
}

func (s inspected) isProd() bool { return s.Parameters["Stage"] == "prod" }

// missingPart is what a stack of this release has, and this one has not.
type missingPart string

func (m missingPart) Error() string { return "the stack has no " + string(m) }

// lostPart is a resource that the stack made, and somebody deleted.
type lostPart string

func (l lostPart) Error() string { return string(l) + " is gone" }

// callError is a call to AWS that could not be made, by the IAM action that it needs.
type callError struct {
	action string
	err    error
}

func (e *callError) Error() string { return e.action + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// called says which action failed; nil for nil.
func called(action string, err error) error {
	if err == nil {
		return nil
	}
	return &callError{action, err}
}

const (
	// deployAgain is the cure for what another release deployed.
	deployAgain = "the stack is of another release: deploy this one (make deploy), or use the paidonce of that one"
	// revertDrift is the cure for what somebody changed by hand. A deployment compares templates, and would leave it (CloudFormation,
	// "Using drift-aware change sets").
	revertDrift = "changed by hand, which a plain deployment leaves so: undo it, or use aws cloudformation create-change-set --deployment-mode REVERT_DRIFT"
)

// trouble is the finding of a check that an error ended. It repeats no text of AWS's: that may hold what was signed.
func trouble(err error) finding {
	if missing := missingPart(""); errors.As(err, &missing) {
		return finding{broken, missing.Error(), deployAgain}
	}
	if lost := lostPart(""); errors.As(err, &lost) {
		return finding{broken, lost.Error(), revertDrift}
	}
	if faulty := new(stack.FaultySecret); errors.As(err, &faulty) {
		return finding{broken, faulty.Error(), faulty.Cure()}
	}
	action := "what was asked"
	if call := new(callError); errors.As(err, &call) {
		action = call.action
	}
	switch code := stack.CodeOf(err); {
	case isDenial(code):
		return notChecked("the credentials lack %s", action)
	case code != "":
		return notChecked("AWS answered %s to %s", code, action)
	case errors.Is(err, context.DeadlineExceeded):
		return notChecked("no answer in time to %s", action)
	}
	return notChecked("no answer to %s", action)
}

// isDenial reports whether a code of AWS's says that the credentials may not do this; services differ.
func isDenial(code string) bool {
	switch code {
	case "AccessDenied", "AccessDeniedException", "AuthorizationError", "AuthorizationErrorException", "UnauthorizedOperation", "UnauthorizedException":
		return true
	}
	return false
}

// identity is whose the credentials are, and what time it was, here and there, when AWS said so.
type identity struct {
	account, region string
	here, there     time.Time
}

func identifier(c *sts.Client, region string) func(context.Context) (identity, error) {
	return func(ctx context.Context) (identity, error) {
		out, err := c.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return identity{}, called("sts:GetCallerIdentity", err)
		}
		there, dated := awsmiddleware.GetServerTime(out.ResultMetadata)
		here, received := awsmiddleware.GetResponseAt(out.ResultMetadata)
		if !dated || !received {
			return identity{}, called("sts:GetCallerIdentity", errors.New("the answer has no date"))
		}
		return identity{aws.ToString(out.Account), region, here, there}, nil
	}
}

const (
	clockWarning = 30 * time.Second
	clockFailure = 5 * time.Minute // AWS refuses signatures that are further off (AWS, "Troubleshoot Signature Version 4")
)

func (d *doctor) account(ctx context.Context) finding {
	if d.local {
		return onlyOnAWS("any credentials will do")
	}
	who, err := d.identify(ctx)
	if err != nil {
		return trouble(err)
	}
	off := who.here.Sub(who.there).Round(time.Second)
	seen := fmt.Sprintf("account %s in %s, this clock is %s ahead of AWS's", who.account, who.region, off)
	if off < 0 {
		seen = fmt.Sprintf("account %s in %s, this clock is %s behind AWS's", who.account, who.region, -off)
	}
	const cure = "set the clock of this machine, by NTP: AWS refuses what is signed more than 5 minutes off"
	switch off = off.Abs(); {
	case off > clockFailure:
		return finding{broken, seen, cure}
	case off > clockWarning:
		return finding{warning, seen, cure}
	}
	return isFine("%s", seen)
}

func (d *doctor) deployment(context.Context) finding {
	stage, err := d.stack.parameter("Stage")
	if err != nil {
		return trouble(err)
	}
	seen := fmt.Sprintf("%s, Stage %s", d.stack.status, stage)
	why := fmt.Sprintf("aws cloudformation describe-stack-events --stack-name %s says why: remove the cause and deploy again", d.stack.name)
	switch status := d.stack.status; {
	case status == "CREATE_COMPLETE", status == "UPDATE_COMPLETE", status == "IMPORT_COMPLETE":
		return isFine("%s", seen)
	case strings.HasSuffix(status, "_IN_PROGRESS"):
		return finding{warning, seen + ": something is under way", "wait for its end, and ask again"}
	case status == "UPDATE_ROLLBACK_COMPLETE", status == "IMPORT_ROLLBACK_COMPLETE":
		return finding{warning, seen + ": the last deployment was undone, the release before it runs", why}
	}
	return finding{broken, seen, why}
}
