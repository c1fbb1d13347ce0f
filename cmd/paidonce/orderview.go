package main

import (
	"fmt"
	"strings"

	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// meanings say what a hold is about, for somebody who does not know the word.
var meanings = map[payment.HoldReason]string{
	payment.HoldShort:             "less was captured than the order costs",
	payment.HoldOver:              "more was captured than the order costs",
	payment.HoldSurplus:           "a payment too many: the others cover the order, so give this one back",
	payment.HoldCurrency:          "captured in another currency than the order's; it does not count",
	payment.HoldStatusBehind:      "the facts say less now than the order has already been",
	payment.HoldRefundBeforeCover: "money went back before the order was covered",
	payment.HoldConflict:          "the gateway named two captured amounts, or the payment belongs to another order",
	payment.HoldRefundsUnread:     "the gateway speaks of refunds of which nothing else is known yet",
	payment.HoldRefundInFlight:    "a refund on its way would leave the order uncovered",
	payment.HoldRefundReversed:    "a refund failed after it had been processed: the customer may not have the money",
	payment.HoldDispute:           "the customer's bank may take the money back, or did",
	payment.HoldPaidAfterClose:    "paid after the shop had closed the order: are the goods still there?",
	payment.HoldLate:              "paid later than the shop wants to fulfil",
	payment.HoldUnconfirmed:       "only a webhook says so, and the shop wants the payment read from the gateway first",
}

// showOrder says where an order stands. flags lead to its stack.
func showOrder(p *page, o apigw.Order, flags string) {
	p.line("%s: %s, %s", o.ID, strings.ToUpper(inWords(o.Status)), fulfilment(o))
	p.line("")
	money := func(amount int64) string { return payment.Money{Amount: amount, Currency: o.Currency}.String() }
	rows := [][]string{
		{"expected", money(o.Amount)},
		{"captured", money(o.AmountPaid)},
		{"refunded", money(o.AmountRefunded)},
		{"gateway", gatewayOf(o)},
		{"created", moment(o.CreatedAt)},
	}
	if o.ClosedAt != nil {
		rows = append(rows, []string{"closed", moment(*o.ClosedAt)})
	}
	if o.FailedAttempts > 0 {
		rows = append(rows, []string{"attempts", fmt.Sprintf("%d failed", o.FailedAttempts)})
	}
	if o.Derived != o.Status {
		rows = append(rows, []string{"facts say", inWords(o.Derived) + " (a status never goes back)"})
	}
	p.table("", rows)
	showHolds(p, o, flags)

	rows = nil
	for _, a := range o.Payments {
		amount := money(a.Amount)
		if hasHold(o, payment.HoldKey{Reason: payment.HoldCurrency, Subject: a.ID}) {
			amount = fmt.Sprintf("%d minor units of another currency", a.Amount)
		}
		rows = append(rows, []string{a.ID, string(a.Status), amount})
	}
	p.table("Payments", rows)
	rows = nil
	for _, r := range o.Refunds {
		rows = append(rows, []string{r.ID, string(r.Status), money(r.Amount), "of " + r.PaymentID})
	}
	p.table("Refunds", rows)
}

func showHolds(p *page, o apigw.Order, flags string) {
	if len(o.Holds) == 0 {
		return
	}
	p.line("\n  Holds")
	for _, h := range o.Holds {
		effect := "does not block"
		switch {
		case h.Acknowledged:
			effect = "acknowledged"
		case h.Blocking:
			effect = "BLOCKS the fulfilment"
		}
		since := ""
		if h.Since != nil {
			since = ", since " + moment(*h.Since)
		}
		p.line("    %s: %s%s", printable(keyOf(h).String()), effect, since)
		if meaning, known := meanings[h.Reason]; known {
			p.line("      %s", meaning)
		}
		if blocks(h) {
			subject := ""
			if h.Subject != "" {
				subject = " --subject " + printable(h.Subject)
			}
			p.line("      to let it pass: paidonce order acknowledge %s %s%s --by WHO --why WHY%s", o.ID, h.Reason, subject, flags)
		}
	}
}

// fulfilment says when the order was fulfilled, or why it is not.
func fulfilment(o apigw.Order) string {
	if o.FulfilledAt != nil {
		return "FULFILLED on " + moment(*o.FulfilledAt)
	}
	return "NOT FULFILLED: " + whyNot(o)
}

func whyNot(o apigw.Order) string {
	var blocking []string
	for _, h := range o.Holds {
		if blocks(h) {
			blocking = append(blocking, keyOf(h).String())
		}
	}
	switch {
	case o.Status == payment.PartiallyRefunded || o.Status == payment.Refunded:
		return "money went back first"
	case o.Status == payment.Paid && len(blocking) > 0:
		return "held by " + printable(strings.Join(blocking, ", "))
	case o.Status == payment.Paid && o.Derived != payment.Paid:
		return "it was paid, but the facts now say " + inWords(o.Derived)
	case o.Status == payment.Paid:
		return "nothing blocks it any more, its next event fulfils it"
	case o.AmountPaid > 0:
		return "the captured money does not cover it"
	case o.GatewayOrderID == nil:
		return "the gateway does not have it yet, the shop has to send POST /orders again"
	case o.Status == payment.Failed:
		return "an attempt to pay failed, and no other has succeeded so far"
	}
	return "nothing has been captured yet"
}

func gatewayOf(o apigw.Order) string {
	id := "(no order there yet)"
	if o.GatewayOrderID != nil {
		id = *o.GatewayOrderID
	}
	return fmt.Sprintf("%s %s, %s mode", o.Gateway, id, o.Mode)
}

func inWords(s payment.Status) string { return strings.ReplaceAll(string(s), "_", " ") }

func keyOf(h apigw.Hold) payment.HoldKey {
	return payment.HoldKey{Reason: h.Reason, Subject: h.Subject}
}

func blocks(h apigw.Hold) bool { return h.Blocking && !h.Acknowledged }

func hasHold(o apigw.Order, k payment.HoldKey) bool {
	for _, h := range o.Holds {
		if keyOf(h) == k {
			return true
		}
	}
	return false
}
