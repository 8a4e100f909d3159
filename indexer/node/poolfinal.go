package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"repute/indexer/node/jsonrpc"
)

const (
	// sayingKept is how long what a member said of finality counts, and how long one
	// that does not answer is waited for before the others are believed without it.
	sayingKept = time.Minute
	// farAhead is by how many blocks a head may pass what its endpoint has shown
	// before it must show the block,
	farAhead = 64
	// or rather one so many blocks below it, which the backends of one endpoint all have.
	vouchBelow = 16
	// farBehind is how many blocks below the others' head an endpoint has no say.
	farBehind = 256
)

// saying is what a member said last of the chain's newest blocks.
type saying struct {
	heads  Heads
	silent time.Time // since when it does not answer, zero while it does
}

// says remembers an answer about the head, or that there was none.
func (m *peer) says(h Heads, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.said = saying{heads: h}
	case m.said.silent.IsZero():
		m.said.silent = time.Now()
	}
}

// opinion is what the member says of finality, and whether it is still to be
// waited for.
func (m *peer) opinion(now time.Time) (h Heads, waited bool) {
	if m.limiter.Excluded() {
		return Heads{}, false
	}
	failing := m.limiter.Failing()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.said.heads.ChainID != 0 && now.Sub(m.said.heads.SeenAt) < sayingKept {
		return m.said.heads, false
	}
	if failing && m.said.silent.IsZero() {
		m.said.silent = now
	}
	return Heads{}, m.said.silent.IsZero() || now.Sub(m.said.silent) < sayingKept
}

// vouch has a member show that it has about the head it names, where that is far
// above all it has shown. One that does not have it is doubted.
func (m *peer) vouch(ctx context.Context, head uint64) error {
	if m.alone || head <= m.proof()+farAhead {
		return nil
	}
	_, err := m.Blocks(ctx, []uint64{head - vouchBelow})
	if err == nil {
		m.shows(head)
		return nil
	}
	if ctx.Err() == nil && jsonrpc.Judge(err).Fault == jsonrpc.FaultBehind {
		m.doubt()
		m.sees(m.proof())
	}
	return fmt.Errorf("head %d is not shown: %w", head, err)
}

// proof is the newest block that the member has shown to have.
func (m *peer) proof() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shown
}

func (m *peer) shows(block uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = max(m.shown, block)
}

// settle replaces the safe and the final block of one endpoint by those that endpoints of two
// hosts name, where there are several: a block that is called final too early stops the chain
// when it is replaced. Nothing is final while a second host may still answer. An endpoint far
// behind the head does not count.
func (p *Pool) settle(h Heads) Heads {
	if len(p.members) == 1 {
		return h
	}
	now := time.Now()
	latest := h.Latest.Number
	safe, finalized, waiting := map[string]uint64{}, map[string]uint64{}, map[string]bool{}
	for _, m := range p.members {
		said, waited := m.opinion(now)
		if waited {
			waiting[m.Host()] = true
		}
		if said.Latest.Number+farBehind < latest {
			continue
		}
		safe[m.Host()] = max(safe[m.Host()], min(said.Safe, latest))
		finalized[m.Host()] = max(finalized[m.Host()], min(said.Finalized, latest))
	}
	h.Safe, h.Finalized = seconded(safe, waiting), seconded(finalized, waiting)
	return h
}

// seconded returns the highest block that two hosts name or pass, or the block of the only host
// that names one while no other may still answer. It returns 0 where there is none. A host
// names no block by 0.
func seconded(named map[string]uint64, waiting map[string]bool) uint64 {
	var blocks []uint64
	others := maps.Clone(waiting)
	for host, n := range named {
		if n > 0 {
			blocks = append(blocks, n)
			delete(others, host)
		}
	}
	slices.Sort(blocks)
	switch n := len(blocks); {
	case n >= 2:
		return blocks[n-2]
	case n == 1 && len(others) == 0:
		return blocks[0]
	}
	return 0
}

// better is the head to go by: the higher one, of one whose word is not in doubt.
func better(a, b look) look {
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

// look is one endpoint's answer about its head.
type look struct {
	heads   Heads
	err     error
	doubted bool
}

// lookAt asks one member for its head.
func (p *Pool) lookAt(ctx context.Context, m *peer) look {
	h, err := m.look(ctx, p.opts.ChainID)
	_, doubted, _ := m.state(time.Now())
	return look{h, err, doubted}
}

// Limited brings the heads of one answer into order: nothing above the newest
// block is safe or final.
func (h Heads) Limited() Heads {
	h.Finalized = min(h.Finalized, h.Latest.Number)
	h.Safe = min(h.Safe, h.Latest.Number)
	return h
}
