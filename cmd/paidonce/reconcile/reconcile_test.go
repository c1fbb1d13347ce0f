package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/cmd/paidonce/terminal/terminaltest"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/reconcile"
	"paidonce/shared/storetest"
)

const aroundTheDay = "--from=2026-11-30T09:55:00Z"

var eachOnce = reconcile.Findings{
	Matched: 1, MissingWebhook: 1, Stuck: 1, AmountMismatch: 1, UnknownOrder: 1, RefundUnknown: 1, Unreadable: 1, Failed: 1,
}

// failedOnce is what ends a run with an order that could not be compared.
const failedOnce = "orders that could not be compared: 1, the lines above say why; once that is put right: " +
	"paidonce reconcile --from 2026-11-30T09:55:00Z --to 2026-11-30T10:05:00Z"

func TestReconcileFindsAndApplies(t *testing.T) {
	b := newReconcileBench(t)
	b.eachFindingOnce()
	out, errOut, err := b.run(aroundTheDay)
	if err == nil || err.Error() != failedOnce+" --stack test" {
		t.Errorf("ended with %v", err)
	}
	if !strings.HasPrefix(errOut, `msg="not compared" order=live error=`) || strings.Count(errOut, "\n") != 1 {
		t.Errorf("complained %q", errOut)
	}
	terminaltest.Golden(t, "reconcile.txt", out)
	if b.order("unheard").FulfilledAt.IsZero() || len(b.order("known").Refunds) != 1 {
		t.Error("what was found is not applied")
	}
	if b.rate != 5 {
		t.Errorf("%d calls a second", b.rate)
	}
	out, _, _ = b.run(aroundTheDay, "--json")
	if got := findingsOf(t, out); got.MissingWebhook != 0 || got.RefundUnknown != 0 || got.Matched != 2 {
		t.Errorf("the second time it finds %+v", got)
	}
}

func findingsOf(t *testing.T, out string) reconcile.Findings {
	t.Helper()
	var report comparisonReport
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return report.Findings
}

func TestReconcileDryRunWritesNothing(t *testing.T) {
	b := newReconcileBench(t)
	b.eachFindingOnce()
	before := b.stored()
	var called []string
	b.memory.Faults = func(method string) storetest.Fault { called = append(called, method); return storetest.None }
	out, _, err := b.run(aroundTheDay, "--dry-run", "--rate", "9")
	if err == nil || err.Error() != failedOnce+" --dry-run --rate 9 --stack test" {
		t.Errorf("ended with %v", err)
	}
	terminaltest.Golden(t, "reconcile-dry.txt", out)
	slices.Sort(called)
	if diff := cmp.Diff([]string{"Order", "OrderID"}, slices.Compact(called)); diff != "" {
		t.Errorf("the store was called (-want +got)\n%s", diff)
	}
	b.memory.Faults = nil
	if diff := cmp.Diff(before, b.stored()); diff != "" {
		t.Errorf("the store (-before +after)\n%s", diff)
	}
	if b.rate != 9 {
		t.Errorf("%d calls a second", b.rate)
	}
	out, _, _ = b.run(aroundTheDay, "--dry-run", "--json")
	terminaltest.Golden(t, "reconcile-dry.json", out)
	if diff := cmp.Diff(eachOnce, findingsOf(t, out)); diff != "" {
		t.Errorf("found (-want +got)\n%s", diff)
	}
}

// A payment of the second in which two slices meet is listed by both.
func TestReconcileCountsOnce(t *testing.T) {
	b := newReconcileBench(t)
	id := b.pay(razorpaytest.PaymentRequest{OrderID: b.open("o1", nil).GatewayOrderID})
	if _, err := b.sim.Refund(razorpaytest.RefundRequest{PaymentID: id, Amount: 100, Deliver: new(false)}); err != nil {
		t.Fatal(err)
	}
	b.at(12 * time.Minute)
	out, _, err := b.run("--from=2026-11-30T09:50:00Z", "--dry-run", "--json")
	want := reconcile.Findings{MissingWebhook: 1, RefundUnknown: 1}
	if diff := cmp.Diff(want, findingsOf(t, out)); diff != "" || err != nil {
		t.Errorf("%v, found (-want +got)\n%s", err, diff)
	}
}

// oneInEachSlice lets six orders be paid without a webhook, ten minutes apart.
func (b *reconcileBench) oneInEachSlice() {
	b.Helper()
	for i := range 6 {
		b.at(time.Duration(i) * 10 * time.Minute)
		b.pay(razorpaytest.PaymentRequest{OrderID: b.open(fmt.Sprint("o", i), nil).GatewayOrderID})
	}
	b.at(2 * time.Hour)
}

// TestReconcileGoesOn: what was said where it ended leads through the rest, and both together to all.
func TestReconcileGoesOn(t *testing.T) {
	const began = "2026-11-30T09:55:00Z"
	for _, c := range []struct {
		name string
		fail func(b *reconcileBench, cancel func())
		want string
	}{
		{"the key is revoked", func(b *reconcileBench, _ func()) { b.gateway = b.client("another") },
			"the gateway does not accept the API key (HTTP 401 BAD_REQUEST_ERROR): check the secret that the stack's parameter RazorpayApiKeySecretName names"},
		{"throttled", func(b *reconcileBench, _ func()) { b.fault(razorpaytest.Throttled) },
			"the gateway throttles the calls (HTTP 429 BAD_REQUEST_ERROR): wait a while, and use a lower --rate"},
		{"broken", func(b *reconcileBench, _ func()) { b.fault(razorpaytest.BadGateway) },
			"the gateway is in trouble (HTTP 502): try again later"},
		{"gone", func(b *reconcileBench, _ func()) { b.fault(razorpaytest.Reset) },
			"the gateway did not answer: check the network, and try again"},
		{"the table is gone", func(b *reconcileBench, _ func()) {
			b.memory.Faults = func(string) storetest.Fault { return storetest.NotDone }
		}, "storetest: injected fault"},
		{"interrupted", func(_ *reconcileBench, cancel func()) { cancel() }, "interrupted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newReconcileBench(t)
			healthy := b.gateway
			b.oneInEachSlice()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b.opening = func() reconcile.Gateway {
				if b.opened == 4 {
					c.fail(b, cancel)
				}
				return b.gateway
			}
			out, _, err := b.runContext(ctx, "--from", began, "--to=2026-11-30T10:55:00Z", "--json", "--rate=7")
			rest := "paidonce reconcile --from 2026-11-30T10:25:00Z --to 2026-11-30T10:55:00Z --json --rate 7 --stack test"
			want := c.want + "; compared up to 2026-11-30T10:25:00Z (3 of 6 slices), go on with: " + rest
			if err == nil || err.Error() != want {
				t.Fatalf("ended with %v\nwant %s", err, want)
			}
			var part comparisonReport
			if err := json.Unmarshal([]byte(out), &part); err != nil || part.To.Format(time.RFC3339) != "2026-11-30T10:25:00Z" {
				t.Errorf("reported %s (%v)", out, err)
			}
			b.opening, b.gateway, b.memory.Faults = nil, healthy, nil
			if err := b.sim.SetFaults(); err != nil {
				t.Fatal(err)
			}
			args := strings.Fields(strings.TrimPrefix(strings.TrimSuffix(rest, " --stack test"), "paidonce reconcile "))
			out, _, err = b.run(args...)
			if err != nil {
				t.Fatal(err)
			}
			total := part.Findings
			total.Add(findingsOf(t, out))
			if diff := cmp.Diff(reconcile.Findings{MissingWebhook: 6}, total); diff != "" {
				t.Errorf("found in both (-want +got)\n%s", diff)
			}
		})
	}
}

// TestReconcileGoesPastABadOrder: or every run would end at the same place.
func TestReconcileGoesPastABadOrder(t *testing.T) {
	b := newReconcileBench(t)
	b.oneInEachSlice()
	b.memory.Faults = func(method string) storetest.Fault {
		if method == "Commit" && (b.opened == 2 || b.opened == 4) {
			return storetest.NotDone
		}
		return storetest.None
	}
	out, errOut, err := b.run("--from=2026-11-30T09:55:00Z", "--to=2026-11-30T10:55:00Z", "--json")
	want := "orders that could not be compared: 2, the lines above say why; once that is put right: " +
		"paidonce reconcile --from 2026-11-30T10:05:00Z --to 2026-11-30T10:35:00Z --json --stack test"
	if err == nil || err.Error() != want || strings.Count(errOut, "\n") != 2 {
		t.Errorf("ended with %v\nwant %s\ncomplained\n%s", err, want, errOut)
	}
	if diff := cmp.Diff(reconcile.Findings{MissingWebhook: 4, Failed: 2}, findingsOf(t, out)); diff != "" {
		t.Errorf("found (-want +got)\n%s", diff)
	}
}

// TestReconcileInterruptedAmongOrders: the slice that was left in the middle is done again, however few of its orders were left.
func TestReconcileInterruptedAmongOrders(t *testing.T) {
	b := newReconcileBench(t)
	for _, id := range []string{"o1", "o2"} {
		b.pay(razorpaytest.PaymentRequest{OrderID: b.open(id, nil).GatewayOrderID})
	}
	b.at(2 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.memory.Faults = func(method string) storetest.Fault {
		if method == "Commit" {
			cancel()
		}
		return storetest.None
	}
	out, _, err := b.runContext(ctx, "--from=2026-11-30T09:55:00Z", "--to=2026-11-30T10:55:00Z")
	want := "interrupted; compared up to 2026-11-30T09:55:00Z (0 of 6 slices), go on with: " +
		"paidonce reconcile --from 2026-11-30T09:55:00Z --to 2026-11-30T10:55:00Z --stack test"
	if err == nil || err.Error() != want || out != "" {
		t.Errorf("ended with %v\nwant %s\nprinted %q", err, want, out)
	}
}
