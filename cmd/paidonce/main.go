// Command paidonce is the command line of developers and operators. It runs the whole application on one machine, and
// shows and settles what happened to an order, there or on AWS.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := rootCommand(connect).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "paidonce:", err)
		os.Exit(1)
	}
}

func rootCommand(c connector) *cobra.Command {
	root := &cobra.Command{
		Use:           "paidonce",
		Short:         "Every order is paid once: fulfilled once, booked once, never lost",
		SilenceUsage:  true,
		SilenceErrors: true, // printed by main, as one line
	}
	root.AddCommand(refundCommand(c, realWorld()), newSendCommand(c, realWorld()), newLogsCommand(c, realWorld()))
	root.AddCommand(devCommand(), orderCommand(c), newEventsCommand(c, realWorld()), newDLQCommand(c, realWorld()), newReconcileCommand(c, time.Now), doctorCommand(c))
	return root
}
