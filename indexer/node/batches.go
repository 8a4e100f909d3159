package node

import "sync"

// batches is how many calls in one request an endpoint takes: halved by a refusal,
// and tried twofold after a number of answers that grows with every refusal, so
// that one misread refusal is forgotten and a real limit seldom hit.
type batches struct {
	mu    sync.Mutex
	now   int // calls in one request
	most  int
	calm  int  // answers since the last change
	wait  int  // and as many as it takes until more is tried
	tried bool // more was tried since the last refusal
}

// Answers until a larger batch is tried.
const (
	batchCalmMin = 16
	batchCalmMax = 4096
)

func (b *batches) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// refused records that so many calls were too many.
func (b *batches) refused(calls int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if calls > b.now {
		return // sent before the size was known
	}
	if b.tried {
		b.wait = min(2*b.wait, batchCalmMax)
	}
	b.now, b.calm, b.wait, b.tried = max(1, calls/2), 0, max(b.wait, batchCalmMin), false
}

func (b *batches) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calm++; b.now < b.most && b.calm >= b.wait {
		b.now, b.calm, b.tried = min(b.most, 2*b.now), 0, true
	}
}
