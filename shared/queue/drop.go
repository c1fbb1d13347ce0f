package queue

import (
	"context"
	"errors"
	"slices"
)

// Dropped is what a drop came to.
type Dropped struct {
	Gone    int      // deleted
	Missing []string // ids of messages that could not be deleted, or that somebody else has or had
	Reach   Reach
}

// Drop deletes the messages with the ids and sends them nowhere; all others are left as they were. Where ctx ends, or a call fails,
// what is in hand is finished and the error says why. The same call again does the rest.
func (d *DeadLetters) Drop(ctx context.Context, ids []string) (Dropped, error) {
	open := map[string]bool{}
	for _, id := range ids {
		open[id] = true
	}
	var r Dropped
	if len(open) == 0 {
		return r, nil
	}
	p := d.newPass()
	p.enough = func() bool { return len(open) == 0 }
	p.visit = func(ctx context.Context, fresh []DeadLetter) (gone []string, err error) {
		p.mu.Lock()
		batch := slices.DeleteFunc(fresh, func(m DeadLetter) bool { return !open[m.ID] })
		p.mu.Unlock()
		if len(batch) == 0 {
			return nil, nil
		}
		deleted, err := d.delete(ctx, batch)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range deleted {
			delete(open, m.ID)
			gone = append(gone, m.ID)
		}
		r.Gone += len(deleted)
		if errors.As(err, new(refused)) { // of one message: it keeps no others
			err = nil
		}
		return gone, err
	}
	reach, err := p.run(ctx)
	r.Reach = reach
	for _, id := range ids {
		if open[id] {
			r.Missing = append(r.Missing, id)
		}
	}
	return r, err
}
