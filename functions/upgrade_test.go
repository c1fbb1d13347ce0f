package functions_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

const (
	upgradeOrders = 100                    // three webhooks each
	upgradePace   = 120 * time.Millisecond // from one payment to the next
	upgradeShare  = upgradeOrders / 10     // of them before the upgrade begins, and as many after it
)

// TestAnUpgradeLosesNothing deploys anew while customers pay. What a request meets in between may fail, as long as the gateway's
// repetition makes it good. What the upgrade changes stays changed: it is the last test of the package, or no later one may mind.
func TestAnUpgradeLosesNothing(t *testing.T) {
	change := map[string]string{
		"LogLevel":       "DEBUG",  // of all functions
		"ConfirmCapture": "always", // of the worker, which then asks the gateway about each payment
	}
	purge(t)
	var orders []*victim
	for range upgradeOrders {
		orders = append(orders, &victim{fate: fate{name: "paid in the upgrade", status: payment.Paid, fulfilled: true}})
	}
	atOnce(orders, func(v *victim) { v.Order = newOrder(t) })
	before := liveVersions(t)

	var paid atomic.Int64
	payNext := func() {
		v := orders[paid.Add(1)-1]
		if _, err := gateway.Pay(razorpaytest.PaymentRequest{OrderID: *v.GatewayOrderID, Status: "captured"}); err != nil {
			t.Error(err)
		}
	}
	upgraded := make(chan error, 1)
	tick := time.NewTicker(upgradePace)
	defer tick.Stop()
	var began, ended time.Time
	for ended.IsZero() || paid.Load() < upgradeOrders {
		select {
		case err := <-upgraded:
			ended = time.Now()
			if err != nil {
				t.Fatal(err)
			}
		case <-tick.C:
			switch {
			case began.IsZero() && paid.Load() == upgradeShare:
				began = time.Now()
				go func() { upgraded <- stack.Update(t.Context(), change) }()
				fallthrough
			case !ended.IsZero() || paid.Load() < upgradeOrders-upgradeShare:
				payNext()
			}
		}
	}
	if err := gateway.Pass(t.Context(), time.Hour); err != nil { // the gateway's second tries are due
		t.Fatal(err)
	}

	eventually(t, "fulfilled", func() bool {
		return !slices.ContainsFunc(orders, func(v *victim) bool { return storedOrder(t, v.ID).FulfilledAt.IsZero() })
	})
	first, last := askedAbout(orders[0]), askedAbout(orders[len(orders)-1]) // before the test itself asks
	eventually(t, "right", func() bool {
		atOnce(orders, func(v *victim) { v.examine(t) })
		return !slices.ContainsFunc(orders, func(v *victim) bool { return len(v.wrong) > 0 })
	})
	for _, v := range orders {
		paidOnce(t, v.ID)
	}
	answered(t, orders, ended.Sub(began))
	for _, url := range deadLetters(t) {
		if n := messages(t, url); n != "0" {
			t.Errorf("%s has %s messages", url, n)
		}
	}
	for name, now := range liveVersions(t) {
		if now.version == before[name].version {
			t.Errorf("%s: live is still version %s", name, now.version)
		}
		if now.level != "DEBUG" || before[name].level != "INFO" {
			t.Errorf("%s writes %s, and wrote %s", name, now.level, before[name].level)
		}
	}
	mappingsEnabled(t)
	if first > 0 || last == 0 {
		t.Errorf("the gateway was asked %d times about the first payment and %d times about the last: want no call, then some", first, last)
	}
}

// answered asserts that each webhook was taken in the end, and says how many came more than once.
func answered(t *testing.T, orders []*victim, took time.Duration) {
	t.Helper()
	mine := map[string]bool{}
	for _, v := range orders {
		mine[*v.GatewayOrderID] = true
	}
	last, others := map[string]int{}, map[int]int{}
	for _, d := range gateway.Deliveries() {
		if !mine[d.OrderID] {
			continue
		}
		last[d.EventID] = d.Status
		if d.Status != http.StatusOK {
			others[d.Status]++
		}
	}
	if len(last) != 3*len(orders) {
		t.Errorf("%d webhooks, want three of each of %d orders", len(last), len(orders))
	}
	for id, status := range last {
		if status != http.StatusOK {
			t.Errorf("event %s was answered %d in the end", id, status)
		}
	}
	t.Logf("the upgrade took %.1f s. Of %d webhooks meanwhile and around it, the gateway had to repeat, by status: %v", took.Seconds(), len(last), others)
}

func messages(t *testing.T, queueURL string) string {
	t.Helper()
	out, err := queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &queueURL, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameApproximateNumberOfMessages},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes["ApproximateNumberOfMessages"]
}

// live is what the alias of a function points to.
type live struct{ version, level string }

// liveVersions returns what serves, by function.
func liveVersions(t *testing.T) map[string]live {
	t.Helper()
	client := lambda.NewFromConfig(stack.Config())
	listed, err := client.ListFunctions(t.Context(), &lambda.ListFunctionsInput{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]live{}
	for _, f := range listed.Functions {
		at, err := client.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{
			FunctionName: f.FunctionName, Qualifier: aws.String("live"),
		})
		if err != nil {
			t.Fatal(err)
		}
		found[*f.FunctionName] = live{aws.ToString(at.Version), at.Environment.Variables["LOG_LEVEL"]}
	}
	if len(found) != 7 {
		t.Fatalf("functions %v, want seven", found)
	}
	return found
}

func mappingsEnabled(t *testing.T) {
	t.Helper()
	listed, err := lambda.NewFromConfig(stack.Config()).ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{})
	if err != nil || len(listed.EventSourceMappings) != 2 {
		t.Fatalf("mappings %v, %v; want those of worker and notify", listed, err)
	}
	for _, m := range listed.EventSourceMappings {
		if aws.ToString(m.State) != "Enabled" || !strings.HasSuffix(aws.ToString(m.FunctionArn), ":live") {
			t.Errorf("the mapping of %s is %s", aws.ToString(m.FunctionArn), aws.ToString(m.State))
		}
	}
}

// askedAbout is how often the gateway was asked about an order's payments.
func askedAbout(v *victim) (n int) {
	for _, c := range gateway.Calls() {
		if c.Method == http.MethodGet && strings.HasSuffix(c.Path, "/orders/"+*v.GatewayOrderID+"/payments") {
			n++
		}
	}
	return n
}
