// Package send is `paidonce send`, which signs webhook events and delivers them as the gateway does, and in all the ways in which
// deliveries go wrong.
package send

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/apigw"
	"paidonce/shared/payment"
	"paidonce/shared/razorpay"
)

// options are the command's flags.
type options struct {
	target                         stack.Options
	label, eventID, order, payment string
	sets                           []string
	dup, drop, concurrency         int
	seed                           uint64
	shuffle, live, forge, print    bool
	delay, wait                    time.Duration
	asJSON                         bool
}

// target is the stack that the command is about, with what makes an event the gateway's.
type target struct {
	stack.Target
	signing func(context.Context) (signing, error)
}

// connector finds the stack that the options name.
type connector func(context.Context, stack.Options) (target, error)

// Command is `paidonce send`.
func Command(find stack.Connector, w terminal.Surroundings) *cobra.Command {
	return command(withSigning(find), w)
}

// withSigning reads the secrets of the stack that is found, once they are needed.
func withSigning(find stack.Connector) connector {
	return func(ctx context.Context, o stack.Options) (target, error) {
		t, err := find(ctx, o)
		return target{t, func(ctx context.Context) (signing, error) { return openSigning(ctx, t.Deployed) }}, err
	}
}

func command(find connector, w terminal.Surroundings) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "send FILE...",
		Short: "Sign webhook events and send them, as the gateway does",
		Long: `Sign webhook events with the stack's own webhook secret and send them to it. A FILE is a body as the gateway sends it, or an
event for the webhook function as in events/, of which the body is taken; - is the standard input. The bytes go out as they are,
but for what --order and --set put in.

--order makes a sample one of an order of yours: it puts in the order's gateway order id, amount and currency, the stack's account
id, and one fresh payment id for all files, so that payment.authorized, payment.captured and order.paid tell of one payment. The gateway
itself knows of no such payment: reconcile does not find it there, and it cannot be refunded.

A signed event is money: an order that it pays is fulfilled. A secret with a live label signs only with --live.

The exit status is 1 if an answer is not 2xx (with --forge: not 401), or with --wait if an event was not applied.`,
		Example: `  paidonce send events/webhook-payment-captured.json --order order-417 --wait 10s
  paidonce send events/webhook-payment-*.json --order order-417 --dup 2 --shuffle --concurrency 8
  paidonce send body.json --set payload.payment.entity.amount=100
  paidonce send events/webhook-payment-captured.json --order order-417 --print > event.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name a file: paidonce send events/webhook-payment-captured.json (- is the standard input)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return o.run(cmd, find, w, args)
		},
	}
	o.target.AddTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.order, "order", "", "make the events those of this `ORDER`")
	flags.StringVar(&o.payment, "payment", "", "with --order: the `ID` of the payment (default: a fresh one)")
	flags.StringArrayVar(&o.sets, "set", nil, "put a value into the body, `PATH=VALUE` as payload.payment.entity.amount=100; JSON, else a string; may be repeated")
	flags.StringVar(&o.eventID, "event-id", "", "event `ID` of every file; an empty one sends none (default: a fresh one for each)")
	flags.StringVar(&o.label, "label", testCurrent, "`LABEL` of the webhook secret to sign with")
	flags.BoolVar(&o.live, "live", false, "allow a secret of live mode: what is sent is money")
	flags.BoolVar(&o.forge, "forge", false, "sign wrongly: the answer must be 401")
	flags.IntVar(&o.dup, "dup", 0, "send each `N` more times, with the same bytes and id")
	flags.BoolVar(&o.shuffle, "shuffle", false, "send in a random order")
	flags.IntVar(&o.drop, "drop", 0, "leave out each file with a chance of this many `PERCENT`, and say which")
	flags.Uint64Var(&o.seed, "seed", 0, "`NUMBER` behind --shuffle and --drop, to repeat what was (default: a fresh one, printed)")
	flags.DurationVar(&o.delay, "delay", 0, "wait this long before each but the first, as 200ms")
	flags.IntVar(&o.concurrency, "concurrency", 1, "send `N` at a time")
	flags.DurationVar(&o.wait, "wait", 0, "with --order: wait this long at most for what becomes of the events, and show the order")
	flags.BoolVar(&o.print, "print", false, "print the signed event as the function gets it, for sam local invoke -e, instead of sending it")
	flags.BoolVar(&o.asJSON, "json", false, "print what was sent and answered as JSON, for programs")
	cmd.MarkFlagsMutuallyExclusive("print", "json")
	cmd.MarkFlagsMutuallyExclusive("forge", "wait")
	terminal.Complete(cmd, "label", "test_current", "test_previous", "live_current", "live_previous")
	return cmd
}

const testCurrent = "test_current"

func (o options) check(cmd *cobra.Command, files []string) error {
	mode, known := razorpay.ModeOf(o.label)
	stdin := 0
	for _, f := range files {
		if f == "-" {
			stdin++
		}
	}
	switch {
	case !known:
		return fmt.Errorf("--label %q is none: it is test_current, test_previous, live_current or live_previous", o.label)
	case mode == payment.Live && !o.live && !o.forge:
		return fmt.Errorf("%s signs for live mode, and a signed event is money: add --live if that is meant", o.label)
	case o.order != "" && !stack.IsOrderID(o.order):
		return fmt.Errorf("--order %q is not an order id: it has 1 to 40 letters, digits, _ . or -, and begins with a letter or digit", o.order)
	case o.payment != "" && o.order == "":
		return errors.New("--payment belongs to --order; without, use --set payload.payment.entity.id=ID")
	case o.wait != 0 && o.order == "":
		return errors.New("--wait shows an order: name it with --order")
	case o.dup < 0 || o.dup > 1000 || o.drop < 0 || o.drop > 100 || o.concurrency < 1 || o.concurrency > 200:
		return errors.New("--dup is 0 to 1000 more times, --drop 0 to 100 percent, --concurrency 1 to 200 at a time")
	case o.delay < 0 || o.wait < 0:
		return errors.New("--delay and --wait are durations: write them as 200ms or 10s")
	case stdin > 1:
		return errors.New("the standard input can be read once: name - once")
	case o.print && (len(files) > 1 || o.dup > 0 || o.drop > 0):
		return errors.New("--print prints one event: name one file, without --dup and --drop")
	case strings.ContainsFunc(o.eventID, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("--event-id goes into a header: it has visible characters only")
	}
	return nil
}

func (o options) run(cmd *cobra.Command, find connector, w terminal.Surroundings, files []string) error {
	ctx := cmd.Context()
	sets, err := parseAssignments(o.sets)
	if err != nil {
		return err
	}
	events, err := readEvents(files, cmd.InOrStdin())
	if err != nil {
		return err
	}
	t, err := find(ctx, o.target)
	if err != nil {
		return t.Cure(err)
	}
	s, err := o.openSigning(ctx, t)
	if err != nil {
		return err
	}
	var f fill
	if o.order != "" {
		if f, err = o.fill(ctx, t, s); err != nil {
			return err
		}
	}
	for i := range events {
		e := &events[i]
		if o.order != "" {
			e.body, err = f.into(e.body)
		}
		if err == nil {
			e.body, err = assign(e.body, sets)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", terminal.Printable(e.file), err)
		}
		e.kind, e.id = kindOfBody(e.body), o.eventID
		if !cmd.Flags().Changed("event-id") {
			e.id = "send_" + rand.Text()[:16]
		}
		e.signature = razorpay.Sign(e.body, s.secret)
	}
	if o.print {
		return printInvocation(cmd.OutOrStdout(), t.API.URL, events[0], w.Now())
	}
	if (o.shuffle || o.drop > 0) && !cmd.Flags().Changed("seed") {
		o.seed = freshSeed()
	}
	plan := planDeliveries(len(events), o.dup, o.drop, o.shuffle, o.seed)
	return o.deliver(cmd, w, t, events, plan)
}

// freshSeed is small enough to be typed, and to be exact in any JSON.
func freshSeed() uint64 {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000_000))
	if err != nil {
		panic(err) // the system's source of randomness never fails (crypto/rand)
	}
	return n.Uint64()
}

// sendReport is what was sent and answered, for programs.
type sendReport struct {
	Seed       *uint64      `json:"seed,omitempty"` // where chance took part
	Dropped    []string     `json:"dropped"`        // files
	Deliveries []delivered  `json:"deliveries"`     // as they were answered
	Events     []settledOne `json:"events,omitempty"`
	Order      *apigw.Order `json:"order,omitempty"`
}

// deliver sends what is planned and says what came of it.
func (o options) deliver(cmd *cobra.Command, w terminal.Surroundings, t target, events []webhookEvent, plan deliveryPlan) error {
	p := &terminal.Page{Out: cmd.OutOrStdout()}
	if o.asJSON {
		p.Out = io.Discard
	}
	report := sendReport{Dropped: []string{}, Deliveries: []delivered{}}
	if o.shuffle || o.drop > 0 {
		report.Seed = &o.seed
		p.Line("seed %d: --seed %d sends in the same way again", o.seed, o.seed)
	}
	for _, i := range plan.dropped {
		report.Dropped = append(report.Dropped, events[i].file)
		p.Line("dropped: %s, %s", terminal.Printable(events[i].file), terminal.Printable(events[i].kind))
	}
	d := deliverer{client: http.DefaultClient, url: t.API.URL + webhookPath, delay: o.delay, concurrency: o.concurrency, w: w}
	kinds, ids := widths(events)
	var taken []payment.EventKey
	failed := 0
	stopped := d.deliver(cmd.Context(), events, plan.order, func(i int, one delivered) {
		if one.OK = o.expected(one.Status); !one.OK {
			failed++
		} else if k := events[i].key(); !slices.Contains(taken, k) {
			taken = append(taken, k)
		}
		report.Deliveries = append(report.Deliveries, one)
		p.Line("%-*s  %-*s  %3d  %s", kinds, terminal.Printable(one.Type), ids, terminal.OrDash(one.EventID), one.Status, terminal.Printable(one.Answer))
	})
	var errs []error
	switch {
	case stopped != nil:
		errs = append(errs, fmt.Errorf("interrupted: %d of %d sent", len(report.Deliveries), len(plan.order)))
	case failed > 0:
		errs = append(errs, o.complaint(t, report.Deliveries, failed))
	}
	if o.wait > 0 && stopped == nil {
		errs = append(errs, o.follow(cmd.Context(), w, t, taken, &report, p))
	}
	if o.asJSON {
		p.Err = terminal.WriteJSON(cmd.OutOrStdout(), report)
	}
	return inOneLine(append(errs, p.Err))
}

func widths(events []webhookEvent) (kinds, ids int) {
	for _, e := range events {
		kinds, ids = max(kinds, len([]rune(e.kind))), max(ids, len(e.id))
	}
	return kinds, ids
}

// expected reports whether an answer is as it should be.
func (o options) expected(status int) bool {
	if o.forge {
		return status == http.StatusUnauthorized
	}
	return status >= 200 && status < 300
}

// complaint says what the answers that were not as they should be have in common, if they have.
func (o options) complaint(t target, all []delivered, failed int) error {
	want := "2xx"
	if o.forge {
		want = "401"
	}
	statuses := map[int]bool{}
	for _, d := range all {
		if !d.OK {
			statuses[d.Status] = true
		}
	}
	cure := "`paidonce logs --errors" + t.Flags + "` says why"
	switch {
	case len(statuses) > 1:
	case statuses[0]:
		cure = fmt.Sprintf("%s did not answer: check that it is still there, and the network", t.Name)
	case statuses[http.StatusUnauthorized]:
		cure = "the functions keep a secret for some minutes: if it was just rotated, try again then"
	case statuses[http.StatusTooManyRequests]:
		cure = "the API throttles (parameter ThrottleRate): send fewer at a time, with --delay"
	case o.forge && statuses[http.StatusOK]:
		cure = "a wrong signature was taken: look at once, " + cure
	}
	return fmt.Errorf("%d of %d were not answered %s: %s", failed, len(all), want, cure)
}

// inOneLine puts several errors into one line.
func inOneLine(errs []error) error {
	var lines []string
	for _, err := range errs {
		if err != nil {
			lines = append(lines, err.Error())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "; "))
}

// fill reads what of the order goes into the bodies.
func (o options) fill(ctx context.Context, t target, s signing) (fill, error) {
	order, err := t.API.Order(ctx, o.order)
	switch {
	case stack.IsGone(err):
		return fill{}, fmt.Errorf("%s has no order %s: make it with `paidonce order create %s --amount 49900 --currency INR%s`", t.Name, o.order, o.order, t.Flags)
	case err != nil:
		return fill{}, t.Cure(err)
	case order.GatewayOrderID == nil:
		return fill{}, fmt.Errorf("order %s has no order at the gateway yet: `paidonce order create %s --amount %d --currency %s%s` makes it one",
			o.order, o.order, order.Amount, order.Currency, t.Flags)
	}
	f := fill{account: s.account, gatewayOrder: *order.GatewayOrderID, payment: o.payment, amount: order.Amount, currency: order.Currency}
	if f.payment == "" {
		f.payment = "pay_" + rand.Text()[:14]
	}
	return f, nil
}
