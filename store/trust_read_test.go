package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/trustdb"
)

// said writes a row of evidence so that two can be compared.
func said(r trustdb.Row) string {
	return fmt.Sprintf("%d/%d %s %s %q %v", r.Block, r.LogIndex, r.Rater.Hex(), r.Amount.Decimal(), r.Tag1,
		r.Validation)
}

// The evidence of every agent is that of the model, and the graph of a chain is the
// evidence of all its agents, at every block.
func TestTrustEvidenceIsTheGraph(t *testing.T) {
	t.Parallel()
	db, w, ctx := open(t), newWorld(3, 50, 7), ctxOf(t)
	w.grow(150)
	w.store(t, db, w.tip().Number)
	answers := 0
	for n := w.blocks[5].Number; n <= w.tip().Number; n += 23 {
		graph, owners := snapshotOf(t, db, &w.chain, n)
		for i := range w.agents {
			id := w.id(i)
			if w.mintBlock(id.TokenID) > n {
				continue
			}
			s, err := trustdb.ReadEvidence(ctx, db, id, at(n), w.chain.Validations)
			ok(t, err)
			var want, got []string
			for _, r := range w.ratings(id.TokenID, n) {
				if r.revoked == nil {
					a := repute.Amount{Value: r.Value, Decimals: r.Decimals}
					want = append(want, fmt.Sprintf("%d/%d %s %s %q false", r.point.Block, r.point.LogIndex,
						r.Client.Hex(),
						a.Decimal(), r.Tag1))
				}
			}
			var all []string
			for _, r := range s.Rows {
				all = append(all, said(r))
				if !r.Validation {
					got = append(got, said(r))
				} else {
					answers++
				}
			}
			sameSet(t, fmt.Sprintf("ratings of agent %d at %d", i, n), got, want)
			sameSet(t, fmt.Sprintf("graph of agent %d at %d", i, n), graph[id.TokenID], all)
			if state := owners[id.TokenID]; state.Owner != s.Owner || state.Wallet != s.Wallet ||
				state.Approved != s.Approved {
				t.Fatalf("agent %d at %d: %+v in the snapshot, %+v by itself", i, n, state, s)
			}
		}
	}
	if answers == 0 {
		t.Error("no validation answer was met")
	}
}

// snapshotOf reads the ratings and answers of all agents as of a block, as said writes them, and the newest state of
// each agent.
func snapshotOf(t *testing.T, db *store.DB, chain *repute.Chain, block uint64) (rated map[repute.TokenID][]string,
	states map[repute.TokenID]trustdb.SnapshotState) {
	t.Helper()
	rated, states = map[repute.TokenID][]string{}, map[repute.TokenID]trustdb.SnapshotState{}
	ok(t, trustdb.ReadSnapshot(t.Context(), db, chain.ID, block, func(ctx context.Context, s *trustdb.Snapshot) error {
		type rating struct {
			token repute.TokenID
			row   trustdb.Row
			tag   int64
		}
		var list []rating
		var keys []int64
		err := s.Ratings(ctx, nil, -1, func(r *trustdb.SnapshotRating) error {
			token, err := s.DecodeToken(r.Token)
			ok(t, err)
			value, err := s.DecodeValue(r.Value)
			ok(t, err)
			keys = append(keys, r.Tag1)
			list = append(list, rating{token, trustdb.Row{Rater: r.Client, Block: r.Block, LogIndex: r.LogIndex,
				Amount: repute.Amount{Value: value.Int, Decimals: r.Decimals}}, r.Tag1})
			return nil
		})
		ok(t, err)
		tags, err := s.Tags(ctx, keys)
		ok(t, err)
		for _, r := range list {
			r.row.Tag1 = tags[r.tag].Text
			rated[r.token] = append(rated[r.token], said(r.row))
		}
		ok(t, s.Answers(ctx, chain.Validations, func(token repute.TokenID, r trustdb.Row) {
			rated[token] = append(rated[token], said(r))
		}))
		return s.States(ctx, nil, func(state *trustdb.SnapshotState) error {
			token, err := s.DecodeToken(state.Token)
			states[token] = *state
			return err
		})
	}))
	return rated, states
}

func sameSet(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %q, want %q", what, got, want)
	}
}

// An owner holds an agent since the transfer that gave it, whatever else changed then.
func TestTrustTenure(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/1")
	id, zero := w.id(0), common.Address{}
	minted := w.tip()
	given := w.mine(repute.Transfer{From: person(0), To: person(5), TokenID: id.TokenID})
	w.mine(repute.URIUpdated{TokenID: id.TokenID, URI: "https://x/2", UpdatedBy: person(5)})
	w.mine(repute.ApprovalForAll{Owner: person(5), Operator: person(6), Approved: true})
	w.store(t, db, w.tip().Number)
	s, err := trustdb.ReadEvidence(ctxOf(t), db, id, latest, nil)
	ok(t, err)
	if s.Owner != person(5) || s.Wallet != zero || s.Holders[len(s.Holders)-1].From != given.Number ||
		!slices.Equal(s.Operators, []common.Address{person(6)}) {
		t.Errorf("now: %+v", s)
	}
	before, err := trustdb.ReadEvidence(ctxOf(t), db, id, at(minted.Number), nil)
	ok(t, err)
	if before.Owner != person(0) || before.Operators != nil {
		t.Errorf("before: %+v", before)
	}
}
