package logs

import (
	"cmp"
	"context"
	"regexp"
	"slices"
)

const (
	// maxRelated bounds how many events and orders are followed: some word that is no id is in very many lines.
	maxRelated = 200
	// maxCalls bounds how many invocations of each function are looked at whole.
	maxCalls = 500
	// maxSteps is how far apart what is related may be: payment, order, event, and another order of that event.
	maxSteps = 4
)

// about reads the lines that name an id. related adds those of the events and orders that these name, and what else the
// invocations wrote that worked on them.
func (r logReader) about(ctx context.Context, id string, related bool, wanted func(logLine) bool, limit int) (logLines, error) {
	t := trail{id: id, followed: map[string]bool{id: true}, lines: map[logLineKey]logLine{}}
	words := []string{id}
	for range maxSteps {
		if err := r.readNamed(ctx, func(logGroup) []string { return words }, t.add); err != nil {
			return logLines{}, err
		}
		if words = t.next(); !related || len(words) == 0 {
			break
		}
	}
	if related {
		calls := t.calls()
		err := r.readNamed(ctx, func(g logGroup) []string { return calls[g.function] }, func(l logLine) {
			if !t.isForeign(l) {
				t.add(l)
			}
		})
		if err != nil {
			return logLines{}, err
		}
	}
	found := logLines{failures: map[failureKind]int{}, truncated: t.truncated}
	for _, l := range t.lines {
		if !wanted(l) {
			continue
		}
		if found.lines = append(found.lines, l); l.failed {
			found.failures[kindOf(l)]++
		}
	}
	found.keep(limit)
	return found, nil
}

// readNamed calls each with the lines that name one of the words which a group is to be asked for. No words: nothing of it.
func (r logReader) readNamed(ctx context.Context, words func(logGroup) []string, each func(logLine)) error {
	named := map[string]*regexp.Regexp{}
	asked := r
	asked.groups = nil
	for _, g := range r.groups {
		if of := words(g); len(of) > 0 {
			asked.groups, named[g.function] = append(asked.groups, g), namesAny(of)
		}
	}
	return asked.read(ctx, func(g logGroup) []string { return wordPatterns(words(g)) }, func(l logLine) {
		if l.kind != metricLine && named[l.function].MatchString(l.text) {
			each(l)
		}
	})
}

// logLineKey tells lines apart: those that are alike to the nanosecond are one.
type logLineKey struct {
	function, text string
	at             int64 // Unix nanoseconds
}

// trail is what was found on the way from an id to all that belongs to it.
type trail struct {
	id        string
	followed  map[string]bool // the id, events and orders
	lines     map[logLineKey]logLine
	truncated bool
}

func (t *trail) add(l logLine) { t.lines[logLineKey{l.function, l.text, l.at.UnixNano()}] = l }

// next are the events and orders that the lines name and that were not followed yet. From the lines of an invocation that was
// asked for, nothing is followed: a worker's has ten events of ten orders.
func (t *trail) next() (words []string) {
	for _, l := range t.lines {
		if l.value("invocation") == t.id {
			continue
		}
		for _, id := range []string{l.value("event"), l.value("order")} {
			if !fitID.MatchString(id) || t.followed[id] {
				continue
			}
			if len(t.followed) > maxRelated {
				t.truncated = true
				continue
			}
			t.followed[id], words = true, append(words, id)
		}
	}
	slices.Sort(words)
	return words
}

// calls are the invocations and requests that wrote the lines, by whose log has more of them.
func (t *trail) calls() map[string][]string {
	calls := map[string][]string{}
	for _, l := range t.lines {
		invocation, request := l.value("invocation"), cmp.Or(l.value("request_id"), l.value("requestId"))
		if fitID.MatchString(invocation) {
			calls[l.function] = append(calls[l.function], invocation)
		}
		if fitID.MatchString(request) {
			calls["api"] = append(calls["api"], request)
		}
	}
	for function, of := range calls {
		slices.Sort(of)
		calls[function] = slices.Compact(of)
		if len(calls[function]) > maxCalls {
			calls[function], t.truncated = calls[function][:maxCalls], true
		}
	}
	return calls
}

// isForeign reports whether a line is about something else that happened to be in the same invocation. Of a run of reconcile, which
// looks after everything, only what went wrong may concern this too.
func (t *trail) isForeign(l logLine) bool {
	for _, id := range []string{l.value("event"), l.value("order"), l.value("item")} {
		if id != "" && !t.followed[id] {
			return true
		}
	}
	return l.function == "reconcile" && l.kind == functionLine && l.level == "INFO" && !l.namesItem()
}

// namesItem reports whether the line says what it is about.
func (l logLine) namesItem() bool { return l.value("event")+l.value("order")+l.value("item") != "" }
