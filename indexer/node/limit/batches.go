package limit

import "sync"

// Batches is the number of calls that an endpoint accepts in one request. A refusal halves it. It
// doubles again after a number of answers that grows with every refusal, so that one misread
// refusal is forgotten and a real limit is seldom exceeded. It is safe for concurrent use.
type Batches struct {
	mu    sync.Mutex
	now   int // calls in one request
	most  int
	calm  int  // answers since the last change
	wait  int  // answers that are needed before a larger number is tried
	tried bool // more was tried since the last refusal
}

// NewBatches returns a size of at most most calls, with which it starts.
func NewBatches(most int) *Batches { return &Batches{now: most, most: most} }

// Answers until a larger batch is tried.
const (
	batchCalmMin = 16
	batchCalmMax = 4096
)

// Size returns the number of calls for the next request.
func (b *Batches) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// Refused records that so many calls were too many.
func (b *Batches) Refused(calls int) {
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

// Answered counts an answered request, and doubles the number of calls when enough were answered.
func (b *Batches) Answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calm++; b.now < b.most && b.calm >= b.wait {
		b.now, b.calm, b.tried = min(b.most, 2*b.now), 0, true
	}
}
