package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/advance"
	"paidonce/shared/logs"
	"paidonce/shared/metrics"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

// reserve is the time before the function's own end at which nothing new begins: enough for a call that is tried twice.
const reserve = 5 * time.Second

// store is where events are kept.
type store interface {
	// Event reads an event as it is now. [payment.ErrNotFound] if there is none.
	Event(ctx context.Context, k payment.EventKey) (payment.Event, error)
	// OrderID finds our order for a gateway's. [payment.ErrNotFound] if it is none of ours.
	OrderID(ctx context.Context, gateway string, ref payment.Ref) (string, error)
	// SettleEvent writes what became of an event. [payment.ErrEventApplied] if it is APPLIED already.
	SettleEvent(ctx context.Context, s payment.Settlement) error
	// Commit writes a change whole or not at all; [payment.ErrVersionConflict] and [payment.ErrEffectConflict] say that
	// an order or a pointer is there already.
	Commit(ctx context.Context, c payment.Commit) error
}

// decoder reads what a gateway's body says.
type decoder func(body []byte) (payment.Notice, error)

type handler struct {
	store       store
	advancer    advance.Advancer
	decoders    map[string]decoder                       // by gateway
	gateways    map[string]func(context.Context) gateway // by name; nil: none is ever asked
	adopts      bool                                     // unknown orders of these gateways become ours
	stack       string                                   // marks the orders at the gateway that are of our making
	pace        payment.Pace
	maxReceives int // receives after which SQS moves a message to the dead letter queue
	log         *slog.Logger
	metrics     *metrics.Writer
	now         func() time.Time
}

// task is one message on its way through the worker.
type task struct {
	record  events.SQSMessage
	key     payment.EventKey
	event   payment.Event
	notice  payment.Notice
	orderID string // empty: nothing is left to do for an order
	copyOf  *task  // another message of the batch that names the same event

	became  metrics.Metric // what to count it as; an error counts before that
	outcome string         // for the log
	odd     bool           // somebody should look: the event is not of its order's mode or account
	begun   time.Time
	err     error
}

var (
	errOutOfTime = errors.New("not begun: too little time left")
	errUnsigned  = errors.New("the event row does not say which secret verified it")
)

// Handle works through a batch and reports the messages that failed, and only those. Messages of one order are applied
// together; different orders go side by side.
func (h *handler) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	tasks := make([]*task, len(batch.Records))
	for i, record := range batch.Records {
		tasks[i] = &task{record: record, became: metrics.NoEffect, begun: h.now()}
		tasks[i].key, tasks[i].err = queue.Decode(record.Body)
	}
	together(tasks, func(t *task) { h.run(ctx, t, h.prepare) })

	byOrder := map[string][]*task{}
	seen := map[payment.EventKey]*task{}
	for _, t := range tasks {
		if first := seen[t.key]; first != nil {
			t.copyOf = first
			continue
		}
		seen[t.key] = t
		if t.orderID != "" {
			byOrder[t.orderID] = append(byOrder[t.orderID], t)
		}
	}
	groups := make([][]*task, 0, len(byOrder))
	for _, group := range byOrder {
		groups = append(groups, group)
	}
	together(groups, func(group []*task) { h.applyGroup(ctx, group) })

	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, t := range tasks {
		if t.copyOf != nil && t.err == nil {
			t.outcome, t.err = t.copyOf.outcome, t.copyOf.err
		}
		if t.err != nil {
			h.giveUpOnLastReceive(ctx, t)
		}
		if t.err != nil {
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: t.record.MessageId})
		}
		h.report(ctx, t)
	}
	h.count(tasks)
	return response, nil
}

// run does one stage of one message. A panic fails that message only.
func (h *handler) run(ctx context.Context, t *task, stage func(context.Context, *task) error) {
	if t.err != nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			t.err = fmt.Errorf("panic of type %T", v) // the value may hold anything, the stack holds places in our code
			h.log.LogAttrs(ctx, slog.LevelError, "panic", slog.String("event", t.key.String()), slog.String("stack", string(debug.Stack())))
		}
	}()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < reserve {
		t.err = errOutOfTime
		return
	}
	t.err = stage(ctx, t)
}

// prepare reads the event and finds its order. Events that no order needs are settled here.
func (h *handler) prepare(ctx context.Context, t *task) (err error) {
	if t.event, err = h.store.Event(ctx, t.key); err != nil {
		return err
	}
	if t.event.Status == payment.EventApplied {
		t.outcome = "already applied"
		return nil
	}
	if t.event.VerifiedBy == "" {
		return errUnsigned
	}
	decode, known := h.decoders[t.key.Gateway]
	if !known {
		return fmt.Errorf("no decoder for gateway %s", t.key.Gateway)
	}
	if t.notice, err = decode(t.event.Body); err != nil {
		h.metrics.Put(metrics.Undecodable.Add(1))
		return h.settle(ctx, t, t.event.Settle(payment.EventParked, "", "", "cannot be decoded: "+err.Error()))
	}
	if len(t.notice.Facts) == 0 {
		return h.settle(ctx, t, t.event.Settle(payment.EventIgnored, t.notice.Type, "", t.notice.Note))
	}
	ref, one := payment.RefOf(t.notice.Facts)
	if !one {
		return h.settle(ctx, t, t.event.Settle(payment.EventParked, t.notice.Type, "", "speaks of several gateway orders"))
	}
	t.orderID, err = h.store.OrderID(ctx, t.key.Gateway, ref)
	if errors.Is(err, payment.ErrNotFound) {
		return h.unknown(ctx, t, ref)
	}
	return err
}

// applyGroup applies the messages of one order together: a burst about one order is then one write, not a race of many.
// If that fails each message is applied by itself, so that one that cannot be applied fails alone.
func (h *handler) applyGroup(ctx context.Context, group []*task) {
	h.run(ctx, group[0], func(ctx context.Context, _ *task) error { return h.apply(ctx, group...) })
	if len(group) == 1 || group[0].err == nil {
		return
	}
	for _, t := range group {
		t.err = nil
		h.run(ctx, t, func(ctx context.Context, t *task) error { return h.apply(ctx, t) })
	}
}

func (h *handler) apply(ctx context.Context, tasks ...*task) error {
	var steps []advance.Step
	ctx = logs.With(ctx, slog.String("order", tasks[0].orderID))
	for _, t := range tasks {
		steps = append(steps, advance.Step{
			Source:  payment.SourceWebhook,
			Facts:   t.notice.Facts,
			Event:   &t.event,
			Kind:    t.notice.Type,
			Account: t.notice.Account,
		})
	}
	results, err := h.advancer.ApplyAll(ctx, tasks[0].orderID, steps)
	for i, r := range results {
		tasks[i].outcome, tasks[i].odd = r.Verdict, r.Excluded
		switch {
		case r.Excluded:
			tasks[i].became = metrics.Ignored
		case r.Taught:
			tasks[i].became = metrics.Applied
		}
	}
	return err
}

func (h *handler) settle(ctx context.Context, t *task, s payment.Settlement) error {
	t.outcome = fmt.Sprintf("%s: %s", s.Status, s.Verdict)
	t.became = metrics.Ignored
	if s.Status == payment.EventParked {
		t.became = metrics.Parked
	}
	err := h.store.SettleEvent(ctx, s)
	if errors.Is(err, payment.ErrEventApplied) {
		t.outcome, t.became = "already applied", metrics.NoEffect
		return nil
	}
	return err
}

// giveUpOnLastReceive marks the event FAILED when SQS will move its message to the dead letter queue. If even that
// fails the row stays as it is and reconcile finds it.
func (h *handler) giveUpOnLastReceive(ctx context.Context, t *task) {
	t.outcome = "failed, will be tried again"
	if receives(t.record) < h.maxReceives {
		return
	}
	t.outcome = "failed, moves to the dead letter queue"
	if t.key.ID == "" || errors.Is(t.err, payment.ErrNotFound) || t.event.Key.ID == "" && errors.Is(t.err, payment.ErrNewerVersion) {
		return // there is no event row, or none that we may touch
	}
	e := t.event
	if e.Key.ID == "" {
		e.Key, e.ReceivedAt = t.key, h.now()
	}
	why := fmt.Sprintf("gave up after %d receives: %s", receives(t.record), t.err)
	err := h.store.SettleEvent(ctx, e.Settle(payment.EventFailed, t.notice.Type, t.orderID, why))
	switch {
	case errors.Is(err, payment.ErrEventApplied): // another copy of the message, or ours although its answer was lost
		t.outcome, t.became, t.err = "already applied", metrics.NoEffect, nil
	case err != nil:
		t.err = errors.Join(t.err, err)
	}
}

func receives(m events.SQSMessage) int {
	n, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
	if err != nil {
		return 0 // SQS always says; without it the message is simply tried again
	}
	return n
}

// report writes the one line about a message.
func (h *handler) report(ctx context.Context, t *task) {
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("event", t.key.String()),
		slog.String("event_type", t.notice.Type),
		slog.String("order", t.orderID),
		slog.String("outcome", t.outcome),
		slog.String("message_id", t.record.MessageId),
		slog.Int("receive_count", receives(t.record)),
		slog.Int64("took_ms", h.now().Sub(t.begun).Milliseconds()),
	}
	if late, applied := h.late(t); applied {
		attributes = append(attributes, slog.Float64("late_s", late))
	}
	if t.odd {
		level = slog.LevelWarn
	}
	if t.err != nil {
		level = slog.LevelError
		attributes = append(attributes, slog.String("error", t.err.Error()))
	}
	h.log.LogAttrs(ctx, level, "message", attributes...)
}

// count writes the metrics of a batch.
func (h *handler) count(tasks []*task) {
	became := map[metrics.Metric]int{}
	var late []float64
	for _, t := range tasks {
		switch {
		case t.err == nil:
			became[t.became]++
		case receives(t.record) >= h.maxReceives:
			became[metrics.GaveUp]++
			fallthrough
		default:
			became[metrics.Failed]++
		}
		if seconds, applied := h.late(t); applied {
			late = append(late, seconds)
		}
	}
	samples := []metrics.Sample{metrics.SecondsToApplied.Of(late...)}
	for _, m := range []metrics.Metric{metrics.Applied, metrics.NoEffect, metrics.Ignored, metrics.Parked, metrics.Failed, metrics.GaveUp} {
		samples = append(samples, m.Add(became[m]))
	}
	h.metrics.Put(samples...)
}

// late is how long ago, in seconds, the gateway says that it happened what was just applied. Where it does not say, or says what
// cannot be, it is how long ago we heard of it.
func (h *handler) late(t *task) (seconds float64, applied bool) {
	if t.err != nil || t.became != metrics.Applied || t.copyOf != nil {
		return 0, false
	}
	since := t.event.ReceivedAt
	if at := t.notice.At; at.Before(since) && since.Sub(at) < oldest {
		since = at
	}
	return h.now().Sub(since).Round(time.Millisecond).Seconds(), true
}

// oldest is how long ago an event that is delivered can have happened: support replays those of the last 15 days (Razorpay,
// "Webhook FAQs"), and a gateway repeats for a day.
const oldest = 16 * 24 * time.Hour

// together runs f for each item side by side and waits. A batch has at most 10 messages.
func together[T any](items []T, f func(T)) {
	var wg sync.WaitGroup
	for _, item := range items {
		wg.Go(func() { f(item) })
	}
	wg.Wait()
}
