//go:build browser

package dev

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"paidonce/cmd/paidonce/terminal/terminaltest"
	"paidonce/shared/payment"
	"paidonce/shared/storetest"
)

// picture is what README shows of the page. -update takes it anew.
const picture = "../../../docs/checkout-page.png"

// TestBrowser has a person's clicks made by a headless browser, on the whole local stack. What the page shows is checked,
// and what is in the table then.
func TestBrowser(t *testing.T) {
	program := findBrowser(t)
	w, err := startWorld(t.Context(), &console{out: t.Output()}, "", options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	b := &visitor{world: w, table: newOperator(w.stack), tab: openBrowser(t, program)}
	for _, c := range []struct {
		name  string
		visit func(*testing.T)
	}{
		{"pay", b.pay},
		{"fail, then pay, by keyboard", b.failThenPay},
		{"only authorize", b.authorize},
		{"pay twice, refund a part", b.payTwice},
		{"pay and close the tab", b.closeTab},
		{"refund a part, then the rest", b.refundAll},
		{"an order that does not exist", b.noOrder},
	} {
		if !t.Run(c.name, c.visit) {
			t.Logf("the page then:\n%s", b.text())
		}
	}
}

// visitor is a person with one tab of a browser.
type visitor struct {
	*world
	table operator
	tab   context.Context
}

func (b *visitor) pay(t *testing.T) {
	id := b.newOrder(t)
	b.shows(t, "pending, not fulfilled", `status() === "pending" && text("fulfilled") === "Not fulfilled: nothing has been captured yet."`)
	b.shows(t, "nothing to refund", `$("refund-100").disabled && $("refund-rest").disabled`)
	b.click(t, "pay")
	b.shows(t, "paid and fulfilled", paidAndFulfilled)
	b.shows(t, "what the callback said", `text("returned").includes("POST /checkout/razorpay/`+id+` with status=")`)
	b.shows(t, "what happened at the gateway", `text("said").startsWith("The gateway captured pay_")`)
	b.shows(t, "the callback among what happened", `sources().includes("callback")`)
	b.shows(t, "the webhooks among what happened", `sources().filter((s) => s === "webhook").length === 3`)
	b.shows(t, "lines that are new", `document.querySelectorAll("#timeline .new").length > 3 && !$("timeline").lastChild.matches(".new")`)
	b.isPaidOnce(t, id, payment.Paid)
}

// failThenPay presses the buttons by the keyboard.
func (b *visitor) failThenPay(t *testing.T) {
	id := b.newOrder(t)
	b.press(t, "fail")
	b.shows(t, "a failed order", `status() === "failed" && text("payments").includes("failed")`)
	b.shows(t, "that the browser came back", `!$("returned").hidden`)
	b.press(t, "pay")
	b.shows(t, "paid and fulfilled", paidAndFulfilled)
	b.shows(t, "both attempts", `$("payments").children.length === 2 && $("said").children.length === 2`)
	b.isPaidOnce(t, id, payment.Paid)
}

func (b *visitor) authorize(t *testing.T) {
	id := b.newOrder(t)
	b.click(t, "authorize")
	b.shows(t, "an authorized payment", `text("payments").includes("authorized") && !$("returned").hidden`)
	b.shows(t, "an unpaid order", `status() === "pending" && text("fulfilled").startsWith("Not fulfilled")`)
	o, effects := b.stored(t, id)
	if !o.FulfilledAt.IsZero() || len(fulfilments(effects)) != 0 {
		t.Errorf("fulfilled without money: %+v", effects)
	}
}

func (b *visitor) payTwice(t *testing.T) {
	id := b.newOrder(t)
	b.click(t, "pay-twice")
	b.shows(t, "paid and fulfilled", paidAndFulfilled)
	b.shows(t, "the payment too many", `text("holds").includes("surplus") && text("holds").includes("a payment too many")`)
	b.shows(t, "two payments and their money", `$("payments").children.length === 2 && text("amounts").includes("captured₹998.00")`)
	b.isPaidOnce(t, id, payment.Paid)
	b.click(t, "refund-100")
	b.shows(t, "the refund", `$("refunds").children.length === 1 && text("refunds").includes("processed") && text("amounts").includes("refunded₹100.00")`)
	b.shows(t, "its webhooks", `text("timeline").includes("refund.processed")`)
	b.isPaidOnce(t, id, payment.Paid)
	b.looksGood(t)
}

func (b *visitor) closeTab(t *testing.T) {
	id := b.newOrder(t)
	b.click(t, "close-tab")
	b.shows(t, "paid and fulfilled", paidAndFulfilled)
	b.shows(t, "three webhooks and no callback", `sources().filter((s) => s === "webhook").length === 3 && !sources().includes("callback")`)
	b.shows(t, "no return", `$("returned").hidden && !location.search.includes("status")`)
	b.isPaidOnce(t, id, payment.Paid)
}

func (b *visitor) refundAll(t *testing.T) {
	id := b.newOrder(t)
	b.click(t, "pay")
	b.shows(t, "paid and fulfilled", paidAndFulfilled)
	b.click(t, "refund-100")
	b.shows(t, "a refund of a part", `status() === "partially refunded" && text("amounts").includes("refunded₹100.00")`)
	b.shows(t, "what is left", `text("refundable") === "₹399.00"`)
	b.isPaidOnce(t, id, payment.PartiallyRefunded)
	b.click(t, "refund-rest")
	b.shows(t, "a full refund", `status() === "refunded" && text("amounts").includes("refunded₹499.00")`)
	b.shows(t, "nothing to refund", `$("refund-100").disabled && $("refund-rest").disabled`)
	b.shows(t, "when it was fulfilled", `text("fulfilled").startsWith("Fulfilled at")`)
	o := b.isPaidOnce(t, id, payment.Refunded)
	if len(o.Refunds) != 2 {
		t.Errorf("%d refunds, want 2", len(o.Refunds))
	}
}

func (b *visitor) noOrder(t *testing.T) {
	b.does(t, chromedp.Navigate(b.front.url+"/?order=no-such-order"))
	b.shows(t, "that there is none", `!$("problem").hidden && text("problem").includes("not found")`)
}

const paidAndFulfilled = `status() === "paid" && text("fulfilled").startsWith("Fulfilled at ")`

// newOrder begins at the empty page, as somebody does who opened the shop's address, and returns the order's id.
func (b *visitor) newOrder(t *testing.T) string {
	t.Helper()
	b.does(t, chromedp.Navigate(b.front.url))
	b.shows(t, "no order", `document.querySelectorAll(".with-order:not([hidden])").length === 0`)
	b.click(t, "new")
	b.shows(t, "a new order", `status() === "pending" && text("order-id").startsWith("shop-")`)
	id, err := chromedp.Run(b.tab, chromedp.Text(chromedp.ID("order-id")))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(id)
}

// click presses a button with the mouse, once it can be pressed.
func (b *visitor) click(t *testing.T, button string) {
	t.Helper()
	b.does(t, chromedp.WaitEnabled(chromedp.ID(button)), chromedp.Click(chromedp.ID(button)))
}

// press presses a button with the keyboard.
func (b *visitor) press(t *testing.T, button string) {
	t.Helper()
	b.does(t, chromedp.WaitEnabled(chromedp.ID(button)), chromedp.Focus(chromedp.ID(button)), chromedp.KeyEvent(kb.Enter))
}

func (b *visitor) does(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.tab, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// shows waits until the page shows something, as a condition in JavaScript says.
func (b *visitor) shows(t *testing.T, what, condition string) {
	t.Helper()
	script := `(() => {
		const $ = (id) => document.getElementById(id);
		const text = (id) => $(id).textContent.replace(/\s+/g, " ");
		const status = () => text("status");
		const sources = () => [...$("timeline").children].map((line) => line.dataset.source);
		return ` + condition + `;
	})()`
	err := poll(b.tab, func() (bool, error) {
		shown, err := chromedp.Run(b.tab, chromedp.Evaluate[bool](script))
		return shown && err == nil, nil // between two pages there is nothing to ask
	})
	if err != nil {
		t.Fatalf("the page never shows %s: %v", what, err)
	}
}

// text is all that the page shows.
func (b *visitor) text() string {
	text, err := chromedp.Run(b.tab, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// isPaidOnce asserts what the table has of the order: all invariants, and one fulfilment.
func (b *visitor) isPaidOnce(t *testing.T, id string, status payment.Status) payment.Order {
	t.Helper()
	var o payment.Order
	var effects []payment.Effect
	err := poll(t.Context(), func() (bool, error) {
		o, effects = b.stored(t, id)
		return o.Status == status, nil
	})
	if err != nil {
		t.Errorf("order %s is %s in the table, want %s", id, o.Status, status)
	}
	if n := len(fulfilments(effects)); n != 1 || o.FulfilledAt.IsZero() {
		t.Errorf("order %s has %d fulfilments, at %s; want one", id, n, o.FulfilledAt)
	}
	(&storetest.Checker{Store: b.table.store}).Check(t, id)
	return o
}

func (b *visitor) stored(t *testing.T, id string) (payment.Order, []payment.Effect) {
	t.Helper()
	o, err := b.table.store.Order(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	effects, err := b.table.store.Effects(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o, effects
}

func fulfilments(effects []payment.Effect) (found []payment.Fulfilment) {
	for _, e := range effects {
		if f, ok := e.(payment.Fulfilment); ok {
			found = append(found, f)
		}
	}
	return found
}

// looksGood takes pictures of the page: wide, in the dark, and narrow. `go test -artifacts` keeps them.
func (b *visitor) looksGood(t *testing.T) {
	t.Helper()
	scheme := func(scheme string) chromedp.Action[chromedp.Void] {
		return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
			})
			return err
		})
	}
	b.does(t, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 0, 0)) // off the buttons
	for _, p := range []struct {
		name, scheme  string
		width, height int64
	}{
		{"dark", "dark", 1200, 900}, {"narrow", "light", 400, 1600}, {"wide", "light", 1200, 900},
	} {
		b.does(t, scheme(p.scheme), chromedp.EmulateViewport(p.width, p.height))
		b.shows(t, "everything within "+fmt.Sprint(p.width)+" pixels",
			fmt.Sprintf(`innerWidth === %d && document.documentElement.scrollWidth <= innerWidth`, p.width))
		taken, err := chromedp.Run(b.tab, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		image, err := png.Decode(bytes.NewReader(taken))
		if err != nil || int64(image.Bounds().Dx()) != p.width || int64(image.Bounds().Dy()) != p.height {
			t.Errorf("the %s picture has %v, %v", p.name, image.Bounds(), err)
		}
		files := []string{filepath.Join(t.ArtifactDir(), p.name+".png")}
		if *terminaltest.Update && p.name == "wide" {
			files = append(files, picture)
		}
		for _, file := range files {
			if err := os.WriteFile(file, taken, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// openBrowser starts the browser with a profile of its own and returns its tab, which fails the test for whatever the
// browser complains of: errors of scripts, files that are not there, what the page's policy forbids.
func openBrowser(t *testing.T, program string) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1200, 900),
		chromedp.NoSandbox, // root, as in CI's container, has none
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
	)
	allocator, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	if err := chromedp.Do(tab, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	err := chromedp.Listen(tab, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page's script failed: %s", e.ExceptionDetails.Text)
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.EntryLevelError && !strings.Contains(e.Entry.URL, "/orders/") { // those the page shows
				t.Errorf("the browser complains: %s %s", e.Entry.Text, e.Entry.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("this test drives a browser and finds none: install Chromium or Chrome (Debian: apt-get install chromium)")
	return ""
}
