package functions_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/apigw"
	"paidonce/shared/localaws"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

// The names of the template's defaults.
const (
	webhookSecretName = "paidonce/razorpay/webhook"
	apiKeySecretName  = "paidonce/razorpay/api-key"
)

// runbookWorld is the trouble.
type runbookWorld struct {
	dir               string // of the terminal
	broken, early     apigw.Order
	failedToo, parked string
	unreadable        []byte
	refundedPayment   string
	oldSecret         string // the webhook's document, as it was
	apiKeyVersion     string
	throttledFunction string
	worker, notify    string // their event source mappings
}

func namedOrder(t *testing.T, id string) apigw.Order {
	t.Helper()
	status, answer := call(t, http.MethodPost, "/orders", fmt.Appendf(nil, `{"id":%q,"amount":%d,"currency":"INR","gateway":"razorpay"}`, id, price), nil)
	var o apigw.Order
	if err := json.Unmarshal(answer, &o); status != http.StatusCreated || err != nil {
		t.Fatalf("POST /orders answered %d %s", status, answer)
	}
	return o
}

// disputed is the webhook's body that says the order was paid, and that the bank may take the money back.
func disputed(o apigw.Order, paymentID string) []byte {
	paid := string(body(o, paymentID))
	paid = strings.Replace(paid, `"event":"payment.captured"`, `"event":"payment.dispute.created"`, 1)
	dispute := fmt.Sprintf(`"payload":{"dispute":{"entity":{"id":"disp_%s","payment_id":%q,"amount":%d,"currency":"INR","status":"open","phase":"chargeback"}},`,
		paymentID, paymentID, price)
	return []byte(strings.Replace(paid, `"payload":{`, dispute, 1))
}

// prepare begins all the trouble that can be there at once.
func (r *runbookWorld) prepare(t *testing.T) {
	purge(t)
	r.worker, r.notify = mappingOf(t, "WorkerFunctionName"), mappingOf(t, "NotifyFunctionName")

	held := namedOrder(t, runbookHeld)
	deliver(t, uniqueEvent(), disputed(held, "pay_"+uniqueEvent()), stack.WebhookSecret)

	r.broken, r.failedToo = namedOrder(t, runbookBroken), uniqueEvent()
	setRowVersion(t, r.broken.ID, "99")
	deliver(t, runbookFailed, body(r.broken, "pay_Runbook1"), stack.WebhookSecret)
	deliver(t, r.failedToo, body(r.broken, "pay_Runbook1"), stack.WebhookSecret)

	r.early, r.parked = newOrder(t), uniqueEvent()
	r.early.GatewayOrderID = aws.String("order_Runbook" + strings.TrimPrefix(r.parked, "evt_proof_"))
	deliver(t, r.parked, body(r.early, "pay_"+r.parked), stack.WebhookSecret)
	r.unreadable = []byte(`{"event":"payment.captured","payload":{"payment":{"entity":{"id":"pay_1","amount":"much"}}}}`)
	deliver(t, runbookUnreadable, r.unreadable, stack.WebhookSecret)

	// The answer to a refund is lost, and no webhook tells of it.
	refunded := namedOrder(t, runbookRefunded)
	r.refundedPayment = pay(t, refunded, "captured", true)
	eventually(t, "fulfilled", func() bool { return !storedOrder(t, refunded.ID).FulfilledAt.IsZero() })
	if err := gateway.SetFaults(razorpaytest.Fault{Method: http.MethodPost, Path: "/v1/payments/" + r.refundedPayment + "/refund", Kind: razorpaytest.ResetAfter}); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.ChangeDelivery(razorpaytest.DeliveryChange{Enabled: new(false)}); err != nil {
		t.Fatal(err)
	}
	status, _, answer := refund(t, refunded.ID, `{"id":"return-7","amount":10000}`)
	if _, err := gateway.ChangeDelivery(razorpaytest.DeliveryChange{Enabled: new(true)}); err != nil || status != http.StatusAccepted {
		t.Fatalf("a refund in doubt answered %d %s, %v", status, answer, err)
	}

	// A delivery that was answered 500, and one that nobody signed.
	id, o := uniqueEvent(), newOrder(t)
	fault := stack.Proxy.Inject(localaws.Fault{Kind: localaws.Refuse, Operation: send, Contains: id, Count: 2})
	defer fault.Remove()
	if status, answer := deliver(t, id, body(o, "pay_"+id), stack.WebhookSecret); status != http.StatusInternalServerError {
		t.Fatalf("the broken delivery answered %d %s", status, answer)
	}
	deliver(t, uniqueEvent(), body(o, "pay_forged"), "nobody's")

	daily, err := table.Cursor(t.Context(), "razorpay", payment.DailyScan.Name)
	if err == nil && daily.Version == 0 { // as if the new stack had gone through six days already, which takes long
		daily.Next, daily.Until, daily.BeganAt = time.Now(), time.Now(), time.Now()
		err = table.PutCursor(t.Context(), "razorpay", payment.DailyScan.Name, daily)
	}
	if err != nil {
		t.Fatal(err)
	}
	sweep(t)
}

// isThere waits until the trouble has come to its end.
func (r *runbookWorld) isThere(t *testing.T) {
	becomes(t, runbookFailed, payment.EventFailed)
	becomes(t, r.failedToo, payment.EventFailed)
	becomes(t, r.parked, payment.EventParked)
	becomes(t, runbookUnreadable, payment.EventParked)
	eventually(t, "in the dead letter queue", func() bool { return messages(t, stack.EventsDlqURL) == "2" })
	eventually(t, "held", func() bool { return storedOrder(t, runbookHeld).Status == payment.Paid })
}

// orderTurnsUp makes known the order of the parked event.
func (r *runbookWorld) orderTurnsUp(t *testing.T) {
	o, err := table.CreateOrder(t.Context(), payment.NewOrder("late-"+r.parked, payment.Money{Amount: price, Currency: "INR"}, "razorpay", payment.Test, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	o.GatewayOrderID = *r.early.GatewayOrderID
	if err := table.Commit(t.Context(), payment.Commit{Order: o, Effects: []payment.Effect{
		payment.OrderPointer{GatewayOrderID: o.GatewayOrderID},
	}}); err != nil {
		t.Fatal(err)
	}
}

// mappingOf is the event source mapping of the function that an output names.
func mappingOf(t *testing.T, function string) string {
	t.Helper()
	name := output(t, function)
	listed, err := functionsAPI().ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{FunctionName: &name})
	if err != nil || len(listed.EventSourceMappings) != 1 {
		t.Fatalf("%s has mappings %+v, %v; want one", name, listed, err)
	}
	return aws.ToString(listed.EventSourceMappings[0].UUID)
}

func switchMapping(t *testing.T, id string, on bool) {
	t.Helper()
	if _, err := functionsAPI().UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: &id, Enabled: &on}); err != nil {
		t.Fatal(err)
	}
}

func reserve(t *testing.T, function string, calls int32) {
	t.Helper()
	if _, err := functionsAPI().PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{
		FunctionName: &function, ReservedConcurrentExecutions: &calls,
	}); err != nil {
		t.Fatal(err)
	}
}

func unreserve(t *testing.T, function string) {
	t.Helper()
	if _, err := functionsAPI().DeleteFunctionConcurrency(t.Context(), &lambda.DeleteFunctionConcurrencyInput{FunctionName: &function}); err != nil {
		t.Fatal(err)
	}
}

// put leaves a failed call in a dead letter queue, as Lambda does.
func put(t *testing.T, queueURL string) {
	t.Helper()
	if _, err := queues.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &queueURL, MessageBody: aws.String("{}"),
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{
			"ERROR_CODE": {DataType: aws.String("Number"), StringValue: aws.String("200")},
		},
	}); err != nil {
		t.Fatal(err)
	}
}

func isEmpty(t *testing.T, queueURL string) {
	t.Helper()
	if n := messages(t, queueURL); n != "0" {
		t.Errorf("%s has %s messages, want none", queueURL, n)
	}
}

func secrets() *secretsmanager.Client { return secretsmanager.NewFromConfig(stack.Config()) }

func functionsAPI() *lambda.Client { return lambda.NewFromConfig(stack.Config()) }

func secretValue(t *testing.T, name string) string {
	t.Helper()
	out, err := secrets().GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: &name})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.SecretString)
}

func secretVersion(t *testing.T, name string) string {
	t.Helper()
	out, err := secrets().GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: &name})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.VersionId)
}

func store(t *testing.T, name, document string) {
	t.Helper()
	if _, err := secrets().PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: &name, SecretString: &document}); err != nil {
		t.Fatal(err)
	}
}

// liveSecrets are what a stack has before a rotation: the secrets of this one, under the labels of live mode.
func (r *runbookWorld) liveSecrets(t *testing.T) {
	store(t, webhookSecretName, fmt.Sprintf(`{"live_current":%q,"live_previous":%q}`, stack.WebhookSecret, stack.PreviousWebhookSecret))
}

// rotated asserts that the document has a new current secret, and the one before as the previous one if it is still there, and that
// the running function takes these and no other.
func (r *runbookWorld) rotated(t *testing.T, previousToo bool) {
	t.Helper()
	var labels map[string]string
	if err := json.Unmarshal([]byte(secretValue(t, webhookSecretName)), &labels); err != nil {
		t.Fatal(err)
	}
	fresh := labels["live_current"]
	want := map[string]string{"live_current": fresh}
	if previousToo {
		want["live_previous"] = stack.WebhookSecret
	}
	if diff := cmp.Diff(want, labels); diff != "" || len(fresh) < 24 || fresh == stack.WebhookSecret {
		t.Fatalf("the document after the rotation (-want +got):\n%s", diff)
	}
	eventually(t, "taken with the new secret", func() bool { return r.takes(t, fresh, "live_current") })
	if previousToo {
		eventually(t, "taken with the one before", func() bool { return r.takes(t, stack.WebhookSecret, "live_previous") })
	}
	if r.takes(t, stack.PreviousWebhookSecret, "") {
		t.Error("the oldest secret is taken although it is in the document no more")
	}
	if _, err := os.Stat(filepath.Join(r.dir, "webhook.json")); err == nil {
		t.Error("webhook.json is left behind")
	}
}

// takes reports whether the webhook takes an event that is signed with the secret, for one of that label.
func (r *runbookWorld) takes(t *testing.T, secret, label string) bool {
	t.Helper()
	id := uniqueEvent()
	status, _ := deliver(t, id, body(r.early, "pay_"+id), secret)
	return status == http.StatusOK && event(t, id).VerifiedBy == label
}

// newAPIKey writes the file that a person writes before it is stored.
func (r *runbookWorld) newAPIKey(t *testing.T) {
	r.apiKeyVersion = secretVersion(t, apiKeySecretName)
	key := fmt.Appendf(nil, `{"key_id": %q, "key_secret": %q}`, stack.KeyID, stack.KeySecret)
	if err := os.WriteFile(filepath.Join(r.dir, "key.json"), key, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newVersion makes a second version of the webhook function live.
func (r *runbookWorld) newVersion(t *testing.T) {
	name := output(t, "WebhookFunctionName")
	describe := func(text *string) {
		t.Helper()
		if _, err := functionsAPI().UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: &name, Description: text}); err != nil {
			t.Fatal(err)
		}
	}
	before, err := functionsAPI().GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if err != nil {
		t.Fatal(err)
	}
	describe(aws.String("the next release")) // without a change there is no version
	published, err := functionsAPI().PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: &name})
	if err != nil {
		t.Fatal(err)
	}
	describe(before.Description)
	if _, err := functionsAPI().UpdateAlias(t.Context(), &lambda.UpdateAliasInput{
		FunctionName: &name, Name: aws.String("live"), FunctionVersion: published.Version,
	}); err != nil {
		t.Fatal(err)
	}
	if now := liveVersions(t)[name].version; now == "1" || now != aws.ToString(published.Version) {
		t.Fatalf("live is version %s, want a new one", now)
	}
}

// olderVersion asserts that the first version is live, and works.
func (r *runbookWorld) olderVersion(t *testing.T) {
	if now := liveVersions(t)[output(t, "WebhookFunctionName")].version; now != "1" {
		t.Errorf("live is version %s, want 1", now)
	}
	o, id := newOrder(t), uniqueEvent()
	deliver(t, id, body(o, "pay_"+id), stack.WebhookSecret)
	becomes(t, id, payment.EventApplied)
	paidOnce(t, o.ID)
}
