package razorpaytest

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
)

// A FaultKind is a way in which a call of the API fails.
type FaultKind string

// The kinds of fault.
const (
	// Nothing is done.
	TimeoutBefore FaultKind = "timeout_before"  // no answer comes until the caller gives up
	Reset         FaultKind = "reset"           // the connection is reset
	Throttled     FaultKind = "429"             // Retry-After says 1 second
	ServerError   FaultKind = "500"             // the gateway's envelope
	BadGateway    FaultKind = "502_html"        // the HTML page of a machine in between
	InProgress    FaultKind = "409_in_progress" // another request with the same idempotency key is at it
	PaymentBusy   FaultKind = "400_busy"        // another operation on the same payment is at it: a 400 that is no refusal

	// It is done, as if there were no fault.
	TimeoutAfter     FaultKind = "timeout_after" // no answer comes until the caller gives up
	ResetAfter       FaultKind = "reset_after"   // the connection is reset
	ServerErrorAfter FaultKind = "500_after"     // the gateway's envelope
	BadGatewayAfter  FaultKind = "html_after"    // the HTML page of a machine in between, with 502
)

// A Fault makes the next calls of one kind fail.
type Fault struct {
	Method string    `json:"method"` // empty: any
	Path   string    `json:"path"`   // such as /v1/orders/*/payments, where * is one segment
	Kind   FaultKind `json:"kind"`
	Count  int       `json:"count"` // how many calls; 0: one
}

// SetFaults replaces all faults. Of several that fit a call, the first counts.
func (g *Gateway) SetFaults(faults ...Fault) error {
	if refused := g.setFaults(faults); refused != nil {
		return refused
	}
	return nil
}

func (g *Gateway) setFaults(faults []Fault) *refusal {
	faults = slices.Clone(faults)
	for i := range faults {
		f := &faults[i]
		switch f.Kind {
		case TimeoutBefore, Reset, Throttled, ServerError, BadGateway, InProgress, PaymentBusy,
			TimeoutAfter, ResetAfter, ServerErrorAfter, BadGatewayAfter:
		default:
			return badRequest("kind", "There is no such kind of fault.")
		}
		if !strings.HasPrefix(f.Path, "/v1/") || f.Count < 0 {
			return badRequest("path", "A fault wants a path below /v1/ and a count that is not negative.")
		}
		if f.Count == 0 {
			f.Count = 1
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = faults
	return nil
}

// takeFault uses up one count of the fault that fits a call, and returns its kind, or "".
func (g *Gateway) takeFault(method, path string) FaultKind {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.faults {
		f := &g.faults[i]
		if f.Count > 0 && (f.Method == "" || f.Method == method) && matches(f.Path, path) {
			f.Count--
			return f.Kind
		}
	}
	return ""
}

func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(w, g string) bool { return w == g || w == "*" && g != "" })
}

// fail answers a call with a fault.
func (g *Gateway) fail(kind FaultKind, w http.ResponseWriter, r *http.Request) {
	switch kind {
	case TimeoutAfter, ResetAfter, ServerErrorAfter, BadGatewayAfter:
		g.api.ServeHTTP(discard{http.Header{}}, r)
	}
	switch kind {
	case Throttled:
		w.Header().Set("Retry-After", "1")
		errThrottled.write(w)
	case InProgress:
		errKeyInProgress.write(w)
	case PaymentBusy:
		errPaymentBusy.write(w)
	case ServerError, ServerErrorAfter:
		errServer.write(w)
	case BadGateway, BadGatewayAfter:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n")
	case Reset, ResetAfter:
		reset(w)
		panic(http.ErrAbortHandler) // closes the connection without an answer
	default:
		select {
		case <-r.Context().Done():
		case <-g.ctx.Done():
		}
		panic(http.ErrAbortHandler)
	}
}

// reset closes the connection so that the caller sees it reset, where the server allows it.
func reset(w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	connection.Close()
}

// discard takes an answer that nobody will see.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
