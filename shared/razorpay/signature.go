package razorpay

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
)

// Sign returns the signature the gateway sends in [HeaderSignature]: the HMAC-SHA256 of the raw body, as lower-case
// hex (Razorpay, "Validate webhooks").
func Sign(body []byte, secret string) string {
	return hex.EncodeToString(mac(body, secret))
}

// Verify reports whether signature, the value of [HeaderSignature], is that of body under one of the secrets, and the
// label of the first that matches. The body must be the bytes as they arrived: encoding the JSON anew breaks it.
//
// Every secret is tried in full, so the time taken does not tell which one matched. An empty secret never matches.
func Verify(body []byte, signature string, secrets []Secret) (label string, ok bool) {
	got, err := hex.DecodeString(signature)
	if err != nil || len(got) != sha256.Size {
		return "", false
	}
	match := -1
	for i := len(secrets) - 1; i >= 0; i-- {
		if blank(secrets[i].Value) {
			continue
		}
		equal := subtle.ConstantTimeCompare(got, mac(body, secrets[i].Value))
		match = subtle.ConstantTimeSelect(equal, i, match)
	}
	if match < 0 {
		return "", false
	}
	return secrets[match].Label, true
}

// SignCheckout returns the signature that the checkout hands to the browser after a payment of the order. Its key is
// the API key's secret, not a webhook secret.
func SignCheckout(gatewayOrderID, paymentID, keySecret string) string {
	return Sign(checkoutMessage(gatewayOrderID, paymentID), keySecret)
}

// VerifyCheckout reports whether signature proves that the payment belongs to the gateway order, and nothing more: not
// that it was captured, nor for how much. The order id must come from our own store, never from the browser. An empty
// id or secret never matches.
func VerifyCheckout(gatewayOrderID, paymentID, signature, keySecret string) bool {
	if gatewayOrderID == "" || paymentID == "" {
		return false
	}
	_, ok := Verify(checkoutMessage(gatewayOrderID, paymentID), signature, []Secret{{Value: keySecret}})
	return ok
}

// VerifyCheckout is the function [VerifyCheckout] with the secret of the client's own key.
func (c *Client) VerifyCheckout(gatewayOrderID, paymentID, signature string) bool {
	return VerifyCheckout(gatewayOrderID, paymentID, signature, c.keySecret)
}

func checkoutMessage(gatewayOrderID, paymentID string) []byte {
	return []byte(gatewayOrderID + "|" + paymentID)
}

// blank reports whether a secret is empty to HMAC, which pads its key with zero bytes.
func blank(secret string) bool { return strings.Trim(secret, "\x00") == "" }

func mac(message []byte, secret string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(message)
	return h.Sum(nil)
}
