// Package dev is `paidonce dev`: the whole application on one machine, a walk of one order through it, and a demo shop.
package dev

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/shared/localaws"
	"paidonce/shared/razorpay/razorpaytest"
)

// localMinute is how long a minute of an alarm takes, as one of a retry does.
const localMinute = time.Second

// localParameters run the template's waiting times in seconds instead of minutes.
var localParameters = map[string]string{
	"WorkerTimeoutSeconds":       "10",
	"VisibilityTimeoutSeconds":   "2", // a failed event is tried again after this
	"MaxReceiveCount":            "3",
	"AttemptTimeoutMilliseconds": "1100", // the emulator is one process, and slower than AWS under load
	"RazorpayAccountId":          "acc_LocalGateway1",
	"RetryMinuteSeconds":         "1",
	"SweepRate":                  "rate(1 minute)",
	"GatewayCallsPerSecond":      "100", // six days of slices pass in a few seconds, as everything does here
}

type options struct {
	demo                                    bool
	apiPort, gatewayPort, awsPort, shopPort int
	containerBridge                         string
	parameters                              map[string]string
}

// Command is `paidonce dev`.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run the local stack and a simulated gateway, and walk one order through them",
		Long: `Run the whole application on this machine: the real template.yaml on a local emulator, a simulated gateway in the place
of Razorpay, and a demo shop with a checkout page. Walk one order through, saying at each step what happened, then keep
serving until interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return dev(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.demo, "demo", false, "end after the walk, with exit status 0 only if each step ended as promised")
	cmd.Flags().IntVar(&o.apiPort, "api-port", 0, "port of the application's HTTP API (0: any free one)")
	cmd.Flags().IntVar(&o.gatewayPort, "gateway-port", 0, "port of the simulated gateway (0: any free one)")
	cmd.Flags().IntVar(&o.awsPort, "aws-port", 0, "port of the local AWS services (0: any free one)")
	cmd.Flags().IntVar(&o.shopPort, "shop-port", 0, "port of the demo shop's checkout page (0: any free one)")
	cmd.Flags().StringVar(&o.containerBridge, "container-bridge", "",
		"address of Docker's bridge, on Linux, for the containers of sam local invoke (often 172.17.0.1)")
	cmd.Flags().StringToStringVar(&o.parameters, "parameter", nil, "a parameter of template.yaml, as UnknownOrders=adopt")
	return cmd
}

func dev(ctx context.Context, o options) (err error) {
	checkout, err := localaws.FindCheckout("")
	if err != nil {
		return err
	}
	if err := noOtherStack(checkout); err != nil && !o.demo {
		return err
	}
	if err := o.portsAreFree(); err != nil {
		return err
	}
	c := &console{out: os.Stdout}
	c.title("Starting: the application on a local emulator, a simulated gateway, and a demo shop")
	world, err := startWorld(ctx, c, checkout, o)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, world.close()) }()
	if !o.demo {
		end, err := announce(checkout, world.stack.Info, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	t := newTourist(c, world)
	if err := t.tour(ctx); err != nil || o.demo {
		return interrupted(ctx, err)
	}
	if err := t.tryYourself(ctx); err != nil {
		return interrupted(ctx, err)
	}
	select {
	case <-ctx.Done():
		c.say("")
		c.say("Stopped.")
		return nil
	case <-world.stack.Engine.Exited():
		return errors.New("the emulator ended by itself; .local/emulator.log says why")
	}
}

// announce tells others where the stack is, until end.
func announce(checkout string, info localaws.Info, o options) (end func() error, err error) {
	if err := localaws.WriteInfo(checkout, info); err != nil {
		return nil, err
	}
	if err := writeSAMEnvironment(checkout, info); err != nil {
		return nil, err
	}
	remove := func() error { return errors.Join(localaws.RemoveInfo(checkout), removeSAMEnvironment(checkout)) }
	if o.containerBridge == "" {
		return remove, nil
	}
	server, err := serveContainers(o.containerBridge, info)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return func() error { return errors.Join(server.Close(), remove()) }, nil
}

// portsAreFree refuses to start what would fail minutes later.
func (o options) portsAreFree() error {
	for flag, port := range map[string]int{
		"--api-port": o.apiPort, "--gateway-port": o.gatewayPort, "--aws-port": o.awsPort, "--shop-port": o.shopPort,
	} {
		if port == 0 {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("port %d of 127.0.0.1 is in use: end what uses it, or choose another: make run ARGS='%s %d'", port, flag, port+1000)
		}
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}

// interrupted turns what an interrupt made fail into one line.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// noOtherStack refuses to start beside a running stack of this checkout: both would write .local/stack.json.
func noOtherStack(checkout string) error {
	info, running, err := stack.Running(checkout)
	if err != nil || !running {
		return err
	}
	return fmt.Errorf("a local stack of this checkout is already running (process %d, %s): stop it with Ctrl-C there first", info.PID, info.APIURL)
}

// world is everything that runs: the application, the gateway and the shop, each knowing the others' addresses.
type world struct {
	stack   *localaws.Stack
	gateway *razorpaytest.Gateway
	front   *storefront
}

func startWorld(ctx context.Context, c *console, checkout string, o options) (_ *world, err error) {
	secrets := localaws.SampleSecrets
	w := &world{gateway: razorpaytest.New(razorpaytest.Config{
		KeyID: secrets.KeyID, KeySecret: secrets.KeySecret, WebhookSecret: secrets.Webhook,
		AccountID: localParameters["RazorpayAccountId"],
	})}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	gatewayURL, err := w.gateway.Start(o.gatewayPort)
	if err != nil {
		return nil, err
	}
	if w.front, err = rentStorefront(o.shopPort); err != nil {
		return nil, err
	}
	parameters := map[string]string{"RazorpayApiUrl": gatewayURL, "CheckoutReturnUrl": w.front.url + "/"}
	maps.Copy(parameters, localParameters)
	maps.Copy(parameters, o.parameters)
	err = c.steps(func(begin func(step string)) error {
		w.stack, err = localaws.Start(ctx, localaws.Options{
			Checkout: checkout, APIPort: o.apiPort, AWSPort: o.awsPort, Parameters: parameters, AlarmMinute: localMinute,
			Secrets: secrets, Progress: begin,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	w.stack.GatewayURL = gatewayURL
	w.gateway.SetWebhookURL(w.stack.APIURL + "/webhooks/razorpay")
	w.front.open(&shop{api: stack.Client{URL: w.stack.APIURL, Config: w.stack.Config()}, gateway: w.gateway, log: os.Stderr})
	return w, nil
}

func (w *world) close() error {
	var errs []error
	if w.front != nil {
		errs = append(errs, w.front.close())
	}
	w.gateway.Close()
	if w.stack != nil {
		errs = append(errs, w.stack.Close())
	}
	return errors.Join(errs...)
}
