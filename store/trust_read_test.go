package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
)

// said writes a row of evidence so that two can be compared.
func said(r trustdb.Row) string {
	return fmt.Sprintf("%d/%d %s %s %q %v", r.Block, r.LogIndex, r.Rater.Hex(), r.Amount.Decimal(), r.Tag1, r.Validation)
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
		graph, parties := map[repute.TokenID][]string{}, map[repute.TokenID]trustdb.Party{}
		ok(t, trustdb.ReadGraph(ctx, db, w.chain.ID, n, w.chain.Validations,
			func(p trustdb.Party) { parties[p.TokenID] = p },
			func(e trustdb.Edge) { graph[e.TokenID] = append(graph[e.TokenID], said(e.Row)) }))
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
					want = append(want, fmt.Sprintf("%d/%d %s %s %q false", r.point.Block, r.point.LogIndex, r.Client.Hex(),
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
			p := parties[id.TokenID]
			if p.Owner != s.Owner || p.Wallet != s.Wallet || p.Since != since(s.Holders) {
				t.Fatalf("agent %d at %d: %+v in the graph, %+v by itself", i, n, p, s)
			}
		}
	}
	if answers == 0 {
		t.Error("no validation answer was met")
	}
}

// since is the block from which on what is said of an agent is said of its owner.
func since(holders []trustdb.Holder) (block uint64) {
	for i, h := range holders {
		switch {
		case i == 0:
			block = h.From
		case h.Owner != holders[i-1].Owner:
			block = h.From + 1
		}
	}
	return block
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
