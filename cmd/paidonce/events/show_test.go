package events

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/cmd/paidonce/terminal/terminaltest"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

const capturedEvent = `{"entity":"event","account_id":"acc_1","event":"payment.captured","contains":["payment"],` +
	`"payload":{"payment":{"entity":{"id":"pay_1","amount":49900,"currency":"INR","order_id":"order_1","captured":true,` +
	`"method":"card","email":"asha.rao@example.com","contact":"+910000000042","vpa":null,` +
	`"card":{"id":"card_1","last4":"0007"},"notes":{"id":"flat 12 B"}}}},"created_at":1796075000}` + "\r\n"

func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// run runs a command line of one of the package's commands.
func run(t *testing.T, on target, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	find := func(context.Context, stack.Options) (target, error) { return on, nil }
	return terminaltest.Run(t, []*cobra.Command{eventsCommand(find, terminal.RealWorld()), dlqCommand(find, terminal.RealWorld())}, args...)
}

// withEvent is a target whose table holds one event, changed.
func withEvent(t *testing.T, change func(*payment.Event)) target {
	t.Helper()
	e := payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: "evt_1"}, Status: payment.EventApplied,
		Verdict: "payment pay_1 captured 499.00 INR; order pending → paid; fulfilled", Type: "payment.captured", OrderID: "o1",
		Body: []byte(capturedEvent), SHA256: digest(capturedEvent), VerifiedBy: "test_current", Mode: payment.Test,
		Attempts: 1, ReceivedAt: stacktest.OrderTime, KeepUntil: stacktest.OrderTime.Add(90 * 24 * time.Hour),
	}
	if change != nil {
		change(&e)
	}
	memory := storetest.NewMemory()
	if _, err := memory.PutEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return target{Target: stack.Target{Name: "the test's stack", Events: memory}}
}

func TestShowEvent(t *testing.T) {
	out, errOut, err := run(t, withEvent(t, nil), "events", "show", "razorpay/evt_1")
	if err != nil || errOut != "" {
		t.Fatal(err, errOut)
	}
	terminaltest.Golden(t, "event.txt", out)
}

func TestShowEventForPrograms(t *testing.T) {
	out, _, err := run(t, withEvent(t, nil), "events", "show", "razorpay/evt_1", "--json")
	if err != nil {
		t.Fatal(err)
	}
	terminaltest.Golden(t, "event.json", out)
}

func TestShowEventWithoutAReadableBody(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*payment.Event)
	}{
		{"reduced", "The body was too large to keep. What it said, redacted:\n{\n", func(e *payment.Event) { e.Reduced, e.SHA256 = true, "ff" }},
		{"not kept", "No body is kept: it was too large, and it could not be decoded.\n", func(e *payment.Event) { e.Reduced, e.Body = true, nil }},
		{"not JSON", "The body (16 bytes) is not JSON and is not shown; --raw prints it.\n", func(e *payment.Event) {
			e.Body, e.SHA256 = []byte("asha@example.com"), digest("asha@example.com")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			on := withEvent(t, c.change)
			out, _, err := run(t, on, "events", "show", "razorpay/evt_1")
			if err != nil || !strings.Contains(out, "\n"+c.want) || strings.Contains(out, "asha") {
				t.Errorf("%v\n%s", err, out)
			}
			out, _, err = run(t, on, "events", "show", "razorpay/evt_1", "--json")
			if err != nil || !json.Valid([]byte(out)) || strings.Contains(out, "asha") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestRawIsWhatWasReceived(t *testing.T) {
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	for _, body := range []string{capturedEvent, string(everyByte), "no newline at the end", "\n", ""} {
		out, errOut, err := run(t, withEvent(t, func(e *payment.Event) { e.Body, e.SHA256 = []byte(body), digest(body) }),
			"events", "show", "razorpay/evt_1", "--raw")
		if err != nil || errOut != "" || out != body {
			t.Errorf("%q was printed as %q, %q, %v", body, out, errOut, err)
		}
	}
}

func TestRawOfAReducedBodySaysSo(t *testing.T) {
	out, errOut, err := run(t, withEvent(t, func(e *payment.Event) { e.Reduced, e.SHA256 = true, "ff" }), "events", "show", "razorpay/evt_1", "--raw")
	if err != nil || out != capturedEvent || !strings.Contains(errOut, "not what was received") {
		t.Errorf("printed %q, %q, %v", out, errOut, err)
	}
}

func TestABodyThatChangedIsAnError(t *testing.T) {
	on := withEvent(t, func(e *payment.Event) { e.SHA256 = digest("something else") })
	want := "event razorpay/evt_1: the stored body is not the one that was received: its sha256 is " + digest(capturedEvent) + ", the row says " + digest("something else")
	for _, flags := range [][]string{{"--raw"}, {"--json"}, nil} {
		out, _, err := run(t, on, append([]string{"events", "show", "razorpay/evt_1"}, flags...)...)
		if err == nil || err.Error() != want {
			t.Errorf("%v: %v", flags, err)
		}
		if flags != nil && flags[0] == "--raw" && out != capturedEvent {
			t.Errorf("printed %q", out)
		}
	}
}

func TestEventErrors(t *testing.T) {
	hex64 := strings.Repeat("ab", 32)
	for name, want := range map[string]string{
		"razorpay/evt_2":           "the test's stack has no event razorpay/evt_2: check the id, and the stack; old events are dropped",
		"razorpay/evt_1!" + hex64:  "the test's stack has no event razorpay/evt_1!" + hex64 + ": check the id, and the stack; old events are dropped",
		"razorpay/sha256:" + hex64: "the test's stack has no event razorpay/sha256:" + hex64 + ": check the id, and the stack; old events are dropped",
		"evt_1":                    `"evt_1" is not an event: write it as the logs do, razorpay/Q2bFhX1yZ0aBcD or razorpay/sha256:<64 hex digits>`,
		"razorpay/evt#1":           `"razorpay/evt#1" is not an event: write it as the logs do, razorpay/Q2bFhX1yZ0aBcD or razorpay/sha256:<64 hex digits>`,
		"razorpay/" + hex64 + "x":  `"razorpay/` + hex64 + `x" is not an event: write it as the logs do, razorpay/Q2bFhX1yZ0aBcD or razorpay/sha256:<64 hex digits>`,
	} {
		out, _, err := run(t, withEvent(t, nil), "events", "show", name)
		if err == nil || err.Error() != want || out != "" {
			t.Errorf("%s: got %v, want %s; printed %q", name, err, want, out)
		}
	}
}

func TestRedact(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"keys that are known", `{"id":"pay_1","amount":49900,"captured":true,"status":null}`, `{"amount":49900,"captured":true,"id":"pay_1","status":null}`},
		{"keys that are not", `{"email":"a@b.example","new":7,"flag":false,"vpa":null}`, `{"email":"REDACTED","flag":"REDACTED","new":"REDACTED","vpa":null}`},
		{"of another spelling", `{"ID":"pay_1","Payload":{"id":"x"}}`, `{"ID":"REDACTED","Payload":"REDACTED"}`},
		{"below a known object", `{"payload":{"payment":{"entity":{"id":"pay_1","contact":"+91"}}}}`, `{"payload":{"payment":{"entity":{"contact":"REDACTED","id":"pay_1"}}}}`},
		{"known keys below another object", `{"notes":{"id":"flat 12"},"card":{"id":"card_1"}}`, `{"card":"REDACTED","notes":"REDACTED"}`},
		{"an object where a value is known", `{"id":{"id":"pay_1"}}`, `{"id":"REDACTED"}`},
		{"a value where an object is known", `{"payload":"asha"}`, `{"payload":"REDACTED"}`},
		{"lists", `{"contains":["payment","a b",{"id":"x"},["y"],null],"emails":["a"],"payment":[{"id":"pay_1"}]}`,
			`{"contains":["payment","REDACTED","REDACTED","REDACTED",null],"emails":"REDACTED","payment":"REDACTED"}`},
		{"a known key with words in it", `{"id":"asha@example.com","status":"call +91 now","error_code":"BAD_REQUEST_ERROR"}`,
			`{"error_code":"BAD_REQUEST_ERROR","id":"REDACTED","status":"REDACTED"}`},
		{"a key that is data", `{"asha@example.com":"x"}`, `{"REDACTED":"REDACTED"}`},
		{"an amount beyond a float", `{"amount":9007199254740993}`, `{"amount":9007199254740993}`},
		{"a list", `["asha"]`, `"REDACTED"`},
		{"a text", `"asha"`, `"REDACTED"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := redact([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			var compact strings.Builder
			for line := range strings.Lines(string(got)) {
				compact.WriteString(strings.ReplaceAll(strings.TrimSpace(line), `": `, `":`))
			}
			if diff := cmp.Diff(c.want, compact.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	for _, body := range []string{"", "asha", `{"id":"pay_1"} {"id":"pay_2"}`, `{"id":`} {
		if got, err := redact([]byte(body)); err == nil || strings.Contains(err.Error(), "asha") {
			t.Errorf("%q became %s, %v", body, got, err)
		}
	}
}
