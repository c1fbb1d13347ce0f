package main

import "github.com/spf13/cobra"

// newEventsCommand is `paidonce events`.
func newEventsCommand(find connector, w surroundings) *cobra.Command {
	return eventsCommand(withQueues(find), w)
}

// newDLQCommand is `paidonce dlq`.
func newDLQCommand(find connector, w surroundings) *cobra.Command {
	return dlqCommand(withQueues(find), w)
}
