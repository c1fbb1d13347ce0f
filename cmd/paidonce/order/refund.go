package order

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/cmd/paidonce/view"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// refundOptions are the command's flags.
type refundOptions struct {
	target      stack.Options
	amount      minorUnits
	ask         stack.RefundAsk
	yes, asJSON bool
}

// RefundCommand is `paidonce refund`.
func RefundCommand(find stack.Connector, w terminal.Surroundings) *cobra.Command {
	var o refundOptions
	cmd := &cobra.Command{
		Use:   "refund ORDER --id REQUEST_ID --amount MINOR-UNITS",
		Short: "Give money of an order back",
		Long: `Give money of an order back. Amounts are in minor units: --amount 10000 of an order in INR is 100.00 INR. --id is your own name
for this refund: the same id again is the same refund, never a second one, so that whatever came of a call may be found out by
calling again.

First it says what it would do, and asks. The exit status is 0 if the refund is made (201), was made before under this id (200),
or is asked for and the gateway's word not known yet (202: reconcile finds out); else 1.

--json prints {"result": "made", "made_before" or "asked_for", "refund": {...} as the API answers}.`,
		Example: `  paidonce refund order-417 --id return-7 --amount 10000 --reason 'one item came back'
  paidonce refund order-417 --id return-7 --amount 10000 --yes --stack paidonce-prod`,
		Args: terminal.Takes(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args[0]); err != nil {
				return err
			}
			return o.run(cmd, find, w, args[0])
		},
	}
	o.target.AddTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.ask.ID, "id", "", "your own `ID` of this refund, as return-7")
	flags.Var(&o.amount, "amount", "how much, in minor units: 10000 is 100.00 INR")
	flags.StringVar(&o.ask.PaymentID, "payment", "", "`ID` of the payment (default: the only one that is captured)")
	flags.StringVar(&o.ask.Reason, "reason", "", "why, for whoever looks at it later; no personal data")
	flags.BoolVar(&o.ask.Force, "force", false, "also if the payment is disputed: the bank may take the money a second time")
	flags.BoolVar(&o.yes, "yes", false, "do not ask: needed where there is no terminal")
	flags.BoolVar(&o.asJSON, "json", false, "print what came of it as JSON, for programs")
	require(cmd, "id", "amount")
	return cmd
}

func (o *refundOptions) check(orderID string) error {
	o.ask.Amount = int64(o.amount)
	switch {
	case !stack.IsOrderID(orderID):
		return fmt.Errorf("%q is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit", orderID)
	case !apigw.IsID(o.ask.ID):
		return fmt.Errorf("--id %q: the id of a refund %s", o.ask.ID, apigw.IDForm)
	case o.ask.PaymentID != "" && !apigw.IsID(o.ask.PaymentID):
		return fmt.Errorf("--payment %q is not the id of a payment: it looks like pay_Q2bFhX1yZ0aBcD", o.ask.PaymentID)
	case o.asJSON && !o.yes:
		return errors.New("--json is for programs, which cannot be asked: give --yes")
	}
	return nil
}

func (o refundOptions) run(cmd *cobra.Command, find stack.Connector, w terminal.Surroundings, orderID string) error {
	ctx := cmd.Context()
	t, err := find(ctx, o.target)
	if err != nil {
		return t.Cure(err)
	}
	order, err := t.API.Order(ctx, orderID)
	switch {
	case stack.IsGone(err):
		return fmt.Errorf("%s has no order %s: check the id, and the stack", t.Name, orderID)
	case err != nil:
		return t.Cure(err)
	}
	p := &terminal.Page{Out: cmd.OutOrStdout()}
	if !o.asJSON {
		o.printPlan(p, t, order)
	}
	if !o.yes {
		if !w.Asks(cmd) {
			return errors.New("nothing was refunded: there is no terminal to ask on, so give --yes")
		}
		yes, err := terminal.Agrees(cmd, "Give the money back?")
		switch {
		case err != nil:
			return errors.New("interrupted: nothing was refunded")
		case !yes:
			p.Line("Nothing was refunded.")
			return p.Err
		}
	}
	made, status, err := t.API.Refund(ctx, orderID, o.ask)
	if err != nil {
		return o.cure(t, orderID, err)
	}
	failed := error(nil)
	result := refundResults[status]
	if made.Status == string(payment.RefundFailed) {
		result, failed = "failed", errors.New("the refund failed: the customer does not have the money, and another try needs another --id")
	}
	if o.asJSON {
		return errors.Join(terminal.WriteJSON(cmd.OutOrStdout(), struct {
			Result string              `json:"result"`
			Refund apigw.RefundRequest `json:"refund"`
		}{result, made}), failed)
	}
	p.Line("%s", sayRefund(status, made))
	return errors.Join(p.Err, failed)
}

// printPlan says what is to be done with the order as it stands.
func (o refundOptions) printPlan(p *terminal.Page, t stack.Target, order apigw.Order) {
	money := func(amount int64) payment.Money { return payment.Money{Amount: amount, Currency: order.Currency} }
	of := ""
	if o.ask.PaymentID != "" {
		of = " of payment " + o.ask.PaymentID
	}
	p.Line("To be given back: %s%s, order %s of %s, under the id %s.\n", money(o.ask.Amount), of, order.ID, t.Name, o.ask.ID)
	rows := [][]string{
		{"captured", money(order.AmountPaid).String()},
		{"refunded", money(order.AmountRefunded).String()},
		{"gateway", view.GatewayOf(order)},
	}
	for _, a := range order.Payments {
		if a.Captured {
			rows = append(rows, []string{"payment", fmt.Sprintf("%s: %s", a.ID, money(a.Amount))})
		}
	}
	for _, f := range order.Refunds {
		rows = append(rows, []string{"refund", fmt.Sprintf("%s: %s of %s, %s", f.ID, money(f.Amount), f.PaymentID, f.Status)})
	}
	for _, h := range order.Holds {
		rows = append(rows, []string{"hold", view.KeyOf(h).String() + ": " + view.Meanings[h.Reason]})
	}
	p.Table("", rows)
	p.Line("")
}

// refundResults are the successes, for programs.
var refundResults = map[int]string{http.StatusCreated: "made", http.StatusOK: "made_before", http.StatusAccepted: "asked_for"}

// sayRefund says what a success means.
func sayRefund(status int, r apigw.RefundRequest) string {
	money := payment.Money{Amount: r.Amount, Currency: r.Currency}
	refund := "-"
	if r.RefundID != nil {
		refund = terminal.Printable(*r.RefundID)
	}
	switch {
	case status == http.StatusCreated:
		return fmt.Sprintf("Made: refund %s of %s, of payment %s: %s.", refund, money, terminal.Printable(r.PaymentID), terminal.Printable(r.Status))
	case status == http.StatusOK && r.Status == string(payment.RefundFailed):
		return fmt.Sprintf("Refund %s of %s was made under this id and then FAILED: the customer does not have the money. Another try needs another --id.", refund, money)
	case status == http.StatusOK:
		return fmt.Sprintf("Made before under this id: refund %s of %s, of payment %s: %s. Nothing was refunded again.", refund, money, terminal.Printable(r.PaymentID), terminal.Printable(r.Status))
	}
	return fmt.Sprintf("Asked for: %s, and the gateway's word is not known yet. reconcile finds out; the same command again does too, and makes no second refund.", money)
}

// refusals say what the gateway means, and what to do.
var refusals = map[payment.RefusalReason]string{
	payment.RefusedAmount:       "more than the gateway has left of the payment: `paidonce reconcile ORDER` reads what was refunded there",
	payment.RefusedAlready:      "the gateway has nothing left of the payment: `paidonce reconcile ORDER` reads what was refunded there",
	payment.RefusedTooOld:       "the payment is too old for the gateway: pay the customer in another way",
	payment.RefusedBalance:      "the gateway account's balance does not cover it: top it up, then ask under another --id",
	payment.RefusedNotCaptured:  "the payment is not captured at the gateway: there is nothing to give back",
	payment.RefusedUnknownID:    "the gateway does not know the payment: check the API key's account and mode",
	payment.RefusedDisputed:     "the gateway waits for the outcome of a dispute of the payment",
	payment.RefusedReceiptUsed:  "the gateway has another refund under our receipt: look at the payment in its dashboard",
	payment.RefusedNeverReached: "it never reached the gateway: ask under another --id",
	payment.RefusedOther:        "the gateway gives no reason that is known: look at the payment in its dashboard",
}

// cure says what an answer means that is no success.
func (o refundOptions) cure(t stack.Target, orderID string, err error) error {
	r := new(stack.Refusal)
	if !errors.As(err, &r) {
		return fmt.Errorf("%w; whether the money went back is not known: the same command again finds out, and makes no second refund", t.Cure(err))
	}
	if r.Field != "" {
		return t.Cure(err)
	}
	switch {
	case r.Status == http.StatusConflict, r.Status == http.StatusUnprocessableEntity, r.Message == payment.ErrGatewayRefused.Error():
		return fmt.Errorf("nothing was refunded (%d): %s", r.Status, strings.ReplaceAll(o.why(r), "ORDER", orderID+t.Flags))
	case r.Status >= http.StatusInternalServerError: // API Gateway's own 502 among them: the function may have crashed at any point
		return fmt.Errorf("whether the money went back is not known (%d): the same command again finds out, and makes no second refund", r.Status)
	}
	return t.Cure(err)
}

func (o refundOptions) why(r *stack.Refusal) string {
	switch r.Message {
	case payment.ErrDifferentRefund.Error():
		return "the id " + o.ask.ID + " belongs to a refund of another amount or payment: ask under another --id, or with the first amount"
	case payment.ErrDisputed.Error():
		return "the payment is disputed, and the bank may take the money back as well: wait for the outcome, or use --force"
	case payment.ErrBeyondRefundable.Error():
		return "it is more than is left of what was captured, with the refunds that are on their way"
	case payment.ErrPaymentNeeded.Error():
		return "the order has several captured payments: name one with --payment"
	case payment.ErrGatewayRefused.Error():
		return cmp.Or(refusals[payment.RefusalReason(r.Reason)], "the gateway refused: "+terminal.Printable(r.Reason))
	}
	return terminal.Printable(r.Message)
}
