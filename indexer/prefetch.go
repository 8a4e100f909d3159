package indexer

import (
	"context"
	"slices"
	"sync"
	"time"

	"repute/indexer/node"
)

// prefetcher fetches the ranges after the cursor while earlier ones are stored. A fetched range
// counts only when it is at the cursor and continues the stored chain, and any range may be dropped
// at any time. Its methods MUST be called by one goroutine.
type prefetcher struct {
	ranges  []*pendingRange // disjoint, in the order of q.From
	width   int             // how many may be fetched at once
	running sync.WaitGroup
}

// pendingRange is a range that is being fetched or was fetched.
type pendingRange struct {
	q      node.Query
	cancel context.CancelFunc
	done   chan struct{} // closed when piece and err are set
	piece  *piece
	err    error
}

// answered reports whether the fetch has ended, with a piece or an error.
func (pr *pendingRange) answered() bool {
	select {
	case <-pr.done:
		return true
	default:
		return false
	}
}

// discard removes what was already stored of the range before its predecessor was committed.
func (pr *pendingRange) discard() {
	if pr.answered() && pr.piece != nil {
		pr.piece.stored.Discard()
	}
}

// startingAt returns the range that begins at block, nil when there is none.
func (a *prefetcher) startingAt(block uint64) *pendingRange {
	for _, pr := range a.ranges {
		if pr.q.From == block {
			return pr
		}
	}
	return nil
}

// start begins to fetch q. The fetch may outlast the step that began it, but not the lease.
func (a *prefetcher) start(ctx context.Context, q node.Query, fetch func(context.Context, node.Query) (*piece, error)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	pr := &pendingRange{q: q, cancel: cancel, done: make(chan struct{})}
	a.running.Go(func() {
		defer cancel()
		defer close(pr.done)
		pr.piece, pr.err = fetch(ctx, q)
	})
	i, _ := slices.BinarySearchFunc(a.ranges, q.From, func(f *pendingRange, from uint64) int {
		if f.q.From < from {
			return -1
		}
		return 1
	})
	a.ranges = slices.Insert(a.ranges, i, pr)
}

// dropBelow cancels and drops the ranges that begin before block next.
func (a *prefetcher) dropBelow(next uint64) {
	a.ranges = slices.DeleteFunc(a.ranges, func(pr *pendingRange) bool {
		if pr.q.From >= next {
			return false
		}
		pr.cancel()
		pr.discard()
		return true
	})
}

// dropAll cancels and drops all ranges.
func (a *prefetcher) dropAll() { a.dropBelow(^uint64(0)) }

// close drops all ranges and waits until no fetch runs.
func (a *prefetcher) close() {
	a.dropAll()
	a.running.Wait()
}

// firstGap returns the first blocks from block on that no range covers: the first of them, and the one
// before the next range, ^0 when no range follows.
func (a *prefetcher) firstGap(block uint64) (from, end uint64) {
	for _, pr := range a.ranges {
		if pr.q.From > block {
			return block, pr.q.From - 1
		}
		block = max(block, pr.q.To+1)
	}
	return block, ^uint64(0)
}

// held returns how many ranges are being fetched, and the bytes that all ranges hold or will hold.
func (a *prefetcher) held(p *rangeSizer) (flying, bytes int) {
	for _, pr := range a.ranges {
		switch {
		case !pr.answered():
			flying++
			bytes += p.expectedBytes(pr.q.To - pr.q.From + 1)
		case pr.piece != nil:
			bytes += pr.piece.bytes
		}
	}
	return flying, bytes
}

// takeFailed removes and returns the ranges whose fetch failed.
func (a *prefetcher) takeFailed() (out []*pendingRange) {
	a.ranges = slices.DeleteFunc(a.ranges, func(pr *pendingRange) bool {
		bad := pr.answered() && pr.err != nil
		if bad {
			out = append(out, pr)
		}
		return bad
	})
	return out
}

// widen allows one more fetch at once after the store had to wait for an answer.
func (a *prefetcher) widen(waited time.Duration, most int) {
	if waited > time.Millisecond {
		a.width = min(a.width+1, most)
	}
}

// narrow halves the number of fetches at once, after a source failed or refused the rate.
func (a *prefetcher) narrow() { a.width = max(1, a.width/2) }
