package node

import (
	"math/rand/v2"
	"time"
)

// Backoff doubles from min to max, each pause between half and all of it.
type Backoff struct{ Min, Max, last time.Duration }

// Next returns the next pause. Pauses grow with every call.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.Min), b.Max)
	return b.last/2 + rand.N(b.last/2+1)
}

// Reset begins anew, after a success.
func (b *Backoff) Reset() { b.last = 0 }
