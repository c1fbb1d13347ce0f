// Command paidonce is the developer's command line: it runs the whole application on one machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := &cobra.Command{
		Use:           "paidonce",
		Short:         "Every order is paid once: fulfilled once, booked once, refunded once, never lost",
		SilenceUsage:  true,
		SilenceErrors: true, // printed below, as one line
	}
	root.AddCommand(devCommand())
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "paidonce:", err)
		os.Exit(1)
	}
}
