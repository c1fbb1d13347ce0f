package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
)

const redacted = "REDACTED"

// shownValues are the keys of a webhook's body whose values say nothing about a person. All others are hidden, since
// a gateway adds keys as it likes.
var shownValues = set(
	// envelope
	"entity", "event", "account_id", "contains", "created_at",
	// ids
	"id", "order_id", "payment_id", "refund_id", "dispute_id", "invoice_id", "settlement_id",
	// money
	"amount", "amount_paid", "amount_due", "amount_refunded", "amount_transferred", "amount_deducted", "base_amount",
	"currency", "base_currency", "fee", "tax",
	// how far it got, and why no further
	"status", "captured", "refund_status", "attempts", "phase", "reason_code", "respond_by", "error_code", "error_reason",
	"error_source", "error_step", "speed_requested", "speed_processed",
	// how it was paid
	"method", "international",
)

// shownObjects are the keys that lead to what is shown. What lies below any other key is hidden whole, names included.
var shownObjects = set("payload", "payment", "refund", "dispute", "order", "entity")

// A key or value that is shown must look like a code, an id or a number too.
var fitValue = regexp.MustCompile(`^[A-Za-z0-9_.:-]{0,64}$`)

var errNotJSON = errors.New("not one JSON value")

// redact returns a body as indented JSON in which every value is REDACTED whose key is not known to be harmless. null
// stays null. Keys come in alphabetical order; of a key that comes twice, the last one counts, as for the decoder.
func redact(body []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // an amount keeps its digits
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errNotJSON // its own text may quote the body
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotJSON
	}
	object, ok := v.(map[string]any)
	if !ok {
		return json.Marshal(redacted)
	}
	return json.MarshalIndent(redactObject(object), "", "  ")
}

func redactObject(object map[string]any) map[string]any {
	shown := make(map[string]any, len(object))
	for key, v := range object {
		if !fitValue.MatchString(key) {
			key = redacted // it may be data itself
		}
		shown[key] = redactValue(key, v)
	}
	return shown
}

func redactValue(key string, v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		if shownObjects[key] {
			return redactObject(v)
		}
	case []any:
		if shownValues[key] {
			list := make([]any, len(v))
			for i, element := range v {
				list[i] = redactScalar(element)
			}
			return list
		}
	default:
		if shownValues[key] {
			return redactScalar(v)
		}
	}
	return redacted
}

func redactScalar(v any) any {
	switch v := v.(type) {
	case nil, bool:
		return v
	case json.Number:
		if fitValue.MatchString(v.String()) {
			return v
		}
	case string:
		if fitValue.MatchString(v) {
			return v
		}
	}
	return redacted
}

func set(keys ...string) map[string]bool {
	s := make(map[string]bool, len(keys))
	for _, k := range keys {
		s[k] = true
	}
	return s
}
