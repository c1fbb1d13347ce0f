package localaws

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sendMessage = "AmazonSQS.SendMessage"

// startProxy returns a proxy in front of an engine that answers "done", and the
// number of calls that reach that engine.
func startProxy(t *testing.T) (*Proxy, *atomic.Int32) {
	t.Helper()
	reached := &atomic.Int32{}
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		w.Header().Set("X-Host", r.Host)
		w.WriteHeader(http.StatusCreated)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("engine: read the call: %v", err)
		}
		io.WriteString(w, "done "+string(body))
	}))
	t.Cleanup(engine.Close)
	proxy, err := NewProxy(0)
	if err != nil {
		t.Fatalf("NewProxy: %v", err)
	}
	t.Cleanup(func() { proxy.Close() })
	if err := proxy.Forward(engine.URL); err != nil {
		t.Fatalf("Forward: %v", err)
	}
	return proxy, reached
}

// call makes one call of an operation and returns status and body as text, or
// "no answer".
func call(t *testing.T, proxy *Proxy, operation, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL+"/", strings.NewReader(body))
	if err != nil {
		t.Fatalf("NewRequest: %v", err)
	}
	request.Header.Set("X-Amz-Target", operation)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "no answer"
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "no answer"
	}
	return response.Status + ": " + string(text)
}

func TestProxyPassesCallsOnAndCountsThem(t *testing.T) {
	proxy, _ := startProxy(t)
	if got, want := call(t, proxy, sendMessage, "hello"), "201 Created: done hello"; got != want {
		t.Errorf("call = %q, want %q", got, want)
	}
	call(t, proxy, sendMessage, "again")
	response, err := http.Post(proxy.URL+"/", "application/x-www-form-urlencoded", strings.NewReader("Action=PutMetricData&Version=1"))
	if err != nil {
		t.Fatalf("Post: %v", err)
	}
	response.Body.Close()
	response, err = http.Post(proxy.URL+"/service/GraniteServiceVersion20100801/operation/DescribeAlarms", "application/cbor", nil)
	if err != nil {
		t.Fatalf("Post: %v", err)
	}
	response.Body.Close()
	response, err = http.Get(proxy.URL + "/bucket/key")
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	response.Body.Close()
	if got, want := response.Header.Get("X-Host"), strings.TrimPrefix(proxy.URL, "http://"); got != want {
		t.Errorf("engine saw host %q, want %q", got, want)
	}

	want := map[string]int{sendMessage: 2, "PutMetricData": 1, "DescribeAlarms": 1, "GET /bucket/key": 1}
	if diff := cmp.Diff(want, proxy.Calls()); diff != "" {
		t.Errorf("Calls (-want +got):\n%s", diff)
	}
	proxy.ResetCalls()
	if got := proxy.Calls(); len(got) != 0 {
		t.Errorf("Calls after ResetCalls = %v, want none", got)
	}
}

func TestProxyWithoutEngine(t *testing.T) {
	proxy, err := NewProxy(0)
	if err != nil {
		t.Fatalf("NewProxy: %v", err)
	}
	defer proxy.Close()
	if got := call(t, proxy, sendMessage, ""); !strings.HasPrefix(got, "502") {
		t.Errorf("call = %q, want 502", got)
	}
}

func TestFaultThatAnswersAtOnce(t *testing.T) {
	const (
		refused  = `500 Internal Server Error: {"__type":"InternalServerError","message":"refused by an injected fault"}`
		noAnswer = "no answer"
		done     = "201 Created: done order_1"
	)
	tests := []struct {
		name    string
		fault   Fault
		want    []string // of successive calls
		reached int32    // calls that the engine saw
		struck  int
	}{
		{"refuse once", Fault{Kind: Refuse, Operation: sendMessage, Count: 1}, []string{refused, done}, 1, 1},
		{"refuse all", Fault{Kind: Refuse, Operation: sendMessage}, []string{refused, refused, refused}, 0, 3},
		{"refuse any operation", Fault{Kind: Refuse}, []string{refused}, 0, 1},
		{"refuse another operation", Fault{Kind: Refuse, Operation: "AmazonSQS.ReceiveMessage"}, []string{done}, 1, 0},
		{"refuse by content", Fault{Kind: Refuse, Contains: "order_1"}, []string{refused}, 0, 1},
		{"refuse other content", Fault{Kind: Refuse, Contains: "order_2"}, []string{done}, 1, 0},
		{"lose one answer", Fault{Kind: LoseAnswer, Operation: sendMessage, Count: 1}, []string{noAnswer, done}, 2, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			proxy, reached := startProxy(t)
			injected := proxy.Inject(test.fault)
			var got []string
			for range test.want {
				got = append(got, call(t, proxy, sendMessage, "order_1"))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if reached.Load() != test.reached {
				t.Errorf("engine saw %d calls, want %d", reached.Load(), test.reached)
			}
			if got := injected.Struck(); got != test.struck {
				t.Errorf("Struck = %d, want %d", got, test.struck)
			}
			injected.Remove()
			injected.Remove() // harmless
			if got := call(t, proxy, sendMessage, "order_1"); got != done {
				t.Errorf("call after Remove = %q, want %q", got, done)
			}
		})
	}
}

func TestFaultThatHolds(t *testing.T) {
	const done = "201 Created: done order_1"
	tests := []struct {
		name         string
		kind         FaultKind
		end          func(*Injection)
		reachedHeld  int32 // calls that the engine has seen while the call is held
		reachedAfter int32
		want         string
	}{
		{"hold, then let go", Hold, (*Injection).Remove, 0, 1, done},
		{"hold, then drop", Hold, (*Injection).Drop, 0, 0, "no answer"},
		{"hold the answer, then let go", HoldAnswer, (*Injection).Remove, 1, 1, done},
		{"hold the answer, then drop", HoldAnswer, (*Injection).Drop, 1, 1, "no answer"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			proxy, reached := startProxy(t)
			injected := proxy.Inject(Fault{Kind: test.kind, Operation: sendMessage})
			answered := make(chan string, 1)
			go func() { answered <- call(t, proxy, sendMessage, "order_1") }()
			<-injected.Reached()
			if got := reached.Load(); got != test.reachedHeld {
				t.Errorf("while held the engine saw %d calls, want %d", got, test.reachedHeld)
			}
			test.end(injected)
			if got := <-answered; got != test.want {
				t.Errorf("answer = %q, want %q", got, test.want)
			}
			if got := reached.Load(); got != test.reachedAfter {
				t.Errorf("after all the engine saw %d calls, want %d", got, test.reachedAfter)
			}
		})
	}
}
