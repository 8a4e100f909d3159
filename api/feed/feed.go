package feed

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"repute"
	"repute/store"
)

const (
	// pollEvery leaves most of the 200 ms in which a stream has a change to the sending to thousands of streams. It
	// costs a process that somebody follows one short statement.
	pollEvery  = 50 * time.Millisecond
	finalEvery = time.Second // finality moves with blocks, not with changes
	page       = 500         // changes that are read at once
	keep       = 10_000      // newest changes that are kept in memory
)

// Feed is the change feed as the streams of a process follow it. Make one with New.
type Feed struct {
	db  *store.DB
	log *slog.Logger
	// final lets streams of final changes that are at the same place share a read.
	final singleflight.Group

	mu      sync.Mutex
	readers int
	stop    context.CancelFunc // ends the reader of the table
	recent  recent
	newest  string // cursor of the newest change that a follower may have got; kept after all have left
}

// recent are the newest changes, in order.
type recent struct {
	begins string // cursor before the first one
	known  bool   // whether begins is set
	list   []store.Change
	grown  chan struct{} // closed when the list grows
}

// New returns the feed of a database. It reads nothing until somebody follows.
func New(db *store.DB, log *slog.Logger) *Feed {
	return &Feed{db: db, log: log}
}

// Send takes changes that follow each other, none when the position alone moved. next is where a follower that ends
// here continues.
type Send func(list []store.Change, next string) error

// Follow calls send with all changes after the cursor since that f selects, in order, until ctx ends or send fails, and
// returns why. An empty since is the oldest change that is kept. repute.ErrInvalid: since is malformed; repute.ErrGone:
// the change that it names is no longer kept.
func (f *Feed) Follow(ctx context.Context, since string, filter store.ChangeFilter, send Send) error {
	f.enter()
	defer f.leave()
	if filter.Final {
		return f.followFinal(ctx, since, filter, send)
	}
	for {
		list, next, grown, ok := f.after(since)
		if !ok {
			var err error
			if list, next, err = f.db.Changes(ctx, since, page, filter); err != nil {
				return err
			}
		} else {
			list = selected(list, filter)
		}
		if next != since {
			if !ok {
				f.handOut(next)
			}
			if err := send(list, next); err != nil {
				return err
			}
			since = next
			continue
		}
		if err := f.wait(ctx, grown); err != nil {
			return err
		}
	}
}

// Newest returns the cursor of the newest change that followers may have got, also those that have left meanwhile; ""
// before the first one. It never goes back: what was read at an earlier one may hide a change that somebody knows of.
func (f *Feed) Newest() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}

// handOut notes that followers may get changes up to a cursor of the table.
func (f *Feed) handOut(next string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(next)
}

// advance is handOut for a caller that holds mu.
func (f *Feed) advance(next string) {
	at, err := cursorOf(next)
	before, _ := cursorOf(f.newest) // written by the store
	if err == nil && before.Before(at) {
		f.newest = next
	}
}

// wait returns when changes were added, or soon when it is not known which ones are new.
func (f *Feed) wait(ctx context.Context, grown <-chan struct{}) error {
	if grown == nil {
		repute.Pause(ctx, pollEvery)
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-grown:
		return nil
	}
}

// selected returns the changes that a filter selects.
func selected(list []store.Change, filter store.ChangeFilter) (out []store.Change) {
	for i := range list {
		if filter.Selects(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// followFinal is Follow for final changes. Which ones are final depends on the filter's chain, so each place is asked
// of the table, once for all that are at it.
func (f *Feed) followFinal(ctx context.Context, since string, filter store.ChangeFilter, send Send) error {
	type answer struct {
		list []store.Change
		next string
	}
	for {
		v, err, _ := f.final.Do(placeOf(since, filter), func() (any, error) {
			list, next, err := f.db.Changes(context.WithoutCancel(ctx), since, page, filter)
			return answer{list, next}, err
		})
		if err != nil {
			return err
		}
		if got := v.(answer); got.next != since {
			f.handOut(got.next)
			if err := send(got.list, got.next); err != nil {
				return err
			}
			since = got.next
			continue
		}
		repute.Pause(ctx, finalEvery)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// after returns the kept changes after a cursor, where to continue, and a channel that is closed when more are added.
// ok is false when the cursor is before the kept ones, or none are known yet.
func (f *Feed) after(since string) (list []store.Change, next string, grown <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &f.recent
	if !r.known {
		return nil, since, nil, false
	}
	at, err := cursorOf(since)
	begins, beginsErr := cursorOf(r.begins)
	if err != nil || beginsErr != nil || at.Before(begins) {
		return nil, since, nil, false // the table says what is wrong with it
	}
	first, found := slices.BinarySearchFunc(r.list, at, func(c store.Change, at store.ChangeCursor) int {
		switch its, _ := store.ParseChangeCursor(c.Cursor); { // written by the store
		case its.Before(at):
			return -1
		case at.Before(its):
			return 1
		}
		return 0
	})
	if !found && at != begins {
		return nil, since, nil, false
	}
	if found {
		first++
	}
	if list = r.list[first:]; len(list) > 0 {
		since = list[len(list)-1].Cursor
	}
	return list, since, r.grown, true
}

// cursorOf parses a cursor; the empty one is before the first change.
func cursorOf(s string) (store.ChangeCursor, error) {
	if s == "" {
		return store.ChangeCursor{}, nil
	}
	return store.ParseChangeCursor(s)
}

// enter begins to read the table with the first follower.
func (f *Feed) enter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers++; f.readers == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		f.stop, f.recent = cancel, recent{grown: make(chan struct{})}
		go f.read(ctx)
	}
}

// leave stops reading with the last follower.
func (f *Feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers--; f.readers == 0 {
		f.stop()
		f.recent = recent{}
	}
}

// read adds what the table gets to the kept changes until ctx ends.
func (f *Feed) read(ctx context.Context) {
	at, failed := "", true
	for ctx.Err() == nil {
		more, err := f.readOnce(ctx, &at, failed)
		if failed = err != nil; failed && ctx.Err() == nil {
			f.log.WarnContext(ctx, "changes cannot be read; streams wait", "error", err)
		}
		if !more {
			repute.Pause(ctx, pollEvery)
		}
	}
}

// readOnce adds the next changes after at, or begins at the newest one.
func (f *Feed) readOnce(ctx context.Context, at *string, begin bool) (more bool, err error) {
	if begin {
		if *at, err = f.db.NewestChange(ctx); err != nil {
			return false, err
		}
		f.add(ctx, nil, *at, true)
	}
	list, next, err := f.db.Changes(ctx, *at, page, store.ChangeFilter{})
	if err != nil {
		return false, err
	}
	*at = next
	f.add(ctx, list, next, false)
	return len(list) == page, nil
}

// add keeps changes and wakes followers. begins starts over: what was kept does not reach to the next changes.
func (f *Feed) add(ctx context.Context, list []store.Change, next string, begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &f.recent
	if ctx.Err() != nil || len(list) == 0 && !begins {
		return
	}
	if begins {
		r.begins, r.known, r.list = next, true, nil
	}
	r.list = append(r.list, list...)
	f.advance(next)
	if over := len(r.list) - keep; over > 0 {
		r.begins = r.list[over-1].Cursor
		r.list = slices.Clone(r.list[over:]) // followers hold parts of the old one
	}
	close(r.grown)
	r.grown = make(chan struct{})
}
