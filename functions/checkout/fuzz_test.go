package main

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// FuzzCallback sends any body to the order and expects an answer that shows nothing of it, and no effect unless it holds
// the one signature that proves something.
func FuzzCallback(f *testing.F) {
	good := fields("order_1", "pay_1")
	for _, body := range []string{
		"", "{}", good.Encode(), script("o1", good).Body, good.Encode() + "&" + good.Encode(), good.Encode() + "&error[code]=E",
		"error%5Bcode%5D=E&error%5Bdescription%5D=%20", `{"error":{"code":"E","metadata":{"payment_id":"pay_1"}}}`,
		`{"razorpay_payment_id":null,"razorpay_signature":1e9}`, "%zz", ";", `{"a":"\ud800"}`, `{"":{"":[[[`, "\xff\xfe",
	} {
		for _, isForm := range []bool{false, true} {
			f.Add("o1", body, isForm, false)
		}
	}
	f.Add("o1&status=paid", good.Encode(), true, false)
	f.Add("o1", "eyJhIjoxfQ==", false, true)
	f.Fuzz(func(t *testing.T, orderID, body string, isForm, encoded bool) {
		b := setup(t)
		r := request(orderID, "application/json", body)
		if isForm {
			r.Headers["content-type"] = "application/x-www-form-urlencoded"
		}
		r.IsBase64Encoded = encoded
		response, err := b.Handle(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := apigw.Fields(r, maxBody)
		proved := err == nil && slices.ContainsFunc(sent["razorpay_signature"], func(s string) bool {
			return strings.EqualFold(s, good.Get("razorpay_signature"))
		})
		if o := b.stored(t, "o1"); !proved && (b.gateway.reads > 0 || o.Version != 1) {
			t.Errorf("gateway read %d times, order at version %d", b.gateway.reads, o.Version)
		}
		if !isForm {
			switch response.StatusCode {
			case 200, 400, 401, 413:
			default:
				t.Errorf("answered %d", response.StatusCode)
			}
			return
		}
		to, err := url.Parse(response.Headers["location"])
		if err != nil || response.StatusCode != 303 {
			t.Fatalf("answered %d, to %q: %v", response.StatusCode, response.Headers["location"], err)
		}
		query := to.Query()
		status := payment.Status(query.Get("status"))
		switch {
		case len(query) != 2 || len(query["order"]) != 1 || len(query["status"]) != 1:
			t.Errorf("sent to %s", to)
		case query.Get("order") != fit(fitOrderID, orderID):
			t.Errorf("order %q became %q", orderID, query.Get("order"))
		case status != statusUnknown && status != payment.Pending && !proved:
			t.Errorf("status %q", status)
		}
		if to.RawQuery = ""; to.String() != shopPage {
			t.Errorf("sent to %s", to)
		}
	})
}
