package indexer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"repute"
	"repute/store"
)

// progress is the head and the cursor of a chain for the watchdog, which runs concurrently with the steps because
// a step that hangs cannot report itself.
type progress struct {
	mu           sync.Mutex
	head, cursor uint64
	moved        time.Time // when the cursor last moved, or the lease was taken
}

// begin resets the watch, so that time before the lease was taken does not count as a stall.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.head, p.cursor, p.moved = 0, 0, time.Now()
}

// setHead stores the newest block of the chain.
func (p *progress) setHead(head uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.head = head
}

// setCursor stores the newest indexed block. Only a change counts as progress.
func (p *progress) setCursor(cursor uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cursor != p.cursor {
		p.cursor, p.moved = cursor, time.Now()
	}
}

// stalledFor returns how long nothing was stored although the head is above the cursor, 0 when there is
// nothing to store.
func (p *progress) stalledFor() (d time.Duration, head, cursor uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head <= p.cursor {
		return 0, p.head, p.cursor
	}
	return time.Since(p.moved), p.head, p.cursor
}

// watchProgress raises the alarm when the head is above the cursor and the cursor has not
// moved for as long as Options.Stall, and ends it when it moves again.
func (f *Follower) watchProgress(ctx context.Context, l store.Lease) {
	alarmed := false
	defer f.opts.Metrics.stalled.WithLabelValues(f.label).Set(0)
	for {
		d, head, cursor := f.progress.stalledFor()
		switch stalled := d > f.opts.Stall; {
		case stalled == alarmed:
		case stalled:
			f.log.Error("chain stalled", "cursor", cursor, "head", head, "for", d.Round(time.Second))
			f.opts.Metrics.stalled.WithLabelValues(f.label).Set(1)
			f.status.set(&f.status.stalled, fmt.Sprintf("stalled: block %d is not stored since %s, the head is %d", cursor+1,
				time.Now().Add(-d).UTC().Format(time.RFC3339), head))
			f.publishStatus(ctx, l)
			alarmed = true
		default:
			f.log.Info("chain goes on", "cursor", cursor, "head", head)
			f.opts.Metrics.stalled.WithLabelValues(f.label).Set(0)
			f.status.set(&f.status.stalled, "")
			f.publishStatus(ctx, l)
			alarmed = false
		}
		if repute.Pause(ctx, f.opts.Stall/8); ctx.Err() != nil {
			f.status.set(&f.status.stalled, "")
			return
		}
	}
}
