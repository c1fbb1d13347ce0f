package razorpaytest

import (
	"bytes"
	"crypto/subtle"
	"io"
	"net/http"
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
	// The body is read first: only then does the server notice that a caller has gone.
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	kind := g.takeFault(r.Method, r.URL.Path)
	w = g.recordCall(w, r, body, kind)
	switch {
	case err != nil:
		badRequest("", "The request body cannot be read.").write(w)
	case kind != "":
		g.fail(kind, w, r)
	default:
		g.api.ServeHTTP(w, r)
	}
}

func (g *Gateway) apiRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/orders", answer(g.createOrder))
	mux.HandleFunc("GET /v1/orders", answer(g.listOrders))
	mux.HandleFunc("GET /v1/orders/{id}", answer(g.readOrder))
	mux.HandleFunc("GET /v1/orders/{id}/payments", answer(g.listOrderPayments))
	mux.HandleFunc("GET /v1/payments", answer(g.listPayments))
	mux.HandleFunc("GET /v1/payments/{id}", answer(g.readPayment))
	mux.HandleFunc("POST /v1/payments/{id}/capture", answer(g.capturePayment))
	mux.HandleFunc("POST /v1/payments/{id}/refund", answer(g.createRefund))
	mux.HandleFunc("GET /v1/payments/{id}/refunds", answer(g.listPaymentRefunds))
	mux.HandleFunc("GET /v1/payments/{id}/refunds/{refund}", answer(g.readPaymentRefund))
	mux.HandleFunc("GET /v1/refunds", answer(g.listRefunds))
	mux.HandleFunc("GET /v1/refunds/{id}", answer(g.readRefund))
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
	body, refused := readBody(r)
	if refused != nil {
		return nil, refused
	}
	request, refused := parseOrder(body)
	if refused != nil {
		return nil, refused
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return *g.addOrder(request), nil
}

func readBody(r *http.Request) ([]byte, *refusal) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, badRequest("", "The request body cannot be read.")
	}
	return body, nil
}

func (g *Gateway) readOrder(r *http.Request) (any, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.orders.get(r.PathValue("id")); o != nil {
		return *o, nil
	}
	return nil, errNoSuchID
}

func (g *Gateway) readPayment(r *http.Request) (any, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.payments.get(r.PathValue("id")); p != nil {
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
	return cut(g.orders.all, page, func(o *orderEntity) bool {
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
	return cut(g.payments.all, page, func(p *paymentEntity) bool { return page.holds(p.CreatedAt) }), nil
}

// listOrderPayments shows all attempts at an order, without pages.
func (g *Gateway) listOrderPayments(r *http.Request) (any, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.orders.get(r.PathValue("id"))
	if o == nil {
		return nil, errNoSuchID
	}
	return cut(o.payments, window{count: len(o.payments)}, func(*paymentEntity) bool { return true }), nil
}
