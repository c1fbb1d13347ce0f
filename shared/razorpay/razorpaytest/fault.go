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
	TimeoutBefore FaultKind = "timeout_before" // nothing is done, and no answer comes until the caller gives up
	TimeoutAfter  FaultKind = "timeout_after"  // it is done, and no answer comes until the caller gives up
	Reset         FaultKind = "reset"          // nothing is done, and the connection is reset
	Throttled     FaultKind = "429"            // nothing is done; Retry-After says 1 second
	ServerError   FaultKind = "500"            // nothing is done; the gateway's envelope
	BadGateway    FaultKind = "502_html"       // nothing is done; the HTML page of a machine in between
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
		case TimeoutBefore, TimeoutAfter, Reset, Throttled, ServerError, BadGateway:
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
	case Throttled:
		w.Header().Set("Retry-After", "1")
		errThrottled.write(w)
		return
	case ServerError:
		errServer.write(w)
		return
	case BadGateway:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n")
		return
	case Reset:
		reset(w)
	case TimeoutAfter:
		g.api.ServeHTTP(discard{http.Header{}}, r)
	}
	io.Copy(io.Discard, r.Body) // the server notices that a caller has gone only once the body is read
	if kind != Reset {
		select {
		case <-r.Context().Done():
		case <-g.ctx.Done():
		}
	}
	panic(http.ErrAbortHandler) // closes the connection without an answer
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
