package razorpay

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"paidonce/shared/payment"
)

// headerRefundKey carries a refund's idempotency key (Razorpay, "Create a normal refund (idempotent request)").
const headerRefundKey = "X-Refund-Idempotency"

// refundKey is what passes for a receipt (up to 40 characters) as well as for an idempotency key (10 at least).
var refundKey = regexp.MustCompile(`^[A-Za-z0-9_-]{10,40}$`)

// refundOrder is the body of a refund call. The amount is always there: without it the gateway refunds all.
type refundOrder struct {
	Amount  int64             `json:"amount"`
	Speed   string            `json:"speed"`
	Receipt string            `json:"receipt"`
	Notes   map[string]string `json:"notes"`
}

// DraftRefund writes the call that refunds the amount, in the payment's currency, at normal speed (Razorpay, "Create a
// normal refund"). It calls nobody. The note, "<stack>/<order>/<request>", tells a refund of ours where the gateway does not show
// its receipt. The receipt is the idempotency key too: 10 to 40 letters, digits, hyphens and
// underscores. The same arguments always make the same bytes. It fails for an id or receipt that cannot be, and for an
// amount that is not positive or above [payment.MaxAmount].
func (*Client) DraftRefund(paymentID string, amount payment.Money, receipt, note string) (payment.RefundCall, error) {
	op := "draft refund of payment " + shown(paymentID)
	if !word(paymentID) {
		return payment.RefundCall{}, opError(op, errNoID)
	}
	if err := checkAmount(amount); err != nil {
		return payment.RefundCall{}, opError(op, err)
	}
	if !refundKey.MatchString(receipt) {
		return payment.RefundCall{}, opError(op, errNoKey)
	}
	body, err := json.Marshal(refundOrder{amount.Amount, "normal", receipt, map[string]string{noteKey: note}})
	if err != nil {
		return payment.RefundCall{}, opError(op, err)
	}
	return payment.RefundCall{
		Method: http.MethodPost, Path: "/v1/payments/" + paymentID + "/refund", Body: body, Key: receipt,
	}, nil
}

var (
	errNoKey  = errors.New("the receipt is not one that serves as an idempotency key")
	errNoCall = errors.New("not a call that refunds a payment")
)

// checkAmount refuses an amount that cannot be refunded or captured.
func checkAmount(m payment.Money) error {
	if _, err := money(&m.Amount, m.Currency); err != nil {
		return err
	}
	if m.Amount == 0 {
		return errors.New("no amount")
	}
	return nil
}

// SendRefund sends a call that DraftRefund wrote, byte for byte, and returns the refund: new, or the one that an earlier
// sending of the same call made. Errors:
//
//   - [payment.Refusal]: the gateway refused for good, and why.
//   - [payment.ErrKeyUsed]: it knows the key or the receipt from another call (400 or 409).
//   - [payment.ErrOutcomeUnknown]: all else. That includes 409 while an earlier sending is under way, and an answer that
//     shows another payment, amount or receipt than the call has. The currency is not part of a call.
func (c *Client) SendRefund(ctx context.Context, call payment.RefundCall) (payment.RefundFact, error) {
	paymentID, order, ok := parseCall(call)
	if !ok {
		return payment.RefundFact{}, refundError("send refund", errNoCall)
	}
	op := "refund payment " + paymentID
	var answer refundEntity
	err := c.post(ctx, request{path: "payments/" + paymentID + "/refund", key: call.Key, body: call.Body}, &answer)
	if err != nil {
		return payment.RefundFact{}, refundError(op, err)
	}
	fact, err := decoded(func() (payment.RefundFact, error) { return answer.fact("", payment.PaymentFact{}) })
	switch {
	case err != nil:
	case fact.PaymentID != paymentID:
		err = errOther
	case fact.Amount.Amount != order.Amount:
		err = errors.New("the answer shows another amount than was asked for")
	case fact.Receipt != order.Receipt:
		err = errors.New("the answer shows another receipt than was sent")
	}
	if err != nil {
		return payment.RefundFact{}, refundError(op, err)
	}
	return fact, nil
}

// parseCall reads what a call asks for. It reports false for one that DraftRefund did not write.
func parseCall(call payment.RefundCall) (paymentID string, order refundOrder, ok bool) {
	rest, below := strings.CutPrefix(call.Path, "/v1/payments/")
	paymentID, whole := strings.CutSuffix(rest, "/refund")
	ok = call.Method == http.MethodPost && below && whole && word(paymentID) &&
		json.Unmarshal(call.Body, &order) == nil && order.Amount > 0 &&
		refundKey.MatchString(call.Key) && order.Receipt == call.Key
	return paymentID, order, ok
}

// Refunds reads all refunds of a payment, whoever made them (Razorpay, "Fetch multiple refunds for a payment"). A payment
// without any has none; that is no error. A refund does not say of which gateway order its payment is.
// [payment.ErrNotFound] if the gateway shows us no payment of that id.
func (c *Client) Refunds(ctx context.Context, paymentID string) ([]payment.RefundFact, error) {
	facts, err := c.readRefunds(ctx, paymentID)
	return facts, readError("read refunds of payment "+shown(paymentID), err)
}

func (c *Client) readRefunds(ctx context.Context, paymentID string) ([]payment.RefundFact, error) {
	if !word(paymentID) {
		return nil, errNoID
	}
	entities, err := pages[refundEntity](ctx, c, "payments/"+paymentID+"/refunds", url.Values{})
	if err != nil {
		return nil, err
	}
	return collect(entities, func(r *refundEntity) (payment.RefundFact, error) {
		fact, err := r.fact("", payment.PaymentFact{ID: paymentID})
		if err == nil && fact.PaymentID != paymentID {
			err = errOther
		}
		return fact, err
	}, refundFactID)
}

// RefundsBetween reads all refunds created from one time to another, both included, to the second (Razorpay, "Fetch all
// refunds"). Like that of [Client.Payments], the window should lie in the past.
func (c *Client) RefundsBetween(ctx context.Context, from, to time.Time) ([]payment.RefundFact, error) {
	facts, err := c.readRefundsBetween(ctx, from, to)
	return facts, listError("read refunds", err)
}

func (c *Client) readRefundsBetween(ctx context.Context, from, to time.Time) ([]payment.RefundFact, error) {
	entities, err := pages[json.RawMessage](ctx, c, "refunds", window(from, to))
	if err != nil {
		return nil, err
	}
	return readable(entities, func(r *refundEntity) (payment.RefundFact, error) {
		return r.fact("", payment.PaymentFact{})
	}, refundFactID)
}

func refundFactID(f payment.RefundFact) string { return f.ID }
