package logs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"paidonce/cmd/paidonce/terminal"
)

// logKind is who wrote a line, and what for.
type logKind int

const (
	functionLine logKind = iota // by a function's own code, structured or not
	accessLine                  // by the API: one for each request
	platformLine                // by Lambda, about a call or a start
	metricLine                  // a metric in the Embedded Metric Format
)

// logLine is one line of a log.
type logLine struct {
	function   string
	at         time.Time // as the line itself says, if it does
	text       string
	kind       logKind
	level, msg string
	fields     []logField // the others, as they come
	failed     bool
}

// logField is an attribute of a line. The value of a string is the string, any other the JSON.
type logField struct{ key, value string }

// value is the value of an attribute, or "".
func (l logLine) value(key string) string {
	for _, f := range l.fields {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// Lambda's lines in its text format (AWS, "Lambda log formats"): of each call and start, and of what ended badly.
var (
	platformText = regexp.MustCompile(`^(?:(?:START|END|REPORT) RequestId: |INIT_START |INIT_REPORT |RESTORE_START |RESTORE_REPORT |EXTENSION\t|LOGS\t|TELEMETRY\t)`)
	platformFail = regexp.MustCompile(`Status: (?:timeout|error|failure)`)
)

// parseLogLine reads a line that a function, or the API, wrote at a time.
func parseLogLine(function string, at time.Time, text string) logLine {
	text = strings.TrimRight(text, "\r\n")
	l := logLine{function: function, at: at.UTC(), text: text}
	fields, ok := objectInOrder(text)
	if !ok {
		// Functions write JSON: plain text is a crash, a failed start, or Lambda's word that time ran out.
		l.msg, l.failed = text, strings.TrimSpace(text) != ""
		if platformText.MatchString(text) {
			l.kind, l.failed = platformLine, platformFail.MatchString(text)
		}
		return l
	}
	l.fields = fields
	switch kind := l.value("type"); {
	case l.value("_aws") != "":
		l.kind = metricLine
	case strings.HasPrefix(kind, "platform."):
		l.readPlatform(kind)
	case l.value("routeKey") != "":
		l.readAccess()
	default:
		l.level, l.msg = l.value("level"), l.value("msg")
		l.failed = l.level == "ERROR" || l.value("errorType") != ""
	}
	if written, err := time.Parse(time.RFC3339Nano, l.value("time")); err == nil {
		l.at = written.UTC()
	}
	l.fields = slices.DeleteFunc(l.fields, func(f logField) bool {
		return f.value == "" || f.key == "time" || f.key == "level" || f.key == "msg" || f.key == "type" && l.kind == platformLine
	})
	return l
}

// readPlatform reads a line of Lambda's JSON format, whose record has a status where something has ended.
func (l *logLine) readPlatform(kind string) {
	l.kind, l.msg = platformLine, kind
	var record struct {
		Status    string `json:"status"`
		ErrorType string `json:"errorType"`
	}
	_ = json.Unmarshal([]byte(l.value("record")), &record) // another form has no status that is known
	if l.failed = record.Status != "" && record.Status != "success"; l.failed {
		l.level = "ERROR"
		l.fields = append([]logField{{"error", strings.TrimSpace(record.Status + " " + record.ErrorType)}}, l.fields...)
	}
}

// readAccess reads a line of the API, as template.yaml formats it.
func (l *logLine) readAccess() {
	l.kind, l.level, l.msg = accessLine, "INFO", "request"
	if status, _ := strconv.Atoi(l.value("status")); status >= 500 {
		l.level, l.failed = "ERROR", true
	}
	l.fields = slices.DeleteFunc(l.fields, func(f logField) bool { return f.value == "-" || f.key == "requestTime" })
}

// objectInOrder are the fields of a JSON object, in their order; false if the text is something else.
func objectInOrder(text string) (fields []logField, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		key, err := d.Token()
		name, isName := key.(string)
		var value json.RawMessage
		if err != nil || !isName || d.Decode(&value) != nil {
			return nil, false
		}
		shown := ""
		if json.Unmarshal(value, &shown) != nil {
			shown = string(bytes.TrimSpace(value))
		}
		fields = append(fields, logField{name, shown})
	}
	_, err := d.Token()
	return fields, err == nil
}

func byTime(a, b logLine) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.function, b.function)) }

// showLines prints lines, below the day that they are of.
func showLines(p *terminal.Page, found logLines, limit int) {
	if found.left > 0 {
		p.Line("%s left out: --limit %d", terminal.Count(found.left, "older line"), limit)
	}
	day := ""
	for _, l := range found.lines {
		if d := l.at.Format(time.DateOnly); d != day {
			day = d
			p.Line("%s", day)
		}
		showLine(p, l)
	}
}

// callIDs are the attributes that only matter where something went wrong.
var callIDs = setOf("message_id", "invocation", "request_id", "requestId")

// rank is the order in which attributes are shown: what it is about, how it was, what came of it.
func (f logField) rank() int {
	switch {
	case ids[f.key] && !callIDs[f.key] || f.key == "item" || f.key == "event_type":
		return 0
	case f.key == "outcome":
		return 2
	case f.key == "error":
		return 3
	case callIDs[f.key]:
		return 4
	}
	return 1
}

func showLine(p *terminal.Page, l logLine) {
	var shown strings.Builder
	var below []logField
	for _, f := range slices.SortedStableFunc(slices.Values(l.fields), func(a, b logField) int { return a.rank() - b.rank() }) {
		switch {
		case callIDs[f.key] && (l.level == "INFO" || l.level == "DEBUG"):
		case strings.Contains(f.value, "\n"): // such as a stack
			below = append(below, f)
		default:
			fmt.Fprintf(&shown, " %s=%s", terminal.Printable(f.key), word(f.value))
		}
	}
	level := l.level
	if l.failed {
		level = cmp.Or(level, "ERROR")
	}
	p.Line("%s", strings.TrimRight(fmt.Sprintf("  %s  %-9s  %-5s  %s %s", l.at.Format("15:04:05.000"), l.function, terminal.Printable(level),
		terminal.Printable(strings.ReplaceAll(l.msg, "\t", "  ")), shown.String()), " "))
	for _, f := range below {
		p.Line("      %s:", terminal.Printable(f.key))
		for part := range strings.SplitSeq(strings.TrimRight(f.value, "\n"), "\n") {
			p.Line("        %s", terminal.Printable(strings.ReplaceAll(part, "\t", "  ")))
		}
	}
}

// word is a value in one word.
func word(value string) string {
	if strings.ContainsAny(value, " =\"") && !strings.HasPrefix(value, "{") && !strings.HasPrefix(value, "[") {
		return strconv.Quote(value)
	}
	return terminal.Printable(value)
}

// failureKind is what failures are counted by.
type failureKind struct{ function, what string }

// kindOf is what a line says without what is of its one event, order or payment alone.
func kindOf(l logLine) failureKind {
	what := l.msg
	switch why := l.value("error"); {
	case why != "":
		what += ": " + why
	case l.kind == accessLine:
		what = l.value("routeKey") + " answered " + l.value("status")
	case l.kind == platformLine: // in text: REPORT RequestId: ... Status: timeout
		what = strings.Fields(what)[0] + " " + platformFail.FindString(what)
	}
	var own []string
	for _, f := range l.fields {
		if ids[f.key] {
			own = append(own, f.value)
			if _, id, found := strings.Cut(f.value, "/"); found && id != "" { // an event, without its gateway
				own = append(own, id)
			}
		}
	}
	if len(own) > 0 {
		what = namesAny(own).ReplaceAllString(what, "${1}…${2}")
	}
	return failureKind{l.function, uuid.ReplaceAllString(stamp.ReplaceAllString(what, ""), "…")}
}

var (
	ids   = setOf("event", "order", "payment", "refund", "refund_request", "message_id", "request_id", "invocation")
	uuid  = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	stamp = regexp.MustCompile(`^[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ][0-9:.]+Z? `)
)

// showFailures prints how often each thing went wrong.
func showFailures(p *terminal.Page, counts map[failureKind]int) {
	kinds := make([]failureKind, 0, len(counts))
	for k := range counts {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b failureKind) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a.function, b.function), strings.Compare(a.what, b.what))
	})
	var rows [][]string
	for _, k := range kinds[:min(len(kinds), shownKinds)] {
		rows = append(rows, []string{fmt.Sprintf("%6d", counts[k]), k.function, terminal.Clip(strings.ReplaceAll(k.what, "\t", "  "), 150)})
	}
	p.Line("\nHow often:")
	p.Table("", rows)
	if more := len(kinds) - shownKinds; more > 0 {
		p.Line("  ... and %s", terminal.Count(more, "rarer kind"))
	}
}

const shownKinds = 30

func setOf(keys ...string) map[string]bool {
	s := make(map[string]bool, len(keys))
	for _, k := range keys {
		s[k] = true
	}
	return s
}
