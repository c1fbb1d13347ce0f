package send

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/cmd/paidonce/view"
	"paidonce/shared/payment"
)

// deliveryPlan is what is sent in which order.
type deliveryPlan struct {
	order   []int // indices of events
	dropped []int
}

// planDeliveries plans for so many events: each is dropped with a chance of drop percent, or sent dup+1 times. The same seed makes
// the same plan.
func planDeliveries(events, dup, drop int, shuffle bool, seed uint64) (p deliveryPlan) {
	chance := rand.New(rand.NewPCG(seed, 0))
	for i := range events {
		if chance.IntN(100) < drop {
			p.dropped = append(p.dropped, i)
			continue
		}
		for range dup + 1 {
			p.order = append(p.order, i)
		}
	}
	if shuffle {
		chance.Shuffle(len(p.order), func(i, j int) { p.order[i], p.order[j] = p.order[j], p.order[i] })
	}
	return p
}

// delivered is what came of one delivery.
type delivered struct {
	File    string `json:"file"`
	Type    string `json:"type"`
	EventID string `json:"event_id"`
	Status  int    `json:"status"` // 0: no answer
	Answer  string `json:"answer"`
	OK      bool   `json:"ok"`
	TookMS  int64  `json:"took_ms"`
}

// deliverer sends events to one URL.
type deliverer struct {
	client      *http.Client
	url         string
	delay       time.Duration // before each but the first
	concurrency int
	w           terminal.Surroundings
}

// deliver sends the events in the order that was planned and calls done with each answer, by one goroutine at a time. When ctx ends
// nothing more is sent, and what is under way is waited for.
func (d deliverer) deliver(ctx context.Context, events []webhookEvent, order []int, done func(event int, one delivered)) error {
	type answer struct {
		event int
		one   delivered
	}
	work, answers := make(chan int), make(chan answer)
	var senders sync.WaitGroup
	for range min(d.concurrency, max(1, len(order))) {
		senders.Go(func() {
			for i := range work {
				answers <- answer{i, d.send(context.WithoutCancel(ctx), events[i])}
			}
		})
	}
	var stopped error
	go func() {
		for n, i := range order {
			if n > 0 && d.delay > 0 {
				stopped = d.w.Sleep(ctx, d.delay)
			}
			if stopped = errors.Join(stopped, ctx.Err()); stopped != nil {
				break
			}
			work <- i
		}
		close(work)
		senders.Wait()
		close(answers)
	}()
	for a := range answers {
		done(a.event, a.one)
	}
	return stopped // written before answers was closed
}

// shownAnswer is how much of an answer is kept.
const shownAnswer = 300

func (d deliverer) send(ctx context.Context, e webhookEvent) delivered {
	ctx, cancel := context.WithTimeout(ctx, stack.APIPatience)
	defer cancel()
	one := delivered{File: e.file, Type: e.kind, EventID: e.id}
	began := time.Now()
	status, answer, err := d.post(ctx, e)
	one.TookMS = time.Since(began).Milliseconds()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		one.Answer = "no answer in " + terminal.Spell(stack.APIPatience)
	case err != nil:
		one.Answer = "no answer: the connection failed"
	default:
		one.Status, one.Answer = status, answer
	}
	return one
}

func (d deliverer) post(ctx context.Context, e webhookEvent) (status int, answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(e.body))
	if err != nil {
		return 0, "", err
	}
	for name, value := range e.headers() {
		request.Header.Set(name, value)
	}
	response, err := d.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, shownAnswer))
	return response.StatusCode, string(bytes.TrimSpace(text)), err
}

// settledOne is what became of an event.
type settledOne struct {
	Event   string              `json:"event"`
	Status  payment.EventStatus `json:"status"` // empty: it is not stored
	Verdict string              `json:"verdict"`
}

// follow waits until none of the events is RECEIVED any more, and shows them and the order.
func (o options) follow(ctx context.Context, w terminal.Surroundings, t target, keys []payment.EventKey, report *sendReport, p *terminal.Page) error {
	became, err := awaitEvents(ctx, w, t.Events, keys, o.wait)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted while waiting: all were sent")
	case err != nil:
		return t.CureFor(err, "dynamodb:GetItem on the table")
	}
	order, err := t.API.Order(ctx, o.order)
	if err != nil {
		return t.Cure(err)
	}
	report.Events, report.Order = became, &order
	var rows [][]string
	applied := 0
	for _, e := range became {
		if rows = append(rows, []string{e.Event, string(e.Status), e.Verdict}); e.Status == payment.EventApplied {
			applied++
		}
	}
	p.Line("")
	p.Table("", rows)
	p.Line("")
	view.Order(p, order, t.Flags)
	if applied < len(became) {
		return fmt.Errorf("%d of %s not applied within %s: the verdict says why, later: paidonce events show %s%s",
			len(became)-applied, terminal.Count(len(became), "event"), terminal.Spell(o.wait), became[0].Event, t.Flags)
	}
	return nil
}

// awaitEvents reads the events until none is RECEIVED, or the time is up.
func awaitEvents(ctx context.Context, w terminal.Surroundings, table stack.EventKeeper, keys []payment.EventKey, patience time.Duration) ([]settledOne, error) {
	until := w.Now().Add(patience)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		all, open := []settledOne{}, 0
		for _, k := range keys {
			e, err := table.Event(ctx, k)
			if err != nil && !errors.Is(err, payment.ErrNotFound) {
				return nil, err
			}
			if all = append(all, settledOne{k.String(), e.Status, e.Verdict}); e.Status == payment.EventReceived {
				open++
			}
		}
		left := until.Sub(w.Now())
		if open == 0 || left <= 0 {
			return all, nil
		}
		if err := w.Sleep(ctx, min(pause, left)); err != nil {
			return nil, err
		}
	}
}

// firstLook is shorter than the worker of an idle stack takes. Each later look waits longer, up to lastLook.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 5 * time.Second
)
