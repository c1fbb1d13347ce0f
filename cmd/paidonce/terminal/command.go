package terminal

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Group holds subcommands and does nothing itself.
func Group(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// Takes refuses any other number of arguments than the usage line names.
func Takes(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%d arguments given, %d needed: %s", len(args), n, cmd.UseLine())
		}
		return nil
	}
}

// Complete offers the values of a flag to the shell.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}
