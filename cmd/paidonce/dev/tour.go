package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"paidonce/cmd/paidonce/stack"
	"paidonce/shared/apigw"
	"paidonce/shared/localaws"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
)

// tourist walks an order through the world and stops at the first step that does not end as promised.
type tourist struct {
	*console
	*world
	shop  stack.Client
	table operator
	paid  apigw.Order // the first order, as it stands
}

const (
	firstOrder   = "first-order"
	browserOrder = "browser-order"
	secondOrder  = "second-order"
	tryOrder     = "try-it"
	price        = 49900 // paise
)

func newTourist(c *console, w *world) *tourist {
	return &tourist{console: c, world: w, shop: stack.Client{URL: w.stack.APIURL, Config: w.stack.Config()}, table: newOperator(w.stack)}
}

// tour is the guided walk.
func (t *tourist) tour(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		t.create, t.pay, t.comeBack, t.giveBack, t.repeat, t.bothEvents, t.forge, t.deadLetter,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	t.say("")
	t.say("Every step ended as promised.")
	return nil
}

func (t *tourist) create(ctx context.Context) error {
	t.title("The shop creates an order of %s", payment.Money{Amount: price, Currency: "INR"})
	o, err := t.shop.CreateOrder(ctx, firstOrder, price)
	if err != nil {
		return err
	}
	if o.Status != payment.Pending || o.GatewayOrderID == nil {
		return promised("a pending order with a gateway order", o)
	}
	t.say("POST /orders stored it and created %s at the gateway. It is %s.", *o.GatewayOrderID, o.Status)
	return nil
}

func (t *tourist) pay(ctx context.Context) error {
	t.title("The customer pays")
	o, err := t.shop.Order(ctx, firstOrder)
	if err != nil {
		return err
	}
	id, err := t.gateway.Pay(razorpaytest.PaymentRequest{OrderID: *o.GatewayOrderID, Status: "captured"})
	if err != nil {
		return err
	}
	t.say("The gateway captured %s and sends its signed webhooks:", id)
	t.paid, err = t.waitFor(ctx, firstOrder, func(o apigw.Order) bool { return o.FulfilledAt != nil })
	if err != nil {
		return err
	}
	deliveries, err := t.deliveriesOf(ctx, id, 3)
	if err != nil {
		return err
	}
	for _, d := range deliveries {
		t.say("  %-20s %s  answered %d", d.Event, d.EventID, d.Status)
	}
	t.say("The worker applied them. The order:\n%s", show(t.paid))
	return nil
}

func (t *tourist) repeat(ctx context.Context) error {
	t.title("The gateway delivers the same event three more times")
	deliveries, err := t.deliveriesOf(ctx, t.paid.Payments[0].ID, 3)
	if err != nil {
		return err
	}
	d := deliveries[1]
	for range 3 {
		status, answer, err := t.deliver(ctx, d.EventID, d.Body, t.stack.WebhookSecret)
		if err != nil {
			return err
		}
		if status != http.StatusOK || !strings.Contains(answer, `"duplicate":true`) {
			return promised("a duplicate", answer)
		}
		t.say("%s again: %d %s", d.Event, status, answer)
	}
	return t.unchanged(ctx, "Nothing happened twice")
}

func (t *tourist) bothEvents(ctx context.Context) error {
	t.title("payment.captured and order.paid both said that the money is there")
	if err := t.eventsSettled(ctx, t.paid.Payments[0].ID); err != nil {
		return err
	}
	effects, err := t.table.store.Effects(ctx, firstOrder)
	if err != nil {
		return err
	}
	fulfilments, captures := 0, 0
	for _, e := range effects {
		switch e := e.(type) {
		case payment.Fulfilment:
			fulfilments++
		case payment.LedgerEntry:
			captures++
			t.say("ledger: %s %s %s", e.Type, e.SubjectID, e.Amount)
		}
	}
	if fulfilments != 1 || captures != 1 {
		return promised("one fulfilment and one ledger entry", effects)
	}
	return t.unchanged(ctx, "The money counts once, by payment; the goods go out once, by order")
}

func (t *tourist) forge(ctx context.Context) error {
	t.title("Somebody forges an event")
	body := strings.NewReplacer(firstOrder, secondOrder).Replace(capturedBody("order_Forged", "pay_Forged", t.stack.AccountID))
	status, answer, err := t.deliver(ctx, "evt_forged", []byte(body), "a-secret-that-is-not-ours")
	if err != nil {
		return err
	}
	if status != http.StatusUnauthorized {
		return promised("401", answer)
	}
	_, err = t.table.store.Event(ctx, payment.EventKey{Gateway: "razorpay", ID: "evt_forged"})
	if !errors.Is(err, payment.ErrNotFound) {
		return promised("no trace of it in the table", err)
	}
	t.say("signed with another secret: %d %s, and nothing was stored", status, answer)
	return t.unchanged(ctx, "The order is as it was")
}

func (t *tourist) deadLetter(ctx context.Context) error {
	t.title("An event that cannot be applied ends in the dead letter queue, rings an alarm, and is not lost")
	inbox, err := t.stack.OpenAlarmInbox(ctx)
	if err != nil {
		return err
	}
	o, err := t.shop.CreateOrder(ctx, secondOrder, price)
	if err != nil {
		return err
	}
	if err := t.table.setRowVersion(ctx, secondOrder, 99); err != nil {
		return err
	}
	t.say("Say a newer release wrote order %s and was then rolled back: this one must not touch the row.", secondOrder)
	id, err := t.gateway.Pay(razorpaytest.PaymentRequest{OrderID: *o.GatewayOrderID, Status: "authorized"})
	if err != nil {
		return err
	}
	deliveries, err := t.deliveriesOf(ctx, id, 1)
	if err != nil {
		return err
	}
	key := payment.EventKey{Gateway: "razorpay", ID: deliveries[0].EventID}
	failed, err := t.becomes(ctx, key, payment.EventFailed, fmt.Sprintf("the worker tries %s times, %s seconds apart (on AWS 5 times, 3 minutes apart)",
		localParameters["MaxReceiveCount"], localParameters["VisibilityTimeoutSeconds"]))
	if err != nil {
		return err
	}
	t.say("event %s is %s: %s", key, failed.Status, failed.Verdict)
	if err := t.alarmed(ctx, inbox, types.StateValueAlarm, "its message gets to the dead letter queue, and the alarm writes to whoever subscribed"); err != nil {
		return err
	}
	letter, err := t.table.receiveDeadLetter(ctx)
	if err != nil {
		return err
	}
	if named, err := queue.Decode(letter.body); err != nil || named != key {
		return promised("the event's message in the dead letter queue", letter.body)
	}
	t.say("the message: %s", letter.body)

	t.say("The newer release comes back, and an operator puts the message back on the queue:")
	if err := t.table.setRowVersion(ctx, secondOrder, 1); err != nil {
		return err
	}
	if err := t.table.redrive(ctx, letter); err != nil {
		return err
	}
	applied, err := t.becomes(ctx, key, payment.EventApplied, "the worker applies it")
	if err != nil {
		return err
	}
	t.say("event %s is %s: %s", key, applied.Status, applied.Verdict)
	return t.alarmed(ctx, inbox, types.StateValueOk, "the queue is empty again, and the alarm ends")
}

// becomes waits until the event has the status, and says for what.
func (t *tourist) becomes(ctx context.Context, key payment.EventKey, status payment.EventStatus, what string) (e payment.Event, err error) {
	err = t.waiting(what, func() error {
		return poll(ctx, func() (bool, error) {
			e, err = t.table.store.Event(ctx, key)
			return e.Status == status, err
		})
	})
	return e, err
}

// alarmed waits for the message that the alarm of the dead letter queue is in the state, and shows it.
func (t *tourist) alarmed(ctx context.Context, inbox *localaws.AlarmInbox, state types.StateValue, what string) (err error) {
	var notice localaws.AlarmNotice
	err = t.waiting(what, func() error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		notice, err = inbox.Wait(ctx, t.stack.StackName+"-events-dlq-not-empty", state)
		return err
	})
	if err != nil {
		return err
	}
	t.say("  %s: %s", notice.NewStateValue, notice.AlarmName)
	if state == types.StateValueAlarm {
		t.say("  %s", notice.AlarmDescription)
	}
	return nil
}

// tryYourself prints what a person needs to go on alone.
func (t *tourist) tryYourself(ctx context.Context) error {
	o, err := t.shop.CreateOrder(ctx, tryOrder, price)
	if err != nil {
		return err
	}
	body := capturedBody(*o.GatewayOrderID, "pay_TryItYourself", t.stack.AccountID)
	t.title("Now you")
	t.say(`Open %[7]s in a browser: pay, fail, pay twice, close the tab, refund, and watch the order change.

webhook URL   %[1]s/webhooks/razorpay
gateway       %[2]s   (POST /_sim/payments pays an order)
all addresses .local/stack.json

Or pay order %[3]s by hand, as often as you like, and look at it:

curl -s %[1]s/webhooks/razorpay \
  -H 'content-type: application/json' -H 'x-razorpay-event-id: evt_try_1' \
  -H 'x-razorpay-signature: %[4]s' \
  --data-binary '%[5]s'

curl -s %[1]s/orders/%[3]s
%[6]s order explain %[3]s

Ctrl-C ends it all.`, t.stack.APIURL, t.stack.GatewayURL, tryOrder, razorpay.Sign([]byte(body), t.stack.WebhookSecret), body, os.Args[0],
		t.front.url)
	return nil
}

// unchanged checks that the first order is still as it was when it was paid.
func (t *tourist) unchanged(ctx context.Context, moral string) error {
	now, err := t.shop.Order(ctx, firstOrder)
	if err != nil {
		return err
	}
	if now.Version < t.paid.Version || now.Status != payment.Paid || now.AmountPaid != price || !now.FulfilledAt.Equal(*t.paid.FulfilledAt) {
		return promised("the order as it was", now)
	}
	t.say("%s: %s is %s, %s captured, fulfilled at %s.", moral, now.ID, now.Status,
		payment.Money{Amount: now.AmountPaid, Currency: now.Currency}, now.FulfilledAt.Format(time.TimeOnly))
	return nil
}

// waitFor polls an order until it is as wanted.
func (t *tourist) waitFor(ctx context.Context, id string, wanted func(apigw.Order) bool) (o apigw.Order, err error) {
	err = poll(ctx, func() (bool, error) {
		o, err = t.shop.Order(ctx, id)
		return err == nil && wanted(o), err
	})
	if err != nil {
		return o, fmt.Errorf("order %s is %s after %s: %w", id, o.Status, patience, err)
	}
	return o, nil
}

// deliveriesOf waits until the gateway has delivered n events of the payment.
func (t *tourist) deliveriesOf(ctx context.Context, paymentID string, n int) (found []razorpaytest.Delivery, err error) {
	err = poll(ctx, func() (bool, error) {
		found = nil
		for _, d := range t.gateway.Deliveries() {
			if d.PaymentID == paymentID && d.Status == http.StatusOK {
				found = append(found, d)
			}
		}
		return len(found) >= n, nil
	})
	return found, err
}

// eventsSettled waits until the worker has dealt with every event of the payment.
func (t *tourist) eventsSettled(ctx context.Context, paymentID string) error {
	deliveries, err := t.deliveriesOf(ctx, paymentID, 3)
	if err != nil {
		return err
	}
	for _, d := range deliveries {
		if err := poll(ctx, func() (bool, error) {
			e, err := t.table.store.Event(ctx, payment.EventKey{Gateway: "razorpay", ID: d.EventID})
			if err == nil && e.Status == payment.EventApplied {
				t.say("%-20s %s: %s", e.Type, e.Status, e.Verdict)
			}
			return e.Status == payment.EventApplied, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// deliver sends a body to the webhook, signed with the secret.
func (t *tourist) deliver(ctx context.Context, eventID string, body []byte, secret string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.stack.APIURL+"/webhooks/razorpay", strings.NewReader(string(body)))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(razorpay.HeaderEventID, eventID)
	request.Header.Set(razorpay.HeaderSignature, razorpay.Sign(body, secret))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// capturedBody is a webhook body that says an order of the tour's price was paid.
func capturedBody(gatewayOrderID, paymentID, accountID string) string {
	return fmt.Sprintf(`{"entity":"event","account_id":%q,"event":"payment.captured","contains":["payment"],`+
		`"payload":{"payment":{"entity":{"id":%q,"entity":"payment","amount":%d,"currency":"INR","status":"captured",`+
		`"order_id":%q,"captured":true}}},"created_at":%d}`, accountID, paymentID, price, gatewayOrderID, time.Now().Unix())
}

// show renders an order for a person.
func show(o apigw.Order) string {
	text, err := json.MarshalIndent(o, "  ", "  ")
	if err != nil {
		return err.Error()
	}
	return "  " + string(text)
}

func promised(what string, got any) error { return fmt.Errorf("promised %s, got %v", what, got) }

// patience is how long a step of the tour may take.
const patience = time.Minute

// poll asks until done, for at most the patience of the tour.
func poll(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}
