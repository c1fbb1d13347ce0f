package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Surroundings are what a command needs of the world beside the stack.
type Surroundings struct {
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error // ctx's error where that ends first
	Asks  func(*cobra.Command) bool                  // whether somebody can be asked
}

// RealWorld has the machine's clock, and asks where input and output are a terminal.
func RealWorld() Surroundings {
	return Surroundings{
		Now: time.Now,
		Sleep: func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return nil
			}
		},
		Asks: func(cmd *cobra.Command) bool { return isTerminal(cmd.InOrStdin()) && isTerminal(cmd.OutOrStdout()) },
	}
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// NewBar is a progress bar where the output is a terminal and for people, elsewhere one that is not seen. -1: of unknown length.
func NewBar(cmd *cobra.Command, length int, what string, asJSON bool) *progressbar.ProgressBar {
	if asJSON || !isTerminal(cmd.OutOrStdout()) {
		return progressbar.DefaultSilent(int64(length))
	}
	return progressbar.NewOptions(length, progressbar.OptionSetWriter(cmd.OutOrStdout()), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(length > 0), progressbar.OptionClearOnFinish())
}

// Agrees asks, and waits for an answer or for ctx to end.
func Agrees(cmd *cobra.Command, question string) (bool, error) {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		if err != nil && err != io.EOF {
			line = ""
		}
		answers <- line
	}()
	select {
	case <-cmd.Context().Done():
		fmt.Fprintln(cmd.ErrOrStderr())
		return false, cmd.Context().Err()
	case line := <-answers:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		}
		return false, nil
	}
}
