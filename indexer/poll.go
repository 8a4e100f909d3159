package indexer

import "time"

// poller decides when to ask for the head next: when the next block is due, and after short pauses while
// it is late. It learns the interval between blocks, and how long after its own time a block arrives. Its
// methods MUST be called by one goroutine.
type poller struct {
	fixed    time.Duration // between looks, as configured; 0: as learned
	blocks   []arrival     // the last ones seen one by one, oldest first
	interval time.Duration // between blocks, 0 while it is not known
	delay    time.Duration // from a block's time to the look that should find it
	looked   time.Time     // when the last look found nothing new
	tries    int           // looks in a row that found nothing new
}

// arrival is a block, and the estimated time at which the node received it.
type arrival struct {
	number   uint64
	time, at time.Time
}

const (
	pollUnknown = time.Second           // between looks while the interval is not known
	pollLeast   = 50 * time.Millisecond // between looks, so that fast chains do not use up the endpoint's rate
	pollWindow  = 32                    // blocks that the interval is the mean of
	pollEnough  = 4                     // blocks from which on it is believed
)

// observe records the head that was found.
func (p *poller) observe(number uint64, blockTime, now time.Time) {
	last := len(p.blocks) - 1
	switch {
	case last >= 0 && number == p.blocks[last].number:
		p.looked = now
		p.tries++
		return
	case last >= 0 && (number < p.blocks[last].number || number > p.blocks[last].number+pollWindow):
		p.blocks, p.interval = nil, 0 // a reorganization, or the node was unavailable
	}
	at := now
	if p.tries > 0 {
		at = now.Add(-now.Sub(p.looked) / 2)
	}
	p.learn(arrival{number, blockTime, at}, now)
	p.tries = 0
}

// learn updates the interval and the delay after a new block.
func (p *poller) learn(a arrival, now time.Time) {
	known := p.interval > 0
	if p.blocks = append(p.blocks, a); len(p.blocks) > pollWindow {
		p.blocks = p.blocks[1:]
	}
	first := p.blocks[0]
	n := time.Duration(a.number - first.number)
	if n < pollEnough {
		return
	}
	byArrival, byTime := a.at.Sub(first.at)/n, a.time.Sub(first.time)/n
	// Times are whole seconds. Where they do not go with the arrivals the chain has no
	// rhythm, or the node is catching up.
	if tolerated := byArrival/4 + time.Second/n; byTime < byArrival-tolerated || byTime > byArrival+tolerated {
		p.interval = 0
		return
	}
	p.interval = byArrival
	switch step := p.interval / 64; {
	case !known:
		p.delay = a.at.Sub(p.base(a))
	case p.tries == 0: // the first look found it, so that it may have arrived long before
		p.delay -= step
	default: // the delay is such that half of the first looks find a block
		p.delay += step
	}
	p.delay = min(max(p.delay, a.at.Sub(p.base(a))-p.interval/2), now.Sub(p.base(a))+p.interval/2)
}

// base returns the time from which delay counts: the block's own time, or its arrival where the
// interval is no whole seconds, which times are given in.
func (p *poller) base(a arrival) time.Time {
	if odd := (p.interval - p.interval.Round(time.Second)).Abs(); odd > p.interval/16 {
		return a.at
	}
	return a.time
}

// wait returns how long to wait before the next look at the head.
func (p *poller) wait(now time.Time) time.Duration {
	switch {
	case p.fixed > 0:
		return p.fixed
	case p.interval == 0:
		return pollUnknown
	case p.tries > 0:
		late := p.interval / 64 << min(p.tries-1, 4)
		return max(late, pollLeast)
	}
	due := p.base(p.blocks[len(p.blocks)-1]).Add(p.interval + p.delay)
	return min(max(due.Sub(now), pollLeast), 2*p.interval)
}
