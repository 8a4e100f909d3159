package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/cache"
	"repute/store/scoredb"
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
func newLarge() *cache.Cache[repute.TokenID, *large] {
	return cache.New(cache.Bounds{What: "ratings of an agent", Memory: largeRows},
		func(l *large) int64 { return l.size }, func(id repute.TokenID) string { return id.Dec() })
}

// belonging returns a text of the addresses that decide which ratings of an agent count. An account is valid only while
// it does not change. Times are in whole seconds, as in package rows: it MUST be the same for an agent that was read
// from the database and for one in memory.
func belonging(s *trustdb.Subject) string {
	list := fmt.Append(nil, s.Owner, s.Wallet, s.Approved, s.Operators)
	for _, h := range s.Holders {
		list = fmt.Append(list, h.From, h.Time.Unix(), h.Owner, h.Wallet)
	}
	return string(list)
}

// newest reads the newest evidence about agents. For a large agent with an account it reads only the ratings that
// follow those of the account; accountOf adds them.
func (s *scoreRun) newest(ctx context.Context, stale []scoredb.StaleAgent, ids []repute.TokenID) (out []trustdb.Subject,
	err error) {
	if s.large == nil {
		return trustdb.ReadSubjects(ctx, s.db, s.basis.Run.ChainID, ids, nil, s.basis.Validations)
	}
	var grown []trustdb.Subject
	ids = slices.Clone(ids)
	for _, a := range stale {
		subject, grows, err := s.growth(ctx, a)
		if err != nil {
			return nil, err
		}
		if grows {
			grown = append(grown, subject)
			ids = slices.DeleteFunc(ids, func(id repute.TokenID) bool { return id == a.TokenID })
		}
	}
	if len(ids) > 0 {
		out, err = trustdb.ReadSubjects(ctx, s.db, s.basis.Run.ChainID, ids, nil, s.basis.Validations)
	}
	return append(out, grown...), err
}

// growth returns the newest evidence about a large agent that the ratings of its cached account are left out of. grows
// is false when the agent has no account that can be continued. When a reorganization removed blocks of the cached
// account, another one takes its place, of the ratings in memory as of the run's block.
func (s *scoreRun) growth(ctx context.Context, a scoredb.StaleAgent) (subject trustdb.Subject, grows bool, err error) {
	for kept := s.keptAccount(a); kept != nil; {
		subject, grows, err = trustdb.ReadGrowth(ctx, s.db, s.basis.Run.ChainID, a.TokenID, kept.known,
			s.basis.Validations)
		if err != nil {
			return subject, false, err
		}
		if grows && belonging(&subject) == kept.belongs && s.continues(kept, subject) {
			return subject, true, nil
		}
		s.large.Drop(a.TokenID)
		if kept.known.Block <= s.basis.Run.Block.Number {
			break
		}
		if kept = s.accountInMemory(a.TokenID); kept != nil {
			s.large.Keep(a.TokenID, kept)
		}
	}
	return subject, false, nil
}

// keptAccount returns the cached account of a large agent. At the first event of the agent it caches the one that was
// built for the run, or else makes one of the ratings in memory. It returns nil when there is none.
func (s *scoreRun) keptAccount(a scoredb.StaleAgent) *large {
	if kept, known := s.large.Peek(a.TokenID); known {
		return kept
	}
	kept, isFirst := s.basis.built.take(a.TokenID)
	if kept == nil && isFirst && a.Rows > trustdb.ManyRatings {
		kept = s.accountInMemory(a.TokenID)
	}
	if kept != nil {
		s.large.Keep(a.TokenID, kept)
	}
	return kept
}

// maxGone is the largest number of revoked ratings that are taken out of an account one by one, some milliseconds each.
const maxGone = 100

// continues reports whether the ratings read since can be added to the cached account of a large agent, and the
// penalties of the agent need no single ratings.
func (s *scoreRun) continues(kept *large, since trustdb.Subject) bool {
	if len(since.Gone) > maxGone {
		return false
	}
	since.Block = s.viewOf(&since)
	e := rows.EvidenceOf(since, s.basis.Weights, s.basis.Scales)
	return kept.account.Continues(&e) && !s.scorer.NeedsRows(&e)
}

// viewOf returns the block as of which the newest score of an agent is computed.
func (s *scoreRun) viewOf(of *trustdb.Subject) repute.Block {
	if of.Updated.Number > s.basis.Run.Block.Number {
		return of.Updated
	}
	return s.basis.Run.Block
}

// accountOf returns the account of a large agent's ratings: the cached one with the ratings of e added, or a new one of
// all ratings. It returns nil when the agent is not large, or when its penalties need single ratings. repute.ErrGone
// means that the ratings of e cannot be added to the cached account, or revoked ones not be removed from it: it was
// dropped, and all ratings MUST be read again.
func (s *scoreRun) accountOf(from *trustdb.Subject, e *trust.Evidence) (*trust.Account, error) {
	if s.large == nil {
		return nil, nil
	}
	id := e.Agent.TokenID
	kept, known := s.large.Peek(id)
	if known && !(kept.account.Continues(e) && kept.account.Remove(e, rows.GoneOf(from))) {
		s.large.Drop(id)
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
		s.large.Keep(id, kept)
	}
	kept.known = trustdb.Known{Block: from.Updated.Number, Hash: from.Updated.Hash,
		Live: kept.known.Live + int64(len(e.Rows)-len(from.Gone)), Revoked: from.Revoked}
	return kept.account, nil
}
