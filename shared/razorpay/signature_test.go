package razorpay

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The signatures below were computed with OpenSSL over testdata/signed.body, which holds literal UTF-8 beside \/ and
// \u escapes, so that anything but its raw bytes has another one.
const (
	firstSecret  = "made-up webhook secret 1 @₹"
	secondSecret = "made-up webhook secret 2"

	firstSignature  = "2cd4a7aef7eff8aa8682a0c441c0dc2b4958ee007bb0d4dddb993e4ac816a8e2"
	secondSignature = "99f6b6a57484661574c9e3099eca0e60aeed27913f34f5c8bfb93e728046509e"
	emptySignature  = "113866e6dd7b7c46ba431f6e75e7fd6f51c4961df2943258a9e384cf9744fee9" // of the empty key
)

func TestVerify(t *testing.T) {
	body := readFile(t, "testdata/signed.body")
	first, second := Secret{"live_current", firstSecret}, Secret{"live_previous", secondSecret}
	var reencoded bytes.Buffer
	var decoded any
	if err := json.Unmarshal(body, &decoded); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&reencoded).Encode(decoded); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		body      []byte
		signature string
		secrets   []Secret
		label     string // empty: no match
	}{
		"only secret":                   {body, firstSignature, []Secret{first}, "live_current"},
		"first of two":                  {body, firstSignature, []Secret{first, second}, "live_current"},
		"second of two":                 {body, secondSignature, []Secret{first, second}, "live_previous"},
		"same secret twice":             {body, firstSignature, []Secret{first, {"live_previous", firstSecret}}, "live_current"},
		"upper-case hex":                {body, strings.ToUpper(firstSignature), []Secret{first}, "live_current"},
		"empty secret beside good":      {body, firstSignature, []Secret{{"test_current", ""}, first}, "live_current"},
		"other secret":                  {body, firstSignature, []Secret{second}, ""},
		"no secret":                     {body, firstSignature, nil, ""},
		"empty secret":                  {body, emptySignature, []Secret{{"live_current", ""}}, ""},
		"secret of zero bytes":          {body, emptySignature, []Secret{{"live_current", "\x00\x00"}}, ""},
		"empty secret, empty signature": {body, "", []Secret{{"live_current", ""}}, ""},
		"no signature":                  {body, "", []Secret{first}, ""},
		"body encoded anew":             {reencoded.Bytes(), firstSignature, []Secret{first}, ""},
		"body with a line break":        {append(bytes.Clone(body), '\n'), firstSignature, []Secret{first}, ""},
		"empty body":                    {nil, firstSignature, []Secret{first}, ""},
		"half a signature":              {body, firstSignature[:32], []Secret{first}, ""},
		"longer signature":              {body, firstSignature + "00", []Secret{first}, ""},
		"odd number of digits":          {body, firstSignature[:63], []Secret{first}, ""},
		"no hex":                        {body, "g" + firstSignature[1:], []Secret{first}, ""},
		"spaces around":                 {body, " " + firstSignature, []Secret{first}, ""},
		"two signatures":                {body, firstSignature + "," + firstSignature, []Secret{first}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			label, ok := Verify(test.body, test.signature, test.secrets)
			if label != test.label || ok != (test.label != "") {
				t.Errorf("Verify = %q, %t, want %q", label, ok, test.label)
			}
		})
	}
}

func TestSign(t *testing.T) {
	if got := Sign(readFile(t, "testdata/signed.body"), secondSecret); got != secondSignature {
		t.Errorf("Sign = %s, want %s", got, secondSignature)
	}
}

func TestVerifyCheckout(t *testing.T) {
	const (
		order, pay, secret = "order_Jd6HsQ1vEf9Lg4", "pay_Xr2CkW8nTb5Ym0", "made-up key secret"
		good               = "d21b2387fe6bf70877304a22a52386b2a9a898b33620530323623cd36c1e43a9" // OpenSSL, order|pay
		reversed           = "8bad5fef9a9784ed6a8093ca13f7565af594abd94dac53ee77648046da9ec5a6" // OpenSSL, pay|order
	)
	if got := SignCheckout(order, pay, secret); got != good {
		t.Errorf("SignCheckout = %s, want %s", got, good)
	}
	for name, test := range map[string]struct {
		order, payment, signature, secret string
		want                              bool
	}{
		"good":             {order, pay, good, secret, true},
		"reversed message": {order, pay, reversed, secret, false},
		"other order":      {"order_Other", pay, good, secret, false},
		"other payment":    {order, "pay_Other", good, secret, false},
		"other secret":     {order, pay, good, "webhook secret", false},
		"no order":         {"", pay, SignCheckout("", pay, secret), secret, false},
		"no payment":       {order, "", SignCheckout(order, "", secret), secret, false},
		"no secret":        {order, pay, SignCheckout(order, pay, ""), "", false},
		"no signature":     {order, pay, "", secret, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := VerifyCheckout(test.order, test.payment, test.signature, test.secret); got != test.want {
				t.Errorf("VerifyCheckout = %t, want %t", got, test.want)
			}
			if got := (&Client{keySecret: test.secret}).VerifyCheckout(test.order, test.payment, test.signature); got != test.want {
				t.Errorf("of a client = %t, want %t", got, test.want)
			}
		})
	}
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte("{}"), firstSignature, firstSecret, secondSecret)
	f.Add([]byte(nil), "", "", "")
	f.Add([]byte{0xff, 0}, strings.Repeat("0", 64), "\xff", "x")
	f.Fuzz(func(t *testing.T, body []byte, signature, secret, other string) {
		secrets := []Secret{{"live_current", secret}, {"test_current", other}}
		label, ok := Verify(body, signature, secrets)
		if ok && !strings.EqualFold(signature, Sign(body, secret)) && !strings.EqualFold(signature, Sign(body, other)) {
			t.Fatalf("%q passes for %q", signature, label)
		}
		usable := strings.Trim(secret, "\x00") != ""
		if _, ok := Verify(body, Sign(body, secret), secrets[:1]); ok != usable {
			t.Fatalf("own signature passes: %t, want %t", ok, usable)
		}
		if _, ok := Verify(append(body[:len(body):len(body)], 0), Sign(body, secret), secrets); ok {
			t.Fatal("another body passes")
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	body := readFile(b, "testdata/payment.captured-card.json")
	signature := Sign(body, secondSecret)
	secrets := []Secret{{"live_current", firstSecret}, {"live_previous", secondSecret}}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Verify(body, signature, secrets); !ok {
			b.Fatal("no match")
		}
	}
}
