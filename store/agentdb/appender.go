package agentdb

import (
	"context"
	"errors"
	"sync"
	"time"

	"repute"
	"repute/store"
)

// Log appends entries of many requests together: while one statement is under way, the entries of other requests wait
// and are the next statement. A request by itself waits for nobody; under load the statements become fewer and longer.
// Entries that must survive a failure of the server's machine wait for its disk, and others do not wait for them. It is
// safe for concurrent use.
type Log struct {
	db            *store.DB
	durable, fast queue
}

// NewLog returns the log of a database.
func NewLog(db *store.DB) *Log { return &Log{db: db} }

// appendTime bounds one statement.
const appendTime = 10 * time.Second

// Add appends entries and returns when they are stored, as the function Add. If ctx ends first, they may still be
// stored.
func (l *Log) Add(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	q := &l.fast
	if mustLast(entries) {
		q = &l.durable
	}
	b, first := q.join(entries)
	if first {
		go q.work(l.db, b)
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		return store.Failed("append to the log", ctx.Err())
	}
	if b.err != nil && b.requests > 1 && !errors.Is(b.err,
		repute.ErrUnavailable) { // another request's entry can be at fault
		return Add(ctx, l.db, entries...)
	}
	return b.err
}

// queue collects the entries of the next statement while one is under way.
type queue struct {
	mu   sync.Mutex
	busy bool
	next *batch // nil: nobody waits
}

// batch is the entries of one statement.
type batch struct {
	entries  []Entry
	requests int           // whose entries they are
	done     chan struct{} // closed when err is known
	err      error
}

// join adds entries to the next statement. first reports whether none is under way: the caller MUST have the batch
// worked on.
func (q *queue) join(entries []Entry) (b *batch, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == nil {
		q.next = &batch{done: make(chan struct{})}
	}
	b = q.next
	b.entries = append(b.entries, entries...)
	b.requests++
	if first = !q.busy; first {
		q.busy, q.next = true, nil
	}
	return b, first
}

// work stores a batch, and what was collected meanwhile, until nobody waits.
func (q *queue) work(db *store.DB, b *batch) {
	for b != nil {
		ctx, cancel := context.WithTimeout(context.Background(), appendTime)
		b.err = Add(ctx, db, b.entries...)
		cancel()
		close(b.done)
		q.mu.Lock()
		b, q.next = q.next, nil
		q.busy = b != nil
		q.mu.Unlock()
	}
}
