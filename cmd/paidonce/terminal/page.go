// Package terminal is how the commands speak with whoever called them: pages of text for people, JSON for programs, questions,
// progress bars, and the command line's own grammar.
package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// Page is text for people. It keeps the first error of writing, so that callers look once, at the end.
type Page struct {
	Out io.Writer
	Err error // the first one
}

// Line writes one line.
func (p *Page) Line(format string, args ...any) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintf(p.Out, format+"\n", args...)
	}
}

// Table writes rows with their columns aligned, below a title. No rows: nothing at all.
func (p *Page) Table(title string, rows [][]string) {
	if len(rows) == 0 || p.Err != nil {
		return
	}
	indent := "  "
	if title != "" {
		p.Line("\n  %s", title)
		indent = "    "
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = Printable(cell)
		}
		fmt.Fprintln(w, indent+strings.Join(row, "\t")) // its error comes with Flush
	}
	if err := w.Flush(); p.Err == nil {
		p.Err = err
	}
}

// Printable is text from outside as a terminal may have it: without control characters.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// Moment is a time for people; "-" for none.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// WriteJSON prints v for programs.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
