package send

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/cmd/paidonce/terminal/terminaltest"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
)

// day is when the tests look.
var day = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var sendSecrets = []razorpay.Secret{
	{Label: "test_current", Value: "current-secret-of-the-tests"}, {Label: "test_previous", Value: "previous-secret-of-the-tests"},
}

// receipt is one delivery as it came in.
type receipt struct {
	id, label string // label: of the secret that signed it
	body      string
}

// webhookBench is a stack that takes webhooks, and has the one order o1.
type webhookBench struct {
	*testing.T
	target
	mu       sync.Mutex
	receipts []receipt
	answers  func(receipt) stacktest.Answer
	rows     map[string]payment.Event // by event id
}

func newWebhookBench(t *testing.T) *webhookBench {
	t.Helper()
	b := &webhookBench{T: t, rows: map[string]payment.Event{}}
	seen := map[string]bool{}
	b.answers = func(r receipt) stacktest.Answer {
		if r.label == "" {
			return stacktest.Answer{Status: 401, Body: `{"error":"bad signature"}`}
		}
		duplicate := seen[r.id]
		seen[r.id] = true
		return stacktest.Answer{Status: 200, Body: fmt.Sprintf(`{"received":true,"duplicate":%v}`, duplicate)}
	}
	server := httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(server.Close)
	b.target = target{
		Target: stack.Target{Name: "the test's stack", Flags: " --stack test", API: stack.Client{URL: server.URL, Config: stacktest.Config()}, Events: rowsOf{b: b}},
		signing: func(context.Context) (signing, error) {
			return signing{secrets: sendSecrets, secretName: "the/secret", account: "acc_Ours"}, nil
		},
	}
	return b
}

func (b *webhookBench) serve(w http.ResponseWriter, r *http.Request) {
	a := stacktest.Answer{Status: 404, Body: `{"error":"not found"}`}
	switch body, _ := io.ReadAll(r.Body); r.Method + " " + r.URL.Path {
	case "POST /webhooks/razorpay":
		label, _ := razorpay.Verify(body, r.Header.Get(razorpay.HeaderSignature), sendSecrets)
		got := receipt{r.Header.Get(razorpay.HeaderEventID), label, string(body)}
		b.mu.Lock()
		b.receipts = append(b.receipts, got)
		a = b.answers(got)
		b.mu.Unlock()
	case "GET /orders/o1":
		a = stacktest.Answer{Status: 200, Body: stacktest.AsJSON(b.T, stacktest.Order(stacktest.Is(payment.Paid, payment.Paid, 49900)))}
	}
	w.WriteHeader(a.Status)
	io.WriteString(w, a.Body)
}

func (b *webhookBench) find(context.Context, stack.Options) (target, error) {
	return b.target, nil
}

// rowsOf is the table of a bench.
type rowsOf struct {
	stack.EventKeeper
	b *webhookBench
}

func (r rowsOf) Event(_ context.Context, k payment.EventKey) (payment.Event, error) {
	e, found := r.b.rows[k.ID]
	if !found {
		return e, payment.ErrNotFound
	}
	return e, nil
}

func (b *webhookBench) send(args ...string) (stdout string, err error) {
	b.Helper()
	out, _, err := terminaltest.Run(b.T, []*cobra.Command{command(b.find, terminal.RealWorld())}, append([]string{"send"}, args...)...)
	return out, err
}

const sampleBody = `{"event": "payment.captured", "account_id":"acc_1","payload":{"payment":{"entity":{ "id":"pay_1","order_id":"order_9",
 "amount": 100,"currency":"USD","status":"captured","note":"₹ \u20b9 <b>" }}}}` + "\n"

func fileOf(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatIsSentIsSignedAndByteForByte(t *testing.T) {
	sample := func(file string) (body string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var event struct{ Body string }
		if err := json.Unmarshal(text, &event); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(file, "base64") {
			raw, err := base64.StdEncoding.DecodeString(event.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		return event.Body
	}
	const events = "../../../events/webhook-"
	for _, c := range []struct {
		name  string
		args  []string
		label string
		body  string
	}{
		{"a body", []string{fileOf(t, "body.json", sampleBody)}, "test_current", sampleBody},
		{"a body that is not JSON", []string{fileOf(t, "body.txt", "no\x00JSON\xff")}, "test_current", "no\x00JSON\xff"},
		{"a body with a body", []string{fileOf(t, "odd.json", `{"body":"x"}`)}, "test_current", `{"body":"x"}`},
		{"an event of the API", []string{events + "payment-captured.json"}, "test_current", sample(events + "payment-captured.json")},
		{"one in base64", []string{events + "payment-captured-base64.json"}, "test_current", sample(events + "payment-captured-base64.json")},
		{"the other secret", []string{events + "order-paid.json", "--label", "test_previous"}, "test_previous", sample(events + "order-paid.json")},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newWebhookBench(t)
			if _, err := b.send(append(c.args, "--event-id", "evt_1")...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]receipt{{"evt_1", c.label, c.body}}, b.receipts, cmp.AllowUnexported(receipt{})); diff != "" {
				t.Errorf("received (-want +got)\n%s", diff)
			}
		})
	}
}

func TestEventIDs(t *testing.T) {
	b := newWebhookBench(t)
	file := fileOf(t, "body.json", sampleBody)
	if _, err := b.send(file, file, "--dup", "1"); err != nil {
		t.Fatal(err)
	}
	ids := map[string]int{}
	for _, r := range b.receipts {
		ids[r.id]++
		if !fitEventID.MatchString(r.id) {
			t.Errorf("%q cannot be a key", r.id)
		}
	}
	if len(ids) != 2 || ids[b.receipts[0].id] != 2 {
		t.Errorf("two files, each twice, were sent as %v", ids)
	}
	out, err := b.send(file, "--event-id", "")
	if last := b.receipts[len(b.receipts)-1]; err != nil || last.id != "" || !strings.HasPrefix(out, "payment.captured  -  200  ") {
		t.Errorf("sent %q, %v\n%s", last.id, err, out)
	}
	sum := webhookEvent{body: []byte(sampleBody)}.key()
	if want := "razorpay/sha256:" + fmt.Sprintf("%x", sha256.Sum256([]byte(sampleBody))); sum.String() != want {
		t.Errorf("kept as %s, want %s", sum, want)
	}
}

func TestSendMakesASampleAnOrders(t *testing.T) {
	for _, name := range []string{"payment-authorized", "payment-captured", "payment-failed", "order-paid", "refund-processed", "payment-captured-base64"} {
		t.Run(name, func(t *testing.T) {
			b := newWebhookBench(t)
			file := "../../../events/webhook-" + name + ".json"
			if _, err := b.send(file, "--order", "o1", "--payment", "pay_Fresh"); err != nil {
				t.Fatal(err)
			}
			events, err := readEvents([]string{file}, nil)
			if err != nil {
				t.Fatal(err)
			}
			notice, err := razorpay.Decode([]byte(b.receipts[0].body))
			if err != nil || b.receipts[0].label != testCurrent || notice.Account != "acc_Ours" {
				t.Fatalf("%+v, signed by %q: %v", notice, b.receipts[0].label, err)
			}
			// Of the bytes only those of the sample's own ids changed: its amount and currency are the order's.
			want := strings.NewReplacer("acc_Sample0Accnt1", "acc_Ours", "order_Sample0Order01", "order_1", "pay_Sample0Paymt00", "pay_Fresh", "pay_Sample0Paymt01", "pay_Fresh").Replace(string(events[0].body))
			if diff := cmp.Diff(want, b.receipts[0].body); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	t.Run("one payment for all files", func(t *testing.T) {
		b := newWebhookBench(t)
		if _, err := b.send("../../../events/webhook-payment-captured.json", fileOf(t, "body.json", sampleBody), "--order", "o1"); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range b.receipts {
			notice, err := razorpay.Decode([]byte(r.body))
			if err != nil {
				t.Fatal(err)
			}
			fact := notice.Facts[0].(payment.PaymentFact)
			ids = append(ids, fact.ID)
			if want := (payment.Money{Amount: 49900, Currency: "INR"}); fact.Amount != want || fact.GatewayOrderID != "order_1" {
				t.Errorf("tells of %+v", fact)
			}
		}
		if ids[0] != ids[1] || ids[0] == "pay_1" || !strings.HasPrefix(ids[0], "pay_") {
			t.Errorf("payments %q", ids)
		}
	})
	t.Run("the whole amount", func(t *testing.T) {
		b := newWebhookBench(t)
		small := `{"event":"refund.processed","payload":{"refund":{"entity":{"id":"rfnd_1","amount":5,"currency":"USD","payment_id":"pay_1","status":"processed"}},` +
			`"payment":{"entity":{"id":"pay_1","amount":5,"currency":"USD","order_id":"order_9","status":"refunded","captured":true,"amount_refunded":5}},` +
			`"order":{"entity":{"id":"order_9","amount":5,"amount_paid":5,"amount_due":0,"currency":"USD","status":"paid"}}}}`
		if _, err := b.send(fileOf(t, "body.json", small), "--order", "o1", "--payment", "pay_2"); err != nil {
			t.Fatal(err)
		}
		want := strings.NewReplacer(":5,", ":49900,", ":5}", ":49900}", "USD", "INR", "pay_1", "pay_2", "order_9", "order_1").Replace(small)
		if diff := cmp.Diff(want, b.receipts[0].body); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("--set counts more", func(t *testing.T) {
		b := newWebhookBench(t)
		if _, err := b.send(fileOf(t, "body.json", sampleBody), "--order", "o1", "--set", "payload.payment.entity.amount=7"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.receipts[0].body, `"amount": 7,"currency":"INR"`) {
			t.Error(b.receipts[0].body)
		}
	})
}

func TestForgedEventsMustBeRefused(t *testing.T) {
	b := newWebhookBench(t)
	b.signing = func(context.Context) (signing, error) {
		t.Error("a forger reads no secret")
		return signing{}, nil
	}
	file := fileOf(t, "body.json", sampleBody)
	out, err := b.send(file, "--forge", "--event-id", "evt_1")
	if want := "payment.captured  evt_1  401  {\"error\":\"bad signature\"}\n"; err != nil || out != want {
		t.Errorf("%v, %q", err, out)
	}
	b.answers = func(receipt) stacktest.Answer { return stacktest.Answer{Status: 200, Body: "{}"} }
	_, err = b.send(file, "--forge")
	if want := "1 of 1 were not answered 401: a wrong signature was taken: look at once, `paidonce logs --errors --stack test` says why"; err == nil || err.Error() != want {
		t.Error(err)
	}
}

func TestSendReport(t *testing.T) {
	b := newWebhookBench(t)
	second := fileOf(t, "second.json", strings.Replace(sampleBody, "payment.captured", "order.paid", 1))
	args := []string{fileOf(t, "first.json", sampleBody), second, second, second, "--event-id", "evt_1", "--dup", "1", "--drop", "50", "--shuffle", "--seed", "26"}
	out, err := b.send(args...)
	want := strings.ReplaceAll(`seed 26: --seed 26 sends in the same way again
dropped: SECOND, order.paid
order.paid        evt_1  200  {"received":true,"duplicate":false}
order.paid        evt_1  200  {"received":true,"duplicate":true}
payment.captured  evt_1  200  {"received":true,"duplicate":true}
payment.captured  evt_1  200  {"received":true,"duplicate":true}
order.paid        evt_1  200  {"received":true,"duplicate":true}
order.paid        evt_1  200  {"received":true,"duplicate":true}
`, "SECOND", second)
	if diff := cmp.Diff(want, out); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	first := b.receipts
	b.receipts = nil
	out, err = b.send(append(args, "--json")...)
	var report sendReport
	if err != nil || json.Unmarshal([]byte(out), &report) != nil {
		t.Fatal(err, out)
	}
	if diff := cmp.Diff(first, b.receipts, cmp.AllowUnexported(receipt{})); diff != "" {
		t.Errorf("the same seed sent something else (-first +second)\n%s", diff)
	}
	if *report.Seed != 26 || !slices.Equal(report.Dropped, []string{second}) || len(report.Deliveries) != 6 || !report.Deliveries[0].OK || report.Deliveries[0].Status != 200 {
		t.Errorf("reported %s", out)
	}
}

func TestPrintedEventsAreForTheFunction(t *testing.T) {
	for name, body := range map[string]string{"text": sampleBody, "bytes": "\xff\x00"} {
		t.Run(name, func(t *testing.T) {
			b := newWebhookBench(t)
			out, err := b.send(fileOf(t, "body", body), "--print", "--event-id", "evt_1")
			if err != nil || len(b.receipts) > 0 {
				t.Fatal(err)
			}
			got, err := bodyOf([]byte(out))
			if err != nil || string(got) != body {
				t.Errorf("%v, body %q", err, got)
			}
			var event, sample map[string]any
			text, err := os.ReadFile("../../../events/webhook-payment-captured.json")
			if err != nil || json.Unmarshal(text, &sample) != nil || json.Unmarshal([]byte(out), &event) != nil {
				t.Fatal(err, out)
			}
			for key, want := range sample {
				if have := event[key]; fmt.Sprintf("%T", have) != fmt.Sprintf("%T", want) {
					t.Errorf("%s is a %T, in the samples a %T", key, have, want)
				}
			}
			headers := event["headers"].(map[string]any)
			label, _ := razorpay.Verify([]byte(body), fmt.Sprint(headers["x-razorpay-signature"]), sendSecrets)
			if label != testCurrent || headers["x-razorpay-event-id"] != "evt_1" || event["isBase64Encoded"] != (name == "bytes") {
				t.Errorf("signed by %q: %s", label, out)
			}
		})
	}
}

// sendOn runs the command in surroundings of the test.
func (b *webhookBench) sendOn(ctx context.Context, w terminal.Surroundings, args ...string) (string, error) {
	cmd := command(b.find, w)
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

func TestSendWaitsForTheOrder(t *testing.T) {
	file := fileOf(t, "body.json", sampleBody)
	for _, c := range []struct {
		name    string
		becomes payment.EventStatus
		want    string
	}{
		{"applied", payment.EventApplied, ""},
		{"parked", payment.EventParked, "1 of 1 event not applied within 10s: the verdict says why, later: paidonce events show razorpay/evt_1 --stack test"},
		{"not settled", payment.EventReceived, "1 of 1 event not applied within 10s: the verdict says why, later: paidonce events show razorpay/evt_1 --stack test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newWebhookBench(t)
			b.rows["evt_1"] = payment.Event{Status: payment.EventReceived}
			now, slept := day, 0
			w := terminal.Surroundings{Now: func() time.Time { return now }, Sleep: func(_ context.Context, d time.Duration) error {
				now = now.Add(d)
				if slept++; slept == 3 {
					b.rows["evt_1"] = payment.Event{Status: c.becomes, Verdict: "as it is"}
				}
				return nil
			}}
			out, err := b.sendOn(t.Context(), w, file, "--order", "o1", "--event-id", "evt_1", "--wait", "10s", "--dup", "1")
			if got := fmt.Sprint(err); c.want != "" && got != c.want || c.want == "" && err != nil {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if !strings.Contains(out, fmt.Sprintf("\n\n  razorpay/evt_1  %s  as it is\n\no1: PAID", c.becomes)) {
				t.Error(out)
			}
			if waited := now.Sub(day); (c.name == "not settled") != (waited == 10*time.Second) {
				t.Errorf("waited %s", waited)
			}
		})
	}
}
