package dev

import (
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/view"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
)

// shop is a small shop with a checkout page, for a person who wants to watch an order change. It calls the application as
// a shop's back end does, with AWS credentials that the browser never sees, and makes the simulated gateway do what the
// customer clicks. It serves
//
//	GET  /                            the page; ?order= names the order, and status= what the callback said of it
//	POST /orders                      {}                a new order; answers {id}
//	GET  /orders/{id}                                   answers a [shopView]
//	POST /orders/{id}/attempts        {attempt}         the customer pays, or tries to; answers an [attempted]
//	POST /orders/{id}/refunds         {id, amount?}     the shop gives money back; answers {said}
type shop struct {
	api     stack.Client
	gateway *razorpaytest.Gateway
	log     io.Writer // what kept the shop from answering
}

// shopPrice is what an order of the shop costs, in paise.
const shopPrice = 49900

//go:embed shop
var shopFiles embed.FS

// handler is what the shop serves, to pages of its own only.
func (s *shop) handler() http.Handler {
	files, err := fs.Sub(shopFiles, "shop")
	if err != nil {
		panic(err) // the name is a constant
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("POST /orders", s.answer(s.create))
	mux.HandleFunc("GET /orders/{id}", s.answer(s.show))
	mux.HandleFunc("POST /orders/{id}/attempts", s.answer(s.attempt))
	mux.HandleFunc("POST /orders/{id}/refunds", s.answer(s.refund))
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A form may also go to the application: that is the way back from the gateway's checkout.
		w.Header().Set("Content-Security-Policy",
			"default-src 'self'; form-action 'self' "+s.api.URL+"; base-uri 'none'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	}))
}

// badRequest is a request that the shop's own page would not make.
type badRequest string

func (b badRequest) Error() string { return string(b) }

// answer runs a handler that returns what to send as JSON. Errors become {error}: of the application's answers what they
// say, of others nothing.
func (s *shop) answer(handle func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
		value, err := handle(r)
		status := http.StatusOK
		var wrong badRequest
		refused := new(stack.Refusal)
		switch {
		case err == nil:
		case errors.As(err, &wrong):
			status, value = http.StatusBadRequest, map[string]string{"error": wrong.Error()}
		case errors.As(err, &refused):
			status, value = refused.Status, map[string]string{"error": strings.TrimSpace(refused.Error())}
		default:
			fmt.Fprintf(s.log, "paidonce: the shop cannot answer %s %s: %v\n", r.Method, r.URL.Path, err)
			status, value = http.StatusBadGateway, map[string]string{"error": "that did not work; the terminal of the shop says why"}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(value) // fails only if the browser is gone
	}
}

// readBody reads the JSON object that the page sends.
func readBody(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badRequest("the body is not what the page sends")
	}
	return nil
}

// orderOf is the id in the path, which becomes part of a URL of the application.
func orderOf(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !stack.IsOrderID(id) {
		return "", badRequest("that is no order id")
	}
	return id, nil
}

func (s *shop) create(r *http.Request) (any, error) {
	if err := readBody(r, &struct{}{}); err != nil {
		return nil, err
	}
	o, err := s.api.CreateOrder(r.Context(), "shop-"+strings.ToLower(rand.Text()[:10]), shopPrice)
	return map[string]string{"id": o.ID}, err
}

// shopView is an order as the page shows it.
type shopView struct {
	apigw.Timeline
	NotFulfilled string                        `json:"not_fulfilled"` // why; empty once it is fulfilled
	Meanings     map[payment.HoldReason]string `json:"meanings"`      // of the holds
	Refundable   int64                         `json:"refundable"`    // paise that may still go back, of all payments
}

func (s *shop) show(r *http.Request) (any, error) {
	id, err := orderOf(r)
	if err != nil {
		return nil, err
	}
	t, err := s.api.Timeline(r.Context(), id)
	if err != nil {
		return nil, err
	}
	v := shopView{Timeline: t, Meanings: map[payment.HoldReason]string{}}
	if t.Order.FulfilledAt == nil {
		v.NotFulfilled = view.WhyNot(t.Order)
	}
	for _, h := range t.Order.Holds {
		v.Meanings[h.Reason] = view.Meanings[h.Reason]
	}
	for _, p := range t.Order.Payments {
		v.Refundable += leftOf(t.Order, p)
	}
	return v, nil
}

// storefront is where the shop is open. It has its address before it has anything to sell: the application has to be
// told, when it is deployed, where customers come back to.
type storefront struct {
	url      string // without a slash at its end
	listener net.Listener
	server   *http.Server
}

// rentStorefront listens on 127.0.0.1. Port 0 takes any free one. Visitors wait until it opens.
func rentStorefront(port int) (*storefront, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("open the shop: %w", err)
	}
	return &storefront{
		url: "http://" + listener.Addr().String(), listener: listener, server: &http.Server{ReadHeaderTimeout: 10 * time.Second},
	}, nil
}

func (f *storefront) open(s *shop) {
	f.server.Handler = s.handler()
	go f.server.Serve(f.listener) // ends with close
}

func (f *storefront) close() error {
	return errors.Join(f.server.Close(), ignoreClosed(f.listener.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) { // the server has closed it
		return nil
	}
	return err
}
