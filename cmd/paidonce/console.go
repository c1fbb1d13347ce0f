package main

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

// waiting runs do and shows that it is still at it: a spinner on a terminal, elsewhere a line every five seconds. Then
// it says how long it took.
func (c *console) waiting(what string, do func() error) error {
	begin := time.Now()
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { c.showProgress(what, begin, done) })
	err := do()
	close(done)
	shown.Wait()
	if err == nil {
		c.say("%s: %.1f s", what, time.Since(begin).Seconds())
	}
	return err
}

func (c *console) showProgress(what string, begin time.Time, done <-chan struct{}) {
	interval, show := 5*time.Second, func() { c.say("%s: still at it after %.0f s", what, time.Since(begin).Seconds()) }
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
		case <-done:
			return
		case <-ticker.C:
			show()
		}
	}
}
