package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	"repute"
)

// Heads requests the heads from the endpoint with the highest head, or the best one among equals, and
// from time to time from a second one, and returns the higher head. An endpoint that does not answer, or does not
// have the block it reports, is replaced by the next one. Safe and final blocks need two endpoints
// (see confirmFinality). It returns repute.ErrConflict if all endpoints serve other chains.
func (p *Pool) Heads(ctx context.Context) (Heads, error) {
	list := p.ranked(func(m *peer) bool { return true })
	now := time.Now()
	slices.SortStableFunc(list, func(a, b *peer) int {
		return cmp.Or(boolCompare(b.limiter.Usable(now), a.limiter.Usable(now)), compareHeads(a, b, now))
	})
	answers := make(chan headResult, len(list))
	next := 0
	ask := func() {
		m := list[next]
		next++
		go func() {
			// The answer of a second endpoint is of use also after Heads has returned.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.opts.Timeout)
			defer cancel()
			h, err := m.refreshHead(ctx, p.opts.ChainID)
			_, doubted, _ := m.state(time.Now())
			answers <- headResult{h, err, doubted}
		}()
	}
	ask()
	if second := secondToAsk(list[1:], now); second > 0 {
		list[1], list[second] = list[second], list[1]
		ask()
	}
	h, err := p.gather(ctx, answers, len(list), &next, ask)
	if err != nil {
		return Heads{}, err
	}
	return p.confirmFinality(h), nil
}

// higherHead returns the higher of two heads; the head of a doubted endpoint loses.
func higherHead(a, b headResult) headResult {
	switch {
	case a.heads.ChainID == 0:
		return b
	case a.doubted != b.doubted:
		if a.doubted {
			return b
		}
		return a
	case b.heads.Latest.Number > a.heads.Latest.Number:
		return b
	}
	return a
}

// headResult is one endpoint's answer about its head.
type headResult struct {
	heads   Heads
	err     error
	doubted bool
}

// gather waits for the first valid answer, and for secondHeadWait for a higher one.
func (p *Pool) gather(ctx context.Context, answers <-chan headResult, all int, next *int, ask func()) (Heads, error) {
	var best headResult
	var worst error
	var enough <-chan time.Time
	for got := 0; got < *next; {
		select {
		case <-ctx.Done():
			return Heads{}, ctx.Err()
		case <-enough:
			return best.heads, nil
		case a := <-answers:
			got++
			switch {
			case a.err == nil:
				best = higherHead(best, a)
				enough = time.After(secondHeadWait)
			case worst == nil || outranks(a.err, worst):
				worst = a.err
			}
			if got == *next && best.heads.ChainID == 0 && *next < all {
				ask()
			}
		}
	}
	if best.heads.ChainID != 0 {
		return best.heads, nil
	}
	return Heads{}, p.conflict(worst)
}

// secondToAsk returns the index of the endpoint whose head has been unknown for longest, not counting
// the first of the list; 0 if none is due.
func secondToAsk(list []*peer, now time.Time) int {
	pick, oldest := 0, secondHeadEvery
	for i, m := range list {
		if _, _, age := m.state(now); age > oldest && m.limiter.Usable(now) {
			pick, oldest = i+1, age
		}
	}
	return pick
}

// compareHeads orders endpoints with higher heads first and doubted ones last.
func compareHeads(a, b *peer, now time.Time) int {
	headA, doubtA, _ := a.state(now)
	headB, doubtB, _ := b.state(now)
	return cmp.Or(boolCompare(doubtA, doubtB), cmp.Compare(headB, headA))
}

// boolCompare orders false before true.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// best returns the newest block that any endpoint is known to have.
func (p *Pool) best() (head uint64) {
	now := time.Now()
	for _, m := range p.members {
		if h, doubted, _ := m.state(now); !doubted {
			head = max(head, h)
		}
	}
	return head
}

// Announced receives a signal at each new head that a WebSocket endpoint announces while Run runs.
func (p *Pool) Announced() <-chan struct{} { return p.announced }

// announce signals a new head without blocking.
func (p *Pool) announce() {
	select {
	case p.announced <- struct{}{}:
	default:
	}
}

// Health returns the health of every endpoint in the configured order.
func (p *Pool) Health() []repute.Endpoint {
	out := make([]repute.Endpoint, len(p.members))
	for i, m := range p.members {
		out[i] = m.report(p.opts.ChainID, p.opts.Owner)
	}
	return out
}
