package razorpaytest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"paidonce/shared/razorpay"
)

const (
	firstRetry  = time.Minute    // then twice as long each time; the real schedule is not published
	giveUpAfter = 24 * time.Hour // counted from the event
	maxInFlight = 8
	maxLog      = 10_000
)

// DeliverySettings say how webhooks travel.
type DeliverySettings struct {
	Drop      float64 `json:"drop"`      // the share of events, 0 to 1, that are never sent
	Duplicate float64 `json:"duplicate"` // the share of events, 0 to 1, that are sent twice
	Shuffle   bool    `json:"shuffle"`   // no order; else the events of one order are sent one after the other
	DelayMS   int64   `json:"delay_ms"`  // milliseconds on the gateway's clock until the first attempt; with Shuffle at most
	Enabled   bool    `json:"enabled"`   // the webhook is switched on; events that occur or fall due while it is off are lost
}

// DeliveryChange changes those settings that are not nil.
type DeliveryChange struct {
	Drop      *float64 `json:"drop"`
	Duplicate *float64 `json:"duplicate"`
	Shuffle   *bool    `json:"shuffle"`
	DelayMS   *int64   `json:"delay_ms"`
	Enabled   *bool    `json:"enabled"`
}

// A Delivery is one attempt to deliver an event, or the loss of one.
type Delivery struct {
	EventID   string          `json:"event_id"`
	Event     string          `json:"event"`    // such as payment.captured
	OrderID   string          `json:"order_id"` // empty: of no order
	PaymentID string          `json:"payment_id"`
	RefundID  string          `json:"refund_id,omitempty"`
	Attempt   int             `json:"attempt"` // counted per event, from 1; 0: it was lost before any
	Status    int             `json:"status"`  // the HTTP status; 0: there was no answer
	Error     string          `json:"error,omitempty"`
	At        time.Time       `json:"at"` // on the gateway's clock
	Body      json.RawMessage `json:"body,omitempty"`
}

// delivery is the state of all deliveries. It is guarded by the gateway's mu.
type delivery struct {
	settings DeliverySettings
	queue    []*parcel // in the order of sending
	inFlight int
	busy     map[string]int // subjects with parcels in flight, and how many
	log      []Delivery
	idle     chan struct{} // closed when a parcel has come to an end, then replaced
	woken    chan struct{}
	client   *http.Client
}

// letter is an event that was emitted.
type letter struct {
	id, name                     string
	orderID, paymentID, refundID string // empty: of none
	body                         []byte
	signature                    string // empty: there is no webhook secret
	at                           time.Time
	attempts                     int
}

// subject is what the events of which follow each other: the order, or the payment without one.
func (l *letter) subject() string { return cmp.Or(l.orderID, l.paymentID) }

// parcel is a letter on its way. A duplicate is a second parcel with the same letter.
type parcel struct {
	*letter
	due   time.Time
	tries int
}

func newDelivery() delivery {
	return delivery{
		settings: DeliverySettings{Enabled: true},
		busy:     map[string]int{},
		idle:     make(chan struct{}),
		woken:    make(chan struct{}, 1),
		client: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: maxInFlight},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// wake makes the dispatcher look again.
func (d *delivery) wake() {
	select {
	case d.woken <- struct{}{}:
	default: // it will look anyway
	}
}

// ChangeDelivery changes how webhooks travel from now on and returns the settings.
func (g *Gateway) ChangeDelivery(change DeliveryChange) (DeliverySettings, error) {
	settings, refused := g.changeDelivery(change)
	if refused != nil {
		return settings, refused
	}
	return settings, nil
}

func (g *Gateway) changeDelivery(change DeliveryChange) (DeliverySettings, *refusal) {
	for name, share := range map[string]*float64{"drop": change.Drop, "duplicate": change.Duplicate} {
		if share != nil && !(*share >= 0 && *share <= 1) {
			return DeliverySettings{}, badRequest(name, "The "+name+" must be a number from 0 to 1.")
		}
	}
	if change.DelayMS != nil && (*change.DelayMS < 0 || *change.DelayMS > 1e9) {
		return DeliverySettings{}, badRequest("delay_ms", "The delay_ms must be a number from 0 to 1e9.")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.delivery.settings
	s.Drop, s.Duplicate = value(change.Drop, s.Drop), value(change.Duplicate, s.Duplicate)
	s.Shuffle, s.DelayMS = value(change.Shuffle, s.Shuffle), value(change.DelayMS, s.DelayMS)
	s.Enabled = value(change.Enabled, s.Enabled)
	return *s, nil
}

func value[T any](changed *T, old T) T {
	if changed == nil {
		return old
	}
	return *changed
}

// Deliveries returns what was sent and what was lost, oldest first: the last 10000 of them.
func (g *Gateway) Deliveries() []Delivery {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Delivery{}, g.delivery.log...)
}

// Settle waits until no delivery is under way or due. Those that are due later, on the gateway's clock, stay.
func (g *Gateway) Settle(ctx context.Context) error {
	for {
		g.mu.Lock()
		now := g.now()
		due := slices.ContainsFunc(g.delivery.queue, func(p *parcel) bool { return !p.due.After(now) })
		settled, idle := !due && g.delivery.inFlight == 0, g.delivery.idle
		g.mu.Unlock()
		if settled {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.ctx.Done():
			return errors.New("razorpaytest: closed")
		}
	}
}

// emit makes an event of a payment, and of an order or a refund with it (nil: none), as they are now, and queues it. The
// caller holds mu.
func (g *Gateway) emit(name string, p *paymentEntity, o *orderEntity, f *refundEntity) {
	now := g.now()
	e := event{
		Entity: "event", AccountID: g.config.AccountID, Event: name, Contains: []string{"payment"},
		Payload: map[string]boxed{"payment": {p}}, CreatedAt: now.Unix(),
	}
	l := &letter{id: g.newID(""), name: name, paymentID: p.ID, at: now}
	if p.OrderID != nil {
		l.orderID = *p.OrderID
	}
	if o != nil {
		e.Contains = append(e.Contains, "order")
		e.Payload["order"] = boxed{o}
	}
	if f != nil {
		e.Contains = []string{"refund", "payment"}
		e.Payload["refund"] = boxed{f}
		l.refundID = f.ID
	}
	body, err := json.Marshal(e)
	if err != nil {
		panic(err) // an event holds nothing that cannot be encoded
	}
	l.body = body
	if g.config.WebhookSecret != "" {
		l.signature = razorpay.Sign(body, g.config.WebhookSecret)
	}
	// All chances are drawn at each event, so that a change of one setting leaves the rest of a seeded run alone.
	s, random := g.delivery.settings, g.config.Rand
	drop, duplicate, early, late := random.Float64(), random.Float64(), random.Float64(), random.Float64()
	switch {
	case !s.Enabled:
		g.record(l, 0, "the webhook is switched off")
		return
	case drop < s.Drop:
		g.record(l, 0, "dropped")
		return
	}
	g.enqueue(&parcel{letter: l, due: now.Add(s.delay(early))})
	if duplicate < s.Duplicate {
		g.enqueue(&parcel{letter: l, due: now.Add(s.delay(late))})
	}
}

func (s DeliverySettings) delay(chance float64) time.Duration {
	delay := time.Duration(s.DelayMS) * time.Millisecond
	if s.Shuffle {
		delay = time.Duration(chance * float64(delay))
	}
	return delay
}

// enqueue puts a parcel behind all that are due no later. The caller holds mu.
func (g *Gateway) enqueue(p *parcel) {
	d := &g.delivery
	i := len(d.queue)
	for i > 0 && d.queue[i-1].due.After(p.due) {
		i--
	}
	d.queue = slices.Insert(d.queue, i, p)
	d.wake()
}

// dispatch sends what falls due until the gateway is closed.
func (g *Gateway) dispatch() {
	for {
		timer := time.NewTimer(g.sendDue())
		select {
		case <-g.ctx.Done():
			timer.Stop()
			return
		case <-g.delivery.woken:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// sendDue makes happen what is due, starts to send what is due, and returns how long until something else may be.
func (g *Gateway) sendDue() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	d, now := &g.delivery, g.now()
	g.meetDeadlines(now)
	for d.inFlight < maxInFlight {
		i := g.pick(now)
		if i < 0 {
			break
		}
		p := d.queue[i]
		d.queue = slices.Delete(d.queue, i, i+1)
		switch {
		case !d.settings.Enabled:
			g.lose(p, "the webhook is switched off")
		case g.config.WebhookURL == "":
			g.lose(p, "there is no webhook URL")
		default:
			p.tries++
			p.attempts++
			d.inFlight++
			d.busy[p.subject()]++
			attempt, url := p.attempts, g.config.WebhookURL
			g.work.Go(func() { g.send(p, attempt, url) })
		}
	}
	wait := time.Hour
	if next, ok := g.nextDue(now); ok {
		wait = min(wait, next.Sub(now))
	}
	return wait
}

// pick returns the index of the parcel to send next, or -1. The caller holds mu.
func (g *Gateway) pick(now time.Time) int {
	d := &g.delivery
	due, _ := slices.BinarySearchFunc(d.queue, now, func(p *parcel, now time.Time) int {
		return cmp.Or(p.due.Compare(now), -1) // past all that are due now
	})
	if d.settings.Shuffle && due > 0 {
		return g.config.Rand.IntN(due)
	}
	return slices.IndexFunc(d.queue[:due], func(p *parcel) bool { return d.busy[p.subject()] == 0 })
}

// send makes one attempt and settles what follows from it.
func (g *Gateway) send(p *parcel, attempt int, url string) {
	status, err := g.post(p.letter, url)
	g.mu.Lock()
	defer g.mu.Unlock()
	d, now := &g.delivery, g.now()
	d.inFlight--
	if d.busy[p.subject()]--; d.busy[p.subject()] == 0 {
		delete(d.busy, p.subject())
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	g.record(p.letter, attempt, text)
	d.log[len(d.log)-1].Status = status
	deadline := p.at.Add(giveUpAfter)
	switch {
	case status >= 200 && status <= 299:
	case !now.Before(deadline):
		d.settings.Enabled = false // the real gateway switches off the whole webhook, too
	default:
		p.due = now.Add(firstRetry << (p.tries - 1))
		if p.due.After(deadline) {
			p.due = deadline
		}
		g.enqueue(p)
	}
	g.announce()
}

// post sends a letter and returns the answer's status, or 0 and why there was none in time.
func (g *Gateway) post(l *letter, url string) (status int, err error) {
	ctx, cancel := context.WithTimeout(g.ctx, g.config.DeliveryTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(l.body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(razorpay.HeaderEventID, l.id)
	if l.signature != "" {
		r.Header.Set(razorpay.HeaderSignature, l.signature)
	}
	response, err := g.delivery.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	io.Copy(io.Discard, io.LimitReader(response.Body, maxBody))
	return response.StatusCode, nil
}

// lose ends a parcel without an attempt. The caller holds mu.
func (g *Gateway) lose(p *parcel, why string) {
	g.record(p.letter, 0, why)
	g.announce()
}

// announce tells those who wait for parcels to come to an end. The caller holds mu.
func (g *Gateway) announce() {
	close(g.delivery.idle)
	g.delivery.idle = make(chan struct{})
	g.delivery.wake()
}

// record writes the log. The caller holds mu.
func (g *Gateway) record(l *letter, attempt int, text string) {
	d := &g.delivery
	if len(d.log) == maxLog {
		d.log = slices.Delete(d.log, 0, 1)
	}
	d.log = append(d.log, Delivery{
		EventID: l.id, Event: l.name, OrderID: l.orderID, PaymentID: l.paymentID, RefundID: l.refundID, Attempt: attempt,
		Error: text, At: g.now(), Body: l.body,
	})
}
