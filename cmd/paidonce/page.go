package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// page is text for people. It keeps the first error of writing, so that callers look once, at the end.
type page struct {
	out io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

// table writes rows with their columns aligned, below a title. No rows: nothing at all.
func (p *page) table(title string, rows [][]string) {
	if len(rows) == 0 || p.err != nil {
		return
	}
	indent := "  "
	if title != "" {
		p.line("\n  %s", title)
		indent = "    "
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
		}
		fmt.Fprintln(w, indent+strings.Join(row, "\t")) // its error comes with Flush
	}
	if err := w.Flush(); p.err == nil {
		p.err = err
	}
}

// printable is text from outside as a terminal may have it: without control characters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// moment is a time for people; "-" for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// writeJSON prints v for programs.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
