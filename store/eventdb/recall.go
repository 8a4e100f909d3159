package eventdb

import (
	"sync"

	"repute"
	"repute/store/chaindb"
)

// recall is what this process wrote last of the chains it leads, so that the next
// batch need not read it back. It holds for as long as nobody else wrote the
// chain, which the chain's count of writes tells; any of it may be lost.
type recall struct {
	mu     sync.Mutex
	chains map[uint64]*recalled
}

// recalled is of one chain, whose writes were that many then.
type recalled struct {
	chainID uint64
	writes  int64
	agents  map[repute.TokenID]recalledAgent
	pairs   map[pairKey]recalledPair
}

// recalledAgent is a row of agents.
type recalledAgent struct {
	agentState
	registered chaindb.Point
	updated    chaindb.Point // by what had an effect
	counts     repute.AgentCounts
}

// recalledPair has some feedback.
type recalledPair struct {
	last uint64
	live int64
}

// recallMost bounds the agents and the pairs that are kept of all chains, about
// 20 MB each.
const recallMost = 100_000

func newRecall() *recall { return &recall{chains: map[uint64]*recalled{}} }

// take hands over what is known of a chain that was locked for a write. What was
// written by others since is not known.
func (r *recall) take(c *chaindb.ChainRow) *recalled {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.chains[c.ID]
	delete(r.chains, c.ID)
	if known == nil || known.writes != c.Writes-1 || c.Rewound {
		known = &recalled{chainID: c.ID, agents: map[repute.TokenID]recalledAgent{}, pairs: map[pairKey]recalledPair{}}
	}
	known.writes = c.Writes
	return known
}

// keep takes what take gave back, after the write it was taken for is committed.
func (r *recall) keep(known *recalled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	shed(known.agents)
	shed(known.pairs)
	r.chains[known.chainID] = known
	agents, pairs := 0, 0
	for _, c := range r.chains {
		agents, pairs = agents+len(c.agents), pairs+len(c.pairs)
	}
	for id, c := range r.chains {
		if id != known.chainID && (agents > recallMost || pairs > recallMost) {
			agents, pairs = agents-len(c.agents), pairs-len(c.pairs)
			delete(r.chains, id)
		}
	}
}

// shed forgets any of a map's entries that are too many.
func shed[K comparable, V any](m map[K]V) {
	for k := range m {
		if len(m) <= recallMost {
			return
		}
		delete(m, k)
	}
}

// fill gives the fold what is known of its agents and pairs.
func (known *recalled) fill(f *fold) {
	for id, a := range f.agents {
		if k, ok := known.agents[id]; ok {
			a.load(k)
			a.recalled = true
		}
	}
	for key, p := range f.pairs {
		if k, ok := known.pairs[key]; ok {
			p.last, p.live, p.fresh = k.last, k.live, false
			p.recalled = true
		}
	}
}

// learn takes over what the fold left its agents and pairs as.
func (known *recalled) learn(f *fold) {
	for id, a := range f.agents {
		if a.exists {
			known.agents[id] = recalledAgent{a.agentState, a.registered, a.updated, a.counts}
		}
	}
	for key, p := range f.pairs {
		if p.last > 0 {
			known.pairs[key] = recalledPair{p.last, p.live}
		}
	}
}

// load makes the agent a stored one.
func (a *foldAgent) load(k recalledAgent) {
	a.exists, a.stored, a.existed = true, true, true
	a.agentState, a.before = k.agentState, k.agentState
	a.registered, a.updated, a.counts = k.registered, k.updated, k.counts
}
