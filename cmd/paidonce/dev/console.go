package dev

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// console tells a person what happens. It is used by one goroutine at a time.
type console struct {
	out  io.Writer
	step int
}

// title begins a numbered step.
func (c *console) title(format string, args ...any) {
	c.step++
	fmt.Fprintf(c.out, "\n%d. %s\n", c.step, fmt.Sprintf(format, args...))
}

// say prints a sentence below the step.
func (c *console) say(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		fmt.Fprintf(c.out, "   %s\n", line)
	}
}

// waiting runs do and shows that it is still at it: a spinner on a terminal, elsewhere a line now and then. Then it says
// how long it took.
func (c *console) waiting(what string, do func() error) error {
	end := c.begin(what)
	err := do()
	end(err == nil)
	return err
}

// steps runs do, which says by itself when each of its steps begins.
func (c *console) steps(do func(begin func(step string)) error) error {
	end := func(bool) {}
	err := do(func(step string) {
		end(true)
		end = c.begin(step)
	})
	end(err == nil)
	return err
}

// begin shows that something has begun, until end, which says how long it took if it was done.
func (c *console) begin(what string) (end func(done bool)) {
	started := time.Now()
	ended := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { c.showProgress(what, started, ended) })
	return func(done bool) {
		close(ended)
		shown.Wait()
		if done {
			c.say("%s: %.1f s", what, time.Since(started).Seconds())
		}
	}
}

func (c *console) showProgress(what string, started time.Time, ended <-chan struct{}) {
	interval, show := 15*time.Second, func() { c.say("%s: still at it after %.0f s", what, time.Since(started).Seconds()) }
	if file, ok := c.out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		bar := progressbar.NewOptions(-1, progressbar.OptionSetWriter(c.out), progressbar.OptionSetDescription("   "+what),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionClearOnFinish())
		defer bar.Finish()
		interval, show = 100*time.Millisecond, func() { bar.Add(1) }
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			show()
		}
	}
}
