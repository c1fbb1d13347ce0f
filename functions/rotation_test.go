package functions_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"paidonce/shared/localaws"
)

// A webhook secret is rotated under a function that runs: it takes the new one at its first use, the old one stays valid as long as
// it is in the document, and one that is taken out of it is refused. Nothing is deployed, and nothing that is genuine is lost.
func TestAWarmFunctionTakesANewSecret(t *testing.T) {
	const secretName = "paidonce/razorpay/webhook" // the template's default
	const fresh = "the-secret-after-the-rotation"
	old := localaws.SampleSecrets
	store := func(current, previous string) {
		t.Helper()
		document := fmt.Sprintf(`{"test_current":%q,"test_previous":%q}`, current, previous)
		name := secretName
		if _, err := secretsmanager.NewFromConfig(stack.Config()).PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
			SecretId: &name, SecretString: &document,
		}); err != nil {
			t.Fatal(err)
		}
	}
	o := newOrder(t)
	first := uniqueEvent()
	delivered := func(eventID, secret string) bool {
		status, answer := deliver(t, eventID, body(o, "pay_"+eventID), secret)
		if status != http.StatusOK && status != http.StatusUnauthorized {
			t.Fatalf("answered %d %s", status, answer)
		}
		return status == http.StatusOK
	}
	if !delivered(first, old.Webhook) {
		t.Fatal("refused before the rotation")
	}
	if delivered(uniqueEvent(), fresh) {
		t.Fatal("the new secret is valid before it is stored")
	}

	store(fresh, old.Webhook)
	second := uniqueEvent()
	eventually(t, "taken with the new secret", func() bool { return delivered(second, fresh) }) // it reads again once in a while at most
	third := uniqueEvent()
	if !delivered(third, old.Webhook) {
		t.Error("the old secret is refused although it is in the document")
	}
	if delivered(uniqueEvent(), old.PreviousWebhook) {
		t.Error("the oldest secret is taken although it is in the document no more")
	}
	for eventID, want := range map[string]string{first: "test_current", second: "test_current", third: "test_previous"} {
		if got := event(t, eventID).VerifiedBy; got != want {
			t.Errorf("%s is verified by %q, want %q", eventID, got, want)
		}
	}
	find(t, "webhook", "event", "razorpay/"+third, "verified_by", "test_previous")

	store(old.Webhook, old.PreviousWebhook)
	eventually(t, "taken with the oldest secret again", func() bool { return delivered(uniqueEvent(), old.PreviousWebhook) })
}
