package razorpaytest

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
)

// list keeps entities, oldest first, and finds them by id.
type list[E any] struct {
	all  []*E
	byID map[string]*E
}

func newList[E any]() list[E] { return list[E]{byID: map[string]*E{}} }

func (l *list[E]) add(id string, e *E) {
	l.all = append(l.all, e)
	l.byID[id] = e
}

// get returns an entity, or nil.
func (l *list[E]) get(id string) *E { return l.byID[id] }

// window is the part of a list that a caller asks for. from and to are Unix seconds, both included; 0 is no limit.
type window struct {
	count, skip int
	from, to    int64
}

func (p window) holds(at int64) bool { return at >= p.from && (p.to == 0 || at <= p.to) }

func parsePage(query url.Values, others ...string) (window, *refusal) {
	page := window{count: 10}
	for name, values := range query {
		if slices.Contains(others, name) {
			continue
		}
		n, err := strconv.ParseInt(values[0], 10, 64)
		switch {
		case name == "count" && err == nil && n >= 1 && n <= 100:
			page.count = int(n)
		case name == "skip" && err == nil && n >= 0 && n <= 1<<30:
			page.skip = int(n)
		case name == "from" && err == nil && n >= minTime && n <= maxTime:
			page.from = n
		case name == "to" && err == nil && n >= minTime && n <= maxTime:
			page.to = n
		case slices.Contains([]string{"count", "skip", "from", "to"}, name):
			return window{}, badRequest(name, fmt.Sprintf("The %s is invalid.", name))
		default:
			return window{}, unwanted(name)
		}
	}
	return page, nil
}

// The times that lists accept, in Unix seconds.
const (
	minTime = 946684800
	maxTime = 4765046400
)

// cut returns a page of the entities that match, newest first. They are copied: the caller writes them after giving up
// the lock.
func cut[E any](all []*E, page window, matches func(*E) bool) collection[E] {
	var items []E
	skip := page.skip
	for _, e := range slices.Backward(all) {
		if len(items) == page.count {
			break
		}
		if !matches(e) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		items = append(items, *e)
	}
	return newCollection(items)
}
