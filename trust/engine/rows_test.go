package engine_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/trustdb"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
	"repute/trust/rows"
)

// everyAgent reads all agents of a ledger as of a block, one by one from their own rows.
func everyAgent(t *testing.T, l *ledger, db *store.DB, block uint64) []trustdb.Subject {
	t.Helper()
	tokens := make([]repute.TokenID, 0, 100)
	for i := range len(l.state().owners) + 2 {
		tokens = append(tokens, token(uint64(i)))
	}
	list, err := trustdb.ReadSubjects(t.Context(), db, l.chain.ID, tokens, &block, l.chain.Validations)
	ok(t, err)
	return list
}

// graphOf builds the graph of agents that were read one by one, and tells what its ratings cover.
func graphOf(list []trustdb.Subject, at repute.Block, roots []flow.Root,
	p *rating.Params) (*flow.Weights, repute.Coverage) {
	r := graph.NewReader(at, roots, nil, p)
	none := flow.NewGraphBuilder().Build().Walk(nil, p.Walk)
	rated := map[repute.TokenID][]rating.Row{}
	for _, s := range list {
		e := rows.EvidenceOf(s, none, nil)
		since := e.Tenures[0].From
		for i := 1; i < len(e.Tenures); i++ {
			r.Former(s.Agent.TokenID, e.Tenures[i-1])
			if e.Tenures[i].Owner != e.Tenures[i-1].Owner {
				since = e.Tenures[i].From
			}
		}
		r.Agent(s.Agent.TokenID, since, e.Owner, e.Wallet)
		rated[s.Agent.TokenID] = e.Rows
	}
	for id, list := range rated {
		for _, row := range list {
			row.Paid = 0
			r.Rating(id, row)
		}
	}
	weights := r.Build().Walk(roots, p.Walk)
	covers, _ := r.Coverage(weights)
	return weights, covers
}

// inMemory returns rows in chain order without what a store of rows leaves out.
func inMemory(list []rating.Row) []string {
	var out []string
	content := map[common.Hash]int{} // in order of their first ratings
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b rating.Row) int {
		return slices.Compare([]uint64{a.Block, uint64(a.LogIndex)}, []uint64{b.Block, uint64(b.LogIndex)})
	})
	for _, r := range list {
		if r.Validation {
			continue
		}
		if _, known := content[r.Content]; !known {
			content[r.Content] = len(content)
		}
		out = append(out, fmt.Sprint(r.Block, r.LogIndex, r.Time, r.Rater, r.Via, r.Amount.Decimal(), r.Tag1, r.Tag2,
			content[r.Content]))
	}
	return out
}

// A store of rows that follows a chain from epoch to epoch has the evidence and makes the graph that reading all rows
// of the last block gives: with transfers, wallets, operators, revocations, gateways, and blocks that are replaced.
func TestRowsFollowTheChain(t *testing.T) {
	t.Parallel()
	p, err := rating.DefaultParams()
	ok(t, err)
	var roots []flow.Root
	for i := range rooted {
		roots = append(roots, flow.Root{Address: person(i), Weight: fixed.One})
	}
	loads, compared, plain := 0, 0, 0
	for seed := range histories(t) {
		l := newLedger(500 + seed)
		db, url := l.fresh(t)
		own, seen := traced(t, url)
		kept := rows.New(own, l.chain.ID)
		crowded := l.state()
		var events []repute.Event
		for i := range 60 {
			events = append(events, crowded.mint(person(i%people))...)
			for j := range 10 {
				events = append(events, crowded.rate(uint64(i), person((i+j)%people), int64(60+j)))
			}
		}
		l.mine(crowded, events...)
		for epoch := range 8 {
			above := l.tip().Number
			l.grow(8)
			l.store(t, db, above)
			l.fork(above + 2) // blocks above the final one
			l.grow(6)
			l.store(t, db, l.tip().Number-4)
			at := l.blocks[l.tip().Number-5].Block
			anew := epoch == 5
			if anew {
				rateLate(t, db)
			}
			of := rows.GraphOf{Block: at, Roots: roots, Validations: l.chain.Validations}
			graph, reader, err := kept.Graph(t.Context(), of, p)
			ok(t, err)
			weights := graph.Walk(roots, p.Walk)
			covers, _ := reader.Coverage(weights)
			list := everyAgent(t, l, db, at.Number)
			want, wantCovers := graphOf(list, at, roots, p)
			if weights.Sum() != want.Sum() || !reflect.DeepEqual(covers, wantCovers) {
				t.Fatalf("seed %d, epoch %d: other weights, or the ratings cover\n%+v, want\n%+v", seed, epoch, covers,
					wantCovers)
			}
			for _, s := range list {
				compared += sameEvidence(t, kept, s, at, p, weights)
				plain += samePlain(t, kept, s.Agent.TokenID, at, p, weights, reader.Scales())
			}
		}
		list, _ := seen.take()
		for _, sql := range list {
			if sql == readsAll {
				loads++
			}
		}
	}
	if n := int(histories(t)); loads < 2*n || loads > 4*n || compared < 50 || plain < 50 {
		t.Errorf("everything was read %d times in %d histories of 8 epochs; %d agents were compared, %d plain ones",
			loads, n,
			compared, plain)
	}
}

// readsAll is the statement that a store of rows makes before it reads everything, and at no other time.
const readsAll = "select count(*), coalesce(sum(feedback), 0)::bigint from agents where chain_id = $1"

// rateLate adds a rating to a block that was read before, as an engine sees it when a log is found late.
func rateLate(t *testing.T, db *store.DB) {
	t.Helper()
	for _, sql := range []string{`
		insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id, endpoint,
			hash)
		select chain_id, token_id, client, idx + 1000, block, 900, value, decimals, tag1, tag2, uri_id, endpoint, hash
		from feedback where revoked_block is null order by block, log_index limit 1`, `
		update agents set feedback = feedback + 1 where token_id = (select token_id from feedback where idx > 1000)`} {
		_, err := db.Pool().Exec(context.WithoutCancel(t.Context()), sql)
		ok(t, err)
	}
}

// sameEvidence compares the evidence about an agent with that of its rows, and returns 1 when it is in memory.
func sameEvidence(t *testing.T, kept *rows.Store, s trustdb.Subject, at repute.Block, p *rating.Params,
	w *flow.Weights) int {
	t.Helper()
	s.Block = at
	want := rows.EvidenceOf(s, w, nil)
	_, got, found := kept.Evidence(at, s.Agent.TokenID, p, w, nil, true)
	lines := inMemory(want.Rows)
	if found != (len(lines) > 0) {
		t.Fatalf("agent %s: in memory %v, with %d ratings", s.Agent.Short(), found, len(lines))
	}
	if !found {
		return 0
	}
	if !slices.Equal(inMemory(got.Rows), lines) {
		t.Fatalf("agent %s: ratings\n%q, want\n%q", s.Agent.Short(), inMemory(got.Rows), lines)
	}
	got.Rows, want.Rows, got.Nodes = nil, nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("agent %s: evidence\n%+v, want\n%+v", s.Agent.Short(), got, want)
	}
	return 1
}

// samePlain compares the evidence about an agent in the memory of a PlainReader with that in memory of its own, and
// returns 1 when the agent is plain.
func samePlain(t *testing.T, kept *rows.Store, token repute.TokenID, at repute.Block, p *rating.Params, w *flow.Weights,
	scales *rating.Scales) int {
	t.Helper()
	got := kept.Plain(at, p, w, scales).Evidence(token)
	if got == nil {
		return 0
	}
	_, want, found := kept.Evidence(at, token, p, w, scales, false)
	want.Rows, want.OwnerNumber = nil, got.OwnerNumber
	if !found || !reflect.DeepEqual(*got, want) {
		t.Fatalf("agent %s: in memory %v, plain evidence\n%+v, want\n%+v", token.Dec(), found, *got, want)
	}
	return 1
}
