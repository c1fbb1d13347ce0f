package payment_test

import (
	"time"

	"paidonce/shared/payment"
)

// The scenarios are the table of docs/design.md and more, in facts. E = 100.

var day = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

func inr(amount int64) payment.Money { return payment.Money{Amount: amount, Currency: "INR"} }

// pay is a fact about payment "A", "B", ... The later letter was created later.
func pay(id string, status payment.PaymentStatus, amount int64) payment.PaymentFact {
	return payment.PaymentFact{
		ID: id, GatewayOrderID: "order_1", Status: status, Amount: inr(amount), Captured: status == payment.PaymentCaptured,
		CreatedAt: day.Add(time.Duration(id[0]) * time.Minute),
	}
}

func created(id string) payment.PaymentFact    { return pay(id, payment.PaymentCreated, 100) }
func authorized(id string) payment.PaymentFact { return pay(id, payment.PaymentAuthorized, 100) }

func captured(id string, amount int64) payment.PaymentFact {
	return pay(id, payment.PaymentCaptured, amount)
}

func failed(id string) payment.PaymentFact {
	f := created(id)
	f.Failed = true
	return f
}

func voided(id string) payment.PaymentFact { return pay(id, payment.PaymentRefunded, 100) }

// claiming is a captured payment of which the gateway says that so much was refunded.
func claiming(id string, amount, refunded int64) payment.PaymentFact {
	f := captured(id, amount)
	f.AmountRefunded = refunded
	if refunded == amount {
		f.Status = payment.PaymentRefunded
	}
	return f
}

func refund(id, paymentID string, status payment.RefundStatus, amount int64) payment.RefundFact {
	return payment.RefundFact{ID: id, PaymentID: paymentID, GatewayOrderID: "order_1", Status: status, Amount: inr(amount)}
}

func dispute(id string, phase payment.DisputePhase, status payment.DisputeStatus) payment.DisputeFact {
	f := payment.DisputeFact{ID: id, PaymentID: "A", GatewayOrderID: "order_1", Status: status, Phase: phase, Amount: inr(100)}
	if status == payment.DisputeLost {
		f.Deducted = 100
	}
	return f
}

func gatewayPaid() payment.OrderFact {
	return payment.OrderFact{GatewayOrderID: "order_1", Paid: true, Amount: inr(100)}
}

func dollars(id string, amount int64) payment.PaymentFact {
	f := captured(id, amount)
	f.Amount.Currency = "USD"
	return f
}

// scenario is a set of facts and what they come to, whatever their order.
type scenario struct {
	name    string
	row     bool // a row of the table in docs/design.md
	partial bool
	closed  bool
	rules   payment.Rules
	facts   []payment.Fact
	// surplus: a payment too many, or money that stops counting, may leave the status ahead of what is derived
	surplus bool

	derived payment.Status
	fulfil  string // "yes", "no", or "early": only if the facts that forbid it come too late
	holds   string // in the order of Derive, separated by spaces; status_behind left out
}

type facts = []payment.Fact

const (
	pendingRefund   = payment.RefundPending
	processedRefund = payment.RefundProcessed
	failedRefund    = payment.RefundFailed
)

var (
	offers  = payment.Rules{AcceptOffers: true}
	confirm = payment.Rules{Confirm: confirming("always")}
)

// confirming is the rule that the text says.
func confirming(text string) (c payment.Confirm) {
	if err := c.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return c
}

// confirmed is the fact as the gateway's API shows it.
func confirmed(f payment.PaymentFact) payment.PaymentFact {
	f.Confirmed = true
	return f
}

var scenarios = []scenario{
	{name: "nothing", row: true, facts: facts{}, derived: "pending", fulfil: "no"},
	{name: "A created", row: true, facts: facts{created("A")}, derived: "pending", fulfil: "no"},
	{name: "A authorized", row: true, facts: facts{created("A"), authorized("A")}, derived: "pending", fulfil: "no"},
	{name: "A failed", row: true, facts: facts{failed("A")}, derived: "failed", fulfil: "no"},
	{name: "A failed, B still open", row: true, facts: facts{failed("A"), created("B"), authorized("B")}, derived: "failed", fulfil: "no"},
	{name: "A authorized, then voided by an automatic refund", row: true,
		facts:   facts{authorized("A"), voided("A"), refund("r1", "A", processedRefund, 100)},
		derived: "failed", fulfil: "no"},
	{name: "A failed and A captured", row: true, facts: facts{failed("A"), captured("A", 100)}, derived: "paid", fulfil: "yes"},
	{name: "A captured and order.paid", row: true, facts: facts{captured("A", 100), gatewayPaid()}, derived: "paid", fulfil: "yes"},
	{name: "A 50, order not partial", row: true, facts: facts{captured("A", 50)}, derived: "pending", fulfil: "no", holds: "short"},
	{name: "A 50, order partial", row: true, partial: true, facts: facts{captured("A", 50)}, derived: "pending", fulfil: "no"},
	{name: "A 50 and B 50", row: true, facts: facts{captured("A", 50), captured("B", 50)}, derived: "paid", fulfil: "yes"},
	{name: "A 90 and the gateway's order paid, AcceptOffers on", row: true, rules: offers,
		facts: facts{captured("A", 90), gatewayPaid()}, derived: "paid", fulfil: "yes"},
	{name: "A 90 and the gateway's order paid, AcceptOffers off", row: true,
		facts: facts{captured("A", 90), gatewayPaid()}, derived: "pending", fulfil: "no", holds: "short"},
	{name: "A 102", row: true, facts: facts{captured("A", 102)}, derived: "paid", fulfil: "yes", holds: "over"},
	{name: "A 100 in USD", row: true, facts: facts{dollars("A", 100)}, derived: "pending", fulfil: "no", holds: "currency:A"},
	{name: "A 100, B 100", row: true, surplus: true, facts: facts{captured("A", 100), captured("B", 100)},
		derived: "paid", fulfil: "yes", holds: "surplus:B"},
	{name: "A 100, B 100, B refunded 100", row: true, surplus: true,
		facts:   facts{captured("A", 100), captured("B", 100), refund("r1", "B", processedRefund, 100)},
		derived: "paid", fulfil: "early"},
	{name: "A 100, refund 40 processed", row: true, facts: facts{captured("A", 100), refund("r1", "A", processedRefund, 40)},
		derived: "partially_refunded", fulfil: "early"},
	{name: "A 100, refund 40 + 60 processed", row: true,
		facts:   facts{captured("A", 100), refund("r1", "A", processedRefund, 40), refund("r2", "A", processedRefund, 60)},
		derived: "refunded", fulfil: "early"},
	{name: "refund processed known, its capture not yet", row: true, facts: facts{refund("r1", "A", processedRefund, 100)},
		derived: "pending", fulfil: "no"},
	{name: "A 100, refund 100 pending", row: true, facts: facts{captured("A", 100), refund("r1", "A", pendingRefund, 100)},
		derived: "paid", fulfil: "early", holds: "refund_in_flight:r1"},
	{name: "A 100, refund 100 failed only", row: true, facts: facts{captured("A", 100), refund("r1", "A", failedRefund, 100)},
		derived: "paid", fulfil: "yes"},
	{name: "A 100, refund 40 processed and failed", row: true,
		facts:   facts{captured("A", 100), refund("r1", "A", processedRefund, 40), refund("r1", "A", failedRefund, 40)},
		derived: "partially_refunded", fulfil: "early", holds: "refund_reversed:r1"},
	{name: "A refunded (captured: true), no refund known", row: true, facts: facts{claiming("A", 100, 100)},
		derived: "paid", fulfil: "no", holds: "refunds_unread:A"},
	{name: "A 100, dispute open", row: true, facts: facts{captured("A", 100), dispute("d1", payment.PhaseChargeback, payment.DisputeOpen)},
		derived: "paid", fulfil: "early", holds: "dispute:d1"},
	{name: "A 100, dispute won", row: true, facts: facts{
		captured("A", 100), dispute("d1", payment.PhaseChargeback, payment.DisputeOpen), dispute("d1", payment.PhaseChargeback, payment.DisputeWon),
	}, derived: "paid", fulfil: "yes"},
	{name: "A 100, dispute lost", row: true, facts: facts{
		captured("A", 100), dispute("d1", payment.PhaseChargeback, payment.DisputeOpen), dispute("d1", payment.PhaseChargeback, payment.DisputeLost),
	}, derived: "paid", fulfil: "early", holds: "dispute:d1"},

	{name: "late authorization: failed, then authorized and captured days later",
		facts: facts{created("A"), failed("A"), authorized("A"), captured("A", 100), gatewayPaid()}, derived: "paid", fulfil: "yes"},
	{name: "two payments race, both captured, the second given back at once", surplus: true, facts: facts{
		authorized("A"), authorized("B"), captured("A", 100), captured("B", 100), refund("r1", "B", pendingRefund, 100), refund("r1", "B", processedRefund, 100),
	}, derived: "paid", fulfil: "early"},
	{name: "the same, read from payments that name the refund", surplus: true, facts: facts{
		captured("A", 100), claiming("B", 100, 100), refund("r1", "B", processedRefund, 100),
	}, derived: "paid", fulfil: "early"},
	{name: "an automatic refund of B, never captured, leaves the paid order alone", facts: facts{
		captured("A", 100), authorized("B"), voided("B"), refund("r1", "B", processedRefund, 100),
	}, derived: "paid", fulfil: "yes"},
	{name: "three part payments", partial: true,
		facts:   facts{captured("A", 30), captured("B", 30), captured("C", 40), gatewayPaid()},
		derived: "paid", fulfil: "yes"},
	{name: "part payments, one of them refunded in part", partial: true, facts: facts{
		captured("A", 60), captured("B", 40), refund("r1", "A", processedRefund, 10),
	}, derived: "partially_refunded", fulfil: "early"},
	{name: "part payments refunded before the order is covered", partial: true,
		facts:   facts{captured("A", 60), refund("r1", "A", processedRefund, 60)},
		derived: "pending", fulfil: "no", holds: "refund_before_cover"},
	{name: "partial refunds, one failing after it was processed", facts: facts{
		claiming("A", 100, 70), refund("r1", "A", processedRefund, 30), refund("r2", "A", pendingRefund, 40),
		refund("r2", "A", processedRefund, 40), refund("r2", "A", failedRefund, 40),
	}, derived: "partially_refunded", fulfil: "early", holds: "refund_reversed:r2"},
	{name: "a capture after the refund of another payment", surplus: true, facts: facts{
		captured("A", 100), refund("r1", "A", processedRefund, 100), captured("B", 100),
	}, derived: "paid", fulfil: "early"},
	{name: "two captures, the first refunded in part", surplus: true, facts: facts{
		captured("A", 100), captured("B", 100), refund("r1", "A", processedRefund, 40),
	}, derived: "paid", fulfil: "early", holds: "surplus:B"},
	{name: "three captures, the first given back", surplus: true, facts: facts{
		captured("A", 100), captured("B", 100), captured("C", 100), refund("r1", "A", processedRefund, 100),
	}, derived: "paid", fulfil: "early", holds: "surplus:C"},
	{name: "a dispute lost, then won in the next phase, and another opened", facts: facts{
		captured("A", 100),
		dispute("d1", payment.PhaseChargeback, payment.DisputeOpen),
		dispute("d1", payment.PhaseChargeback, payment.DisputeLost),
		dispute("d1", payment.PhasePreArbitration, payment.DisputeOpen),
		dispute("d1", payment.PhasePreArbitration, payment.DisputeWon),
		dispute("d2", payment.PhaseArbitration, payment.DisputeUnderReview),
	}, derived: "paid", fulfil: "early", holds: "dispute:d2"},
	{name: "order.paid only, no capture seen", rules: offers, facts: facts{gatewayPaid()}, derived: "pending", fulfil: "no"},
	{name: "facts repeated, and older snapshots after newer ones", facts: facts{
		captured("A", 100), authorized("A"), captured("A", 100), failed("A"), created("A"), gatewayPaid(), captured("A", 100),
	}, derived: "paid", fulfil: "yes"},
	{name: "one body with payment and refund in it, and the webhook of the capture", facts: facts{
		claiming("A", 100, 100), refund("r1", "A", processedRefund, 100), captured("A", 100),
	}, derived: "refunded", fulfil: "early"},
	{name: "two captured amounts of one payment", surplus: true, facts: facts{captured("A", 100), captured("A", 120)},
		derived: "paid", fulfil: "early", holds: "conflict:A over"},
	{name: "paid after the shop closed the order", closed: true, facts: facts{authorized("A"), captured("A", 100)},
		derived: "paid", fulfil: "no", holds: "paid_after_close"},
	{name: "rupees and dollars", facts: facts{captured("A", 100), dollars("B", 100)},
		derived: "paid", fulfil: "yes", holds: "currency:B"},
	{name: "captured, and only a webhook says so", rules: confirm, facts: facts{captured("A", 100), gatewayPaid()},
		derived: "paid", fulfil: "no", holds: "unconfirmed:A"},
	{name: "captured, and the gateway confirms it", rules: confirm, facts: facts{authorized("A"), captured("A", 100), confirmed(captured("A", 100)), gatewayPaid()},
		derived: "paid", fulfil: "yes"},
	{name: "captured, and the gateway shows it authorized", rules: confirm, facts: facts{captured("A", 100), confirmed(authorized("A"))},
		derived: "paid", fulfil: "no", holds: "unconfirmed:A"},
	{name: "captured, and the gateway shows a smaller amount", rules: confirm, facts: facts{captured("A", 100), confirmed(captured("A", 1))},
		derived: "paid", fulfil: "no", holds: "conflict:A"},
	{name: "two part payments, one of them confirmed", rules: confirm, partial: true, facts: facts{captured("A", 50), confirmed(captured("B", 50))},
		derived: "paid", fulfil: "no", holds: "unconfirmed:A"},
	{name: "refunded before it is confirmed", rules: confirm, facts: facts{captured("A", 100), refund("r1", "A", processedRefund, 100), confirmed(claiming("A", 100, 100))},
		derived: "refunded", fulfil: "early"},
	{name: "captured, of an order too small to be confirmed", rules: payment.Rules{Confirm: confirming("above:100")}, facts: facts{captured("A", 100)},
		derived: "paid", fulfil: "yes"},
}
