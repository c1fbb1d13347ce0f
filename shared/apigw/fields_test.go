package apigw_test

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"paidonce/shared/apigw"
)

const formType = "application/x-www-form-urlencoded"

func TestIsForm(t *testing.T) {
	for contentType, want := range map[string]bool{
		formType:                              true,
		"APPLICATION/X-WWW-Form-URLEncoded":   true,
		formType + "; charset=UTF-8":          true,
		" " + formType + " ;charset":          true,
		"application/json":                    false,
		"":                                    false,
		"text/plain; " + formType:             false,
		formType + "x":                        false,
		"multipart/form-data; boundary=----x": false,
	} {
		for _, name := range []string{"content-type", "Content-Type", "CONTENT-TYPE"} {
			r := events.APIGatewayV2HTTPRequest{Headers: map[string]string{name: contentType}}
			if got := apigw.IsForm(r); got != want {
				t.Errorf("%s: %q is a form: %t, want %t", name, contentType, got, want)
			}
		}
	}
}

func TestFields(t *testing.T) {
	const limit = 100
	for _, c := range []struct {
		name, contentType, body string
		want                    url.Values
		wantErr                 string
	}{
		{"a form", formType, "a=1&b=x%20y+z%26&error%5Bcode%5D=E", url.Values{"a": {"1"}, "b": {"x y z&"}, "error[code]": {"E"}}, ""},
		{"an empty form", formType, "", url.Values{}, ""},
		{"a form's field twice", formType, "a=1&a=2", url.Values{"a": {"1", "2"}}, ""},
		{"a form's names are what they are", formType, "A=1&a=2", url.Values{"A": {"1"}, "a": {"2"}}, ""},
		{"a form with a bad escape", formType, "a=%zz", nil, "body must be the fields of a form"},
		{"a form with semicolons", formType, "a=1;b=2", nil, "body must be the fields of a form"},
		{"JSON posted as a form is one odd field", formType, `{"a":"1"}`, url.Values{`{"a":"1"}`: {""}}, ""},
		{"an object", "application/json", ` {"a":"1","b":"x \u20b9"} `, url.Values{"a": {"1"}, "b": {"x ₹"}}, ""},
		{"an object of whatever type", "text/plain", `{"a":"1"}`, url.Values{"a": {"1"}}, ""},
		{"an empty object", "", `{}`, url.Values{}, ""},
		{"an object's field twice", "", `{"a":"1","a":"2"}`, url.Values{"a": {"1", "2"}}, ""},
		{"an object's names are what they are", "", `{"A":"1","a":"2"}`, url.Values{"A": {"1"}, "a": {"2"}}, ""},
		{"values of other types", "", `{"n":9007199254740993,"t":true,"o":{"a":[1]},"x":null}`,
			url.Values{"n": {"9007199254740993"}, "t": {"true"}, "o": {`{"a":[1]}`}}, ""},
		{"nothing", "application/json", "", nil, "body must be a JSON object"},
		{"a form posted as JSON", "application/json", "a=1", nil, "body must be a JSON object"},
		{"a list", "", `[1]`, nil, "body must be a JSON object"},
		{"a string", "", `"a"`, nil, "body must be a JSON object"},
		{"an object cut short", "", `{"a":"1"`, nil, "body must be a JSON object"},
		{"a name that is none", "", `{1:"1"}`, nil, "body must be a JSON object"},
		{"a value that is none", "", `{"a":+}`, nil, "body must be a JSON object"},
		{"two objects", "", `{"a":"1"} {}`, nil, "body has something after the JSON object"},
		{"as long as may be", "", `{"a":"` + strings.Repeat("x", limit-8) + `"}`, url.Values{"a": {strings.Repeat("x", limit-8)}}, ""},
		{"too long", "", `{"a":"` + strings.Repeat("x", limit-7) + `"}`, nil, "body too large"},
		{"a form that is too long", formType, strings.Repeat("x", limit+1), nil, "body too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plain := events.APIGatewayV2HTTPRequest{Headers: map[string]string{"content-type": c.contentType}, Body: c.body}
			encoded := plain
			encoded.Body, encoded.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(c.body)), true
			for _, r := range []events.APIGatewayV2HTTPRequest{plain, encoded} {
				got, err := apigw.Fields(r, limit)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("base64 %t (-want +got)\n%s", r.IsBase64Encoded, diff)
				}
				said := ""
				if err != nil {
					said = err.Error()
				}
				if said != c.wantErr {
					t.Errorf("base64 %t: error %q, want %q", r.IsBase64Encoded, said, c.wantErr)
				}
			}
		})
	}
	if _, err := apigw.Fields(events.APIGatewayV2HTTPRequest{Body: "{}", IsBase64Encoded: true}, limit); !errors.As(err, new(*apigw.FieldError)) {
		t.Errorf("base64 that is none: %v, want an error of the field", err)
	}
}

func TestSeeOther(t *testing.T) {
	want := events.APIGatewayV2HTTPResponse{
		StatusCode: 303, Headers: map[string]string{"location": "https://shop.example/?a=1", "cache-control": "no-store"},
	}
	if diff := cmp.Diff(want, apigw.SeeOther("https://shop.example/?a=1")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
