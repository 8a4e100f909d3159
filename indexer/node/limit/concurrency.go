package limit

import "time"

// concurrency bounds the requests in flight. The bound grows with successes and halves with
// timeouts and refusals. It is guarded by the lock of its Limiter.
type concurrency struct {
	most     float64        // upper bound of limit
	limit    float64        // requests in flight that are allowed now
	inFlight int            // requests in flight
	halved   time.Time      // when limit was last halved
	freed    chan time.Time // closed when a request ends
}

const (
	// startConcurrency is the number of simultaneous requests to a new endpoint.
	startConcurrency = 2
	// halveAgain is the least time between two reductions: requests that fail together are one
	// reason.
	halveAgain = time.Second
)

// newConcurrency returns a bound that grows up to most requests.
func newConcurrency(most int) concurrency {
	return concurrency{most: float64(most), limit: min(startConcurrency, float64(most)), freed: make(chan time.Time)}
}

// whole returns the number of requests that are allowed now, at least 1.
func (c *concurrency) whole() int { return max(1, int(c.limit)) }

// full reports whether a request must wait until another one ends.
func (c *concurrency) full() bool { return c.inFlight >= c.whole() }

// leave ends a request and wakes those that wait.
func (c *concurrency) leave() {
	c.inFlight--
	close(c.freed)
	c.freed = make(chan time.Time)
}

// raise raises the bound by about one per round of successful requests.
func (c *concurrency) raise() { c.limit = min(c.most, c.limit+1/c.limit) }

// halve halves the bound.
func (c *concurrency) halve(now time.Time) {
	if now.Sub(c.halved) < halveAgain {
		return
	}
	c.halved = now
	c.limit = max(1, c.limit/2)
}
