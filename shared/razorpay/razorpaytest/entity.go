package razorpaytest

import (
	"encoding/json"
	"time"
)

// orderEntity is the gateway's order as its API and its webhooks show it.
type orderEntity struct {
	ID         string  `json:"id"`
	Entity     string  `json:"entity"`
	Amount     int64   `json:"amount"`
	AmountPaid int64   `json:"amount_paid"`
	AmountDue  int64   `json:"amount_due"`
	Currency   string  `json:"currency"`
	Receipt    *string `json:"receipt"`
	OfferID    *string `json:"offer_id"`
	Status     string  `json:"status"`
	Attempts   int     `json:"attempts"`
	Notes      pairs   `json:"notes"`
	CreatedAt  int64   `json:"created_at"`

	payments     []*paymentEntity // oldest first
	manualExpiry time.Duration    // how long after its creation a payment may be captured
	refundSpeed  string           // of payments that are not
}

// paymentEntity is the gateway's payment as its API and its webhooks show it.
type paymentEntity struct {
	ID               string   `json:"id"`
	Entity           string   `json:"entity"`
	Amount           int64    `json:"amount"`
	Currency         string   `json:"currency"`
	Status           string   `json:"status"`
	OrderID          *string  `json:"order_id"`
	InvoiceID        *string  `json:"invoice_id"`
	International    bool     `json:"international"`
	Method           string   `json:"method"`
	AmountRefunded   int64    `json:"amount_refunded"`
	RefundStatus     *string  `json:"refund_status"`
	Captured         bool     `json:"captured"`
	Description      *string  `json:"description"`
	CardID           *string  `json:"card_id"`
	Bank             *string  `json:"bank"`
	Wallet           *string  `json:"wallet"`
	VPA              string   `json:"vpa"`
	Email            string   `json:"email"`
	Contact          string   `json:"contact"`
	Notes            pairs    `json:"notes"`
	Fee              *int64   `json:"fee"`
	Tax              *int64   `json:"tax"`
	ErrorCode        *string  `json:"error_code"`
	ErrorDescription *string  `json:"error_description"`
	ErrorSource      *string  `json:"error_source"`
	ErrorStep        *string  `json:"error_step"`
	ErrorReason      *string  `json:"error_reason"`
	AcquirerData     acquirer `json:"acquirer_data"`
	CreatedAt        int64    `json:"created_at"`

	refunds []*refundEntity // oldest first
	busy    bool            // a refund of it is in progress
}

// refundEntity is the gateway's refund as its API and its webhooks show it.
type refundEntity struct {
	ID             string         `json:"id"`
	Entity         string         `json:"entity"`
	Amount         int64          `json:"amount"`
	Currency       string         `json:"currency"`
	PaymentID      string         `json:"payment_id"`
	Notes          pairs          `json:"notes"`
	Receipt        *string        `json:"receipt"`
	AcquirerData   refundAcquirer `json:"acquirer_data"`
	CreatedAt      int64          `json:"created_at"`
	BatchID        *string        `json:"batch_id"`
	Status         string         `json:"status"`
	SpeedProcessed string         `json:"speed_processed"`
	SpeedRequested string         `json:"speed_requested"`
}

// refundAcquirer stays empty: the gateway calls a refund processed before the bank has given it a number.
type refundAcquirer struct {
	ARN *string `json:"arn"`
}

type acquirer struct {
	RRN *string `json:"rrn"`
}

// pairs are a merchant's notes. Without any the gateway writes an array.
type pairs map[string]string

// MarshalJSON implements [json.Marshaler].
func (p pairs) MarshalJSON() ([]byte, error) {
	if len(p) == 0 {
		return []byte("[]"), nil
	}
	return json.Marshal(map[string]string(p))
}

// UnmarshalJSON implements [json.Unmarshaler]. An empty array will do for none.
func (p *pairs) UnmarshalJSON(data []byte) error {
	*p = nil
	if string(data) == "[]" {
		return nil
	}
	return json.Unmarshal(data, (*map[string]string)(p))
}

// collection is the gateway's list of entities.
type collection[E any] struct {
	Entity string `json:"entity"`
	Count  int    `json:"count"`
	Items  []E    `json:"items"`
}

func newCollection[E any](items []E) collection[E] {
	if items == nil {
		items = []E{}
	}
	return collection[E]{"collection", len(items), items}
}

// event is a webhook's body.
type event struct {
	Entity    string           `json:"entity"`
	AccountID string           `json:"account_id"`
	Event     string           `json:"event"`
	Contains  []string         `json:"contains"`
	Payload   map[string]boxed `json:"payload"`
	CreatedAt int64            `json:"created_at"`
}

type boxed struct {
	Entity any `json:"entity"`
}
