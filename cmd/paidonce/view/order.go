// Package view shows an order to people: where it stands, why it is not fulfilled, what its holds mean, and what happened to it.
package view

import (
	"fmt"
	"strings"

	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// Meanings say what a hold is about, for somebody who does not know the word.
var Meanings = map[payment.HoldReason]string{
	payment.HoldShort:             "less was captured than the order costs",
	payment.HoldOver:              "more was captured than the order costs",
	payment.HoldSurplus:           "a payment too many: the others cover the order",
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

// Order says where an order stands. flags lead to its stack.
func Order(p *terminal.Page, o apigw.Order, flags string) {
	p.Line("%s: %s, %s", o.ID, strings.ToUpper(InWords(o.Status)), fulfilment(o))
	p.Line("")
	money := func(amount int64) string { return payment.Money{Amount: amount, Currency: o.Currency}.String() }
	rows := [][]string{
		{"expected", money(o.Amount)},
		{"captured", money(o.AmountPaid)},
		{"refunded", money(o.AmountRefunded)},
		{"gateway", GatewayOf(o)},
		{"created", terminal.Moment(o.CreatedAt)},
	}
	if o.ClosedAt != nil {
		rows = append(rows, []string{"closed", terminal.Moment(*o.ClosedAt)})
	}
	if o.FailedAttempts > 0 {
		rows = append(rows, []string{"attempts", fmt.Sprintf("%d failed", o.FailedAttempts)})
	}
	if o.Derived != o.Status {
		rows = append(rows, []string{"facts say", InWords(o.Derived) + " (a status never goes back)"})
	}
	p.Table("", rows)
	holds(p, o, flags)

	rows = nil
	for _, a := range o.Payments {
		amount := money(a.Amount)
		if HasHold(o, payment.HoldKey{Reason: payment.HoldCurrency, Subject: a.ID}) {
			amount = fmt.Sprintf("%d minor units of another currency", a.Amount)
		}
		rows = append(rows, []string{a.ID, string(a.Status), amount})
	}
	p.Table("Payments", rows)
	rows = nil
	for _, r := range o.Refunds {
		rows = append(rows, []string{r.ID, string(r.Status), money(r.Amount), "of " + r.PaymentID})
	}
	p.Table("Refunds", rows)
}

func holds(p *terminal.Page, o apigw.Order, flags string) {
	if len(o.Holds) == 0 {
		return
	}
	p.Line("\n  Holds")
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
			since = ", since " + terminal.Moment(*h.Since)
		}
		p.Line("    %s: %s%s", terminal.Printable(KeyOf(h).String()), effect, since)
		if meaning, known := Meanings[h.Reason]; known {
			p.Line("      %s", meaning)
		}
		if h.Reason == payment.HoldSurplus {
			p.Line("      to give it back: paidonce refund %s --id A-NEW-ID --amount %d --payment %s%s",
				o.ID, amountOf(o, h.Subject), terminal.Printable(h.Subject), flags)
		}
		if blocks(h) {
			subject := ""
			if h.Subject != "" {
				subject = " --subject " + terminal.Printable(h.Subject)
			}
			p.Line("      to let it pass: paidonce order acknowledge %s %s%s --by WHO --why WHY%s", o.ID, h.Reason, subject, flags)
		}
	}
}

// amountOf is what was captured of a payment, in minor units.
func amountOf(o apigw.Order, paymentID string) int64 {
	for _, p := range o.Payments {
		if p.ID == paymentID {
			return p.Amount
		}
	}
	return 0
}

// fulfilment says when the order was fulfilled, or why it is not.
func fulfilment(o apigw.Order) string {
	if o.FulfilledAt != nil {
		return "FULFILLED on " + terminal.Moment(*o.FulfilledAt)
	}
	return "NOT FULFILLED: " + WhyNot(o)
}

// WhyNot says in words why an order that is not fulfilled is not.
func WhyNot(o apigw.Order) string {
	var blocking []string
	for _, h := range o.Holds {
		if blocks(h) {
			blocking = append(blocking, KeyOf(h).String())
		}
	}
	switch {
	case o.Status == payment.PartiallyRefunded || o.Status == payment.Refunded:
		return "money went back first"
	case o.Status == payment.Paid && len(blocking) > 0:
		return "held by " + terminal.Printable(strings.Join(blocking, ", "))
	case o.Status == payment.Paid && o.Derived != payment.Paid:
		return "it was paid, but the facts now say " + InWords(o.Derived)
	case o.Status == payment.Paid:
		return "nothing blocks it any more, its next event fulfils it"
	case uncounted(o) != "":
		return uncounted(o) + " does not count: see its hold"
	case o.AmountPaid > 0:
		return "the captured money does not cover it"
	case o.GatewayOrderID == nil:
		return "the gateway does not have it yet, the shop has to send POST /orders again"
	case o.Status == payment.Failed:
		return "an attempt to pay failed, and no other has succeeded so far"
	}
	return "nothing has been captured yet"
}

// uncounted names a payment whose money does not count for the order, or none.
func uncounted(o apigw.Order) string {
	for _, h := range o.Holds {
		if h.Reason == payment.HoldConflict || h.Reason == payment.HoldCurrency {
			return terminal.Printable(h.Subject)
		}
	}
	return ""
}

// GatewayOf names the order's gateway, its order there, and the mode.
func GatewayOf(o apigw.Order) string {
	id := "(no order there yet)"
	if o.GatewayOrderID != nil {
		id = *o.GatewayOrderID
	}
	return fmt.Sprintf("%s %s, %s mode", o.Gateway, id, o.Mode)
}

// InWords is a status for people.
func InWords(s payment.Status) string { return strings.ReplaceAll(string(s), "_", " ") }

// KeyOf is the key by which a hold is named.
func KeyOf(h apigw.Hold) payment.HoldKey {
	return payment.HoldKey{Reason: h.Reason, Subject: h.Subject}
}

func blocks(h apigw.Hold) bool { return h.Blocking && !h.Acknowledged }

// HasHold reports whether the order has the hold, acknowledged or not.
func HasHold(o apigw.Order, k payment.HoldKey) bool {
	for _, h := range o.Holds {
		if KeyOf(h) == k {
			return true
		}
	}
	return false
}
