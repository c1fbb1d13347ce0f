package doctor

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"go.yaml.in/yaml/v3"

	"paidonce/cmd/paidonce/stack/stacktest"
)

// resourcesOf answers as CloudFormation does of a stack, a resource a page.
type resourcesOf struct {
	stack types.Stack
	pages []types.StackResourceSummary
	err   error // of the second page
}

func (r resourcesOf) DescribeStacks(context.Context, *cloudformation.DescribeStacksInput, ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	return &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{r.stack}}, nil
}

func (r resourcesOf) ListStackResources(_ context.Context, in *cloudformation.ListStackResourcesInput, _ ...func(*cloudformation.Options)) (*cloudformation.ListStackResourcesOutput, error) {
	second := "second"
	if in.NextToken == nil {
		return &cloudformation.ListStackResourcesOutput{StackResourceSummaries: r.pages[:1], NextToken: &second}, nil
	}
	return &cloudformation.ListStackResourcesOutput{StackResourceSummaries: r.pages[1:]}, r.err
}

func TestInspect(t *testing.T) {
	resource := func(id, physical, kind string) types.StackResourceSummary {
		return types.StackResourceSummary{LogicalResourceId: &id, PhysicalResourceId: &physical, ResourceType: &kind}
	}
	c := resourcesOf{
		stack: types.Stack{StackStatus: "CREATE_COMPLETE", CreationTime: &checkedAt},
		pages: []types.StackResourceSummary{resource("Table", "t", "AWS::DynamoDB::Table"), resource("Alarm", "a", "AWS::CloudWatch::Alarm")},
	}
	s, err := inspect(t.Context(), c, "shop")
	if err != nil || s.status != "CREATE_COMPLETE" || !s.created.Equal(checkedAt) {
		t.Errorf("got %+v, %v", s, err)
	}
	if alarms, err := s.ofKind("AWS::CloudWatch::Alarm"); err != nil || alarms["Alarm"] != "a" {
		t.Errorf("alarms %v, %v", alarms, err)
	}
	if _, err := s.resource("AlarmTopic"); trouble(err) != (finding{broken, "the stack has no resource AlarmTopic", deployAgain}) {
		t.Errorf("a resource that is missing: %v", err)
	}
	c.err = answersWith("AccessDenied")
	s, err = inspect(t.Context(), c, "shop")
	if err != nil {
		t.Fatal(err)
	}
	hidden := finding{skipped, "the credentials lack cloudformation:ListStackResources", ""}
	if id, err := s.resource("Table"); id != "t" || err != nil {
		t.Errorf("a resource of the first page: %s, %v", id, err)
	}
	if _, err := s.resource("AlarmTopic"); trouble(err) != hidden {
		t.Errorf("a resource that may be there: %v", err)
	}
	if _, err := s.ofKind("AWS::DynamoDB::Table"); trouble(err) != hidden {
		t.Errorf("a list that may be longer: %v", err)
	}
}

// TestTheTemplateHasWhatIsLookedFor: what the checks call by its name in the template is called so there. SAM names an event
// source by its function and event.
func TestTheTemplateHasWhatIsLookedFor(t *testing.T) {
	text, err := os.ReadFile("../../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Parameters map[string]yaml.Node `yaml:"Parameters"`
		Outputs    map[string]yaml.Node `yaml:"Outputs"`
		Resources  map[string]struct {
			Properties struct {
				Events map[string]yaml.Node `yaml:"Events"`
			} `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for id, r := range template.Resources {
		named[id] = true
		for event := range r.Properties.Events {
			named[id+event] = true
		}
	}
	p := newPatient(t)
	for id := range p.stack.Resources {
		if !named[id] {
			t.Errorf("the template has no resource %s", id)
		}
	}
	for name := range p.stack.Parameters {
		if _, there := template.Parameters[name]; !there {
			t.Errorf("the template has no parameter %s", name)
		}
	}
	for _, name := range []string{"ApiUrl", "TableName", "AlarmTopicArn"} {
		if _, there := template.Outputs[name]; !there {
			t.Errorf("the template has no output %s", name)
		}
	}
}

func stsAt(url string) *sts.Client {
	cfg := stacktest.Config()
	cfg.BaseEndpoint = &url
	return sts.NewFromConfig(cfg)
}

// TestClockOfAWS: the time is that of the answer's Date.
func TestClockOfAWS(t *testing.T) {
	var date time.Time
	url := serveDated(t, &date)
	for _, off := range []time.Duration{0, -time.Hour, 10 * time.Minute} {
		date = time.Now().Add(-off)
		who, err := identifier(stsAt(url), "ap-south-1")(t.Context())
		if err != nil || who.account != "123456789012" {
			t.Fatalf("got %+v, %v", who, err)
		}
		if got := who.here.Sub(who.there); (got - off).Abs() > 5*time.Second {
			t.Errorf("off by %s, want %s", got, off)
		}
	}
}

func serveDated(t *testing.T, date *time.Time) string {
	t.Helper()
	return serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", date.UTC().Format(http.TimeFormat))
		w.Write([]byte(`<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`))
	})
}
