package indexer

import (
	"context"
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

// setStalled records why the watchdog raised the alarm; empty while blocks are stored.
func (n *statusText) setStalled(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stalled = text
}

// setLimited records what the endpoints do not allow, which is no failure; empty for nothing.
func (n *statusText) setLimited(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.limited = text
}

// setFinality records why the node's finalized tag does not count, which is no failure; empty when
// it counts.
func (n *statusText) setFinality(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.finality = text
}

// text returns the text of the status, and whether it differs from the published one.
func (n *statusText) text() (text string, changed bool) {
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
