package reconcile_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
	"paidonce/shared/razorpay/razorpaytest"
	"paidonce/shared/reconcile"
	"paidonce/shared/storetest"
)

// windows are the parts of the gateway's list of payments that were asked for and shown, from and to in minutes since the
// beginning.
func (w *world) windows() []string {
	w.Helper()
	var asked []string
	for _, c := range w.sim.Calls() {
		if c.Path != "/v1/payments" || c.Status != http.StatusOK {
			continue
		}
		var from, to int64
		for part := range strings.SplitSeq(c.Query, "&") {
			name, value, _ := strings.Cut(part, "=")
			for want, into := range map[string]*int64{"from": &from, "to": &to} {
				if name != want {
					continue
				}
				if _, err := fmt.Sscan(value, into); err != nil {
					w.Fatal(err)
				}
			}
		}
		asked = append(asked, fmt.Sprint(time.Unix(from, 0).Sub(begins).Minutes(), " to ", time.Unix(to, 0).Sub(begins).Minutes()))
	}
	return asked
}

func TestAScanGoesOnWhereItStopped(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	w.at(3 * time.Minute)
	w.paid(w.open("o1"))
	w.at(30 * time.Minute)
	for range 4 {
		if _, err := w.scan(payment.HourlyScan, 5); err != nil {
			t.Fatal(err)
		}
		w.at(w.now().Sub(begins) + 5*time.Minute)
	}
	w.expect("o1", payment.Paid, true)
	var want []string
	for from := -150; from < 29; from += 10 { // from 3 hours before the scan to a minute before
		want = append(want, fmt.Sprint(from, " to ", min(from+10, 29)))
	}
	if diff := cmp.Diff(want, w.windows()); diff != "" {
		t.Errorf("asked for (-want +got)\n%s", diff)
	}
}

// TestTheGatewayRefusesInTheMiddle: the key is revoked or calls are throttled. Nothing is passed over.
func TestTheGatewayRefusesInTheMiddle(t *testing.T) {
	for _, c := range []struct {
		name   string
		breaks func(w *world)
		says   string
	}{
		{"a revoked key", func(w *world) { w.gateway = w.client("another secret") }, "HTTP 401"},
		{"throttled at the payments", func(w *world) { w.fault("/v1/payments", razorpaytest.Throttled) }, "HTTP 429"},
		{"throttled at the refunds", func(w *world) { w.fault("/v1/refunds", razorpaytest.Throttled) }, "HTTP 429"},
		{"down", func(w *world) { w.fault("/v1/payments", razorpaytest.BadGateway) }, "HTTP 502"},
		{"not to be reached", func(w *world) { w.fault("/v1/payments", razorpaytest.Reset) }, "razorpay: read payments"},
	} {
		for _, scan := range []payment.Scan{payment.HourlyScan, payment.DailyScan} {
			t.Run(c.name+"/"+scan.Name, func(t *testing.T) {
				w := newWorld(t, payment.Rules{})
				w.at(3 * time.Minute)
				w.paid(w.open("o1"))
				w.at(30 * time.Minute)
				if _, err := w.scan(scan, 7); err != nil {
					t.Fatal(err)
				}
				before := w.cursor(scan)
				c.breaks(w)
				for range 3 {
					w.at(w.now().Sub(begins) + 5*time.Minute)
					if _, err := w.scan(scan, -1); err == nil || !strings.Contains(err.Error(), c.says) {
						t.Errorf("the scan says %v", err)
					}
					if diff := cmp.Diff(before, w.cursor(scan)); diff != "" {
						t.Errorf("the cursor was moved (-before +after)\n%s", diff)
					}
				}
				w.at(9 * time.Hour) // however long it takes
				if _, err := w.scan(scan, -1); err == nil {
					t.Error("the scan says that all is well")
				}
				if diff := cmp.Diff(before, w.cursor(scan)); diff != "" {
					t.Errorf("the cursor was moved (-before +after)\n%s", diff)
				}
				w.gateway = w.client(secret)
				w.fault("", "")
				found, err := w.scan(scan, -1)
				if err != nil {
					t.Fatal(err)
				}
				w.found(reconcile.Findings{MissingWebhook: 1}, found)
				w.expect("o1", payment.Paid, true)
			})
		}
	}
}

// fault makes all calls of a path fail until it is called again.
func (w *world) fault(path string, kind razorpaytest.FaultKind) {
	w.Helper()
	var faults []razorpaytest.Fault
	if path != "" {
		faults = append(faults, razorpaytest.Fault{Path: path, Kind: kind, Count: 1_000_000})
	}
	if err := w.sim.SetFaults(faults...); err != nil {
		w.Fatal(err)
	}
}

// TestAPageOfNonsenseIsPassed: it stays nonsense when asked again.
func TestAPageOfNonsenseIsPassed(t *testing.T) {
	for name, body := range map[string]string{
		"HTML": "<html>", "cut off": `{"entity":"collection","count":1,"items":[{"id":`, "no list": `{"entity":"payment"}`,
		"incomplete": `{"entity":"collection","count":2,"items":[]}`, "empty": "",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, payment.Rules{})
			w.at(3 * time.Minute)
			w.paid(w.open("hidden"))
			w.at(13 * time.Minute)
			w.paid(w.open("shown"))
			w.at(30 * time.Minute)
			serve := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/payments" && r.URL.Query().Get("from") == fmt.Sprint(begins.Unix()) {
					fmt.Fprint(rw, body)
					return
				}
				w.sim.ServeHTTP(rw, r)
			})
			w.serve.Store(&serve)
			found, err := w.scan(payment.HourlyScan, -1)
			if err != nil {
				t.Fatal(err)
			}
			w.found(reconcile.Findings{MissingWebhook: 1, Unreadable: 1}, found)
			w.expect("shown", payment.Paid, true)
			w.serve.Store(nil)
			w.at(91 * time.Minute) // the next pass overlaps
			if _, err = w.scan(payment.HourlyScan, -1); err != nil {
				t.Fatal(err)
			}
			w.expect("hidden", payment.Paid, true)
		})
	}
}

// TestABrokenOrderAloneIsPassedInTheEnd: for some runs it may be the store; then the payments after it must not wait any longer.
func TestABrokenOrderAloneIsPassedInTheEnd(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	w.at(3 * time.Minute)
	w.paid(w.open("bad"))
	w.at(13 * time.Minute)
	w.paid(w.open("good"))
	w.at(25 * time.Minute)
	w.rec.Store = refusing{w.memory, "bad"}
	runs := 0
	for w.at(30 * time.Minute); w.order("good").Status == payment.Pending && runs < 10; runs++ {
		found, err := w.scan(payment.HourlyScan, -1)
		if (err == nil) != (w.order("good").Status == payment.Paid) || found.Failed != 1 {
			t.Fatalf("run %d: %+v, %v", runs+1, found, err)
		}
		w.at(w.now().Sub(begins) + 5*time.Minute)
	}
	if runs != 7 {
		t.Errorf("the good order is paid after %d runs, want 7: the first, and those of half an hour", runs)
	}
	w.rec.Store = w.memory
	w.at(91 * time.Minute)
	if _, err := w.scan(payment.HourlyScan, -1); err != nil {
		t.Fatal(err)
	}
	w.expect("bad", payment.Paid, true)
}

// TestAnOrderThatCannotBeAdoptedHidesNoOther, and the next pass adopts it.
func TestAnOrderThatCannotBeAdoptedHidesNoOther(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	w.rec.Adopts = true
	w.at(3 * time.Minute)
	stray := w.foreign(nil)
	w.paid(payment.Order{GatewayOrderID: stray})
	w.at(13 * time.Minute)
	w.paid(payment.Order{GatewayOrderID: stray})
	w.paid(w.open("beside"))
	w.fault("/v1/orders/"+stray, razorpaytest.ServerError)
	w.at(30 * time.Minute)
	found, err := w.scan(payment.HourlyScan, -1)
	if err != nil {
		t.Fatal(err)
	}
	w.found(reconcile.Findings{MissingWebhook: 1, UnknownOrder: 2}, found)
	w.fault("", "")
	w.at(91 * time.Minute)
	if _, err := w.scan(payment.HourlyScan, -1); err != nil {
		t.Fatal(err)
	}
	w.orders = append(w.orders, "razorpay."+stray)
	w.expect("beside", payment.Paid, true)
	w.expect("razorpay."+stray, payment.Paid, true)
}

// TestTheStoreFailsDuringAScan: what was not done the next run does.
func TestTheStoreFailsDuringAScan(t *testing.T) {
	for _, method := range []string{"Cursor", "OrderID", "Order", "Commit", "Heard", "LastFailed", "PutCursor"} {
		for _, fault := range []storetest.Fault{storetest.NotDone, storetest.DoneUnsaid} {
			t.Run(fmt.Sprint(method, fault), func(t *testing.T) {
				w := newWorld(t, payment.Rules{})
				w.at(3 * time.Minute)
				o := w.open("o1")
				w.paid(o)
				w.at(30 * time.Minute)
				w.memory.Faults = func(m string) storetest.Fault {
					if m == method {
						return fault
					}
					return storetest.None
				}
				c := w.memory
				_, _, err := w.rec.Scan(t.Context(), "razorpay", payment.HourlyScan, func() bool { return true })
				if err == nil && !(method == "Commit" && fault == storetest.DoneUnsaid) { // that is read again, and done
					t.Error("the scan says that all is well")
				}
				c.Faults = nil
				w.at(35 * time.Minute)
				if _, err := w.scan(payment.HourlyScan, -1); err != nil {
					t.Fatal(err)
				}
				w.expect("o1", payment.Paid, true)
				if c := w.cursor(payment.HourlyScan); c.Underway() {
					t.Errorf("the pass is at %s", c.Next)
				}
			})
		}
	}
}

// TestNothingIsLostByOffsets: a payment that is added while pages are read shifts the gateway's offsets; one that its list shows
// late is not in the slice at all. The next pass reads both again.
func TestNothingIsLostByOffsets(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	w.at(time.Minute)
	for i := range 250 {
		w.paid(w.open(fmt.Sprintf("o%03d", i)))
	}
	var late []payment.Order
	for i := range 2 {
		late = append(late, w.open(fmt.Sprintf("late%d", i)))
	}
	hidden := w.open("hidden")
	hiddenID := w.paid(hidden)
	scanAt := 30 * time.Minute
	w.at(scanAt)
	w.between("/v1/payments", func(_ map[string][]string, items []json.RawMessage) []json.RawMessage {
		if len(items) == 100 && len(late) > 0 { // another before each further page
			w.at(2 * time.Minute)
			w.paid(late[0])
			late = late[1:]
			w.at(scanAt)
		}
		for i := range items {
			if strings.Contains(string(items[i]), hiddenID) {
				items[i] = items[(i+1)%len(items)]
			}
		}
		return items
	})
	found, err := w.scan(payment.HourlyScan, -1)
	w.serve.Store(nil)
	if err == nil {
		w.at(scanAt + time.Hour)
		_, err = w.scan(payment.HourlyScan, -1)
	}
	if err != nil || found.MissingWebhook != 250 || len(late) > 0 {
		t.Fatalf("the first pass found %+v: %v", found, err)
	}
	for _, id := range w.orders {
		w.expect(id, payment.Paid, true)
	}
}

// TestALateAuthorizationIsFound on the third day, by the daily scan alone.
func TestALateAuthorizationIsFound(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	w.at(3 * time.Minute)
	id := w.pay(razorpaytest.PaymentRequest{OrderID: w.open("o1").GatewayOrderID, Status: "failed"})
	const day = 24 * time.Hour
	for after := 30 * time.Minute; after < 3*day-time.Hour; after += 5 * time.Minute {
		w.at(after)
		if _, err := w.scan(payment.DailyScan, -1); err != nil {
			t.Fatal(err)
		}
	}
	w.expect("o1", payment.Failed, false)
	w.at(3*day - time.Hour)
	if err := w.sim.Move(id, razorpaytest.Move{Status: "captured", Deliver: new(false)}); err != nil {
		t.Fatal(err)
	}
	for after := 3*day - time.Hour; after < 4*day-time.Hour+5*time.Minute; after += 5 * time.Minute {
		w.at(after)
		if _, err := w.scan(payment.DailyScan, -1); err != nil {
			t.Fatal(err)
		}
	}
	w.expect("o1", payment.Paid, true)
}

// TestAScanOfWhatIsKnownWritesOnlyItsCursor, and reads each order once.
func TestAScanOfWhatIsKnownWritesOnlyItsCursor(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	w.at(3 * time.Minute)
	for i := range 20 {
		o := w.open(fmt.Sprint("o", i))
		fact := captured(w.paid(o))
		fact.CreatedAt = w.now()
		w.told(o, fact)
	}
	w.at(30 * time.Minute)
	clear(w.calls)
	found, err := w.scan(payment.HourlyScan, -1)
	if err != nil || found != (reconcile.Findings{Matched: 20}) {
		t.Fatalf("%+v, %v", found, err)
	}
	if n := w.calls["Heard"]; n != 20 {
		t.Errorf("asked %d times whether a webhook came, want 20", n)
	}
	if diff := cmp.Diff(map[string]int{"PutCursor": 18}, w.writes()); diff != "" {
		t.Errorf("writes (-want +got)\n%s", diff)
	}
}

// TestTwoScansAtOnce: the lease keeps them apart, unless the clock does not.
func TestTwoScansAtOnce(t *testing.T) {
	w := newWorld(t, payment.Rules{})
	w.at(3 * time.Minute)
	w.paid(w.open("o1"))
	w.at(30 * time.Minute)
	slices := 0
	_, silent, err := w.rec.Scan(t.Context(), "razorpay", payment.HourlyScan, func() bool {
		if slices++; slices == 3 {
			if _, err := w.scan(payment.HourlyScan, 5); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if err != nil || silent != -1 {
		t.Errorf("the one that comes late says %d, %v", silent, err)
	}
	if _, err := w.scan(payment.HourlyScan, -1); err != nil {
		t.Error(err)
	}
	w.expect("o1", payment.Paid, true)
}
