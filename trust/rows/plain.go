package rows

import (
	"math"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/flow"
	"repute/trust/rating"
)

// PlainReader returns the evidence about plain agents in memory of its own, so that a pass over a million agents leaves
// no garbage. An agent is plain when it had one owner, with no other wallet, and nobody acted for it, as most agents. A
// PlainReader MUST be used by one goroutine at a time.
//
// Evidence points into the fields of the reader: tenures, self and named are the memory of slices that the evidence
// has, so that nothing is allocated for an agent. A caller that keeps evidence MUST copy it.
type PlainReader struct {
	store   *Store
	params  *rating.Params
	last    int // index of the agent that was found last: agents are asked for in order
	e       trust.Evidence
	tenures [1]rating.Tenure
	self    [1]common.Address
	named   []common.Address
}

// Plain returns a PlainReader of the evidence as of a block, with these weights and scales.
func (s *Store) Plain(block repute.Block, p *rating.Params, w *flow.Weights, scales *rating.Scales) *PlainReader {
	return &PlainReader{store: s, e: trust.Evidence{Block: block, Weights: w, Scales: scales}, params: p}
}

// Evidence returns what Store.Evidence returns, with packed ratings, until the next call. It returns nil when the agent
// is not plain, or when its ratings are not in memory in packed form. Nil is no error: the caller asks Store.Evidence
// or the database instead. The lock is tried for every agent and not held between two of them, so that a pass over all
// agents does not keep the next epoch from beginning; when it begins, the comparison of blocks fails and the rest is
// read from the database.
func (r *PlainReader) Evidence(token repute.TokenID) *trust.Evidence {
	s := r.store
	if !s.mu.TryRLock() {
		return nil
	}
	defer s.mu.RUnlock()
	if s.at.Number != r.e.Block.Number || s.at.Hash != r.e.Block.Hash {
		return nil
	}
	by := s.readingsOf(r.params, r.e.Weights)
	if by == nil || !by.packing.IsJudgedBy(r.e.Scales) {
		return nil
	}
	r.last = s.findAfter(r.last, token)
	if r.last == len(s.agents) || s.agents[r.last].token != token {
		return nil
	}
	a := &s.agents[r.last]
	owner := s.numbers.addresses.At(a.owner)
	if a.subject != nil || len(a.ratings) == 0 || owner == (common.Address{}) {
		return nil
	}
	r.set(a, owner)
	r.e.Packed, r.e.Packing, r.e.OwnerNumber = a.ratings, by.packing, a.owner+1
	return &r.e
}

// set sets the evidence to that about an agent, without its ratings. A plain agent has exactly one tenure, which its
// registration began and nothing has ended.
func (r *PlainReader) set(a *agent, owner common.Address) {
	s, t := r.store, &r.tenures[0]
	*t = rating.Tenure{From: a.from, To: math.MaxUint64, Began: a.began, Owner: owner}
	r.named = r.named[:0]
	for _, operator := range s.operators[owner] {
		if operator != (common.Address{}) {
			r.named = append(r.named, operator)
		}
	}
	r.e = trust.Evidence{Agent: repute.AgentID{ChainID: s.chain, Registry: s.registry, TokenID: a.token},
		Block: r.e.Block,
		Owner: owner, Registrar: owner, Tenures: r.tenures[:], Since: a.from,
		Weights: r.e.Weights, Scales: r.e.Scales}
	if len(r.named) > 0 {
		r.e.Named = r.named
	}
	if a.isOwn {
		t.Wallet, r.e.Wallet, r.self[0] = owner, owner, owner
		r.e.Self = r.self[:]
	}
}

// readingsOf returns the readings of ratings by parameters and the graph of weights, nil when the store has others.
func (s *Store) readingsOf(p *rating.Params, w *flow.Weights) *readings {
	if s.read == nil || s.read.params != p || s.read.graph != w.Graph() {
		return nil
	}
	return s.read
}

// findAfter returns the index of the first agent whose token id is at least token. It is fastest when that is near an
// index after which it is expected. Callers walk agents in order and leave some out, so that a few steps forward mostly
// find the next one, and the binary search is for the rest.
func (d *data) findAfter(expected int, token repute.TokenID) int {
	const near = 8
	if expected < len(d.agents) && d.agents[expected].token.Cmp(&token) <= 0 {
		for at := expected; at < min(expected+near, len(d.agents)); at++ {
			if d.agents[at].token.Cmp(&token) >= 0 {
				return at
			}
		}
	}
	at, _ := d.search(token)
	return at
}
