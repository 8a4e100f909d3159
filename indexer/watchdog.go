package indexer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"repute/indexer/node"
	"repute/store"
)

// progress is how far a chain has come, for the watchdog: a step that hangs cannot
// tell of itself.
type progress struct {
	mu           sync.Mutex
	head, cursor uint64
	moved        time.Time // when the cursor was last moved, or the lead began
}

func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.head, p.cursor, p.moved = 0, 0, time.Now()
}

func (p *progress) sees(head uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.head = head
}

func (p *progress) at(cursor uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cursor != p.cursor {
		p.cursor, p.moved = cursor, time.Now()
	}
}

// still is how long nothing was stored although the head is above the cursor, 0
// when nothing is to be stored.
func (p *progress) still() (d time.Duration, head, cursor uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head <= p.cursor {
		return 0, p.head, p.cursor
	}
	return time.Since(p.moved), p.head, p.cursor
}

// watch raises the alarm when the head is above the cursor and the cursor has not
// moved for as long as Options.Stall, and ends it when it moves again.
func (f *Follower) watch(ctx context.Context, l store.Lease) {
	barking := false
	defer f.opts.Metrics.stalled.WithLabelValues(f.label).Set(0)
	for {
		d, head, cursor := f.progress.still()
		switch stalled := d > f.opts.Stall; {
		case stalled == barking:
		case stalled:
			f.log.Error("chain stalled", "cursor", cursor, "head", head, "for", d.Round(time.Second))
			f.opts.Metrics.stalled.WithLabelValues(f.label).Set(1)
			f.notes.stall(fmt.Sprintf("stalled: block %d is not stored since %s, the head is %d", cursor+1,
				time.Now().Add(-d).UTC().Format(time.RFC3339), head))
			f.post(ctx, l)
			barking = true
		default:
			f.log.Info("chain goes on", "cursor", cursor, "head", head)
			f.opts.Metrics.stalled.WithLabelValues(f.label).Set(0)
			f.notes.stall("")
			f.post(ctx, l)
			barking = false
		}
		if node.Pause(ctx, f.opts.Stall/8); ctx.Err() != nil {
			f.notes.stall("")
			return
		}
	}
}
