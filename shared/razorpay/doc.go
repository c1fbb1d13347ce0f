// Package razorpay knows the payment gateway Razorpay: how it signs what it sends, what its webhook bodies say, and how
// its REST API is called. It knows nothing of where any of this is stored.
//
//   - [Verify] checks a webhook's signature over the raw body, [VerifyCheckout] that of a browser's callback.
//   - [Decode] turns a webhook's body into facts, [Reduce] a large body into a small one that says the same.
//   - [Client] creates orders, captures and refunds payments, and reads orders, payments and refunds back.
//
// The gateway's samples and its real deliveries disagree with its own documentation in many small ways (notes that are
// an array, an order id without its prefix, captured as the string "1"). Reading is lenient about all of what was
// seen, except money: an amount is an exact integer of minor units with a currency, or the body is refused.
package razorpay

// The headers of a webhook delivery. HTTP headers are matched without case.
const (
	HeaderSignature = "X-Razorpay-Signature" // hex HMAC-SHA256 of the raw body
	HeaderEventID   = "X-Razorpay-Event-Id"  // the same for every delivery of one event; not covered by the signature
)
