package order

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/cmd/paidonce/view"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
)

// minorUnits is a flag's amount: a whole number above 0 of paise, cents, yen.
type minorUnits int64

// String implements pflag.Value.
func (m *minorUnits) String() string { return strconv.FormatInt(int64(*m), 10) }

// Type implements pflag.Value.
func (m *minorUnits) Type() string { return "MINOR-UNITS" }

// Set implements pflag.Value.
func (m *minorUnits) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > payment.MaxAmount {
		return errors.New("it is a whole number above 0 of minor units: 49900 is 499.00 INR")
	}
	*m = minorUnits(n)
	return nil
}

// createCommand is the command, and what it does; [Command] adds the rest.
func createCommand() (*cobra.Command, work) {
	var amount minorUnits
	a := stack.OrderAsk{}
	cmd := &cobra.Command{
		Use:   "create ID --amount MINOR-UNITS --currency CODE",
		Short: "Make an order, here and at the gateway",
		Long: `Make an order, here and at the gateway, and show what the browser's checkout needs to be opened. Amounts are in minor units:
--amount 49900 --currency INR is 499.00 INR. The same call again makes no second order: it shows the first.`,
		Example: `  paidonce order create order-417 --amount 49900 --currency INR`,
	}
	cmd.Flags().Var(&amount, "amount", "what the order costs, in minor units: 49900 is 499.00 INR")
	cmd.Flags().StringVar(&a.Currency, "currency", "", "`CODE` of the currency, as INR")
	cmd.Flags().StringVar(&a.Gateway, "gateway", stack.GatewayName, "`NAME` of the gateway that takes the money")
	require(cmd, "amount", "currency")
	terminal.Complete(cmd, "currency", "INR", "USD", "EUR")
	terminal.Complete(cmd, "gateway", stack.GatewayName)
	return cmd, func(ctx context.Context, t stack.Target, id string, _ []string) (report, error) {
		a.ID, a.Amount, a.Currency = id, int64(amount), strings.ToUpper(a.Currency)
		if !payment.IsCurrency(a.Currency) {
			return report{}, fmt.Errorf("--currency %q is none: it is three letters, as INR", a.Currency)
		}
		return createOrder(ctx, t, a)
	}
}

func createOrder(ctx context.Context, t stack.Target, a stack.OrderAsk) (report, error) {
	o, made, err := t.API.OpenOrder(ctx, a)
	if r := new(stack.Refusal); errors.As(err, &r) && r.Field == "" {
		if cured := cureCreate(r, a, t.Flags); cured != nil {
			return report{}, cured
		}
	}
	return report{o, func(p *terminal.Page) {
		money := payment.Money{Amount: a.Amount, Currency: a.Currency}
		if made {
			p.Line("Made: order %s of %s.\n", o.ID, money)
		} else {
			p.Line("Order %s of %s was there already: nothing was made.\n", o.ID, money)
		}
		view.Order(p, o.Order, t.Flags)
		p.Table("For the browser's checkout", [][]string{
			{"key_id", o.Checkout.KeyID}, {"gateway_order_id", o.Checkout.GatewayOrderID},
			{"amount", strconv.FormatInt(o.Checkout.Amount, 10)}, {"currency", o.Checkout.Currency},
		})
	}}, err
}

// cureCreate says what an answer means for whoever makes an order; nil: the same as everywhere.
func cureCreate(r *stack.Refusal, a stack.OrderAsk, flags string) error {
	switch {
	case r.Status == http.StatusConflict && r.Message == apigw.ErrClosed.Error():
		return fmt.Errorf("order %s is there already, and closed: take another id", a.ID)
	case r.Status == http.StatusConflict:
		return fmt.Errorf("order %s is there already, of another amount, currency or gateway: take another id, or look: paidonce order get %s%s", a.ID, a.ID, flags)
	case r.Message == payment.ErrGatewayRefused.Error():
		return fmt.Errorf("order %s was not made, the gateway refused it (%s), and the id is free: `paidonce doctor%s` checks the API key", a.ID, terminal.Printable(r.Reason), flags)
	case r.Status >= http.StatusInternalServerError:
		return fmt.Errorf("whether order %s was made is not known (%d): the same command again finds out, and makes no second one", a.ID, r.Status)
	}
	return nil
}
