package localaws

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Proxy stands between AWS clients and the engine. It counts the calls of each
// operation and, on demand, makes some of them fail or wait.
//
// An operation is named as its request names it: by X-Amz-Target, such as
// "DynamoDB_20120810.TransactWriteItems", "AmazonSQS.SendMessage" or
// "secretsmanager.GetSecretValue"; else by the operation in the path of the CBOR
// protocol or the Action of the query protocol, such as "PutMetricData"; else by
// method and path.
type Proxy struct {
	URL string // what clients take as AWS_ENDPOINT_URL

	server *http.Server

	mu     sync.Mutex
	engine *httputil.ReverseProxy // nil until Forward
	calls  map[string]int
	faults []*Injection
}

// NewProxy listens on the port of 127.0.0.1 (0: a free one). Calls are answered
// 502 until Forward names the engine.
func NewProxy(port int) (*Proxy, error) {
	listener, err := listen(port)
	if err != nil {
		return nil, err
	}
	p := &Proxy{URL: "http://" + listener.Addr().String(), calls: map[string]int{}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go p.server.Serve(listener) // ends with Close
	return p, nil
}

// Forward sends all calls to the engine of that URL from now on. The Host
// stays as the client set it: the engine tells buckets and APIs by it.
func (p *Proxy) Forward(engineURL string) error {
	target, err := url.Parse(engineURL)
	if err != nil {
		return fmt.Errorf("localaws: forward: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "the engine did not answer: "+err.Error(), http.StatusBadGateway)
		},
	}
	return nil
}

// Calls returns how often each operation was called since the start or the last
// ResetCalls. A call that a fault answered counts.
func (p *Proxy) Calls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.calls)
}

// ResetCalls starts the counts anew.
func (p *Proxy) ResetCalls() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.calls)
}

// Close stops listening and drops open connections. Held calls end with it.
func (p *Proxy) Close() error { return p.server.Close() }

// ServeHTTP passes one call on, unless a fault strikes it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))

	engine, fault := p.admit(operationOf(r, body), body)
	switch {
	case engine == nil:
		http.Error(w, "no engine yet", http.StatusBadGateway)
	case fault == nil:
		engine.ServeHTTP(w, r)
	default:
		fault.strike(engine, w, r)
	}
}

// admit counts a call and finds where it goes and the fault that strikes it.
func (p *Proxy) admit(operation string, body []byte) (http.Handler, *Injection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[operation]++
	if p.engine == nil {
		return nil, nil
	}
	for _, injected := range p.faults {
		if injected.wants(operation, body) {
			return p.engine, injected
		}
	}
	return p.engine, nil
}

func operationOf(r *http.Request, body []byte) string {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return target
	}
	if _, operation, found := strings.Cut(r.URL.Path, "/operation/"); found && strings.HasPrefix(r.URL.Path, "/service/") {
		return operation
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		if form, err := url.ParseQuery(string(body)); err == nil && form.Has("Action") {
			return form.Get("Action")
		}
	}
	return r.Method + " " + r.URL.Path
}
