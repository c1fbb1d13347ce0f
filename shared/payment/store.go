package payment

import "time"

// Commit is one change of an order, written as a whole or not at all.
type Commit struct {
	// Order is the order as it should be. It is written only where the stored version is still Order.Version, and
	// with the next version; version 0 means that there must be no such order yet.
	Order Order
	// Effects are rows that must not be there yet. One that is there with the same content counts as written.
	Effects []Effect
	// Events settles the deliveries that caused the change, where none of them is APPLIED yet.
	Events []Settlement
	// Refund, if set, is the refund request that the change is about, as it should be. It is written only where the stored
	// one is still at its Version (0: there must be none yet), and with the next.
	Refund *RefundRequest
	// Change, if set, says what caused the change where no event did. It is kept in the order's history.
	Change *Change
}

// Change is an entry in an order's history for what no event caused.
type Change struct {
	Source Source
	What   string // in words
	At     time.Time
}

// Callback is the browser's word, with the gateway's signature, that a payment was made. It is recorded once per payment,
// before the payment is read from the gateway, so that a replay costs no second reading.
type Callback struct {
	PaymentID string
	At        time.Time
}
