// Package events is `paidonce events` and `paidonce dlq`: what a gateway delivered, what became of it, and sending it to the
// worker again.
package events

import (
	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
)

// Command is `paidonce events`.
func Command(find stack.Connector, w terminal.Surroundings) *cobra.Command {
	return eventsCommand(withQueues(find), w)
}

// DLQCommand is `paidonce dlq`.
func DLQCommand(find stack.Connector, w terminal.Surroundings) *cobra.Command {
	return dlqCommand(withQueues(find), w)
}
