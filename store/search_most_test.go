package store_test

import (
	"strings"
	"testing"
	"time"

	"repute"
	"repute/store/searchdb"
)

// TestSearchNarrowsByRareWords looks at more documents with most of the words than are put in
// order: those with a rare word are found, and of words that are all frequent those of rated agents.
func TestSearchNarrowsByRareWords(t *testing.T) {
	t.Parallel()
	db := open(t)
	const many = 21_000 // more than are put in order
	sqlExec(t, db,
		`insert into documents (sha256, body, media_type, first_seen) select sha256(i::text::bytea), 'b', '', now() from generate_series(1, 2 * $1::int) i`, many)
	sqlExec(t, db, `
		insert into searchable (sha256, form, version, errors, name, words, vector, services, skills, domains, trust)
		select sha256(i::text::bytea), 9, 1, 0, '', '', case when i > $1 then 'bargain:1C' else 'cheap:1C' end::tsvector,
			'{}', '{}', '{}', '{}'
		from generate_series(1, 2 * $1::int) i`, many)
	catalogue(t, db, 7, []int{0, 2}, agentDoc("stripes", "a zebra"), agentDoc("plain", "bargain"))
	haveAgents(t, db, 7)
	for text, want := range map[string]string{"bargain zebra": "7:0", "zebra cheap bargain": "", "cheap bargain": "7:1",
		"absent bargain": "7:1"} {
		found, got := search(t, db, searchdb.AgentFilter{Text: text})
		facets, err := searchdb.SearchFacets(t.Context(), db, searchdb.AgentFilter{Text: text}, "")
		ok(t, err)
		got, _, _ = strings.Cut(got, " ")
		// a slow count says less
		if got != want || want != "" && (found.Match != searchdb.MatchMost || !found.Total.AtLeast ||
			!facets.Total.AtLeast) {
			t.Errorf("%s: found %q by %q, %+v and %+v, want %q", text, got, found.Match, found.Total,
				facets.Total, want)
		}
	}
	for try := 1; ; try++ { // a count that is slow on a busy machine says less
		found, got := search(t, db, searchdb.AgentFilter{Text: "zebra absent"})
		if got == "7:0" && !found.Total.AtLeast {
			return
		}
		if got != "7:0" || try == 20 {
			t.Fatalf("of rare words %q of %+v", got, found.Total)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// TestSearchByID finds the agent of a pasted id first, in each form of it, and nothing else
// where there is no such agent.
func TestSearchByID(t *testing.T) {
	t.Parallel()
	db := open(t)
	w := catalogue(t, db, 1, []int{0}, agentDoc("agent 1 1", "1 1"), agentDoc("one", ""),
		agentDoc("eip155 1 7", "words of an id"))
	catalogue(t, db, 8453, []int{0}, agentDoc("8453 1 and more", ""), agentDoc("other", ""))
	id := w.id(1)
	registry := id.Registry.Hex()
	for text, want := range map[string]string{
		"1:1": "1:1", "8453:1": "8453:1", id.String(): "1:1", "eip155:1/erc721:" + registry + "/1": "1:1",
		" EIP155:1:" + registry + ":1 ": "1:1",
		"1:9":                           "", "eip155:1:" + person(3).Hex() + ":1": "",
	} {
		found, got := search(t, db, searchdb.AgentFilter{Text: text})
		if len(got) < len(want) || got[:len(want)] != want || want == "" && len(found.Items) > 0 {
			t.Errorf("%s: found %q, want %q first", text, got, want)
		}
	}
	if _, got := search(t, db, searchdb.AgentFilter{Text: "8453:1", ChainIDs: []uint64{1}}); got != "" {
		t.Errorf("on another chain: %q", got)
	}
}

// TestSearchByIP finds the agents at an IP address, with and without its port.
func TestSearchByIP(t *testing.T) {
	t.Parallel()
	db := open(t)
	at := func(endpoint string) *repute.Registration {
		return agentDoc("at "+endpoint[8:9], "", repute.Service{Name: "A2A", Endpoint: endpoint})
	}
	catalogue(t, db, 7, []int{0}, at("http://203.0.113.7:8080/a2a"), at("https://203.0.113.7/a2a"),
		at("https://[2001:DB8:0::1]:8443/mcp"),
		at("https://1.1.1.1"), at("https://api.zyf.ai:8080/a2a"))
	for text, want := range map[string]string{
		"203.0.113.7": "7:1 7:0", "203.0.113.7:8080": "7:0 7:1", "http://203.0.113.7:8080/a2a": "7:0 7:1",
		"[2001:db8::1]": "7:2", "2001:db8::1": "7:2",
		"[2001:db8:0:0::1]:8443": "7:2", "1.1.1.1": "7:3", "203.0.113.8": "", "api.zyf.ai:8080": "7:4", "0.113.7": "",
	} {
		if _, got := search(t, db, searchdb.AgentFilter{Text: text}); got != want {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
}
