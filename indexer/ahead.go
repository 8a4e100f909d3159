package indexer

import (
	"context"
	"slices"
	"sync"
	"time"

	"repute/indexer/node"
)

// ahead fetches the ranges after the cursor while earlier ones are stored. All it
// holds are guesses: a range counts only once it is at the cursor and continues
// the stored chain, and any of them may be dropped at any time. Its methods are
// for one goroutine.
type ahead struct {
	flights []*flight // disjoint, by From
	width   int       // how many may be fetched at once
	running sync.WaitGroup
}

// flight is a range that is being fetched or was.
type flight struct {
	q      node.Query
	cancel context.CancelFunc
	done   chan struct{} // closed when piece and err are set
	piece  *piece
	err    error
}

// landed tells whether the answer is there.
func (fl *flight) landed() bool {
	select {
	case <-fl.done:
		return true
	default:
		return false
	}
}

// discard undoes what was stored of the answer ahead of its turn.
func (fl *flight) discard() {
	if fl.landed() && fl.piece != nil {
		fl.piece.stored.Discard()
	}
}

// starting finds the flight that begins at block, nil when there is none.
func (a *ahead) starting(block uint64) *flight {
	for _, fl := range a.flights {
		if fl.q.From == block {
			return fl
		}
	}
	return nil
}

// start begins to fetch q. The flight outlives the step that began it, not the
// Follower's lead.
func (a *ahead) start(ctx context.Context, q node.Query, fetch func(context.Context, node.Query) (*piece, error)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	fl := &flight{q: q, cancel: cancel, done: make(chan struct{})}
	a.running.Go(func() {
		defer cancel()
		defer close(fl.done)
		fl.piece, fl.err = fetch(ctx, q)
	})
	i, _ := slices.BinarySearchFunc(a.flights, q.From, func(f *flight, from uint64) int {
		if f.q.From < from {
			return -1
		}
		return 1
	})
	a.flights = slices.Insert(a.flights, i, fl)
}

// trim forgets everything that does not lie after the cursor as a whole.
func (a *ahead) trim(next uint64) {
	a.flights = slices.DeleteFunc(a.flights, func(fl *flight) bool {
		if fl.q.From >= next {
			return false
		}
		fl.cancel()
		fl.discard()
		return true
	})
}

// drop forgets all guesses.
func (a *ahead) drop() { a.trim(^uint64(0)) }

// close drops all and waits until nothing runs any more.
func (a *ahead) close() {
	a.drop()
	a.running.Wait()
}

// after finds the first gap at or after block: its first block, and the block
// before the next flight, ^0 when none follows.
func (a *ahead) after(block uint64) (from, end uint64) {
	for _, fl := range a.flights {
		if fl.q.From > block {
			return block, fl.q.From - 1
		}
		block = max(block, fl.q.To+1)
	}
	return block, ^uint64(0)
}

// weight is what the flights hold or will: how many are in the air, and bytes of
// all of them.
func (a *ahead) weight(p *pace) (flying, bytes int) {
	for _, fl := range a.flights {
		switch {
		case !fl.landed():
			flying++
			bytes += p.expect(fl.q.To - fl.q.From + 1)
		case fl.piece != nil:
			bytes += fl.piece.bytes
		}
	}
	return flying, bytes
}

// failed takes the flights out that landed without an answer.
func (a *ahead) failed() (out []*flight) {
	a.flights = slices.DeleteFunc(a.flights, func(fl *flight) bool {
		bad := fl.landed() && fl.err != nil
		if bad {
			out = append(out, fl)
		}
		return bad
	})
	return out
}

// widen allows one more fetch at once after the store had to wait for an answer.
func (a *ahead) widen(waited time.Duration, most int) {
	if waited > time.Millisecond {
		a.width = min(a.width+1, most)
	}
}

// narrow is for sources that fail or refuse to go as fast.
func (a *ahead) narrow() { a.width = max(1, a.width/2) }
