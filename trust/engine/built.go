package engine

import (
	"context"
	"sync"

	"repute"
	"repute/store/trustdb"
	"repute/trust"
)

// built has the accounts of large agents as of a run's block, made of the ratings in memory, so that the first event
// after an epoch does not read all ratings of the agent. The walk makes them before the run takes effect. The pass
// borrows them, and the event loop takes them away, because it adds later ratings. Each account MUST be used by one of
// them at a time.
type built struct {
	mu    sync.Mutex
	of    map[repute.TokenID]*large
	taken map[repute.TokenID]bool // agents whose accounts the event loop took or asked for
	size  int64
}

// add adds an account and reports whether it was kept. It is not kept when that would be more ratings than the cache
// of large agents has, or when the event loop has another account of the agent.
func (b *built) add(id repute.TokenID, l *large) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken[id] || b.size+l.size > largeRows {
		return false
	}
	if b.of == nil {
		b.of = map[repute.TokenID]*large{}
	}
	if was := b.of[id]; was != nil {
		b.size -= was.size
	}
	b.of[id] = l
	b.size += l.size
	return true
}

// borrow removes an account and returns it, nil when there is none. The caller MUST give it back by add, unchanged.
func (b *built) borrow(id repute.TokenID) *large {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.remove(id)
}

// take is borrow for the event loop, which does not give the account back. isFirst reports whether it is the loop's
// first request for the agent.
func (b *built) take(id repute.TokenID) (l *large, isFirst bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	isFirst = !b.taken[id]
	if b.taken == nil {
		b.taken = map[repute.TokenID]bool{}
	}
	b.taken[id] = true
	return b.remove(id), isFirst
}

// remove is borrow under the lock.
func (b *built) remove(id repute.TokenID) *large {
	l := b.of[id]
	if l != nil {
		delete(b.of, id)
		b.size -= l.size
	}
	return l
}

// forget drops all accounts, because the ratings in memory that they were made of are read again.
func (b *built) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of, b.size = nil, 0
}

// build makes the accounts of large agents for a basis before it takes effect: from then on events use it.
func (k *keeper) build(ctx context.Context, b *Basis) error {
	agents, err := trustdb.LargeAgents(ctx, k.db, k.chain, b.Validations)
	if err != nil {
		return err
	}
	s := newScoreRun(k, b)
	for _, id := range agents {
		if l := s.accountInMemory(id); l != nil && !b.built.add(id, l) {
			return nil // no more fit
		}
	}
	return nil
}

// accountInMemory returns an account of an agent's ratings in memory, nil when they are not there.
func (s *scoreRun) accountInMemory(id repute.TokenID) *large {
	b := s.basis
	agent, evidence, ok := s.rows.Evidence(b.Run.Block, id, b.Params, b.Weights, b.Scales, false)
	if !ok {
		return nil
	}
	return s.accountFor(&agent, &evidence)
}

// accountFor returns the account of a large agent whose ratings as of the run's block are all in evidence. It returns
// nil when the agent needs its single ratings, or when the account could not be continued.
func (s *scoreRun) accountFor(agent *trustdb.Subject, evidence *trust.Evidence) *large {
	if s.scorer.NeedsRows(evidence) {
		return nil
	}
	block, live := s.basis.Run.Block, int64(len(evidence.Rows)+len(evidence.Packed))
	l := &large{account: s.scorer.NewAccount(evidence), belongs: belonging(agent), size: live,
		known: trustdb.Known{Block: block.Number, Hash: block.Hash, Live: live, AnyRevoked: true}}
	if l.account.IsOpen() {
		return nil
	}
	return l
}

// inMemory returns the evidence about an agent as of the run's block that is in memory, with single ratings only where
// they are needed. ok is false when it is not there.
func (s *scoreRun) inMemory(id repute.TokenID) (evidence trust.Evidence, ok bool) {
	b := s.basis
	_, evidence, ok = s.rows.Evidence(b.Run.Block, id, b.Params, b.Weights, b.Scales, false)
	if ok && evidence.Packing != nil && s.scorer.NeedsRows(&evidence) {
		_, evidence, ok = s.rows.Evidence(b.Run.Block, id, b.Params, b.Weights, b.Scales, true)
	}
	return evidence, ok
}

// finalsInMemory takes the agents whose final evidence is in memory away from moved, and sets w.last of them. These are
// large agents whose evidence is ratings alone: reading them takes longer than all else.
func (s *scoreRun) finalsInMemory(ctx context.Context, w *work, moved []*trustdb.Subject,
	index map[repute.TokenID]int) (rest []repute.TokenID, err error) {
	var list []*subject
	for _, from := range moved {
		id := from.Agent.TokenID
		if from.Large {
			if evidence, ok := s.inMemory(id); ok {
				w.last[index[id]] = &subject{Evidence: evidence, judged: true}
				list = append(list, w.last[index[id]])
				continue
			}
		}
		rest = append(rest, id)
	}
	if len(list) == 0 {
		return rest, nil
	}
	return rest, s.complete(ctx, list, true)
}
