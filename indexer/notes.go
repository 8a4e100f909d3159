package indexer

import (
	"context"
	"strings"
	"sync"

	"repute/store"
	"repute/store/chaindb"
)

// note makes the outcome of a step known to Ready and, when it changed, to the
// chain's status.
func (f *Follower) note(ctx context.Context, l store.Lease, err error) {
	if err != nil {
		f.log.Warn("step failed", "error", err)
	}
	f.notes.feel(err)
	f.post(ctx, l)
}

// post publishes what there is to say, if that changed.
func (f *Follower) post(ctx context.Context, l store.Lease) {
	f.notes.posting.Lock()
	defer f.notes.posting.Unlock()
	text, changed := f.notes.text()
	if !changed {
		return
	}
	if err := chaindb.SetError(ctx, f.db, f.chain.ID, l, text, false); err != nil {
		f.notes.unpublished()
	}
}

// notes is what a follower has to say about itself. The zero value is ready.
type notes struct {
	posting sync.Mutex // what is said last must be stored last

	mu        sync.Mutex
	err       error
	stalled   string // why the watchdog barks
	limited   string // what the endpoints do not allow: shown, but no failure
	finality  string // why the node's finalized tag does not count: shown, but no failure
	published string
	known     bool // published is what the store has
}

// feel records an outcome.
func (n *notes) feel(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
}

func (n *notes) stall(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stalled = text
}

func (n *notes) limit(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.limited = text
}

func (n *notes) unfinal(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.finality = text
}

// text is what the status shows, and whether that is news to it.
func (n *notes) text() (text string, changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var parts []string
	if n.stalled != "" {
		parts = append(parts, n.stalled)
	}
	if n.err != nil {
		parts = append(parts, n.err.Error())
	}
	if n.limited != "" {
		parts = append(parts, n.limited)
	}
	if n.finality != "" {
		parts = append(parts, n.finality)
	}
	text = strings.Join(parts, "; ")
	changed = !n.known || text != n.published
	n.published, n.known = text, true
	return text, changed
}

// unpublished: what the store shows is not known.
func (n *notes) unpublished() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known = false
}

func (n *notes) ready() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}
