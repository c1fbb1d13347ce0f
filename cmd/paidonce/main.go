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
	root.AddCommand(refundCommand(c, realWorld()), sendCommand(c, realWorld()), logsCommand(c, realWorld()))
	root.AddCommand(devCommand(), orderCommand(c), eventsCommand(c, realWorld()), dlqCommand(c, realWorld()), reconcileCommand(c, time.Now), doctorCommand(c))
	return root
}

// groupCommand holds subcommands and does nothing itself.
func groupCommand(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// takes refuses any other number of arguments than the usage line names.
func takes(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%d arguments given, %d needed: %s", len(args), n, cmd.UseLine())
		}
		return nil
	}
}
