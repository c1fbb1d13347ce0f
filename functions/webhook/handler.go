package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"paidonce/shared/apigw"
	"paidonce/shared/metrics"
	"paidonce/shared/payment"
)

const (
	// maxBody is the largest body that is even verified. The gateways' own are a few kilobytes.
	maxBody = 1 << 20
	// patience is how long we may take: the gateway gives up after 5 s (Razorpay, "Deactivation") and its clock
	// started before ours.
	patience = 4500 * time.Millisecond
	// reserve is what is left of the function's own time for the answer.
	reserve = 300 * time.Millisecond
)

// fitEventID is what an event id must look like to be a key. It is not signed: anything else is not used.
var fitEventID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// gateway is what the webhook needs to know of a payment gateway.
type gateway interface {
	// Verify says which live secret signed the body, or false if none did. header finds a header without case.
	Verify(ctx context.Context, header func(name string) string, body []byte) (payment.Verified, bool)
	// Reduce returns a small body that says the same, for one that does not fit into a row.
	Reduce(body []byte) ([]byte, error)
}

// store keeps events.
type store interface {
	// PutEvent stores e unless its key is taken: then it writes nothing and returns the stored event with
	// [payment.ErrEventExists]. [payment.ErrEventTooLarge] if e does not fit. After any other error e may be stored.
	PutEvent(ctx context.Context, e payment.Event) (payment.Event, error)
}

// sender hands an event to the worker. After an error it may have been handed over all the same.
type sender interface {
	Send(ctx context.Context, k payment.EventKey) error
}

type handler struct {
	gateways  map[string]gateway // by the name in the path
	store     store
	queue     sender
	log       *slog.Logger
	metrics   *metrics.Writer
	now       func() time.Time
	retention time.Duration // how long an event is kept
	pace      payment.Pace
}

// errUnsigned is what is wrong with a request that carries no signature at all. The caller hears that its signature is bad.
var errUnsigned = fmt.Errorf("%w: none", apigw.ErrBadSignature)

// answer is the body of a 200.
type answer struct {
	Received  bool `json:"received"`
	Duplicate bool `json:"duplicate"`
}

// delivery is what the log line says of one delivery.
type delivery struct {
	event     payment.Event // as it is stored
	verified  payment.Verified
	duplicate bool
	resent    bool
}

// Handle answers 2xx only when the event is durable and handed over. Everything that is signed gets there, whatever it
// says. After any failure the gateway comes again.
func (h *handler) Handle(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	ctx, cancel := h.withinPatience(ctx)
	defer cancel()
	started := h.now()
	d, err := h.receive(ctx, r)
	response := apigw.JSON(http.StatusOK, answer{Received: true, Duplicate: d.duplicate})
	if err != nil {
		response = apigw.Error(err)
	}
	h.report(ctx, r, d, response.StatusCode, err, h.now().Sub(started))
	return response, nil
}

func (h *handler) receive(ctx context.Context, r events.APIGatewayV2HTTPRequest) (delivery, error) {
	name := r.PathParameters["gateway"]
	g, known := h.gateways[name]
	if !known {
		return delivery{}, apigw.ErrUnknownGateway
	}
	body, err := apigw.Body(r)
	if err != nil {
		return delivery{}, err
	}
	if len(body) > maxBody {
		return delivery{}, apigw.ErrTooLarge
	}
	verified, ok := g.Verify(ctx, func(header string) string { return apigw.Header(r, header) }, body)
	switch {
	case !ok && verified.Unsigned:
		return delivery{}, errUnsigned
	case !ok:
		return delivery{}, apigw.ErrBadSignature
	}
	e := h.event(name, body, verified)
	if invocation, ok := lambdacontext.FromContext(ctx); ok {
		e.Delivery = invocation.AwsRequestID
	}
	d, err := h.keep(ctx, g, e)
	d.verified = verified
	if err != nil || d.duplicate && !d.resent {
		return d, err
	}
	return d, h.queue.Send(ctx, d.event.Key)
}

func (h *handler) event(gateway string, body []byte, v payment.Verified) payment.Event {
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	id := v.EventID
	if !fitEventID.MatchString(id) {
		id = "sha256:" + digest
	}
	now := h.now()
	return payment.Event{
		Key:        payment.EventKey{Gateway: gateway, ID: id},
		Status:     payment.EventReceived,
		Verdict:    "waiting for the worker",
		Body:       body,
		SHA256:     digest,
		VerifiedBy: v.By,
		Mode:       v.Mode,
		ReceivedAt: now,
		NextAt:     h.pace.FirstLook(now),
		KeepUntil:  now.Add(h.retention),
	}
}

// keep stores the event and says whether it was there already. One that is still RECEIVED is to be sent again: its
// first delivery may have died between storing and sending.
func (h *handler) keep(ctx context.Context, g gateway, e payment.Event) (delivery, error) {
	stored, err := h.store.PutEvent(ctx, e)
	if errors.Is(err, payment.ErrEventTooLarge) {
		e = reduced(g, e)
		stored, err = h.store.PutEvent(ctx, e)
	}
	if errors.Is(err, payment.ErrEventExists) && stored.SHA256 != e.SHA256 {
		// The event id is not signed, so neither of the two bodies may be dropped.
		h.log.LogAttrs(ctx, slog.LevelWarn, "event id with another body", slog.String("event", e.Key.String()))
		e.Key.ID += "!" + e.SHA256
		stored, err = h.store.PutEvent(ctx, e)
	}
	switch {
	case errors.Is(err, payment.ErrEventExists) && stored.Delivery == e.Delivery && e.Delivery != "":
		return delivery{event: stored}, nil // our own: the SDK tried again because the answer was lost
	case errors.Is(err, payment.ErrEventExists):
		return delivery{event: stored, duplicate: true, resent: stored.Status == payment.EventReceived}, nil
	case err != nil:
		return delivery{event: e}, fmt.Errorf("store event: %w", err)
	}
	return delivery{event: e}, nil
}

// reduced is e with what its body says instead of the body. One that cannot even be decoded is kept as its digest.
func reduced(g gateway, e payment.Event) payment.Event {
	body, err := g.Reduce(e.Body)
	if err != nil {
		body = nil
		e.Verdict = "too large to keep, and it cannot be decoded"
	}
	e.Body, e.Reduced = body, true
	return e
}

func (h *handler) withinPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(patience)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-reserve).Before(until) {
		until = deadline.Add(-reserve)
	}
	return context.WithDeadline(ctx, until)
}

// report writes the one line about a delivery.
func (h *handler) report(ctx context.Context, r events.APIGatewayV2HTTPRequest, d delivery, status int, err error, took time.Duration) {
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.Int("status", status),
		slog.String("request_id", r.RequestContext.RequestID),
		slog.Bool("duplicate", d.duplicate),
		slog.Bool("resent", d.resent),
		slog.Int64("took_ms", took.Milliseconds()),
	}
	if d.event.Key.ID != "" {
		attributes = append(attributes,
			slog.String("event", d.event.Key.String()),
			slog.String("verified_by", d.verified.By),
			slog.String("mode", string(d.verified.Mode)),
			slog.Int("bytes", len(d.event.Body)))
	}
	if err != nil {
		level = slog.LevelWarn
		if status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		attributes = append(attributes, slog.String("error", err.Error()))
	}
	h.log.LogAttrs(ctx, level, "webhook", attributes...)
	h.count(d, err)
}

// count writes the metrics of a delivery.
func (h *handler) count(d delivery, err error) {
	if errors.Is(err, apigw.ErrBadSignature) && !errors.Is(err, errUnsigned) { // which is a probe, not a gateway with another secret
		h.metrics.Put(metrics.InvalidSignature.Add(1))
	}
	if d.verified.By == "" {
		return
	}
	samples := []metrics.Sample{metrics.Received.Add(1).By(d.event.Key.Gateway + "/" + d.verified.By)}
	if d.duplicate {
		samples = append(samples, metrics.Duplicate.Add(1))
	}
	if d.resent {
		samples = append(samples, metrics.Resent.Add(1))
	}
	h.metrics.Put(samples...)
}
