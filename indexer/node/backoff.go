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

// Doubled returns least, doubled a number of times up to most, with Jitter.
func Doubled(least, most time.Duration, times int) time.Duration {
	for range times {
		if least >= most/2 {
			return Jitter(most)
		}
		least *= 2
	}
	return Jitter(least)
}

// Jitter changes a pause by up to a tenth in either direction, so that what failed together is not tried again
// together.
func Jitter(d time.Duration) time.Duration { return d - d/10 + rand.N(d/5+1) }

// Reset begins anew, after a success.
func (b *Backoff) Reset() { b.last = 0 }
