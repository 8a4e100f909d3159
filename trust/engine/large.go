package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/rows"
)

// largeRows is the largest number of ratings in the cache of large agents, about 150 bytes each.
const largeRows = 1 << 20

// large is a cached account of an agent with very many ratings, so that only the ratings since the last event are read
// after a new one. The cache belongs to a scoreRun and is dropped with it when the next run begins.
type large struct {
	account *trust.Account
	known   trustdb.Known // state of the agent up to which account has its ratings
	belongs string        // result of belonging for the account
	size    int64         // number of ratings when the account was made
}

// newLarge returns an empty cache of large agents.
func newLarge() *cache[repute.TokenID, *large] {
	return newCache(bounds{what: "ratings of an agent", memory: largeRows},
		func(l *large) int64 { return l.size }, func(id repute.TokenID) string { return id.Dec() })
}

// built has the accounts of large agents that a pass made, so that the first event after an epoch does not read all
// ratings of the agent. Nobody else uses an account in it.
type built struct {
	mu   sync.Mutex
	of   map[repute.TokenID]*large
	size int64
}

// add adds an account, unless that would be more ratings than the cache of large agents has.
func (b *built) add(id repute.TokenID, l *large) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size+l.size > largeRows {
		return
	}
	if b.of == nil {
		b.of = map[repute.TokenID]*large{}
	}
	b.of[id] = l
	b.size += l.size
}

// take removes an account and returns it, nil when there is none.
func (b *built) take(id repute.TokenID) *large {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.of[id]
	if l != nil {
		delete(b.of, id)
		b.size -= l.size
	}
	return l
}

// accountFor returns the account of an agent whose ratings are all in e, nil when it is not large or needs its single
// ratings.
func (e *epoch) accountFor(subject *trustdb.Subject, evidence *trust.Evidence) *large {
	revoked, isLarge := e.large[evidence.Agent.TokenID]
	if !isLarge || e.scorer.NeedsRows(evidence) {
		return nil
	}
	block := e.basis.run.Block
	l := &large{account: e.scorer.NewAccount(evidence), belongs: belonging(subject), size: int64(len(evidence.Rows)),
		known: trustdb.Known{Block: block.Number, Hash: block.Hash, Live: int64(len(evidence.Rows)), Revoked: revoked}}
	if l.account.IsOpen() {
		return nil
	}
	return l
}

// belonging returns a text of the addresses that decide which ratings of an agent count. An account is valid only while
// it does not change.
func belonging(s *trustdb.Subject) string {
	return fmt.Sprint(s.Owner, s.Wallet, s.Approved, s.Operators, s.Holders)
}

// newest reads the newest evidence about agents. For a large agent in the cache it reads only the ratings that follow
// those of the account; accountOf adds them.
func (s *scoreRun) newest(ctx context.Context, stale []trustdb.StaleAgent, ids []repute.TokenID) (out []trustdb.Subject,
	err error) {
	if s.large == nil {
		return trustdb.ReadSubjects(ctx, s.db, s.basis.run.ChainID, ids, nil, s.basis.validations)
	}
	var grown []trustdb.Subject
	ids = slices.Clone(ids)
	for _, a := range stale {
		kept, known := s.large.peek(a.TokenID)
		if !known {
			if kept = s.basis.built.take(a.TokenID); kept == nil {
				continue
			}
			s.large.keep(a.TokenID, kept)
		}
		subject, grows, err := trustdb.ReadGrowth(ctx, s.db, s.basis.run.ChainID, a.TokenID, kept.known,
			s.basis.validations)
		if err != nil {
			return nil, err
		}
		if grows && belonging(&subject) == kept.belongs && s.continues(kept, subject) {
			grown = append(grown, subject)
			ids = slices.DeleteFunc(ids, func(id repute.TokenID) bool { return id == a.TokenID })
			continue
		}
		s.large.drop(a.TokenID)
	}
	if len(ids) > 0 {
		out, err = trustdb.ReadSubjects(ctx, s.db, s.basis.run.ChainID, ids, nil, s.basis.validations)
	}
	return append(out, grown...), err
}

// continues reports whether the ratings read since can be added to the cached account of a large agent, and the
// penalties of the agent need no single ratings.
func (s *scoreRun) continues(kept *large, since trustdb.Subject) bool {
	since.Block = s.viewOf(&since)
	e := rows.EvidenceOf(since, s.basis.weights, s.basis.scales)
	return kept.account.Continues(&e) && !s.scorer.NeedsRows(&e)
}

// viewOf returns the block as of which the newest score of an agent is computed.
func (s *scoreRun) viewOf(of *trustdb.Subject) repute.Block {
	if of.Updated.Number > s.basis.run.Block.Number {
		return of.Updated
	}
	return s.basis.run.Block
}

// accountOf returns the account of a large agent's ratings: the cached one with the ratings of e added, or a new one of
// all ratings. It returns nil when the agent is not large, or when its penalties need single ratings. repute.ErrGone
// means that the ratings of e cannot be added to the cached account: it was dropped, and all ratings MUST be read
// again.
func (s *scoreRun) accountOf(from *trustdb.Subject, e *trust.Evidence) (*trust.Account, error) {
	if s.large == nil {
		return nil, nil
	}
	id := e.Agent.TokenID
	kept, known := s.large.peek(id)
	if known && !kept.account.Continues(e) {
		s.large.drop(id)
		return nil, fmt.Errorf("earlier ratings of agent %s: %w", e.Agent.Short(), repute.ErrGone)
	}
	if known {
		kept.account.Add(e)
		s.grown++
	} else {
		if !from.Large || from.Updated.Hash == (common.Hash{}) || s.scorer.NeedsRows(e) {
			return nil, nil
		}
		account := s.scorer.NewAccount(e)
		if account.IsOpen() {
			return nil, nil
		}
		kept = &large{account: account, belongs: belonging(from), size: int64(len(e.Rows))}
		s.large.keep(id, kept)
	}
	kept.known = trustdb.Known{Block: from.Updated.Number, Hash: from.Updated.Hash,
		Live: kept.known.Live + int64(len(e.Rows)), Revoked: from.Revoked}
	return kept.account, nil
}
