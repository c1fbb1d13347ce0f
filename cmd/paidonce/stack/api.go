package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// APIPatience bounds one call. API Gateway gives up on a function after 30 seconds (AWS, "Quotas for HTTP APIs").
const APIPatience = 35 * time.Second

// Client calls the application's internal routes, signed with AWS credentials, as the shop's back end does. Where the
// API says no the error is a [*Refusal].
type Client struct {
	URL    string // without a slash at its end
	Config aws.Config
}

var fitOrderID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$`)

// IsOrderID reports whether an id may go into a path. It may be longer than POST /orders takes: adopted orders' are.
func IsOrderID(id string) bool { return fitOrderID.MatchString(id) }

// Refusal is an answer of the API that is not 2xx.
type Refusal struct {
	Status  int
	Message string // in our own answers; empty in those of API Gateway itself
	Field   string // of the request, which is at fault
	Reason  string // why the gateway refused
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("the API answered %d %s %s", r.Status, http.StatusText(r.Status), r.Message)
}

// Acknowledgement is the body that lets holds pass. A nil Subject means all holds of the reason that stand.
type Acknowledgement struct {
	By      string  `json:"by"`
	Why     string  `json:"why"`
	Subject *string `json:"subject,omitempty"`
}

// CreateOrder makes an order of so many paise and returns it.
func (c Client) CreateOrder(ctx context.Context, id string, amount int64) (apigw.Order, error) {
	body := map[string]any{"id": id, "amount": amount, "currency": "INR", "gateway": "razorpay"}
	return callAPI[apigw.Order](ctx, c, http.MethodPost, "/orders", body)
}

// OrderAsk is the body that makes an order.
type OrderAsk struct {
	ID       string `json:"id"`
	Amount   int64  `json:"amount"` // minor units
	Currency string `json:"currency"`
	Gateway  string `json:"gateway"`
}

// CreatedOrder is an order with what the browser's checkout needs to be opened.
type CreatedOrder struct {
	apigw.Order
	Checkout struct {
		KeyID          string `json:"key_id"` // public
		GatewayOrderID string `json:"gateway_order_id"`
		Amount         int64  `json:"amount"` // minor units
		Currency       string `json:"currency"`
	} `json:"checkout"`
}

// OpenOrder makes an order, or finds it made. made is whether this call made it.
func (c Client) OpenOrder(ctx context.Context, a OrderAsk) (o CreatedOrder, made bool, err error) {
	status, err := c.exchange(ctx, http.MethodPost, "/orders", a, &o)
	return o, status == http.StatusCreated, err
}

// Order reads an order.
func (c Client) Order(ctx context.Context, id string) (apigw.Order, error) {
	return callAPI[apigw.Order](ctx, c, http.MethodGet, "/orders/"+id, nil)
}

// Timeline reads an order and what happened to it.
func (c Client) Timeline(ctx context.Context, id string) (apigw.Timeline, error) {
	return callAPI[apigw.Timeline](ctx, c, http.MethodGet, "/orders/"+id+"/timeline", nil)
}

// CloseOrder releases an order's stock; reason is for whoever looks at it later. Conflict (409) if it was fulfilled already.
func (c Client) CloseOrder(ctx context.Context, id, reason string) (apigw.Order, error) {
	return callAPI[apigw.Order](ctx, c, http.MethodPost, "/orders/"+id+"/close", map[string]string{"reason": reason})
}

// Acknowledge lets the holds of a reason pass that stand now. [IsGone] if there is none.
func (c Client) Acknowledge(ctx context.Context, id string, hold payment.HoldReason, a Acknowledgement) (apigw.Order, error) {
	return callAPI[apigw.Order](ctx, c, http.MethodPost, "/orders/"+id+"/holds/"+string(hold)+"/acknowledge", a)
}

// RefundAsk is the body that asks for money back.
type RefundAsk struct {
	ID        string `json:"id"`
	Amount    int64  `json:"amount"`
	PaymentID string `json:"payment_id,omitempty"` // may be empty where only one payment can be meant
	Reason    string `json:"reason,omitempty"`
	Force     bool   `json:"force,omitempty"` // also of a payment that is disputed
}

// Refund asks for money of an order back. The status says what came of it: 201 if this call made the refund, 200 if it was made
// before under this id, and 202 if the gateway's word is not known yet.
func (c Client) Refund(ctx context.Context, orderID string, a RefundAsk) (r apigw.RefundRequest, status int, err error) {
	status, err = c.exchange(ctx, http.MethodPost, "/orders/"+orderID+"/refunds", a, &r)
	return r, status, err
}

// callAPI sends body as JSON, unless it is nil, and decodes the answer.
func callAPI[T any](ctx context.Context, c Client, method, path string, body any) (answer T, err error) {
	_, err = c.exchange(ctx, method, path, body, &answer)
	return answer, err
}

// exchange is callAPI for those to whom the status of a success matters.
func (c Client) exchange(ctx context.Context, method, path string, body, answer any) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, APIPatience)
	defer cancel()
	var sent []byte
	if body != nil {
		if sent, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(sent))
	if err != nil {
		return 0, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if err := c.sign(ctx, request, sent); err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode >= 300 {
		return response.StatusCode, newRefusal(response.StatusCode, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return response.StatusCode, fmt.Errorf("%s %s: the answer is not what this release knows: %w", method, path, err)
	}
	return response.StatusCode, nil
}

// newRefusal reads our own error body. Any other stays unread: API Gateway's may repeat what was signed.
func newRefusal(status int, text []byte) *Refusal {
	var body struct {
		Error string `json:"error"`
		Field string `json:"field"`
		// Reason is a [payment.RefusalReason].
		Reason string `json:"reason"`
	}
	if json.Unmarshal(text, &body) != nil {
		return &Refusal{Status: status}
	}
	return &Refusal{status, body.Error, body.Field, body.Reason}
}

func (c Client) sign(ctx context.Context, r *http.Request, body []byte) error {
	credentials, err := c.Config.Credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoCredentials, err)
	}
	digest := sha256.Sum256(body)
	return v4.NewSigner().SignHTTP(ctx, credentials, r, hex.EncodeToString(digest[:]), "execute-api", c.Config.Region, time.Now())
}
