package eventdb

import (
	"sync"

	"repute"
	"repute/store/chaindb"
)

// rowCache holds the rows that this process wrote last of the chains it indexes, so that the next
// batch need not read them. An entry is valid until another process writes the chain, which the
// chain's count of writes shows. Any entry may be evicted.
type rowCache struct {
	mu     sync.Mutex
	chains map[uint64]*cachedChain
}

// cachedChain holds the entries of one chain; writes is the chain's count when they were stored.
type cachedChain struct {
	chainID uint64
	// writes is the chain's count of writes after the write that stored these rows.
	writes int64
	agents map[repute.TokenID]cachedAgent
	pairs  map[pairKey]cachedPair
}

// cachedAgent is a row of agents.
type cachedAgent struct {
	agentState
	registered chaindb.Point
	updated    chaindb.Point // by what had an effect
	counts     repute.AgentCounts
}

// cachedPair is the state of a client that rated an agent.
type cachedPair struct {
	last uint64
	live int64
}

// maxCached is how many agents, and how many pairs, are cached of all chains together: about 20 MB
// each.
const maxCached = 100_000

// newRowCache returns an empty cache.
func newRowCache() *rowCache { return &rowCache{chains: map[uint64]*cachedChain{}} }

// take removes the entries of a chain that the caller locked for a write and returns them. They are
// empty when others wrote the chain since.
func (r *rowCache) take(c *chaindb.ChainRow) *cachedChain {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.chains[c.ID]
	delete(r.chains, c.ID)
	if known == nil || known.writes != c.Writes-1 || c.Rewound {
		known = &cachedChain{chainID: c.ID, agents: map[repute.TokenID]cachedAgent{}, pairs: map[pairKey]cachedPair{}}
	}
	known.writes = c.Writes
	return known
}

// keep puts entries back after the write they were taken for is committed, and evicts other chains
// when there are too many.
func (r *rowCache) keep(known *cachedChain) {
	r.mu.Lock()
	defer r.mu.Unlock()
	evict(known.agents)
	evict(known.pairs)
	r.chains[known.chainID] = known
	agents, pairs := 0, 0
	for _, c := range r.chains {
		agents, pairs = agents+len(c.agents), pairs+len(c.pairs)
	}
	for id, c := range r.chains {
		if id != known.chainID && (agents > maxCached || pairs > maxCached) {
			agents, pairs = agents-len(c.agents), pairs-len(c.pairs)
			delete(r.chains, id)
		}
	}
}

// evict removes arbitrary entries of a map that has more than maxCached.
func evict[K comparable, V any](m map[K]V) {
	for k := range m {
		if len(m) <= maxCached {
			return
		}
		delete(m, k)
	}
}

// fill sets the agents and pairs of a fold that are cached.
func (known *cachedChain) fill(f *fold) {
	for id, a := range f.agents {
		if k, ok := known.agents[id]; ok {
			a.load(k)
			a.cached = true
		}
	}
	for key, p := range f.pairs {
		if k, ok := known.pairs[key]; ok {
			p.last, p.live, p.fresh = k.last, k.live, false
			p.cached = true
		}
	}
}

// learn stores the state of the agents and pairs after a fold.
func (known *cachedChain) learn(f *fold) {
	for id, a := range f.agents {
		if a.exists {
			known.agents[id] = cachedAgent{a.agentState, a.registered, a.updated, a.counts}
		}
	}
	for key, p := range f.pairs {
		if p.last > 0 {
			known.pairs[key] = cachedPair{p.last, p.live}
		}
	}
}

// load sets the agent to a stored row.
func (a *foldAgent) load(k cachedAgent) {
	a.exists, a.stored, a.existed = true, true, true
	a.agentState, a.before = k.agentState, k.agentState
	a.registered, a.updated, a.counts = k.registered, k.updated, k.counts
}
