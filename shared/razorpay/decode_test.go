package razorpay

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"paidonce/shared/payment"
)

var update = flag.Bool("update", false, "write testdata/events.golden anew")

// bodies returns every body of testdata by name.
func bodies(tb testing.TB) map[string][]byte {
	tb.Helper()
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil {
		tb.Fatal(err)
	}
	found := map[string][]byte{}
	for _, path := range paths {
		found[strings.TrimSuffix(filepath.Base(path), ".json")] = readFile(tb, path)
	}
	if len(found) < 90 {
		tb.Fatalf("testdata holds %d bodies, want all of them", len(found))
	}
	return found
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// TestDecodeEveryShape holds what every known shape of body decodes to against testdata/events.golden.
func TestDecodeEveryShape(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, path := range paths { // sorted
		event, err := Decode(readFile(t, path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		fmt.Fprintf(&got, "%s: %s of %q\n", strings.TrimSuffix(filepath.Base(path), ".json"), event.Type, event.Account)
		if event.Note != "" {
			fmt.Fprintf(&got, "  note: %s\n", event.Note)
		}
		for _, fact := range event.Facts {
			fmt.Fprintf(&got, "  %s\n", line(fact))
		}
	}
	const golden = "testdata/events.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Split(string(readFile(t, golden)), "\n")
	if diff := cmp.Diff(want, strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("events (-want +got), -update accepts them:\n%s", diff)
	}
}

func line(fact payment.Fact) string {
	switch f := fact.(type) {
	case payment.PaymentFact:
		text := fmt.Sprintf("payment %s of %q: %s %v", f.ID, f.GatewayOrderID, f.Status, f.Amount)
		if f.Failed {
			text += " failed"
		}
		if f.Captured {
			text += " was captured"
		}
		return fmt.Sprintf("%s, %d refunded, %s", text, f.AmountRefunded, f.CreatedAt.Format(time.RFC3339))
	case payment.OrderFact:
		return fmt.Sprintf("order %s: paid %t %v", f.GatewayOrderID, f.Paid, f.Amount)
	case payment.RefundFact:
		return fmt.Sprintf("refund %s of %s of %q: %s %v receipt %q",
			f.ID, f.PaymentID, f.GatewayOrderID, f.Status, f.Amount, f.Receipt)
	case payment.DisputeFact:
		return fmt.Sprintf("dispute %s of %s of %q: %s %s %v, %d deducted",
			f.ID, f.PaymentID, f.GatewayOrderID, f.Phase, f.Status, f.Amount, f.Deducted)
	}
	return fmt.Sprintf("%#v", fact)
}

// paymentBody is a payment.captured body whose payment has these fields.
func paymentBody(fields string) string {
	return `{"event":"payment.captured","payload":{"payment":{"entity":{` + fields + `}}}}`
}

func TestDecodePayment(t *testing.T) {
	inr := payment.Money{Amount: 49900, Currency: "INR"}
	for name, test := range map[string]struct {
		fields string
		want   payment.PaymentFact
	}{
		"captured": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"captured","captured":true,"order_id":"order_1","created_at":1700000000`,
			payment.PaymentFact{ID: "pay_1", GatewayOrderID: "order_1", Status: payment.PaymentCaptured, Amount: inr,
				CreatedAt: time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC)},
		},
		"captured: true means nothing on an authorized payment": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"authorized","captured":true`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentAuthorized, Amount: inr},
		},
		"captured: true means nothing on a failed payment": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"failed","captured":true`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentCreated, Failed: true, Amount: inr},
		},
		"refunded after capture": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"refunded","captured":true,"amount_refunded":49900`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentRefunded, Captured: true, Amount: inr, AmountRefunded: 49900},
		},
		"refunded, captured as a string": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"refunded","captured":"1"`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentRefunded, Captured: true, Amount: inr},
		},
		"refunded, captured as a number": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"refunded","captured":1`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentRefunded, Captured: true, Amount: inr},
		},
		"voided": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"refunded","captured":false,"amount_refunded":49900`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentRefunded, Amount: inr, AmountRefunded: 49900},
		},
		"voided, captured as a number": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"refunded","captured":0`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentRefunded, Amount: inr},
		},
		"order id without its prefix": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"created","order_id":"Nf3kQ"`,
			payment.PaymentFact{ID: "pay_1", GatewayOrderID: "order_Nf3kQ", Status: payment.PaymentCreated, Amount: inr},
		},
		"nulls, odd notes, unknown keys, a time that is none": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"captured","captured":"yes","order_id":null,"amount_refunded":null,` +
				`"notes":[],"created_at":"1700000000","acquirer_data":[],"new":{"deep":[1,{"id":5}]}`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentCaptured, Amount: inr},
		},
		"a time beyond the year 9999": {
			`"id":"pay_1","amount":49900,"currency":"INR","status":"captured","created_at":253402300800`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentCaptured, Amount: inr},
		},
		"the largest amount": {
			`"id":"pay_1","amount":1000000000000000,"currency":"INR","status":"captured"`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentCaptured,
				Amount: payment.Money{Amount: payment.MaxAmount, Currency: "INR"}},
		},
		"nothing to pay": {
			`"id":"pay_1","amount":0,"currency":"INR","status":"captured"`,
			payment.PaymentFact{ID: "pay_1", Status: payment.PaymentCaptured, Amount: payment.Money{Currency: "INR"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			event, err := Decode([]byte(paymentBody(test.fields)))
			if err != nil {
				t.Fatal(err)
			}
			want := payment.Notice{Type: "payment.captured", Facts: []payment.Fact{test.want}}
			if diff := cmp.Diff(want, event); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeRefund(t *testing.T) {
	const entity = `"id":"rfnd_1","amount":100,"currency":"INR","payment_id":"pay_1"`
	const attempt = `"payment":{"entity":{"id":"pay_1","amount":900,"currency":"INR","status":"captured","order_id":"order_1"}}`
	fact := payment.RefundFact{ID: "rfnd_1", PaymentID: "pay_1", GatewayOrderID: "order_1", Status: payment.RefundProcessed,
		Amount: payment.Money{Amount: 100, Currency: "INR"}}
	with := func(change func(*payment.RefundFact)) payment.RefundFact {
		changed := fact
		change(&changed)
		return changed
	}
	for name, test := range map[string]struct {
		event, payload string
		want           payment.RefundFact
	}{
		"the status wins over the event's name": {
			"refund.created", `"refund":{"entity":{` + entity + `,"status":"processed"}},` + attempt, fact,
		},
		"without a status the event's name tells: processed": {
			"refund.processed", `"refund":{"entity":{` + entity + `}},` + attempt, fact,
		},
		"without a status the event's name tells: failed": {
			"refund.failed", `"refund":{"entity":{` + entity + `,"status":null}},` + attempt,
			with(func(f *payment.RefundFact) { f.Status = payment.RefundFailed }),
		},
		"without a status the event's name tells: created": {
			"refund.created", `"refund":{"entity":{` + entity + `}},` + attempt,
			with(func(f *payment.RefundFact) { f.Status = payment.RefundPending }),
		},
		"no payment beside it": {
			"refund.processed", `"refund":{"entity":{` + entity + `}}`,
			with(func(f *payment.RefundFact) { f.GatewayOrderID = "" }),
		},
		"another payment beside it": {
			"refund.processed", `"refund":{"entity":{` + entity + `}},` + strings.ReplaceAll(attempt, "pay_1", "pay_2"),
			with(func(f *payment.RefundFact) { f.GatewayOrderID = "" }),
		},
		"payment id only in the payment": {
			"refund.processed", `"refund":{"entity":{"id":"rfnd_1","amount":100,"currency":"INR"}},` + attempt, fact,
		},
		"receipt": {
			"refund.processed", `"refund":{"entity":{` + entity + `,"receipt":"po_5f2b"}},` + attempt,
			with(func(f *payment.RefundFact) { f.Receipt = "po_5f2b" }),
		},
		"receipt longer than any": {
			"refund.processed", `"refund":{"entity":{` + entity + `,"receipt":"` + strings.Repeat("r", 41) + `"}},` + attempt, fact,
		},
	} {
		t.Run(name, func(t *testing.T) {
			event, err := Decode([]byte(`{"event":"` + test.event + `","payload":{` + test.payload + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(payment.Fact(test.want), event.Facts[len(event.Facts)-1]); diff != "" {
				t.Errorf("refund (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeNoConcern(t *testing.T) {
	for _, body := range []string{
		`{"event":"settlement.processed","payload":{"settlement":{"entity":{"id":"setl_1","amount":"12.50"}}}}`,
		`{"event":"settlement.processed","payload":[]}`,
		`{"event":"settlement.processed","payload":null}`,
		`{"event":"settlement.processed"}`,
	} {
		event, err := Decode([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		want := payment.Notice{Type: "settlement.processed", Note: "settlement.processed carries no payment of an order"}
		if diff := cmp.Diff(want, event); diff != "" {
			t.Errorf("%s: event (-want +got):\n%s", body, diff)
		}
	}
}

// An entity that says nothing, beside one that does, is no reason to park what the other says.
func TestDecodeSkipsEmptyEntities(t *testing.T) {
	const good = `"payment":{"entity":{"id":"pay_1","amount":100,"currency":"INR","status":"captured"}}`
	for _, empty := range []string{`"refund":{}`, `"refund":{"entity":null}`, `"refund": { "entity" : null } `, `"refund":null`, `"order":{}`} {
		notice, err := Decode([]byte(`{"event":"payment.captured","payload":{` + good + `,` + empty + `}}`))
		if err != nil || len(notice.Facts) != 1 {
			t.Errorf("%s: %d facts, %v; want the payment alone", empty, len(notice.Facts), err)
		}
	}
}

func TestDecodeUndecodable(t *testing.T) {
	const good = `"id":"pay_1","amount":100,"currency":"INR","status":"captured"`
	if _, err := Decode([]byte(paymentBody(good))); err != nil {
		t.Fatalf("the base of the cases below: %v", err)
	}
	change := func(old, replacement string) string {
		changed := strings.Replace(good, old, replacement, 1)
		if changed == good {
			t.Fatalf("%q is not in the base", old)
		}
		return paymentBody(changed)
	}
	refund := func(fields string) string {
		return `{"event":"refund.processed","payload":{"refund":{"entity":{` + fields + `}}}}`
	}
	dispute := func(fields string) string {
		return `{"event":"payment.dispute.created","payload":{"dispute":{"entity":{` + fields + `}}}}`
	}
	order := func(fields string) string {
		return `{"event":"order.paid","payload":{"order":{"entity":{` + fields + `}}}}`
	}
	for name, body := range map[string]string{
		"empty":                    "",
		"no JSON":                  "event=payment.captured",
		"cut off":                  paymentBody(good)[:60],
		"beyond all reason":        change("100", "1000000000000001"),
		"refunded beyond reason":   change(`"amount":100`, `"amount":100,"amount_refunded":1000000000000001`),
		"a payment that is empty":  `{"event":"payment.captured","payload":{"payment":{"entity":null}}}`,
		"two documents":            paymentBody(good) + "{}",
		"null":                     "null",
		"array":                    "[" + paymentBody(good) + "]",
		"string":                   `"payment.captured"`,
		"deeper than JSON may be":  strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000),
		"no event":                 `{"entity":"event"}`,
		"event is a number":        `{"event":1}`,
		"event with a line break":  `{"event":"a\nb"}`,
		"account with a space":     `{"event":"payment.captured","account_id":"acc 1"}`,
		"payload is a string":      `{"event":"payment.captured","payload":"x"}`,
		"payment is a string":      `{"event":"payment.captured","payload":{"payment":"pay_1"}}`,
		"no payment in its event":  `{"event":"payment.captured","payload":{}}`,
		"payload array in its own": `{"event":"payment.captured","payload":[]}`,
		"no refund in its event":   `{"event":"refund.processed","payload":{"payment":{"entity":{` + good + `}}}}`,
		"no dispute in its event":  `{"event":"payment.dispute.won","payload":{"payment":{"entity":{` + good + `}}}}`,
		"no order in its event":    `{"event":"order.paid","payload":{}}`,

		"payment without id":             change(`"id":"pay_1",`, ``),
		"payment id null":                change(`"pay_1"`, `null`),
		"payment id a number":            change(`"pay_1"`, `7`),
		"payment id of a key's making":   change(`pay_1`, `pay_1#captured`),
		"payment id too long":            change(`pay_1`, strings.Repeat("p", 65)),
		"payment order id odd":           change(`"id"`, `"order_id":"../x","id"`),
		"payment status unknown":         change(`captured`, `settled`),
		"payment status absent":          change(`,"status":"captured"`, ``),
		"amount a string":                change(`100`, `"100"`),
		"amount a float":                 change(`100`, `100.0`),
		"amount with an exponent":        change(`100`, `1e2`),
		"amount beyond 64 bits":          change(`100`, `9223372036854775808`),
		"amount negative":                change(`100`, `-100`),
		"amount absent":                  change(`"amount":100,`, ``),
		"amount null":                    change(`100`, `null`),
		"refunded amount a float":        change(`"id"`, `"amount_refunded":0.5,"id"`),
		"refunded amount negative":       change(`"id"`, `"amount_refunded":-5,"id"`),
		"currency absent":                change(`,"currency":"INR"`, ``),
		"currency lower case":            change(`INR`, `inr`),
		"currency of four letters":       change(`INR`, `INRX`),
		"refunded, captured not said":    change(`captured`, `refunded`),
		"refunded, captured is nonsense": change(`"captured"`, `"refunded","captured":"perhaps"`),

		"refund without id":         refund(`"amount":1,"currency":"INR","payment_id":"pay_1"`),
		"refund of no payment":      refund(`"id":"rfnd_1","amount":1,"currency":"INR"`),
		"refund of an odd payment":  refund(`"id":"rfnd_1","amount":1,"currency":"INR","payment_id":"pay/1"`),
		"refund status unknown":     refund(`"id":"rfnd_1","amount":1,"currency":"INR","payment_id":"pay_1","status":"lost"`),
		"refund amount a float":     refund(`"id":"rfnd_1","amount":1.5,"currency":"INR","payment_id":"pay_1"`),
		"dispute without id":        dispute(`"amount":1,"currency":"INR","payment_id":"pay_1","status":"open","phase":"fraud"`),
		"dispute of no payment":     dispute(`"id":"disp_1","amount":1,"currency":"INR","status":"open","phase":"fraud"`),
		"dispute status unknown":    dispute(`"id":"disp_1","amount":1,"currency":"INR","payment_id":"pay_1","status":"odd","phase":"fraud"`),
		"dispute phase unknown":     dispute(`"id":"disp_1","amount":1,"currency":"INR","payment_id":"pay_1","status":"open","phase":"odd"`),
		"dispute without amount":    dispute(`"id":"disp_1","currency":"INR","payment_id":"pay_1","status":"open","phase":"fraud"`),
		"dispute deducted negative": dispute(`"id":"disp_1","amount":1,"currency":"INR","amount_deducted":-1,"payment_id":"pay_1","status":"open","phase":"fraud"`),
		"order without id":          order(`"amount":1,"currency":"INR","status":"paid"`),
		"order id odd":              order(`"id":"order 1","amount":1,"currency":"INR","status":"paid"`),
		"order status unknown":      order(`"id":"order_1","amount":1,"currency":"INR","status":"settled"`),
		"order without currency":    order(`"id":"order_1","amount":1,"status":"paid"`),
	} {
		t.Run(name, func(t *testing.T) {
			event, err := Decode([]byte(body))
			if !errors.Is(err, ErrUndecodable) {
				t.Errorf("Decode = %+v, %v, want ErrUndecodable", event, err)
			}
			if _, err := Reduce([]byte(body)); !errors.Is(err, ErrUndecodable) {
				t.Errorf("Reduce = %v, want ErrUndecodable", err)
			}
		})
	}
}

// TestDecodeErrorsShowNoValues checks that nothing private that stands in the place of an id or amount gets into an error.
func TestDecodeErrorsShowNoValues(t *testing.T) {
	const private = "4111111111111111"
	for _, field := range []string{"id", "order_id", "status", "amount", "currency", "amount_refunded"} {
		for _, value := range []string{private, `"` + private + ` x"`, private + ".5", "[" + private + "]"} {
			body := paymentBody(`"id":"pay_1","amount":1,"currency":"INR","status":"captured","` + field + `":` + value)
			if _, err := Decode([]byte(body)); err != nil && strings.Contains(err.Error(), private) {
				t.Errorf("%s %s: the error shows it: %v", field, value, err)
			}
		}
	}
}

// The envelope's time measures delays and nothing else: whatever stands there, the body is read.
func TestWhenAnEventCameAbout(t *testing.T) {
	at := time.Unix(1_700_000_000, 0).UTC()
	for text, want := range map[string]time.Time{
		`1700000000`: at, `"1700000000"`: {}, `null`: {}, `-5`: {}, `0`: {}, `1.7e9`: {}, `{"a":[1]}`: {}, `99999999999999999999`: {},
	} {
		body := `{"event":"payment.failed","payload":{"payment":{"entity":{"id":"pay_1","amount":1,"currency":"INR","status":"failed",` +
			`"order_id":"order_1"}}},"created_at":` + text + `}`
		notice, err := Decode([]byte(body))
		if err != nil || !notice.At.Equal(want) || len(notice.Facts) != 1 {
			t.Errorf("%s: at %v, %d facts, %v; want %v", text, notice.At, len(notice.Facts), err, want)
		}
		small, err := Reduce([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Decode(small); err != nil || !again.At.Equal(want) {
			t.Errorf("%s: reduced to %s: %v", text, small, err)
		}
	}
}
