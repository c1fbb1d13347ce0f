package localaws

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
)

// FaultKind says what goes wrong with a call.
type FaultKind int

const (
	// Refuse answers 500 without reaching the engine: the call did not happen.
	Refuse FaultKind = iota + 1
	// LoseAnswer lets the engine carry the call out and then cuts the
	// connection: the call happened and its caller cannot know.
	LoseAnswer
	// Hold keeps the call from the engine until Remove lets it go or Drop cuts
	// it off, in which case it never happens.
	Hold
	// HoldAnswer lets the engine carry the call out and keeps back the answer
	// until Remove lets it go or Drop cuts it off.
	HoldAnswer
)

// Fault describes the calls that go wrong, and how.
type Fault struct {
	Kind      FaultKind
	Operation string // as Proxy names it; empty: every operation
	Contains  string // only calls with this text in their body; empty: any
	Count     int    // how many calls it strikes; 0: all until it is removed
}

// Injection is a Fault at work.
type Injection struct {
	fault   Fault
	proxy   *Proxy
	left    int           // calls still to strike; guarded by proxy.mu
	struck  int           // guarded by proxy.mu
	removed chan struct{} // closed by Remove
	dropped chan struct{} // closed by Drop
	end     sync.Once     // for removed and dropped
	reached chan struct{} // closed at the first struck call
	reach   sync.Once
}

// Inject puts a fault to work. Of several that want a call the oldest gets it.
func (p *Proxy) Inject(fault Fault) *Injection {
	injected := &Injection{
		fault:   fault,
		proxy:   p,
		left:    fault.Count,
		removed: make(chan struct{}),
		dropped: make(chan struct{}),
		reached: make(chan struct{}),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, injected)
	return injected
}

// Remove ends the fault and lets go of the calls it holds. After the first,
// further calls of Remove and Drop do nothing.
func (i *Injection) Remove() { i.finish(i.removed) }

// Drop ends the fault and cuts the connections of the calls it holds: what a
// caller that was killed meanwhile has not yet brought to the engine never gets
// there.
func (i *Injection) Drop() { i.finish(i.dropped) }

func (i *Injection) finish(ended chan struct{}) {
	i.end.Do(func() {
		i.proxy.mu.Lock()
		i.proxy.faults = slices.DeleteFunc(i.proxy.faults, func(other *Injection) bool { return other == i })
		i.proxy.mu.Unlock()
		close(ended)
	})
}

// Reached is closed once the fault has had its first effect: the call was
// refused, is being held, or was carried out and its answer lost or held.
func (i *Injection) Reached() <-chan struct{} { return i.reached }

// Struck is the number of calls that the fault has struck.
func (i *Injection) Struck() int {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	return i.struck
}

// wants claims the call for this fault. The caller holds proxy.mu.
func (i *Injection) wants(operation string, body []byte) bool {
	switch {
	case i.fault.Operation != "" && i.fault.Operation != operation,
		!bytes.Contains(body, []byte(i.fault.Contains)),
		i.fault.Count > 0 && i.left == 0:
		return false
	}
	i.left--
	i.struck++
	return true
}

func (i *Injection) strike(engine http.Handler, w http.ResponseWriter, r *http.Request) {
	markReached := func() { i.reach.Do(func() { close(i.reached) }) }
	switch i.fault.Kind {
	case Refuse:
		markReached()
		w.Header().Set("X-Amzn-Errortype", "InternalServerError")
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusInternalServerError)
		w.Write([]byte(`{"__type":"InternalServerError","message":"refused by an injected fault"}`))
	case LoseAnswer:
		engine.ServeHTTP(newAnswer(), r)
		markReached()
		panic(http.ErrAbortHandler) // the server cuts the connection
	case Hold:
		markReached()
		select {
		case <-i.removed:
			engine.ServeHTTP(w, r)
		case <-i.dropped:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done(): // the caller gave up
		}
	case HoldAnswer:
		held := newAnswer()
		engine.ServeHTTP(held, r)
		markReached()
		select {
		case <-i.removed:
			held.replay(w)
		case <-i.dropped:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
		}
	}
}

// answer keeps a response instead of sending it.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{header: http.Header{}, status: http.StatusOK} }

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

func (a *answer) replay(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	w.Write(a.body.Bytes())
}
