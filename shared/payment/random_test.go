package payment_test

import (
	"fmt"

	"pgregory.net/rapid"

	"paidonce/shared/payment"
)

// What a gateway never does is not drawn: a refund or dispute keeps its payment. Amounts may change.

var (
	anyAmount   = rapid.SampledFrom([]int64{0, 30, 50, 90, 100, 120})
	anyCurrency = rapid.SampledFrom([]string{"INR", "INR", "INR", "USD"})
	anyMoney    = rapid.Custom(func(t *rapid.T) payment.Money {
		return payment.Money{Amount: anyAmount.Draw(t, "amount"), Currency: anyCurrency.Draw(t, "currency")}
	})

	// anyPaymentID: "F" is another order's.
	anyPaymentID = rapid.SampledFrom([]string{"A", "B", "C", "D", "F"})

	anyPayment = rapid.Custom(func(t *rapid.T) payment.Fact {
		f := pay(anyPaymentID.Draw(t, "payment"), rapid.SampledFrom([]payment.PaymentStatus{
			payment.PaymentCreated, payment.PaymentAuthorized, payment.PaymentCaptured, payment.PaymentCaptured, payment.PaymentRefunded,
		}).Draw(t, "status"), 0)
		f.Amount = anyMoney.Draw(t, "money")
		f.Captured = f.Captured || rapid.Bool().Draw(t, "captured")
		f.Failed = rapid.Bool().Draw(t, "failed")
		f.Confirmed = rapid.Bool().Draw(t, "confirmed")
		f.AmountRefunded = anyAmount.Draw(t, "refunded")
		return f
	})

	anyRefund = rapid.Custom(func(t *rapid.T) payment.Fact {
		paymentID := rapid.OneOf(anyPaymentID, rapid.Just("unknown")).Draw(t, "payment")
		status := rapid.SampledFrom([]payment.RefundStatus{pendingRefund, processedRefund, processedRefund, failedRefund}).Draw(t, "status")
		f := refund(fmt.Sprint("r", rapid.IntRange(1, 2).Draw(t, "number")), paymentID, status, 0)
		f.Amount = anyMoney.Draw(t, "money")
		return named(f)
	})

	anyDispute = rapid.Custom(func(t *rapid.T) payment.Fact {
		f := dispute(rapid.SampledFrom([]string{"d1", "d2"}).Draw(t, "dispute"),
			rapid.SampledFrom([]payment.DisputePhase{payment.PhaseRetrieval, payment.PhaseChargeback, payment.PhaseArbitration}).Draw(t, "phase"),
			rapid.SampledFrom([]payment.DisputeStatus{
				payment.DisputeOpen, payment.DisputeUnderReview, payment.DisputeClosed, payment.DisputeWon, payment.DisputeLost,
			}).Draw(t, "status"))
		f.Amount, f.Deducted = anyMoney.Draw(t, "money"), anyAmount.Draw(t, "deducted")
		return f
	})

	anyOrder = rapid.Custom(func(t *rapid.T) payment.Fact {
		f := gatewayPaid()
		f.Paid, f.Amount = rapid.Bool().Draw(t, "paid"), rapid.SampledFrom([]payment.Money{inr(100), inr(100), inr(99)}).Draw(t, "money")
		return f
	})

	anyWord = rapid.Custom(func(t *rapid.T) payment.Fact {
		if rapid.Bool().Draw(t, "closes") {
			return payment.ClosedFact{Reason: "out of stock", At: day}
		}
		hold := rapid.SampledFrom([]payment.HoldKey{
			{Reason: payment.HoldPaidAfterClose}, {Reason: payment.HoldDispute, Subject: "d1"}, {Reason: payment.HoldConflict, Subject: "A"},
			{Reason: payment.HoldRefundsUnread, Subject: "A"}, {Reason: payment.HoldConflict, Subject: "F"},
		}).Draw(t, "hold")
		return payment.AcknowledgedFact{Hold: hold, By: "ann", Why: "called", At: day}
	})

	anyFact = rapid.OneOf(rapid.SampledFrom(scenarioFacts()), anyPayment, anyPayment, anyRefund, anyDispute, anyOrder, anyWord)

	// anyFacts has each fact up to three times. One in four comes with so many attempts that not all are kept.
	anyFacts = rapid.Custom(func(t *rapid.T) facts {
		l := rapid.SliceOfN(anyFact, 1, 12).Draw(t, "drawn")
		if rapid.IntRange(0, 3).Draw(t, "card testing") == 0 {
			for i := range rapid.IntRange(19, 24).Draw(t, "attempts") {
				f := failed("T")
				f.ID, f.Failed = fmt.Sprintf("T%02d", i), i%7 > 0
				l = append(l, f)
			}
		}
		for _, f := range l {
			for range rapid.IntRange(0, 2).Draw(t, "again") {
				l = append(l, f)
			}
		}
		return l
	})
)

// named gives the refund an id that says its payment, which never changes.
func named(f payment.RefundFact) payment.RefundFact {
	f.ID = fmt.Sprintf("%s_%s", f.ID, f.PaymentID)
	return f
}

func scenarioFacts() facts {
	var all facts
	for _, s := range scenarios {
		for _, f := range s.facts {
			if r, ok := f.(payment.RefundFact); ok {
				f = named(r)
			}
			all = append(all, f)
		}
	}
	return all
}

// anyArrivals shuffles the facts and lets them arrive in bodies and groups.
func anyArrivals(t *rapid.T, l facts) []arrival {
	left := rapid.Permutation(l).Draw(t, "order")
	sizes := rapid.SampledFrom([]int{1, 1, 1, 2, 3})
	var all []arrival
	for len(left) > 0 {
		a := arrival{source: rapid.SampledFrom([]payment.Source{
			payment.SourceWebhook, payment.SourceWebhook, payment.SourceCallback, payment.SourceSweep,
		}).Draw(t, "source")}
		for range sizes.Draw(t, "bodies") {
			n := min(sizes.Draw(t, "facts"), len(left))
			if n > 0 {
				a.bodies, left = append(a.bodies, left[:n]), left[n:]
			}
		}
		all = append(all, a)
	}
	return all
}
