package metrics

// The metrics of webhooks, written by the webhook function for each delivery.
var (
	// Received are deliveries that a secret verified, first ones and repeated ones: the sign of life of the webhook, and by secret
	// the evidence that an old one is used no more.
	Received = Metric{"Received", Count, "Secret"}
	// Duplicate are deliveries of an event that was there already, Resent those among them whose event went to the worker again.
	Duplicate = Metric{"Duplicate", Count, ""}
	Resent    = Metric{"Resent", Count, ""}
	// InvalidSignature are requests that no secret verified.
	InvalidSignature = Metric{"InvalidSignature", Count, ""}
)

// The metrics of events, written by the worker for each batch. Each message is one of Applied, NoEffect, Ignored, Parked and
// Failed.
var (
	// Applied are events that taught us something, NoEffect those that said nothing new.
	Applied  = Metric{"Applied", Count, ""}
	NoEffect = Metric{"NoEffect", Count, ""}
	// Ignored are events that no order of ours needs, Parked those whose order is unknown or that cannot be decoded.
	Ignored = Metric{"Ignored", Count, ""}
	Parked  = Metric{"Parked", Count, ""}
	// Failed are tries that failed, GaveUp those among them after which the message moves to the dead letter queue.
	Failed = Metric{"Failed", Count, ""}
	GaveUp = Metric{"GaveUp", Count, ""}
	// Undecodable are bodies that nobody could read, from a webhook or in the gateway's lists: somebody has to look.
	Undecodable = Metric{"Undecodable", Count, ""}
	// SecondsToApplied is the time from when the gateway says that it happened until it was applied.
	SecondsToApplied = Metric{"SecondsToApplied", Seconds, ""}
)

// The metrics of orders, written by whichever function changed the order.
var (
	// Fulfilled are orders that were paid, and whose goods may go out: that money flows.
	Fulfilled = Metric{"Fulfilled", Count, ""}
	// Held are holds that appeared: somebody has to look at the order.
	Held = Metric{"Held", Count, "Reason"}
)

// GatewayErrors are calls of a gateway's API that failed after all their attempts, whoever made them. A refusal is an answer, and
// none of them.
var GatewayErrors = Metric{"GatewayErrors", Count, ""}

// The metrics of the sweep. The findings are written for each scan that found something.
var (
	// Matched are payments and refunds of the gateway that we knew, MissingWebhook those of which no webhook had told us.
	Matched        = Metric{"Matched", Count, ""}
	MissingWebhook = Metric{"MissingWebhook", Count, ""}
	// Stuck are captured payments whose order is not fulfilled, AmountMismatch those of another amount than ours.
	Stuck          = Metric{"Stuck", Count, ""}
	AmountMismatch = Metric{"AmountMismatch", Count, ""}
	// UnknownOrder are payments of no order of ours, RefundUnknown refunds that we did not know.
	UnknownOrder  = Metric{"UnknownOrder", Count, ""}
	RefundUnknown = Metric{"RefundUnknown", Count, ""}
	// SilentPayments are captured payments in a row of which no webhook came, Overdue is what has been due for long. Both are
	// written by each run that could measure them, a zero too.
	SilentPayments = Metric{"SilentPayments", Count, ""}
	Overdue        = Metric{"Overdue", Count, ""}
)

// All are the metrics that there are. Whoever names a metric, in an alarm, on the dashboard or in the runbook, names one of these.
func All() []Metric {
	return []Metric{
		Received, Duplicate, Resent, InvalidSignature,
		Applied, NoEffect, Ignored, Parked, Failed, GaveUp, Undecodable, SecondsToApplied,
		Fulfilled, Held, GatewayErrors,
		Matched, MissingWebhook, Stuck, AmountMismatch, UnknownOrder, RefundUnknown, SilentPayments, Overdue,
	}
}
