package doctor

import (
	"testing"

	"paidonce/cmd/paidonce/stack/stacktest"
)

func secretIs(name, text string) func(*patient) {
	return func(p *patient) { p.documents[name] = text }
}

func noSecret(name string) func(*patient) {
	return func(p *patient) { delete(p.documents, name) }
}

const (
	mendWebhook = "correct the secret, or the parameter RazorpayWebhookSecretName: docs/runbook.md#rotate-the-webhook-secret"
	mendKey     = "correct the secret, or the parameter RazorpayApiKeySecretName: docs/runbook.md#rotate-the-api-key"
	testKey     = `{"key_id":"rzp_test_Sample","key_secret":"` + stacktest.SecretKey + `"}`
)

func TestCheckSecrets(t *testing.T) {
	const odd = "the secret shop/webhook is not as it should be: razorpay: webhook secrets: "
	expectChecks(t, "webhook secret", []checkCase{
		{"good", nil, finding{fine, "shop/webhook: live_current", ""}},
		{"two", secretIs("shop/webhook", `{"live_previous":"a","live_current":"b"}`), finding{fine, "shop/webhook: live_current, live_previous", ""}},
		{"none", noSecret("shop/webhook"), finding{broken, "the secret shop/webhook does not exist, or has no value", mendWebhook}},
		{"going", awsFails("secretsmanager:GetSecretValue", "InvalidRequestException"), finding{broken, "the secret shop/webhook is marked for deletion", mendWebhook}},
		{"no JSON", secretIs("shop/webhook", stacktest.SecretKey), finding{broken, odd + "not a JSON object of strings", mendWebhook}},
		{"the wrong way round", secretIs("shop/webhook", `{"`+stacktest.SecretKey+`":"live_current"}`),
			finding{broken, odd + "unknown label (a name that is not shown), want one of live_current, live_previous, test_current, test_previous", mendWebhook}},
		{"one for both modes", secretIs("shop/webhook", `{"live_current":"`+stacktest.SecretKey+`","test_current":"`+stacktest.SecretKey+`"}`),
			finding{broken, odd + "live_current and test_current are the same", mendWebhook}},
		{"twice", secretIs("shop/webhook", `{"live_current":"a","live_current":"b"}`), finding{broken, odd + "live_current is there twice", mendWebhook}},
		{"no name", func(p *patient) { delete(p.stack.Parameters, "RazorpayWebhookSecretName") }, finding{broken, "the stack has no parameter RazorpayWebhookSecretName", deployAgain}},
	})
	expectChecks(t, "API key", []checkCase{
		{"good", nil, finding{fine, "shop/key: rzp_live_Sample", ""}},
		{"none", noSecret("shop/key"), finding{broken, "the secret shop/key does not exist, or has no value", mendKey}},
		{"a webhook secret", secretIs("shop/key", `{"live_current":"`+stacktest.SecretKey+`"}`),
			finding{broken, "the secret shop/key is not as it should be: razorpay: API key: want key_id and key_secret and nothing else, neither empty", mendKey}},
	})
}

func TestCheckTestOrLive(t *testing.T) {
	testHook := secretIs("shop/webhook", `{"test_current":"`+stacktest.SecretKey+`"}`)
	bothHooks := secretIs("shop/webhook", `{"test_current":"a","live_current":"b"}`)
	testOnly := secretIs("shop/key", testKey)
	expectChecks(t, "test or live", []checkCase{
		{"live in prod", nil, finding{fine, "a live key, live webhooks, Stage prod", ""}},
		{"live and test in prod", bothHooks, finding{fine, "a live key, test and live webhooks, Stage prod", ""}},
		{"test in dev", allOf(inDev, testHook, testOnly), finding{fine, "a test key, test webhooks, Stage dev", ""}},
		{"test in prod", allOf(testHook, testOnly), finding{warning, "a test key, test webhooks, Stage prod: no real money can come in",
			"store the live key and the live webhook secret: docs/runbook.md#rotate-the-api-key"}},
		{"live in dev", inDev, finding{warning, "a live key, live webhooks, Stage dev: real orders in a table that nothing keeps from being deleted",
			"use a test key here, or deploy with Stage=prod"}},
		{"live key, test webhooks", testHook, finding{broken, "a live key, test webhooks, Stage prod: no webhook could pay an order that this key makes",
			"give the webhook secret the label live_current, or use the other mode's key: docs/runbook.md#rotate-the-webhook-secret, #rotate-the-api-key"}},
		{"test key, live webhooks", testOnly, finding{broken, "a test key, live webhooks, Stage prod: no webhook could pay an order that this key makes",
			"give the webhook secret the label test_current, or use the other mode's key: docs/runbook.md#rotate-the-webhook-secret, #rotate-the-api-key"}},
		{"no key", noSecret("shop/key"), finding{skipped, "the secret shop/key cannot be used", ""}},
		{"no webhook secret", noSecret("shop/webhook"), finding{skipped, "the secret shop/webhook cannot be used", ""}},
	})
}

func TestCheckGateway(t *testing.T) {
	answers := func(status int, body string) func(*patient) {
		return func(p *patient) { p.listed = stacktest.Answer{Status: status, Body: body} }
	}
	const refused = `{"error":{"code":"BAD_REQUEST_ERROR","description":"` + stacktest.SecretKey + `"}}`
	expectChecks(t, "gateway", []checkCase{
		{"good", nil, finding{fine, "GATEWAY takes the key rzp_live_Sample", ""}},
		{"odd payments", answers(200, `{"entity":"collection","count":1,"items":[{"id":7}]}`), finding{fine, "GATEWAY takes the key rzp_live_Sample", ""}},
		{"refused", answers(401, refused), finding{broken, "GATEWAY does not take the key rzp_live_Sample: HTTP 401 BAD_REQUEST_ERROR", "docs/runbook.md#rotate-the-api-key"}},
		{"forbidden", answers(403, refused), finding{broken, "GATEWAY does not take the key rzp_live_Sample: HTTP 403 BAD_REQUEST_ERROR", "docs/runbook.md#rotate-the-api-key"}},
		{"throttled", answers(429, ""), finding{warning, "GATEWAY throttles: HTTP 429", "see who calls so often, and lower the parameter GatewayCallsPerSecond"}},
		{"down", answers(502, "<html>"), finding{warning, "GATEWAY answers HTTP 502", "ask again later; if it stays, check the parameter RazorpayApiUrl"}},
		{"nobody there", withParameter("RazorpayApiUrl", "http://127.0.0.1:1"), finding{warning, "GATEWAY did not answer",
			"check the network from here; if it stays, the gateway is down, and reconcile makes up for it later"}},
		{"in the clear", withParameter("RazorpayApiUrl", "http://gateway.example"), finding{broken, "razorpay: the API's URL must be https", "correct the parameter RazorpayApiUrl"}},
		{"no key", noSecret("shop/key"), finding{skipped, "the secret shop/key cannot be used", ""}},
	})
	p := newPatient(t)
	if p.look(t, "gateway"); p.key != "rzp_live_Sample" {
		t.Errorf("the gateway was asked with the key %q", p.key)
	}
}
