package main

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// statusUnknown is what a customer comes back with when nothing may be said of the order.
const statusUnknown payment.Status = "unknown"

// state is what the shop's own script is answered.
type state struct {
	Order  string         `json:"order"`
	Status payment.Status `json:"status"`
	Amount int64          `json:"amount"` // expected, in minor units of the order's currency
}

// answer sends a form's customer back to the shop, whatever happened, and tells a script what happened. Without a place
// to send customers to, they are told as well.
func (h *handler) answer(r events.APIGatewayV2HTTPRequest, o outcome) events.APIGatewayV2HTTPResponse {
	shown := o.order.ID != ""
	if h.returnTo.set() && apigw.IsForm(r) {
		status := statusUnknown
		if shown {
			status = o.order.Status
		}
		return apigw.SeeOther(h.returnTo.with(o.orderID, status))
	}
	if !shown {
		return apigw.Error(o.err)
	}
	return apigw.JSON(http.StatusOK, state{o.order.ID, o.order.Status, o.order.Amount.Amount})
}

// returnURL is the page of the shop that customers come back to. The zero value is none.
type returnURL struct{ page url.URL }

// UnmarshalText reads an https URL, or an http one of this machine. What an error says goes to the log of a start that
// failed, and does not repeat the URL.
func (u *returnURL) UnmarshalText(text []byte) error {
	page, err := url.Parse(string(text))
	if err != nil || strings.ContainsFunc(string(text), notPrintable) {
		return errors.New("the return URL cannot be parsed")
	}
	query, err := url.ParseQuery(page.RawQuery)
	local := page.Hostname() == "localhost" || page.Hostname() == "127.0.0.1"
	switch {
	case page.Hostname() == "", page.User != nil:
		return errors.New("the return URL must be absolute, and without a user")
	case page.Scheme != "https" && !(page.Scheme == "http" && local):
		return errors.New("the return URL must be https")
	case strings.Contains(string(text), "#"):
		return errors.New("the return URL must not have a fragment")
	case err != nil, query.Has("order"), query.Has("status"):
		return errors.New("the return URL's query must be well formed, and leave order and status to us")
	}
	u.page = *page
	return nil
}

// notPrintable finds what has no place in a header's value.
func notPrintable(r rune) bool { return r <= ' ' || r > '~' }

func (u returnURL) set() bool { return u.page.Host != "" }

// with is the URL with the order and its status added to its query.
func (u returnURL) with(orderID string, status payment.Status) string {
	added := url.Values{"order": {orderID}, "status": {string(status)}}.Encode()
	u.page.RawQuery = strings.TrimPrefix(u.page.RawQuery+"&"+added, "&")
	return u.page.String()
}
