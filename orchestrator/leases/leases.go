// Package leases keeps the leases of the root runs that one process works on.
//
// A Set has one lease for each run, with the function that ends the work on it. The engine calls Renew every fifth of
// the time that a lease holds: one statement extends all of them by the database's clock, however many there are. A
// run whose lease is not among those extended belongs to another process by now, and a run that somebody canceled is
// reported by the same statement: in both cases the context of the work ends, with the reason as its cause. Work that
// does not see the end in time is harmless, because every write of a run checks the fence of its lease.
//
// An error of Renew ends nothing. If the database is unavailable for longer than a lease holds, another process may
// take the run, and the next Renew that succeeds finds out.
package leases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"repute"
	"repute/store"
	"repute/store/rundb"
)

// ErrCancelled is the cause of a context whose run somebody canceled.
var ErrCancelled = errors.New("cancelled")

// Set has the leases of a process, each with the end of the work on its run. It is safe for concurrent use.
type Set struct {
	mu   sync.Mutex
	ends map[rundb.Lease]context.CancelCauseFunc
}

// New returns an empty set.
func New() *Set { return &Set{ends: map[rundb.Lease]context.CancelCauseFunc{}} }

// Keep adds a lease. The returned function removes it and ends the returned context.
func (s *Set) Keep(ctx context.Context, l rundb.Lease) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[l] = end
	return ctx, func() {
		s.mu.Lock()
		delete(s.ends, l)
		s.mu.Unlock()
		end(nil)
	}
}

// EndAll ends the work on all runs. Another process continues them when their leases expire.
func (s *Set) EndAll(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range s.ends {
		end(why)
	}
}

// Renew renews all leases in one statement, for hold from now on, and ends the work on runs that are lost
// (repute.ErrFenced) or canceled (ErrCancelled).
func (s *Set) Renew(ctx context.Context, db *store.DB, hold time.Duration) error {
	s.mu.Lock()
	kept := slices.Collect(maps.Keys(s.ends))
	s.mu.Unlock()
	if len(kept) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, hold/2)
	defer cancel()
	held, err := rundb.HoldRuns(ctx, db, kept, hold)
	if err != nil {
		return err
	}
	canceled := map[rundb.Lease]string{}
	for _, h := range held {
		canceled[h.Lease] = h.Cancel
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range kept {
		end := s.ends[l]
		why, ok := canceled[l]
		switch {
		case end == nil: // the work has ended meanwhile
		case !ok:
			end(repute.ErrFenced)
		case why != "":
			end(fmt.Errorf("%w %s", ErrCancelled, why))
		}
	}
	return nil
}
