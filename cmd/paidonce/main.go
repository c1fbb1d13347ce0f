// Command paidonce is the command line of developers and operators. It runs the whole application on one machine, and
// shows and settles what happened to an order, there or on AWS.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/dev"
	"paidonce/cmd/paidonce/doctor"
	"paidonce/cmd/paidonce/events"
	"paidonce/cmd/paidonce/logs"
	"paidonce/cmd/paidonce/order"
	"paidonce/cmd/paidonce/reconcile"
	"paidonce/cmd/paidonce/send"
	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := rootCommand(stack.Connect).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "paidonce:", err)
		os.Exit(1)
	}
}

func rootCommand(find stack.Connector) *cobra.Command {
	root := &cobra.Command{
		Use:           "paidonce",
		Short:         "Every order is paid once: fulfilled once, booked once, never lost",
		SilenceUsage:  true,
		SilenceErrors: true, // printed by main, as one line
	}
	w := terminal.RealWorld()
	root.AddCommand(
		dev.Command(),
		order.Command(find), order.RefundCommand(find, w),
		events.Command(find, w), events.DLQCommand(find, w),
		reconcile.Command(find, w.Now),
		doctor.Command(find), logs.Command(find, w), send.Command(find, w),
	)
	return root
}
