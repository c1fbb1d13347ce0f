package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/logs"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/storetest"
)

const (
	current  = "a-webhook-secret-that-is-live"
	previous = "a-webhook-secret-before-that-"
)

var now = time.Date(2026, 11, 30, 10, 0, 5, 0, time.UTC)

// fakeQueue keeps what was sent.
type fakeQueue struct {
	mu   sync.Mutex
	sent []string
	err  error // of the next call only
}

func (q *fakeQueue) Send(_ context.Context, k payment.EventKey) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.err; err != nil {
		q.err = nil
		return err
	}
	q.sent = append(q.sent, k.ID)
	return nil
}

type bundle struct {
	*handler
	memory *storetest.Memory
	queue  *fakeQueue
	log    *bytes.Buffer
}

func setup() *bundle {
	b := &bundle{memory: storetest.NewMemory(), queue: &fakeQueue{}, log: &bytes.Buffer{}}
	secrets := []razorpay.Secret{{Label: "test_current", Value: current}, {Label: "live_previous", Value: previous}, {Label: "test_previous", Value: ""}}
	b.handler = &handler{
		gateways: map[string]gateway{"razorpay": razorpay.Webhook{
			Secrets: func(context.Context) []razorpay.Secret { return secrets },
			Refresh: func(context.Context) ([]razorpay.Secret, bool) { return nil, false },
		}},
		store: b.memory, queue: b.queue, log: logs.New(b.log, "DEBUG"),
		now: func() time.Time { return now }, retention: 90 * 24 * time.Hour, pace: payment.Pace(time.Minute),
	}
	return b
}

func body(paymentID string) string {
	return fmt.Sprintf(`{"entity":"event","account_id":"acc_1","event":"payment.captured","contains":["payment"],`+
		`"payload":{"payment":{"entity":{"id":%q,"entity":"payment","amount":49900,"currency":"INR","status":"captured",`+
		`"order_id":"order_1","captured":true,"email":"buyer@example.com","contact":"+910000000001","description":"\u20b9 \/ ₹"}}},"created_at":1}`, paymentID)
}

func signed(secret, id, body string) events.APIGatewayV2HTTPRequest {
	r := events.APIGatewayV2HTTPRequest{
		Headers:        map[string]string{"x-razorpay-signature": razorpay.Sign([]byte(body), secret)},
		PathParameters: map[string]string{"gateway": "razorpay"},
		Body:           body,
	}
	if id != "" {
		r.Headers["x-razorpay-event-id"] = id
	}
	return r
}

// deliver answers the request and says what came of it.
func (b *bundle) deliver(t *testing.T, r events.APIGatewayV2HTTPRequest) (int, string) {
	t.Helper()
	response, err := b.Handle(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Body
}

func (b *bundle) expect(t *testing.T, r events.APIGatewayV2HTTPRequest, status int, body string) {
	t.Helper()
	gotStatus, gotBody := b.deliver(t, r)
	if gotStatus != status || gotBody != body {
		t.Errorf("answered %d %s, want %d %s", gotStatus, gotBody, status, body)
	}
}

func (b *bundle) expectSent(t *testing.T, ids ...string) {
	t.Helper()
	if diff := cmp.Diff(ids, b.queue.sent); diff != "" {
		t.Errorf("sent (-want +got)\n%s", diff)
	}
}

func (b *bundle) event(t *testing.T, id string) payment.Event {
	t.Helper()
	e, err := b.memory.Event(t.Context(), payment.EventKey{Gateway: "razorpay", ID: id})
	if err != nil {
		t.Fatalf("event %s: %v", id, err)
	}
	return e
}

const (
	first     = `{"received":true,"duplicate":false}`
	duplicate = `{"received":true,"duplicate":true}`
	internal  = `{"error":"internal error"}`
	unsigned  = `{"error":"bad signature"}`
)

func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

func TestFirstDeliveryIsStoredThenSent(t *testing.T) {
	b := setup()
	b.expect(t, signed(current, "evt_1", body("pay_1")), 200, first)
	b.expectSent(t, "evt_1")
	want := payment.Event{
		Key: payment.EventKey{Gateway: "razorpay", ID: "evt_1"}, Status: payment.EventReceived, Verdict: "waiting for the worker",
		Body: []byte(body("pay_1")), SHA256: digest(body("pay_1")), VerifiedBy: "test_current", Mode: payment.Test,
		ReceivedAt: now, NextAt: now.Add(10 * time.Minute), KeepUntil: now.Add(90 * 24 * time.Hour),
	}
	if diff := cmp.Diff(want, b.event(t, "evt_1")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestThePreviousSecretStillCounts(t *testing.T) {
	b := setup()
	b.expect(t, signed(previous, "evt_1", body("pay_1")), 200, first)
	if e := b.event(t, "evt_1"); e.VerifiedBy != "live_previous" || e.Mode != payment.Live {
		t.Errorf("verified by %s in mode %s", e.VerifiedBy, e.Mode)
	}
}

func TestDuplicates(t *testing.T) {
	for status, resent := range map[payment.EventStatus]bool{
		payment.EventReceived: true, payment.EventParked: false, payment.EventFailed: false,
		payment.EventIgnored: false, payment.EventApplied: false,
	} {
		t.Run(string(status), func(t *testing.T) {
			b := setup()
			b.expect(t, signed(current, "evt_1", body("pay_1")), 200, first)
			if err := b.memory.SettleEvent(t.Context(), b.event(t, "evt_1").Settle(status, "payment.captured", "", "")); err != nil {
				t.Fatal(err)
			}
			b.queue.sent = nil
			b.expect(t, signed(current, "evt_1", body("pay_1")), 200, duplicate)
			if got := len(b.queue.sent) == 1; got != resent {
				t.Errorf("sent again %t, want %t", got, resent)
			}
		})
	}
}

func TestAnotherBodyUnderAKnownIDIsKeptToo(t *testing.T) {
	b := setup()
	other := "evt_1!" + digest(body("pay_2"))
	b.expect(t, signed(current, "evt_1", body("pay_1")), 200, first)
	b.expect(t, signed(current, "evt_1", body("pay_2")), 200, first)
	b.expect(t, signed(current, "evt_1", body("pay_2")), 200, duplicate)
	b.expectSent(t, "evt_1", other, other)
	if got := b.event(t, other); !bytes.Equal(got.Body, []byte(body("pay_2"))) {
		t.Errorf("body of %s is %s", other, got.Body)
	}
	if got := b.event(t, "evt_1"); !bytes.Equal(got.Body, []byte(body("pay_1"))) {
		t.Errorf("body of evt_1 is %s", got.Body)
	}
}

func TestAMissingOrOddEventIDIsReplacedByTheDigest(t *testing.T) {
	want := "sha256:" + digest(body("pay_1"))
	for _, id := range []string{"", "a/b", "evt 1", "#", "évt", strings.Repeat("x", 65), "evt_1!x"} {
		t.Run(id, func(t *testing.T) {
			b := setup()
			b.expect(t, signed(current, id, body("pay_1")), 200, first)
			b.expectSent(t, want)
			b.expect(t, signed(current, id, body("pay_1")), 200, duplicate)
		})
	}
}

func TestWhatIsNotSignedIsNotStored(t *testing.T) {
	text := body("pay_1")
	for name, change := range map[string]func(*events.APIGatewayV2HTTPRequest){
		"another secret":        func(r *events.APIGatewayV2HTTPRequest) { *r = signed("not-our-secret", "evt_1", text) },
		"the empty secret":      func(r *events.APIGatewayV2HTTPRequest) { *r = signed("", "evt_1", text) },
		"no signature":          func(r *events.APIGatewayV2HTTPRequest) { delete(r.Headers, "x-razorpay-signature") },
		"empty signature":       func(r *events.APIGatewayV2HTTPRequest) { r.Headers["x-razorpay-signature"] = "" },
		"signature not in hex":  func(r *events.APIGatewayV2HTTPRequest) { r.Headers["x-razorpay-signature"] = "zz" },
		"one byte changed":      func(r *events.APIGatewayV2HTTPRequest) { r.Body = strings.Replace(text, "49900", "49901", 1) },
		"JSON re-encoded":       func(r *events.APIGatewayV2HTTPRequest) { r.Body = strings.Replace(text, `\/`, "/", 1) },
		"base64 taken for text": func(r *events.APIGatewayV2HTTPRequest) { r.Body = base64.StdEncoding.EncodeToString([]byte(text)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup()
			r := signed(current, "evt_1", text)
			change(&r)
			b.expect(t, r, 401, unsigned)
			b.expectSent(t)
			if _, err := b.memory.Event(t.Context(), payment.EventKey{Gateway: "razorpay", ID: "evt_1"}); !errors.Is(err, payment.ErrNotFound) {
				t.Errorf("reading the event: %v, want not found", err)
			}
		})
	}
}

func TestOddRequests(t *testing.T) {
	text := body("pay_1")
	big := strings.Repeat("x", maxBody)
	for _, c := range []struct {
		name    string
		request func() events.APIGatewayV2HTTPRequest
		status  int
		body    string
	}{
		{"unknown gateway", func() events.APIGatewayV2HTTPRequest {
			r := signed(current, "evt_1", text)
			r.PathParameters["gateway"] = "paypal"
			return r
		}, 404, `{"error":"unknown gateway"}`},
		{"too large", func() events.APIGatewayV2HTTPRequest { return signed(current, "evt_1", big+"x") }, 413, `{"error":"body too large"}`},
		{"just not too large", func() events.APIGatewayV2HTTPRequest { return signed(current, "evt_1", big) }, 200, first},
		{"base64", func() events.APIGatewayV2HTTPRequest {
			r := signed(current, "evt_1", text)
			r.Body, r.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(text)), true
			return r
		}, 200, first},
		{"base64 that is none", func() events.APIGatewayV2HTTPRequest {
			r := signed(current, "evt_1", text)
			r.IsBase64Encoded = true
			return r
		}, 400, `{"error":"body is not base64, though marked so","field":"body"}`},
		{"header names in capitals", func() events.APIGatewayV2HTTPRequest {
			r := signed(current, "", text)
			r.Headers = map[string]string{"X-Razorpay-Signature": razorpay.Sign([]byte(text), current), "X-Razorpay-Event-Id": "evt_1"}
			return r
		}, 200, first},
		{"signed, but not JSON", func() events.APIGatewayV2HTTPRequest { return signed(current, "evt_1", "{") }, 200, first},
		{"signed and empty", func() events.APIGatewayV2HTTPRequest { return signed(current, "evt_1", "") }, 200, first},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup()
			b.expect(t, c.request(), c.status, c.body)
			if c.status == 200 {
				b.expectSent(t, "evt_1")
			}
		})
	}
}

// TestEveryFailureIsRepairedByTheNextDelivery covers each call, not done or done without an answer.
func TestEveryFailureIsRepairedByTheNextDelivery(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(*bundle)
		then string // the answer to the second delivery
	}{
		{"put not done", func(b *bundle) { b.memory.Faults = once(storetest.NotDone) }, first},
		{"put done, answer lost", func(b *bundle) { b.memory.Faults = once(storetest.DoneUnsaid) }, duplicate},
		{"send failed", func(b *bundle) { b.queue.err = errors.New("throttled") }, duplicate},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup()
			c.fail(b)
			b.expect(t, signed(current, "evt_1", body("pay_1")), 500, internal)
			b.expectSent(t)
			b.expect(t, signed(current, "evt_1", body("pay_1")), 200, c.then)
			b.expectSent(t, "evt_1")
		})
	}
}

func once(f storetest.Fault) func(string) storetest.Fault {
	done := false
	return func(string) storetest.Fault {
		if done {
			return storetest.None
		}
		done = true
		return f
	}
}

// small is a store whose rows hold little.
type small struct {
	store
	limit int
}

func (s small) PutEvent(ctx context.Context, e payment.Event) (payment.Event, error) {
	if len(e.Body) > s.limit {
		return payment.Event{}, payment.ErrEventTooLarge
	}
	return s.store.PutEvent(ctx, e)
}

func TestABodyTooLargeForARowIsKeptReduced(t *testing.T) {
	noise := make([]byte, 300<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	large := strings.Replace(body("pay_1"), `"email"`, `"notes":{"cart":"`+hex.EncodeToString(noise)+`"},"email"`, 1)
	for _, c := range []struct{ name, body, verdict string }{
		{"decodable", large, "waiting for the worker"},
		{"undecodable", large[1:], "too large to keep, and it cannot be decoded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup()
			b.store = small{b.memory, 4 << 10}
			b.expect(t, signed(current, "evt_1", c.body), 200, first)
			b.expect(t, signed(current, "evt_1", c.body), 200, duplicate)
			e := b.event(t, "evt_1")
			if !e.Reduced || e.SHA256 != digest(c.body) || e.Verdict != c.verdict {
				t.Errorf("reduced %t, verdict %q", e.Reduced, e.Verdict)
			}
			if c.name == "undecodable" {
				return
			}
			want, err := razorpay.Decode([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := razorpay.Decode(e.Body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-whole body +reduced)\n%s", diff)
			}
		})
	}
}

// slow is a store that notes how long it is given.
type slow struct {
	store
	deadline time.Time
}

func (s *slow) PutEvent(ctx context.Context, e payment.Event) (payment.Event, error) {
	s.deadline, _ = ctx.Deadline()
	return s.store.PutEvent(ctx, e)
}

func TestTheAnswerComesBeforeTheGatewayGivesUp(t *testing.T) {
	for name, given := range map[string]time.Duration{"a long time": time.Hour, "little time": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			b := setup()
			s := &slow{store: b.memory}
			b.store = s
			ctx, cancel := context.WithTimeout(t.Context(), given)
			defer cancel()
			latest := time.Now().Add(min(given-reserve, patience))
			if _, err := b.Handle(ctx, signed(current, "evt_1", body("pay_1"))); err != nil {
				t.Fatal(err)
			}
			if s.deadline.IsZero() || s.deadline.After(latest.Add(time.Second)) {
				t.Errorf("calls may last until %s, want at most %s", s.deadline, latest)
			}
		})
	}
}

func TestTheLogLineTellsWhatHappenedAndNothingPersonal(t *testing.T) {
	b := setup()
	r := signed(current, "evt_1", body("pay_1"))
	r.RequestContext.RequestID = "req-1"
	b.expect(t, r, 200, first)
	b.expect(t, signed("wrong", "evt_2", body("pay_1")), 401, unsigned)
	var line map[string]any
	if err := json.NewDecoder(bytes.NewReader(b.log.Bytes())).Decode(&line); err != nil {
		t.Fatal(err)
	}
	delete(line, slog.TimeKey)
	want := map[string]any{
		"level": "INFO", "msg": "webhook", "status": 200.0, "request_id": "req-1", "duplicate": false, "resent": false, "took_ms": 0.0,
		"event": "razorpay/evt_1", "verified_by": "test_current", "mode": "test", "bytes": float64(len(body("pay_1"))),
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, secret := range []string{"buyer@", "+91", current, previous, razorpay.Sign([]byte(body("pay_1")), current)} {
		if strings.Contains(b.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// twice is a store whose first answer to a put is lost, so that the SDK puts again.
type twice struct{ store }

func (s twice) PutEvent(ctx context.Context, e payment.Event) (payment.Event, error) {
	if _, err := s.store.PutEvent(ctx, e); err != nil {
		return payment.Event{}, err
	}
	return s.store.PutEvent(ctx, e)
}

func TestOurOwnRowIsNoDuplicate(t *testing.T) {
	b := setup()
	b.store = twice{b.memory}
	r := signed(current, "evt_1", body("pay_1"))
	for _, c := range []struct{ invocation, answer string }{{"inv-1", first}, {"inv-2", duplicate}} {
		ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: c.invocation})
		response, err := b.Handle(ctx, r)
		if err != nil || response.Body != c.answer {
			t.Errorf("%s answered %s, %v; want %s", c.invocation, response.Body, err, c.answer)
		}
		b.store = b.memory
	}
	b.expectSent(t, "evt_1", "evt_1") // the second because it was still RECEIVED
}

func TestFiftyCopiesAtOnceAreOneEvent(t *testing.T) {
	b := setup()
	b.handler.log = slog.New(slog.DiscardHandler)
	answers := make(chan string, 50)
	var wg sync.WaitGroup
	for range cap(answers) {
		wg.Go(func() {
			response, err := b.Handle(t.Context(), signed(current, "evt_1", body("pay_1")))
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("answered %d, %v", response.StatusCode, err)
			}
			answers <- response.Body
		})
	}
	wg.Wait()
	close(answers)
	counts := map[string]int{}
	for a := range answers {
		counts[a]++
	}
	if diff := cmp.Diff(map[string]int{first: 1, duplicate: 49}, counts); diff != "" {
		t.Errorf("answers (-want +got)\n%s", diff)
	}
}
