package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"paidonce/cmd/paidonce/stack"
	"paidonce/shared/apigw"
)

// unsignedAPI calls the application's API as a stranger would.
type unsignedAPI struct {
	url    string // without a slash at its end; empty: the stack does not say
	client *http.Client
}

// maxRefusal is the most bytes of an answer that are read.
const maxRefusal = 64 << 10

// call returns the answer's status and what our own code said, if it was our own.
func (a unsignedAPI) call(ctx context.Context, method, path string) (status int, said string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader("{}"))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if err != nil {
		return 0, "", err
	}
	var body struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(text, &body) // API Gateway's own answers have another form, or none
	return response.StatusCode, body.Error, nil
}

// webhookURL sends a webhook that nobody signed. That it is refused proves name, route, function and its secret.
func (d *doctor) webhookURL(ctx context.Context) finding {
	if d.api.url == "" {
		return trouble(missingPart("output ApiUrl"))
	}
	url := d.api.url + "/webhooks/" + stack.GatewayName
	began := d.now()
	status, said, err := d.api.call(ctx, http.MethodPost, "/webhooks/"+stack.GatewayName)
	took := d.now().Sub(began).Round(time.Millisecond)
	if err != nil {
		why := "did not answer"
		if errors.Is(err, context.DeadlineExceeded) {
			why = "did not answer in time"
		}
		return finding{broken, url + " " + why, "check the network from here; does another machine reach it? If not: " + revertDrift}
	}
	seen := fmt.Sprintf("%s answers %d to a webhook that nobody signed", url, status)
	switch {
	case status == http.StatusUnauthorized && said == apigw.ErrBadSignature.Error():
		return isFine("%s, after %s", seen, took)
	case status == http.StatusTooManyRequests:
		return finding{warning, seen + ": the API throttles", "raise the parameters ThrottleRate and ThrottleBurst, if those calls are the gateway's"}
	case status >= http.StatusInternalServerError:
		return finding{broken, seen + ": the function does not run", "docs/runbook.md#webhook-errors, docs/runbook.md#webhook-throttled"}
	case status == http.StatusNotFound:
		return finding{broken, seen + ": the route is missing", revertDrift}
	}
	return finding{broken, seen + ": that is not our webhook function", revertDrift}
}

// shopRoutes calls routes that only signed calls may reach. Our own code would change nothing for these: it knows no such order,
// and refuses an empty one.
func (d *doctor) shopRoutes(ctx context.Context) finding {
	if d.api.url == "" {
		return trouble(missingPart("output ApiUrl"))
	}
	const order = "/orders/no-such-order"
	for _, route := range []struct{ method, path string }{
		{http.MethodGet, order}, {http.MethodPost, "/orders"}, {http.MethodPost, order + "/refunds"},
	} {
		status, said, err := d.api.call(ctx, route.method, route.path)
		call := route.method + " " + route.path
		switch {
		case err != nil:
			return notChecked("no answer to %s", call)
		case status == http.StatusForbidden && said == "": // API Gateway's own
		case d.local:
			return onlyOnAWS("it lets unsigned calls pass, unless told otherwise")
		case said != "":
			return finding{broken, fmt.Sprintf("an unsigned %s reaches our code, which answers %d: anybody can make orders and refunds", call, status),
				"the route has lost its AWS_IAM authorizer: " + revertDrift}
		default:
			return finding{broken, fmt.Sprintf("an unsigned %s is answered %d instead of 403", call, status), revertDrift}
		}
	}
	return isFine("unsigned calls of them are answered 403")
}
