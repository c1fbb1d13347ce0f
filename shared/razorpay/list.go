package razorpay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"paidonce/shared/payment"
)

// errNoID refuses an empty or odd id before it changes which resource the URL names. The gateway has none such.
var errNoID = errors.New("not an id")

var errOther = errors.New("the answer is about something else than was asked for")

// decoded turns an entity of an answer into what callers get.
func decoded[V any](convert func() (V, error)) (V, error) {
	value, err := convert()
	if err != nil {
		return value, fmt.Errorf("%w: %w", ErrUndecodable, err)
	}
	return value, nil
}

// collect decodes all entities. Offset paging shows an entity twice when another comes in meanwhile: of those with the
// same id the one that was read last is kept, where the first stood.
func collect[E, V any](entities []E, convert func(*E) (V, error), id func(V) string) ([]V, error) {
	var all []V
	at := map[string]int{}
	for i := range entities {
		value, err := decoded(func() (V, error) { return convert(&entities[i]) })
		if err != nil {
			return nil, err
		}
		if place, seen := at[id(value)]; seen {
			all[place] = value
			continue
		}
		at[id(value)] = len(all)
		all = append(all, value)
	}
	return all, nil
}

// readable decodes those of the entities that can be read, like collect, and tells of the others by a
// [*payment.UnreadableError]: one odd payment must not hide all that were made in the same minutes.
func readable[E, V any](raw []json.RawMessage, convert func(*E) (V, error), id func(V) string) ([]V, error) {
	var entities []E
	unreadable := &payment.UnreadableError{}
	for _, text := range raw {
		var entity E
		err := json.Unmarshal(text, &entity)
		if mismatch := new(json.UnmarshalTypeError); errors.As(err, &mismatch) {
			err = wrongType(mismatch)
		}
		if err == nil {
			_, err = convert(&entity)
		}
		if err != nil {
			unreadable.Count++
			unreadable.Cause = cmp.Or(unreadable.Cause, fmt.Errorf("%w: %w", ErrUndecodable, err))
			continue
		}
		entities = append(entities, entity)
	}
	values, err := collect(entities, convert, id)
	if err == nil && unreadable.Count > 0 {
		err = unreadable
	}
	return values, err
}

// window is the query for what was created from one time to another, both included, to the second.
func window(from, to time.Time) url.Values {
	return url.Values{"from": {strconv.FormatInt(from.Unix(), 10)}, "to": {strconv.FormatInt(to.Unix(), 10)}}
}

// collection is the gateway's list of entities.
type collection[E any] struct {
	Count *int `json:"count"`
	Items []E  `json:"items"`
}

// check refuses an answer that is no collection, or an incomplete one. Either would pass for an empty list.
func (l collection[E]) check() error {
	if l.Count == nil || *l.Count != len(l.Items) {
		return fmt.Errorf("%w: not a whole collection", ErrUndecodable)
	}
	return nil
}

const (
	pageSize = 100 // the gateway's maximum; without a count it shows 10
	maxPages = 100
)

// pages reads a list whole, and adds to query what that takes. Past 10000 entities it fails rather than return a part.
func pages[E any](ctx context.Context, c *Client, path string, query url.Values) ([]E, error) {
	query.Set("count", strconv.Itoa(pageSize))
	var all []E
	for page := range maxPages {
		query.Set("skip", strconv.Itoa(page*pageSize))
		var answer collection[E]
		if err := c.get(ctx, path, query, &answer); err != nil {
			return nil, err
		}
		if err := answer.check(); err != nil {
			return nil, err
		}
		all = append(all, answer.Items...)
		if len(answer.Items) < pageSize {
			return all, nil
		}
	}
	return nil, fmt.Errorf("%w: more than %d entities", payment.ErrTooMany, maxPages*pageSize)
}
