package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal/terminaltest"
)

// TestEveryCommandHasItsHelp builds all commands, each with its flags and those that it inherits.
func TestEveryCommandHasItsHelp(t *testing.T) {
	var paths []string
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		paths = append(paths, strings.TrimPrefix(c.CommandPath(), "paidonce "))
		for _, below := range c.Commands() {
			look(below)
		}
	}
	for _, c := range rootCommand(stack.Connect).Commands() {
		look(c)
	}
	for _, want := range []string{
		"dev", "order create", "order get", "order explain", "order close", "order acknowledge", "refund", "send", "logs", "doctor", "reconcile",
		"events ls", "events show", "events replay", "dlq ls", "dlq show", "dlq redrive", "dlq drop",
	} {
		if !slices.Contains(paths, want) {
			t.Errorf("there is no paidonce %s, only %q", want, paths)
		}
	}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			out, _, err := terminaltest.Run(t, rootCommand(stack.Connect).Commands(), append(strings.Fields(path), "--help")...)
			if err != nil || !strings.Contains(out, "Usage:\n  paidonce "+path) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
