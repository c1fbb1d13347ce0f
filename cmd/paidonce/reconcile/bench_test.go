package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/stack/stacktest"
	"paidonce/shared/advance"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/reconcile"
	"paidonce/shared/storetest"
)

// gatewayKeySecret is the simulated gateway's.
const gatewayKeySecret = "key-secret-of-the-bench"

// reconcileBench is a stack with the simulated gateway, on one clock.
type reconcileBench struct {
	*testing.T
	memory   *storetest.Memory
	sim      *razorpaytest.Gateway
	url      string
	gateway  reconcile.Gateway
	advancer advance.Advancer
	clock    atomic.Pointer[time.Time]
	opened   int                      // how often the gateway was asked for
	opening  func() reconcile.Gateway // in place of gateway
	rate     int                      // that the command asked for
	orders   []string
	broken   error // of opening
}

// day is when the tests begin: their payments are made in the hour from then.
var day = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

func newReconcileBench(t *testing.T) *reconcileBench {
	t.Helper()
	b := &reconcileBench{T: t, memory: storetest.NewMemory()}
	b.at(0)
	b.sim = razorpaytest.New(razorpaytest.Config{KeyID: "rzp_test_Bench", KeySecret: gatewayKeySecret, Now: b.now})
	t.Cleanup(b.sim.Close)
	var err error
	if b.url, err = b.sim.Start(0); err != nil {
		t.Fatal(err)
	}
	b.gateway = b.client(gatewayKeySecret)
	b.advancer = advance.Advancer{Store: b.memory, Now: b.now}
	return b
}

func (b *reconcileBench) now() time.Time { return *b.clock.Load() }

// at sets everybody's clock.
func (b *reconcileBench) at(after time.Duration) {
	at := day.Add(after)
	b.clock.Store(&at)
}

func (b *reconcileBench) client(keySecret string) *razorpay.Client {
	b.Helper()
	document := stacktest.AsJSON(b.T, map[string]string{"key_id": "rzp_test_Bench", "key_secret": keySecret})
	atOnce := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	client, err := razorpay.ParseClient(b.url, razorpay.WithSleep(atOnce))([]byte(document))
	if err != nil {
		b.Fatal(err)
	}
	return client
}

// run runs the command, as the command line does.
func (b *reconcileBench) run(args ...string) (stdout, stderr string, err error) {
	return b.runContext(b.Context(), args...)
}

func (b *reconcileBench) runContext(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	on := target{Target: stack.Target{Name: "the test's stack", Flags: " --stack test"}}
	on.reconciler = func(_ context.Context, perSecond int, log *slog.Logger) (reconciler, error) {
		b.rate = perSecond
		return reconciler{
			Reconciler: reconcile.Reconciler{
				Gateways: map[string]func(context.Context) reconcile.Gateway{"razorpay": func(context.Context) reconcile.Gateway {
					if b.opened++; b.opening != nil {
						return b.opening()
					}
					return b.gateway
				}},
				Store: b.memory, Advancer: b.advancer, Stack: "test", Log: log, Now: b.now,
			},
			history: b.memory,
		}, b.broken
	}
	var out, errOut bytes.Buffer
	cmd := command(func(context.Context, stack.Options) (target, error) { return on, nil }, b.now)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	err = cmd.ExecuteContext(ctx)
	return out.String(), errOut.String(), err
}

// open stores an order that the gateway has, changed.
func (b *reconcileBench) open(id string, change func(*payment.Order)) payment.Order {
	b.Helper()
	rupees := payment.Money{Amount: 49900, Currency: "INR"}
	gatewayID, err := b.sim.AddOrder(razorpaytest.OrderRequest{Amount: rupees.Amount, Currency: rupees.Currency})
	if err != nil {
		b.Fatal(err)
	}
	o := payment.NewOrder(id, rupees, "razorpay", payment.Test, b.now()).Opened(gatewayID, b.advancer.Rules, b.now())
	if change != nil {
		change(&o)
	}
	if err := b.memory.Commit(b.Context(), payment.Commit{Order: o, Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: gatewayID}}}); err != nil {
		b.Fatal(err)
	}
	b.orders = append(b.orders, id)
	return b.order(id)
}

func (b *reconcileBench) order(id string) payment.Order {
	b.Helper()
	o, err := b.memory.Order(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// pay captures a payment without a webhook.
func (b *reconcileBench) pay(r razorpaytest.PaymentRequest) string {
	b.Helper()
	r.Status, r.Deliver = "captured", new(false)
	id, err := b.sim.Pay(r)
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// eachFindingOnce lets happen what makes each finding be found once, and then two hours pass.
func (b *reconcileBench) eachFindingOnce() {
	b.Helper()
	known := b.open("known", nil)
	id := b.pay(razorpaytest.PaymentRequest{OrderID: known.GatewayOrderID})
	told := payment.PaymentFact{ID: id, Status: payment.PaymentCaptured, Amount: known.Amount, CreatedAt: b.now()}
	if _, err := b.advancer.Apply(b.Context(), "known", advance.Step{Source: payment.SourceWebhook, Facts: []payment.Fact{told}}); err != nil {
		b.Fatal(err)
	}
	if _, err := b.sim.Refund(razorpaytest.RefundRequest{PaymentID: id, Amount: 100, Deliver: new(false)}); err != nil {
		b.Fatal(err)
	}
	b.pay(razorpaytest.PaymentRequest{OrderID: b.open("unheard", nil).GatewayOrderID})
	dollars := b.open("dollars", nil)
	b.pay(razorpaytest.PaymentRequest{OrderID: dollars.GatewayOrderID, Amount: 700, Currency: "USD"}) // and so stuck
	b.pay(razorpaytest.PaymentRequest{Amount: 5})
	live := b.open("live", func(o *payment.Order) { o.Mode = payment.Live })
	b.pay(razorpaytest.PaymentRequest{OrderID: live.GatewayOrderID})
	b.gateway = odd{b.gateway}
	b.at(2 * time.Hour)
}

// odd is a gateway whose list has one entity that cannot be read.
type odd struct{ reconcile.Gateway }

func (g odd) Payments(ctx context.Context, from, to time.Time) ([]payment.PaymentFact, error) {
	all, err := g.Gateway.Payments(ctx, from, to)
	if err == nil && !day.Before(from) {
		err = &payment.UnreadableError{Count: 1}
	}
	return all, err
}

func (b *reconcileBench) fault(kind razorpaytest.FaultKind) {
	if err := b.sim.SetFaults(razorpaytest.Fault{Path: "/v1/payments", Kind: kind, Count: 20}); err != nil {
		b.Error(err)
	}
}

// stored is everything that is kept of the orders.
func (b *reconcileBench) stored() string {
	b.Helper()
	var all strings.Builder
	for _, id := range b.orders {
		h, err := b.memory.History(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(&all, "%+v\n%+v\n", b.order(id), h)
	}
	return all.String()
}
