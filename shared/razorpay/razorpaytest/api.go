package razorpaytest

import (
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxBody limits what a caller may send, in bytes.
const maxBody = 1 << 20

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if strings.HasPrefix(r.URL.Path, "/_sim/") {
		g.control.ServeHTTP(w, r)
		return
	}
	if kind := g.takeFault(r.Method, r.URL.Path); kind != "" {
		g.fail(kind, w, r)
		return
	}
	g.api.ServeHTTP(w, r)
}

func (g *Gateway) apiRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/orders", answer(g.createOrder))
	mux.HandleFunc("GET /v1/orders", answer(g.listOrders))
	mux.HandleFunc("GET /v1/orders/{id}", answer(g.readOrder))
	mux.HandleFunc("GET /v1/orders/{id}/payments", answer(g.listOrderPayments))
	mux.HandleFunc("GET /v1/payments", answer(g.listPayments))
	mux.HandleFunc("GET /v1/payments/{id}", answer(g.readPayment))
	mux.HandleFunc("/", answer(func(*http.Request) (any, *refusal) { return nil, errNoSuchURL }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		good := subtle.ConstantTimeCompare([]byte(id), []byte(g.config.KeyID)) &
			subtle.ConstantTimeCompare([]byte(secret), []byte(g.config.KeySecret))
		// The real gateway takes exactly "Basic", where RFC 7617 allows any case.
		if good != 1 || !strings.HasPrefix(r.Header.Get("Authorization"), "Basic ") {
			errUnauthorized.write(w)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (g *Gateway) createOrder(r *http.Request) (any, *refusal) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, badRequest("", "The request body cannot be read.")
	}
	request, refused := parseOrder(body)
	if refused != nil {
		return nil, refused
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return *g.addOrder(request), nil
}

func (g *Gateway) readOrder(r *http.Request) (any, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.order(r.PathValue("id")); o != nil {
		return *o, nil
	}
	return nil, errNoSuchID
}

func (g *Gateway) readPayment(r *http.Request) (any, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.payment(r.PathValue("id")); p != nil {
		return *p, nil
	}
	return nil, errNoSuchID
}

// listOrders filters by a part of the receipt, as the gateway does.
func (g *Gateway) listOrders(r *http.Request) (any, *refusal) {
	page, refused := parsePage(r.URL.Query(), "receipt")
	if refused != nil {
		return nil, refused
	}
	receipt := r.URL.Query().Get("receipt")
	g.mu.Lock()
	defer g.mu.Unlock()
	return cut(g.orders, page, func(o *orderEntity) bool {
		return page.holds(o.CreatedAt) && (receipt == "" || o.Receipt != nil && strings.Contains(*o.Receipt, receipt))
	}), nil
}

func (g *Gateway) listPayments(r *http.Request) (any, *refusal) {
	page, refused := parsePage(r.URL.Query())
	if refused != nil {
		return nil, refused
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return cut(g.payments, page, func(p *paymentEntity) bool { return page.holds(p.CreatedAt) }), nil
}

// listOrderPayments shows all attempts at an order, without pages.
func (g *Gateway) listOrderPayments(r *http.Request) (any, *refusal) {
	id := r.PathValue("id")
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.order(id) == nil {
		return nil, errNoSuchID
	}
	all := window{count: len(g.payments)}
	return cut(g.payments, all, func(p *paymentEntity) bool { return p.OrderID != nil && *p.OrderID == id }), nil
}

// window is the part of a list that a caller asks for. from and to are Unix seconds, both included; 0 is no limit.
type window struct {
	count, skip int
	from, to    int64
}

func (p window) holds(at int64) bool { return at >= p.from && (p.to == 0 || at <= p.to) }

func parsePage(query url.Values, others ...string) (window, *refusal) {
	page := window{count: 10}
	for name, values := range query {
		if slices.Contains(others, name) {
			continue
		}
		n, err := strconv.ParseInt(values[0], 10, 64)
		switch {
		case name == "count" && err == nil && n >= 1 && n <= 100:
			page.count = int(n)
		case name == "skip" && err == nil && n >= 0 && n <= 1<<30:
			page.skip = int(n)
		case name == "from" && err == nil && n >= minTime && n <= maxTime:
			page.from = n
		case name == "to" && err == nil && n >= minTime && n <= maxTime:
			page.to = n
		case slices.Contains([]string{"count", "skip", "from", "to"}, name):
			return window{}, badRequest(name, fmt.Sprintf("The %s is invalid.", name))
		default:
			return window{}, unwanted(name)
		}
	}
	return page, nil
}

// The times that lists accept, in Unix seconds.
const (
	minTime = 946684800
	maxTime = 4765046400
)

// cut returns a page of the entities that match, newest first. They are copied: the caller writes them after giving up
// the lock.
func cut[E any](all []*E, page window, matches func(*E) bool) collection[E] {
	var items []E
	skip := page.skip
	for _, e := range slices.Backward(all) {
		if len(items) == page.count {
			break
		}
		if !matches(e) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		items = append(items, *e)
	}
	return newCollection(items)
}
