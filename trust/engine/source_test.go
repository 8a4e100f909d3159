package engine_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
	"repute/trust/rows"
)

// scoreOf is an agent's score by the ledger's roots at its tip, and how many edges the
// graph has.
func scoreOf(t *testing.T, l *ledger, db *store.DB, id repute.TokenID) (trust.Result, int) {
	t.Helper()
	p, err := rating.DefaultParams()
	ok(t, err)
	var roots []flow.Root
	for i := range rooted {
		roots = append(roots, flow.Root{Address: person(i), Weight: fixed.One})
	}
	listed := l.chain.Validations
	g, reader, err := rows.New(db, l.chain.ID).Graph(t.Context(), rows.GraphOf{Block: l.tip(), Roots: roots,
		Validations: listed}, p)
	ok(t, err)
	said, err := trustdb.ReadEvidence(t.Context(), db, repute.AgentID{ChainID: l.chain.ID, Registry: identity,
		TokenID: id}, repute.At{Block: l.tip().Number}, listed)
	ok(t, err)
	e := rows.EvidenceOf(said, g.Walk(roots, p.Walk), reader.Scales())
	e.Block = l.tip()
	return trust.Score(e, p), g.Edges()
}

// One rating makes an edge; those of agents that nobody registered make none, and what a
// contract that is not listed says of a root's answer moves nothing.
func TestOnlyWhatTheRegistriesKnowCounts(t *testing.T) {
	t.Parallel()
	l := newLedger(1)
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, s.mint(person(20))...)
	l.mine(s, s.rate(0, person(1), 100))
	l.mine(s, s.rate(7, person(2), 100), s.rate(8, person(3), 0)) // never registered
	l.store(t, db, l.tip().Number)
	before, edges := scoreOf(t, l, db, token(0))
	if edges != 1 || before.PathsFor != 1 || before.Rows != 1 {
		t.Fatalf("%d edges, %+v", edges, before)
	}
	ask := common.Hash{1}
	l.mine(s, repute.ValidationRequest{Validator: person(2), TokenID: token(0), RequestHash: ask})
	l.mine(s, repute.ValidationResponse{Validator: person(2), TokenID: token(0), RequestHash: ask, Response: 100,
		Tag: "hard_finality"})
	l.store(t, db, l.tip().Number)
	if listed, edges := scoreOf(t, l, db, token(0)); edges != 2 || listed.PathsFor != 2 || listed.Rows != 2 {
		t.Fatalf("of a listed contract: %d edges, %+v", edges, listed)
	}
	l.chain.Validations = []common.Address{{0x77}} // what a run goes by
	if forged, edges := scoreOf(t, l, db, token(0)); edges != 1 || forged.PathsFor != 1 || forged.Rows != 1 ||
		forged.Positive > before.Positive {
		t.Errorf("of a contract that is not listed: %d edges, %+v", edges, forged)
	}
}
