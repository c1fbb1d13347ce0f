package razorpaytest

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"time"
)

// A Call is a call of the API as it reached the gateway.
type Call struct {
	Method string    `json:"method"`
	Path   string    `json:"path"` // such as /v1/payments/pay_1/refund
	Query  string    `json:"query,omitempty"`
	Key    string    `json:"idempotency_key,omitempty"`
	Body   string    `json:"body,omitempty"`
	Status int       `json:"status"`          // what it was answered with; 0: with nothing, so far or for ever
	Fault  FaultKind `json:"fault,omitempty"` // what was made to go wrong with it
	At     time.Time `json:"at"`              // when it came in, on the gateway's clock
}

// callLog is the record of calls. It is guarded by the gateway's mu.
type callLog struct {
	all    []*Call                      // oldest first, the last maxLog of them
	keys   map[string][sha256.Size]byte // what each idempotency key came with first
	reused []string                     // keys that came with something else later
}

func newCallLog() callLog { return callLog{keys: map[string][sha256.Size]byte{}} }

// Calls returns the calls of the API that came in, refused and failed ones included, oldest first: the last 10000 of
// them.
func (g *Gateway) Calls() []Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := make([]Call, len(g.calls.all))
	for i, c := range g.calls.all {
		calls[i] = *c
	}
	return calls
}

// ReusedKeys returns the idempotency keys that ever came with more than one request: another method, path or body. A
// caller that keeps to the rules has none.
func (g *Gateway) ReusedKeys() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls.reused)
}

// recordCall notes a call, and returns a writer that notes what it is answered with.
func (g *Gateway) recordCall(w http.ResponseWriter, r *http.Request, body []byte, kind FaultKind) http.ResponseWriter {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &Call{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Key: r.Header.Get(headerKey), Body: string(body),
		Fault: kind, At: g.now(),
	}
	log := &g.calls
	if len(log.all) == maxLog {
		log.all = slices.Delete(log.all, 0, 1)
	}
	log.all = append(log.all, c)
	if c.Key != "" {
		request := sha256.Sum256([]byte(c.Method + " " + c.Path + "\n" + c.Body))
		first, known := log.keys[c.Key]
		if !known {
			log.keys[c.Key] = request
		} else if first != request && !slices.Contains(log.reused, c.Key) {
			log.reused = append(log.reused, c.Key)
		}
	}
	return &recorder{w, g, c}
}

// recorder notes the status before it is sent, so that whoever has the answer finds it noted.
type recorder struct {
	http.ResponseWriter
	gateway *Gateway
	call    *Call
}

func (r *recorder) WriteHeader(status int) {
	r.gateway.mu.Lock()
	r.call.Status = status
	r.gateway.mu.Unlock()
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
