package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

// entry is an event that an operator has a list of: its row, and its message where the list is of the dead letter queue.
type entry struct {
	key     payment.EventKey  // zero: the message names no event
	event   payment.Event     // without its body; zero where there is a problem
	problem string            // why there is no row that can be read, or empty
	message *queue.DeadLetter // nil: no queue was looked at
}

// The problems of an entry. None of them can be sent: the worker could make nothing of it.
const (
	noRow        = "no event row"
	notOurs      = "not a message of ours"
	newerMessage = "the message was written by a newer release"
	newerRow     = "the event row was written by a newer release"
)

// problemCures say what can be done about each.
var problemCures = map[string]string{
	noRow:        "its row has expired, or somebody sent it by hand; take it out with `paidonce dlq drop`",
	notOurs:      "somebody sent it by hand; take it out with `paidonce dlq drop`",
	newerMessage: "use the paidonce of that release; runbook: After a rollback",
	newerRow:     "use the paidonce of that release; runbook: After a rollback",
}

// Reasons that no verdict says.
const (
	alreadyApplied = "already applied: the worker only drops the message"
	unsaid         = "the worker ended before it could say why: its log does"
)

func (e entry) status() string {
	if e.problem != "" {
		return "-"
	}
	return string(e.event.Status)
}

// name is what the entry is called in lists.
func (e entry) name() string {
	if e.key == (payment.EventKey{}) {
		return "message " + e.message.ID
	}
	return e.key.String()
}

// reason is why the entry is where it is: short, and the same for all that have one cause.
func (e entry) reason() string {
	switch {
	case e.problem != "":
		return e.problem
	case e.message != nil && e.event.Status == payment.EventApplied:
		return alreadyApplied
	case e.message != nil && e.event.Status == payment.EventReceived:
		return unsaid
	}
	return cmp.Or(generalReason(e.event), "no reason is written")
}

var (
	gaveUp    = regexp.MustCompile(`^gave up after \d+ receives: `)
	requestID = regexp.MustCompile(`(?i)(request ?id:? ?)[\w.-]+`)
	gatewayID = regexp.MustCompile(`\b(acc|order|pay|rfnd|disp)_\w+`)
)

// generalReason is the verdict without what is of this one event: equal causes read alike then.
func generalReason(e payment.Event) string {
	reason := gaveUp.ReplaceAllString(e.Verdict, "")
	for _, name := range []string{e.Key.String(), e.Key.ID, e.OrderID} {
		reason = replaceWord(reason, name, "…")
	}
	reason = requestID.ReplaceAllString(reason, "${1}…")
	return gatewayID.ReplaceAllString(reason, "${1}_…")
}

// replaceWord replaces a word where it stands alone.
func replaceWord(text, word, by string) string {
	if word == "" {
		return text
	}
	var replaced strings.Builder
	for {
		before, rest, found := strings.Cut(text, word)
		if !found {
			return replaced.String() + text
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(rest)
		if isWordRune(last) || isWordRune(next) {
			replaced.WriteString(before + word)
		} else {
			replaced.WriteString(before + by)
		}
		text = rest
	}
}

func isWordRune(r rune) bool {
	return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// since is when the entry began: when its event was received or, without one, its message sent.
func (e entry) since() time.Time {
	if e.problem != "" && e.message != nil {
		return e.message.SentAt
	}
	return e.event.ReceivedAt
}

// readAtOnce is how many rows are read side by side.
const readAtOnce = 16

// readEntries reads the rows of the keys, once each, side by side. A row that is not there, or that a newer release wrote,
// is an entry with a problem.
func readEntries(ctx context.Context, table stack.EventKeeper, keys []payment.EventKey) (map[payment.EventKey]entry, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	found := map[payment.EventKey]entry{}
	for _, k := range keys {
		found[k] = entry{key: k}
	}
	wanted := make(chan payment.EventKey, len(found))
	for k := range found {
		wanted <- k
	}
	close(wanted)
	var mu sync.Mutex
	var readers sync.WaitGroup
	for range min(readAtOnce, len(found)) {
		readers.Go(func() {
			for k := range wanted {
				e, err := readEntry(ctx, table, k)
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				found[k] = e
				mu.Unlock()
			}
		})
	}
	readers.Wait()
	return found, context.Cause(ctx)
}

func readEntry(ctx context.Context, table stack.EventKeeper, k payment.EventKey) (entry, error) {
	e := entry{key: k}
	event, err := table.Event(ctx, k)
	switch {
	case errors.Is(err, payment.ErrNotFound):
		e.problem = noRow
	case errors.Is(err, payment.ErrNewerVersion):
		e.problem = newerRow
	case err != nil:
		return e, err
	default:
		event.Body = nil // ten thousand of them would fill the memory
		e.event = event
	}
	return e, nil
}

// letterEntries reads the rows of dead letters, which stay in their order.
func letterEntries(ctx context.Context, table stack.EventKeeper, letters []queue.DeadLetter) ([]entry, error) {
	var keys []payment.EventKey
	for _, m := range letters {
		if m.Err == nil {
			keys = append(keys, m.Key)
		}
	}
	rows, err := readEntries(ctx, table, keys)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(letters))
	for i := range letters {
		m := &letters[i]
		switch {
		case errors.Is(m.Err, payment.ErrNewerVersion):
			entries[i] = entry{problem: newerMessage}
		case m.Err != nil:
			entries[i] = entry{problem: notOurs}
		default:
			entries[i] = rows[m.Key]
		}
		entries[i].message = m
	}
	return entries, nil
}

// reasonCount is how many entries have a reason.
type reasonCount struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// byReason counts the reasons, the most frequent first.
func byReason(entries []entry) []reasonCount {
	counts := map[string]int{}
	for _, e := range entries {
		counts[e.reason()]++
	}
	all := make([]reasonCount, 0, len(counts))
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, reasonCount{reason, counts[reason]})
	}
	slices.SortStableFunc(all, func(a, b reasonCount) int { return b.Count - a.Count })
	return all
}

// reasonRows are the counts for people.
func reasonRows(counts []reasonCount) (rows [][]string) {
	for _, c := range counts {
		reason := c.Reason
		if cure := problemCures[reason]; cure != "" {
			reason += ": " + cure
		}
		rows = append(rows, []string{fmt.Sprintf("%6d", c.Count), terminal.Clip(reason, 150)})
	}
	return rows
}

// shownEntry is an entry for programs; entryJSON documents it.
type shownEntry struct {
	Event      string              `json:"event"`
	Type       string              `json:"type"`
	OrderID    string              `json:"order_id"`
	Status     payment.EventStatus `json:"status"`
	Reason     string              `json:"reason"`
	Verdict    string              `json:"verdict"`
	Attempts   int                 `json:"attempts"`
	ReceivedAt time.Time           `json:"received_at,omitzero"`
	NextAt     time.Time           `json:"next_at,omitzero"`
	Message    *shownMessage       `json:"message,omitempty"`
}

// shownMessage is a dead letter for programs.
type shownMessage struct {
	ID       string    `json:"id"`
	SentAt   time.Time `json:"sent_at,omitzero"`
	Receives int       `json:"receives"`
}

// entryJSON says what a list of entries holds with --json.
const entryJSON = `{"event": "GATEWAY/EVENT_ID", "type", "order_id", "status", "reason", "verdict", "attempts", "received_at", "next_at"}.
"status" is RECEIVED, PARKED, FAILED, IGNORED or APPLIED; empty where there is no row that can be read, and "reason" says so.
"verdict" is the row's own sentence, "reason" the same without what is of this one event. Of a dead letter there is also
"message": {"id", "sent_at", "receives"}, and "event" is empty where the message names none. Times are RFC 3339, in UTC.`

func showEntries(entries []entry) []shownEntry {
	all := make([]shownEntry, len(entries))
	for i, e := range entries {
		all[i] = shownEntry{
			Type: e.event.Type, OrderID: e.event.OrderID, Status: e.event.Status, Reason: e.reason(), Verdict: e.event.Verdict,
			Attempts: e.event.Attempts, ReceivedAt: e.event.ReceivedAt.UTC(), NextAt: e.event.NextAt.UTC(),
		}
		if e.key != (payment.EventKey{}) {
			all[i].Event = e.key.String()
		}
		if e.message != nil {
			all[i].Message = showMessage(*e.message)
		}
	}
	return all
}

func showMessage(m queue.DeadLetter) *shownMessage { return &shownMessage{m.ID, m.SentAt, m.Receives} }
