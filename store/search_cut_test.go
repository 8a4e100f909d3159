package store_test

import (
	"fmt"
	"testing"

	"repute/store"
	"repute/store/searchdb"
)

// frequent stores documents of no agent with the words "cheap bargain".
func frequent(t *testing.T, db *store.DB, many int) {
	t.Helper()
	sqlExec(t, db,
		`insert into documents (sha256, body, media_type, first_seen) select sha256(i::text::bytea), 'b', '', now() from generate_series(1, $1::int) i`, many)
	sqlExec(t, db, `
		insert into searchable (sha256, form, version, errors, name, words, vector, services, skills, domains, trust)
		select sha256(i::text::bytea), 9, 1, 0, '', 'cheap bargain', 'cheap:1C bargain:2C'::tsvector, '{}', '{}', '{}', '{}'
		from generate_series(1, $1::int) i`, many)
}

// haveAgents gives every document without a URI a URI of its own, and an agent of another owner on
// a chain.
func haveAgents(t *testing.T, db *store.DB, chain int) {
	t.Helper()
	sqlExec(t, db, `
		with u as (
			insert into uris (hash, uri, kind, host, sha256, source, tried_at)
			select sha256(d.sha256), d.sha256, 'https', 'h', d.sha256, 'https', now() from documents d
			where not exists (select from uris where uris.sha256 = d.sha256) returning id)
		insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block,
			registered_log, updated_block, updated_log)
		select $1::int, 1000000 + id, decode(lpad(to_hex(id), 40, '0'), 'hex'), false, '', '', id, 100, 0, 100, 0 from u`, chain)
}

// TestFrequentWordsOfFewAgents finds the agents that the filter selects among more documents with
// the words than are looked into.
func TestFrequentWordsOfFewAgents(t *testing.T) {
	t.Parallel()
	db := open(t)
	frequent(t, db, 40_000)
	tool := agentDoc("tool", "a cheap bargain")
	tool.Services = append(tool.Services, agentDoc("x", "").Services...)
	catalogue(t, db, 7, []int{0, 2, 1}, agentDoc("stripes", "a zebra"), agentDoc("plain", "a cheap bargain"), tool)
	catalogue(t, db, 8, []int{0}, agentDoc("other", "a cheap bargain"))
	for _, f := range []searchdb.AgentFilter{{Text: "cheap", ChainIDs: []uint64{7}},
		{Text: "cheap bargain", ChainIDs: []uint64{7}}, {Text: "cheap", ChainIDs: []uint64{7}, MinFeedback: 1}} {
		found, got := search(t, db, f)
		facets, err := searchdb.SearchFacets(t.Context(), db, f, "")
		ok(t, err)
		if found.Match != searchdb.MatchAll || found.Total.Value != 2 || facets.Total.Value != 2 || got == "" {
			t.Errorf("%+v: found %q by %q, %+v and %+v", f, got, found.Match, found.Total, facets.Total)
		}
	}
	found, _ := search(t, db, searchdb.AgentFilter{Text: "cheap"})
	if found.Total.Value != 3 {
		t.Errorf("on all chains %+v", found.Total)
	}
}

// TestRareWordOfAnotherAgent finds an agent with most of the words although the rarest one is
// another agent's.
func TestRareWordOfAnotherAgent(t *testing.T) {
	t.Parallel()
	db := open(t)
	frequent(t, db, 21_000)
	catalogue(t, db, 7, []int{0, 2}, agentDoc("stripes", "a zebra"), agentDoc("plain", "a cheap bargain"))
	f := searchdb.AgentFilter{Text: "zebra cheap bargain"}
	found, got := search(t, db, f)
	facets, err := searchdb.SearchFacets(t.Context(), db, f, "")
	ok(t, err)
	if fmt.Sprint(got) != "7:1" || found.Match != searchdb.MatchMost || facets.Total.Value != 1 {
		t.Errorf("found %q by %q, %+v and %+v", got, found.Match, found.Total, facets.Total)
	}
}
