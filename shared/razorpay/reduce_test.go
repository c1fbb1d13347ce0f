package razorpay

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzDecode(f *testing.F) {
	for _, body := range bodies(f) {
		f.Add(body)
	}
	f.Add([]byte(paymentBody(`"id":"pay_1","amount":1e2`)))
	f.Add([]byte(`{"event":"refund.failed","payload":{"refund":{"id":"rfnd_1","amount":1,"currency":"INR","payment_id":"pay_1","receipt":"\ud800"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		event, err := Decode(body)
		if err != nil {
			if !errors.Is(err, ErrUndecodable) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		if (len(event.Facts) == 0) != (event.Note != "") {
			t.Fatalf("facts or a note, not both and not neither: %+v", event)
		}
		small, err := Reduce(body)
		if err != nil {
			t.Fatal(err)
		}
		sameEvent(t, "fuzz", body, small)
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, name := range []string{"payment.captured-card", "order.paid-card", "invoice.paid-card"} {
		b.Run(name, func(b *testing.B) {
			body := readFile(b, "testdata/"+name+".json")
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestReduceLongReceipt(t *testing.T) {
	body := []byte(`{"event":"refund.processed","payload":{"refund":{"entity":{"id":"rfnd_1","amount":100,"currency":"INR",` +
		`"payment_id":"pay_1","receipt":"` + strings.Repeat("r", 100_000) + `"}}}}`)
	small, err := Reduce(body)
	if err != nil || len(small) > 2048 {
		t.Fatalf("%d bytes, %v", len(small), err)
	}
	sameEvent(t, "long receipt", body, small)
}

func sameEvent(t *testing.T, name string, a, b []byte) {
	t.Helper()
	want, err := Decode(a)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatalf("%s: the other body: %v", name, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: event (-want +got):\n%s", name, diff)
	}
}

func TestReduce(t *testing.T) {
	for name, body := range bodies(t) {
		// A body grows through what is not read: notes, descriptions, future keys.
		padded := bytes.Replace(body, []byte("{"), []byte(`{"padding":"`+strings.Repeat("₹", 50_000)+`",`), 1)
		small, err := Reduce(padded)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(small) > 2048 {
			t.Errorf("%s: reduced to %d bytes", name, len(small))
		}
		sameEvent(t, name, body, small)
	}
}
