package apigw

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// IsForm reports whether the body is what a browser makes of a form without files.
func IsForm(r events.APIGatewayV2HTTPRequest) bool {
	mediaType, _, _ := strings.Cut(Header(r, "content-type"), ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), "application/x-www-form-urlencoded")
}

// Fields reads a body of at most limit bytes that holds named values: a form ([IsForm]), or else a JSON object. Of the
// object, a value that is no string counts as its JSON text, and null as not there. A name that comes several times has
// several values: what that means is for the caller to decide. Errors are [*FieldError] and [ErrTooLarge].
func Fields(r events.APIGatewayV2HTTPRequest, limit int) (url.Values, error) {
	body, err := Body(r)
	switch {
	case err != nil:
		return nil, err
	case len(body) > limit:
		return nil, ErrTooLarge
	case !IsForm(r):
		return objectFields(body)
	}
	fields, err := url.ParseQuery(string(body))
	if err != nil { // the error would repeat what cannot be read
		return nil, &FieldError{Field: "body", Problem: "must be the fields of a form"}
	}
	return fields, nil
}

// objectFields reads the object by hand, because encoding/json lets the last of several fields of a name win, and takes
// names in any case for the same.
func objectFields(body []byte) (url.Values, error) {
	malformed := &FieldError{Field: "body", Problem: "must be a JSON object"}
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, malformed
	}
	fields := url.Values{}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, malformed
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, malformed
		}
		if string(value) == "null" {
			continue
		}
		text := ""
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		fields.Add(name, text)
	}
	if _, err := d.Token(); err != nil {
		return nil, malformed
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, &FieldError{Field: "body", Problem: "has something after the JSON object"}
	}
	return fields, nil
}

// SeeOther sends the browser on to location, with a GET, whatever it came with.
func SeeOther(location string) events.APIGatewayV2HTTPResponse {
	return events.APIGatewayV2HTTPResponse{
		StatusCode: http.StatusSeeOther,
		Headers:    map[string]string{"location": location, "cache-control": "no-store"},
	}
}
