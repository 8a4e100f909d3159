package indexer

import (
	"context"
	"slices"
	"strings"
	"sync"

	"repute/store"
	"repute/store/chaindb"
)

// publishOutcome records the result of a step for Ready and, when the text changed, in the status of the
// chain.
func (f *Follower) publishOutcome(ctx context.Context, l store.Lease, err error) {
	if err != nil {
		f.log.Warn("step failed", "error", err)
	}
	f.status.setError(err)
	f.publishStatus(ctx, l)
}

// publishStatus stores the status text of the chain if it changed.
func (f *Follower) publishStatus(ctx context.Context, l store.Lease) {
	f.status.posting.Lock()
	defer f.status.posting.Unlock()
	text, changed := f.status.text()
	if !changed {
		return
	}
	if err := chaindb.SetError(ctx, f.db, f.chain.ID, l, text, false); err != nil {
		f.status.forgetPublished()
	}
}

// statusText is what a follower reports about itself. The zero value is ready to use.
type statusText struct {
	posting sync.Mutex // held while a text is stored, so that the newest text is stored last

	mu        sync.Mutex
	err       error
	stalled   string // why the watchdog raised the alarm, empty while blocks are stored
	limited   string // what the endpoints do not allow; no failure
	finality  string // why the finalized tag of the node does not count; no failure
	published string
	known     bool // published is what the store has
}

// setError records the error of the last step, nil when it succeeded.
func (n *statusText) setError(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
}

// set replaces one of the texts, which are fields of n.
func (n *statusText) set(field *string, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*field = text
}

// text returns the text of the status, and whether it differs from the published one.
func (n *statusText) text() (text string, changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	failed := ""
	if n.err != nil {
		failed = n.err.Error()
	}
	parts := []string{n.stalled, failed, n.limited, n.finality}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	text = strings.Join(parts, "; ")
	changed = !n.known || text != n.published
	n.published, n.known = text, true
	return text, changed
}

// forgetPublished makes the next text count as changed, because the text in the store is not known.
func (n *statusText) forgetPublished() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known = false
}

// ready returns the error of the last step, nil when it succeeded.
func (n *statusText) ready() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}
