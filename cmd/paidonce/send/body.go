package send

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"paidonce/cmd/paidonce/terminal"
)

// webhookEvent is an event to be sent.
type webhookEvent struct {
	file      string // where its body is from
	body      []byte
	kind      string // as payment.captured; "-" if the body does not say
	id        string // of the event; empty: none is sent
	signature string
}

// maxFile is more than the webhook takes, so that what it does with too much can be seen.
const maxFile = 4 << 20

func readEvents(files []string, stdin io.Reader) ([]webhookEvent, error) {
	var events []webhookEvent
	for _, file := range files {
		text, err := readFile(file, stdin)
		if err != nil {
			return nil, err
		}
		if file == "-" {
			file = "standard input"
		}
		body, err := bodyOf(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", terminal.Printable(file), err)
		}
		events = append(events, webhookEvent{file: file, body: body})
	}
	return events, nil
}

func readFile(file string, stdin io.Reader) ([]byte, error) {
	source := stdin
	if file != "-" { // else the standard input
		opened, err := os.Open(file)
		if err != nil {
			return nil, err // names the file
		}
		defer opened.Close()
		source = opened
	}
	text, err := io.ReadAll(io.LimitReader(source, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s is over %d MiB: that is no webhook", terminal.Printable(file), maxFile>>20)
	case len(text) == 0:
		return nil, fmt.Errorf("%s is empty: it should hold a webhook's body", terminal.Printable(file))
	}
	return text, nil
}

// bodyOf is the text itself, or the body in it if it is an event of the HTTP API.
func bodyOf(text []byte) ([]byte, error) {
	var event struct {
		RequestContext  json.RawMessage `json:"requestContext"`
		Body            *string         `json:"body"`
		IsBase64Encoded bool            `json:"isBase64Encoded"`
	}
	if json.Unmarshal(text, &event) != nil || event.RequestContext == nil || event.Body == nil {
		return text, nil
	}
	if !event.IsBase64Encoded {
		return []byte(*event.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(*event.Body)
	if err != nil {
		return nil, errors.New("its body is marked as base64 and is not")
	}
	return body, nil
}

// assignment puts a value at a place in a body.
type assignment struct {
	path  string // names with dots between, as payload.payment.entity.amount
	value []byte // JSON
}

func parseAssignments(sets []string) (all []assignment, err error) {
	for _, set := range sets {
		path, value, found := strings.Cut(set, "=")
		if !found || path == "" {
			return nil, fmt.Errorf("--set %q: write it as payload.payment.entity.amount=100", set)
		}
		all = append(all, assignment{path, asValue(value)})
	}
	return all, nil
}

// asValue is the text if it is JSON, else a JSON string of it.
func asValue(text string) []byte {
	if json.Valid([]byte(text)) {
		return []byte(strings.TrimSpace(text))
	}
	return quote(text)
}

// quote is a JSON string.
func quote(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // a string can always be encoded
	}
	return bytes.TrimSpace(b.Bytes())
}

// assign puts values into a JSON body and leaves every other byte as it is. What is not there is added, if the object is that it
// belongs to.
func assign(body []byte, all []assignment) ([]byte, error) {
	for _, a := range all {
		names := strings.Split(a.path, ".")
		at, err := locate(body, names)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the body is not a JSON object: nothing can be put into it (%s)", terminal.Printable(a.path))
		case at.depth == len(names):
			body = splice(body, at.start, at.end, a.value)
		case at.depth == len(names)-1 && at.isObject:
			added := append(append(quote(names[at.depth]), ':'), a.value...)
			if !at.isEmpty {
				added = append([]byte{','}, added...)
			}
			body = splice(body, at.end-1, at.end-1, added)
		default:
			return nil, fmt.Errorf("the body has no %s, so %s cannot be put in", terminal.Printable(strings.Join(names[:min(at.depth+1, len(names)-1)], ".")), terminal.Printable(a.path))
		}
	}
	return body, nil
}

func splice(body []byte, start, end int, with []byte) []byte {
	return bytes.Join([][]byte{body[:start], with, body[end:]}, nil)
}

// place is where a value is, as far down a path as the body goes.
type place struct {
	depth             int // how many names of the path led here
	start, end        int // bytes
	isObject, isEmpty bool
}

// locate finds the value at a path. Of a name that comes twice the last counts, as for the decoder.
func locate(body []byte, names []string) (place, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	var whole json.RawMessage
	if err := d.Decode(&whole); err != nil {
		return place{}, err
	}
	start := int(d.InputOffset()) - len(whole)
	if whole[0] != '{' {
		return place{}, errors.New("not an object")
	}
	return descend(whole, start, 0, names)
}

// descend goes on in a value that begins at a byte and was reached by so many names.
func descend(value []byte, start, depth int, names []string) (place, error) {
	here := place{depth: depth, start: start, end: start + len(value), isObject: value[0] == '{', isEmpty: true}
	if depth == len(names) || !here.isObject {
		return here, nil
	}
	d := json.NewDecoder(bytes.NewReader(value))
	if _, err := d.Token(); err != nil {
		return here, err
	}
	found := here
	for d.More() {
		here.isEmpty = false
		key, err := d.Token()
		if err != nil {
			return here, err
		}
		var inner json.RawMessage
		if err := d.Decode(&inner); err != nil {
			return here, err
		}
		if key == names[depth] {
			if found, err = descend(inner, start+int(d.InputOffset())-len(inner), depth+1, names); err != nil {
				return here, err
			}
		}
	}
	if found.depth == depth {
		return here, nil
	}
	return found, nil
}

// valueAt is the JSON at a path; empty where nothing is.
func valueAt(body []byte, names []string) string {
	at, err := locate(body, names)
	if err != nil || at.depth < len(names) {
		return ""
	}
	return string(body[at.start:at.end])
}

// fill is what makes a sample one of an order.
type fill struct {
	account, gatewayOrder, payment string
	amount                         int64 // minor units
	currency                       string
}

// into puts it where a body has such a field: only there, and nothing else. What says that all of the amount was paid or given back
// says so still.
func (f fill) into(body []byte) ([]byte, error) {
	type field struct {
		name  string
		value []byte
	}
	amount, currency := field{"amount", strconv.AppendInt(nil, f.amount, 10)}, field{"currency", quote(f.currency)}
	filled := false
	for _, entity := range []struct {
		name   string
		fields []field
	}{
		{"payment", []field{{"id", quote(f.payment)}, {"order_id", quote(f.gatewayOrder)}, amount, currency}},
		{"order", []field{{"id", quote(f.gatewayOrder)}, amount, currency}},
		{"refund", []field{{"payment_id", quote(f.payment)}, amount, currency}},
		{"dispute", []field{{"payment_id", quote(f.payment)}, amount, currency}},
	} {
		names := []string{"payload", entity.name, "entity"}
		at, err := locate(body, names)
		if err != nil {
			return nil, errors.New("it is not a JSON object: --order has nothing to put in")
		}
		if at.depth < len(names) || !at.isObject {
			continue
		}
		filled = true
		for _, total := range []string{"amount_refunded", "amount_paid"} { // of a whole amount they are whole again
			if was := valueAt(body, append(names, "amount")); was != "" && was == valueAt(body, append(names, total)) {
				entity.fields = append(entity.fields, field{total, amount.value})
			}
		}
		for _, fd := range entity.fields {
			if body, err = assign(body, []assignment{{strings.Join(append(names, fd.name), "."), fd.value}}); err != nil {
				return nil, err
			}
		}
	}
	if !filled {
		return nil, errors.New("it tells of no payment, order, refund or dispute: leave out --order")
	}
	if at, err := locate(body, []string{"account_id"}); f.account != "" && err == nil && at.depth == 1 {
		return assign(body, []assignment{{"account_id", quote(f.account)}})
	}
	return body, nil
}
