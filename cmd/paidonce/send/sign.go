package send

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
	"paidonce/shared/secret"
)

// webhookPath is where the gateway delivers.
const webhookPath = "/webhooks/" + stack.GatewayName

// signing is what an event needs that a stack is to take for the gateway's.
type signing struct {
	secrets    []razorpay.Secret
	secretName string
	account    string // the gateway account whose facts count; empty: any
	secret     string // to sign with
}

// openSigning reads the stack's webhook secrets, of the local stack as of one in AWS.
func openSigning(ctx context.Context, d stack.Deployed) (signing, error) {
	described, err := stack.Describe(ctx, cloudformation.NewFromConfig(d.Config), d.Name)
	if err != nil {
		return signing{}, err
	}
	parameters := stack.PartsOf(described).Parameters
	s := signing{secretName: parameters[stack.WebhookSecretParameter], account: parameters["RazorpayAccountId"]}
	if s.secretName == "" {
		return signing{}, fmt.Errorf("stack %s has no parameter %s: it is of another release, use the paidonce of that one", d.Name, stack.WebhookSecretParameter)
	}
	opened, err := secret.Open(ctx, secretsmanager.NewFromConfig(d.Config), s.secretName, func(document []byte) ([]razorpay.Secret, error) {
		secrets, err := razorpay.ParseSecrets(document)
		if err != nil {
			err = &stack.FaultySecret{Parameter: stack.WebhookSecretParameter, Name: s.secretName, Why: "is not as it should be: " + err.Error()}
		}
		return secrets, err
	}, time.Now)
	switch code := stack.CodeOf(err); {
	case code == "ResourceNotFoundException":
		return s, &stack.FaultySecret{Parameter: stack.WebhookSecretParameter, Name: s.secretName, Why: "does not exist, or has no value"}
	case err != nil:
		return s, err
	}
	s.secrets = opened.Value(ctx)
	return s, nil
}

// maySign is what the command needs to be allowed.
const maySign = "cloudformation:DescribeStacks, and secretsmanager:GetSecretValue on the webhook secret (and kms:Decrypt, if it has a key of its own)"

// openSigning finds the secret to sign with. A forger needs none of the stack's.
func (o options) openSigning(ctx context.Context, t target) (signing, error) {
	if o.forge && o.order == "" {
		return signing{secret: rand.Text()}, nil
	}
	s, err := t.signing(ctx)
	if faulty := new(stack.FaultySecret); errors.As(err, &faulty) {
		return s, fmt.Errorf("%w: %s", faulty, faulty.Cure())
	}
	if err != nil {
		return s, t.CureFor(err, maySign)
	}
	if o.forge {
		s.secret = rand.Text()
		return s, nil
	}
	var labels []string
	for _, one := range s.secrets {
		if one.Label == o.label {
			s.secret = one.Value
		}
		labels = append(labels, one.Label)
	}
	if s.secret == "" {
		return s, fmt.Errorf("the secret %s has no %s, only %s: name one of them with --label", s.secretName, o.label, strings.Join(labels, ", "))
	}
	return s, nil
}

// fitEventID is what an event id must look like for the webhook function to use it.
var fitEventID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// key is the name under which the webhook function keeps the event.
func (e webhookEvent) key() payment.EventKey {
	id := e.id
	if !fitEventID.MatchString(id) {
		sum := sha256.Sum256(e.body)
		id = "sha256:" + hex.EncodeToString(sum[:])
	}
	return payment.EventKey{Gateway: stack.GatewayName, ID: id}
}

// headers are what the gateway sends beside the body, with names in lower case.
func (e webhookEvent) headers() map[string]string {
	headers := map[string]string{"content-type": "application/json", strings.ToLower(razorpay.HeaderSignature): e.signature}
	if e.id != "" {
		headers[strings.ToLower(razorpay.HeaderEventID)] = e.id
	}
	return headers
}

// invocation is an event of the HTTP API in payload format 2.0, as far as a function may look at it (AWS, "Working with AWS Lambda
// proxy integrations for HTTP APIs").
type invocation struct {
	Version        string            `json:"version"`
	RouteKey       string            `json:"routeKey"`
	RawPath        string            `json:"rawPath"`
	RawQueryString string            `json:"rawQueryString"`
	Headers        map[string]string `json:"headers"`
	RequestContext struct {
		AccountID  string `json:"accountId"`
		APIID      string `json:"apiId"`
		DomainName string `json:"domainName"`
		HTTP       struct {
			Method    string `json:"method"`
			Path      string `json:"path"`
			Protocol  string `json:"protocol"`
			SourceIP  string `json:"sourceIp"`
			UserAgent string `json:"userAgent"`
		} `json:"http"`
		RequestID string `json:"requestId"`
		RouteKey  string `json:"routeKey"`
		Stage     string `json:"stage"`
		Time      string `json:"time"`
		TimeEpoch int64  `json:"timeEpoch"` // milliseconds
	} `json:"requestContext"`
	PathParameters  map[string]string `json:"pathParameters"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// printInvocation prints the event as the API of that URL would hand it to the webhook function.
func printInvocation(w io.Writer, apiURL string, e webhookEvent, now time.Time) error {
	host := apiURL
	if u, err := url.Parse(apiURL); err == nil {
		host = u.Host
	}
	in := invocation{
		Version: "2.0", RouteKey: "POST /webhooks/{gateway}", RawPath: webhookPath, Headers: e.headers(),
		PathParameters: map[string]string{"gateway": stack.GatewayName}, Body: string(e.body),
	}
	in.Headers["host"], in.Headers["content-length"] = host, fmt.Sprint(len(e.body))
	c := &in.RequestContext
	c.AccountID, c.APIID, c.DomainName, c.RouteKey, c.Stage = "123456789012", "sample", host, in.RouteKey, "$default"
	c.HTTP.Method, c.HTTP.Path, c.HTTP.Protocol, c.HTTP.SourceIP, c.HTTP.UserAgent = "POST", webhookPath, "HTTP/1.1", "127.0.0.1", "paidonce"
	c.RequestID, c.Time, c.TimeEpoch = rand.Text()[:15]+"=", now.UTC().Format("02/Jan/2006:15:04:05 -0700"), now.UnixMilli()
	if !utf8.Valid(e.body) {
		in.Body, in.IsBase64Encoded = base64.StdEncoding.EncodeToString(e.body), true
	}
	return terminal.WriteJSON(w, in)
}

// kindOfBody is the body's own word for what it tells, or "-".
func kindOfBody(body []byte) string {
	var named struct {
		Event string `json:"event"`
	}
	if json.Unmarshal(body, &named) != nil || named.Event == "" {
		return "-"
	}
	return terminal.Clip(named.Event, 40)
}
