package razorpay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"paidonce/shared/payment"
)

// A Secret is one webhook secret. Its label says which mode it stands for and whether it is being rotated out. Printing
// or logging a Secret shows the label alone.
type Secret struct {
	Label string
	Value string `json:"-"`
}

// String returns the label.
func (s Secret) String() string { return s.Label }

// GoString returns the label.
func (s Secret) GoString() string { return s.Label }

// LogValue returns the label.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.Label) }

// labels are the allowed secret labels in the order in which they are tried. Two per mode: after a change of secret the
// gateway signs retries of older events with the old one for 24 hours (Razorpay, "Webhook FAQs").
var labels = []string{"live_current", "live_previous", "test_current", "test_previous"}

// ModeOf returns the mode for which a secret label stands, or false for a label that is not one of live_current,
// live_previous, test_current and test_previous.
func ModeOf(label string) (payment.Mode, bool) {
	for _, known := range labels {
		if label == known {
			mode, _, _ := strings.Cut(label, "_")
			return payment.Mode(mode), true
		}
	}
	return "", false
}

// ParseSecrets reads the document that holds the webhook secrets: a JSON object of label to secret, with at least one of
// the labels [ModeOf] knows. Errors name a known label, never a value, nor an unknown name. One secret for both modes is an error, because
// then a test event would pass for a live one.
func ParseSecrets(document []byte) ([]Secret, error) {
	values, err := stringObject(document)
	if err != nil {
		return nil, fmt.Errorf("razorpay: webhook secrets: %w", err)
	}
	for label, value := range values {
		if _, known := ModeOf(label); !known {
			return nil, fmt.Errorf("razorpay: webhook secrets: unknown label %s, want one of %s", shownName(label), strings.Join(labels, ", "))
		}
		if blank(strings.TrimSpace(value)) {
			return nil, fmt.Errorf("razorpay: webhook secrets: %s is empty", label)
		}
	}
	var secrets []Secret
	for _, label := range labels {
		value, set := values[label]
		if !set {
			continue
		}
		mode, _ := ModeOf(label)
		for _, other := range secrets {
			if otherMode, _ := ModeOf(other.Label); other.Value == value && otherMode != mode {
				return nil, fmt.Errorf("razorpay: webhook secrets: %s and %s are the same", other.Label, label)
			}
		}
		secrets = append(secrets, Secret{Label: label, Value: value})
	}
	if len(secrets) == 0 {
		return nil, errors.New("razorpay: webhook secrets: none is set")
	}
	return secrets, nil
}

// A Key is the key pair that authenticates calls to the gateway's API, and with whose secret checkout callbacks are
// signed. Printing or logging a Key shows its public id alone.
type Key struct {
	ID     string // rzp_test_... or rzp_live_...; public, the browser's checkout needs it
	Secret string `json:"-"`
	Mode   payment.Mode
}

// String returns the public id.
func (k Key) String() string { return k.ID }

// GoString returns the public id.
func (k Key) GoString() string { return k.ID }

// LogValue returns the public id.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.ID) }

// ParseKey reads the document that holds an API key: {"key_id": "rzp_test_...", "key_secret": "..."}. Errors never show
// a value.
func ParseKey(document []byte) (Key, error) {
	values, err := stringObject(document)
	if err != nil {
		return Key{}, fmt.Errorf("razorpay: API key: %w", err)
	}
	key := Key{ID: values["key_id"], Secret: values["key_secret"]}
	switch {
	case len(values) != 2 || key.ID == "" || key.Secret == "":
		return Key{}, errors.New("razorpay: API key: want key_id and key_secret and nothing else, neither empty")
	case strings.HasPrefix(key.ID, "rzp_test_"):
		key.Mode = payment.Test
	case strings.HasPrefix(key.ID, "rzp_live_"):
		key.Mode = payment.Live
	default:
		return Key{}, errors.New("razorpay: API key: key_id starts with neither rzp_test_ nor rzp_live_")
	}
	return key, nil
}

// shownName is a name of a document that an error may repeat: one that belongs there. In a document that is the wrong way round the
// names are the secrets.
func shownName(name string) string {
	if _, isLabel := ModeOf(name); isLabel || name == "key_id" || name == "key_secret" {
		return name
	}
	return "(a name that is not shown)"
}

// stringObject decodes a JSON object whose values are all strings. Unlike json.Unmarshal it refuses a name that comes
// twice, and its errors show known names and no values.
func stringObject(document []byte) (map[string]string, error) {
	errForm := errors.New("not a JSON object of strings")
	dec := json.NewDecoder(bytes.NewReader(document))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errForm
	}
	values := map[string]string{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, errForm
		}
		if _, twice := values[name]; twice {
			return nil, fmt.Errorf("%s is there twice", shownName(name))
		}
		token, err = dec.Token()
		if err != nil {
			return nil, errForm
		}
		if values[name], ok = token.(string); !ok {
			return nil, fmt.Errorf("%s is not a string", shownName(name))
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, errForm
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errForm
	}
	return values, nil
}
