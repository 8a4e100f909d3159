package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"repute/store"
	"repute/store/docdb"
)

// told are the changes of a kind since a place in the feed, by agent, with the data of the
// last.
func told(t *testing.T, db *store.DB, kind string, since *string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range readChanges(t, ctxOf(t), db, *since) {
		if *since = c.Cursor; c.Kind == kind {
			if _, twice := out[c.TokenID.Dec()]; twice {
				t.Errorf("agent %s is told twice", c.TokenID.Dec())
			}
			out[c.TokenID.Dec()] = string(c.Data)
		}
	}
	return out
}

// An agent whose domain is proven gets a change in the feed when the proof goes, lapses, moves or returns, though the
// bytes read last are the same. It gets none when the verdict stays the same.
func TestProofsThatEndAreAnnounced(t *testing.T) {
	t.Parallel()
	const proof = "https://b.example/.well-known/agent-registration.json"
	db, w := queue(t, "data:,x")
	read(t, db, claim(t, db, "")["data:,x"], "0", linked("zero"), docdb.Domain{Name: "b.example", Proof: proof})
	p := claim(t, db, "")[proof]
	start := time.Now().Add(-30 * 24 * time.Hour)
	since := ""
	for i, step := range []struct {
		day    int
		what   string // "" for the bytes, "same" for no others, else the failure
		served string
		news   bool
	}{
		{0, "", "b.example", true}, {1, "timeout", "", false}, {2, "same", "b.example", false},
		{3, "not_found", "", true},
		{4, "not_found", "", false}, {5, "same", "b.example", true}, {6, "same", "c.example", true},
		{7, "same", "b.example", true},
		{8, "dns", "", false}, {13, "timeout", "", false}, {15, "dns", "", true}, {16, "tls", "", false},
		{17, "same", "b.example", true},
	} {
		r := docdb.FetchResult{URIID: p.ID, FetchedAt: start.Add(time.Duration(step.day) * 24 * time.Hour),
			Source:   "https",
			ServedBy: step.served}
		switch step.what {
		case "":
			r.Body, r.ParserVersion, r.Registration = []byte("p"), 1, linked("", w.id(0))
		case "same":
		default:
			r.Reason, r.Source = step.what, ""
		}
		save(t, db, r)
		if got := told(t, db, "proof.updated", &since); (len(got) == 1) != step.news {
			t.Errorf("step %d, %q by %q: told %v, want news: %t", i, step.what, step.served, got, step.news)
		}
	}
}

// An agent whose file is its domain's proof as well hears, too, though its document stays.
func TestOwnProofsThatEndAreAnnounced(t *testing.T) {
	t.Parallel()
	const uri = "https://own.example/.well-known/agent-registration.json"
	db, w := queue(t, uri, "https://own.example/other.json")
	atHost(t, db, "own.example")
	u := claim(t, db, "own.example")
	own := docdb.Domain{Name: "own.example", Proof: uri}
	read(t, db, u[uri], uri, linked("me", w.id(0)), own)
	read(t, db, u["https://own.example/other.json"], "other", linked("other", w.id(1)))
	since := ""
	told(t, db, "", &since)
	save(t, db, docdb.FetchResult{URIID: u[uri].ID, FetchedAt: time.Now(), Reason: "not_found"})
	if got := told(t, db, "proof.updated", &since); len(got) != 1 || got["0"] != `{"domain": "own.example"}` {
		t.Errorf("told %v", got)
	}
}

// share has n more agents, with ids from first, show the document of a URI.
func share(t *testing.T, db *store.DB, uri string, first, n int) {
	t.Helper()
	sqlExec(t, db, `
		insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block,
			registered_log, updated_block, updated_log)
		select a.chain_id, i, a.owner, a.claimed, a.wallet, a.approved, u.id, a.registered_block, a.registered_log,
			a.updated_block, a.updated_log
		from (select * from agents order by token_id limit 1) a, uris u, generate_series($2::int, $2::int + $3::int - 1) i
		where u.uri = convert_to($1, 'UTF8')`, uri, first, n)
}

// One change of a file that many agents share is told bit by bit, once an hour at most,
// each agent once and with what is shown by then; denied ones never.
func TestCrowdsAreToldBitByBit(t *testing.T) {
	t.Parallel()
	const shared, lonely, many = "https://x/shared", "https://x/0", 1500
	db, _ := queue(t, shared, lonely)
	share(t, db, shared, 100, many)
	sqlExec(t, db, "insert into denied values ('agent', '7:100', 'r')")
	u := claim(t, db, "")
	since := ""
	read(t, db, u[shared], "1", linked("one"))
	read(t, db, u[lonely], "1", linked("one"))
	if got := told(t, db, "document.updated", &since); len(got) != 1 || got["1"] == "" {
		t.Fatalf("at once %d agents are told", len(got))
	}
	step := func(limit int, want bool) map[string]string {
		t.Helper()
		more, err := docdb.AddSharedChanges(ctxOf(t), db, limit)
		if err != nil || more != want {
			t.Fatalf("more: %t, %v", more, err)
		}
		return told(t, db, "document.updated", &since)
	}
	some := step(1000, true)
	read(t, db, u[shared], "2", linked("two")) // while it is told of
	rest := step(1000, true)
	for id, data := range rest {
		if _, twice := some[id]; twice || !strings.Contains(data, "two") {
			t.Fatalf("agent %s: told twice: %t, last %s", id, twice, data)
		}
	}
	if len(some)+len(rest) != many || some["100"] != "" || len(some) != 999 {
		t.Errorf("%d, then %d agents are told", len(some), len(rest))
	}
	step(1000, false) // not again within the hour
	read(t, db, u[shared], "3", linked("three"))
	step(1000, false)
	sqlExec(t, db,
		"update cursors set due = due - interval '1 hour', begun = begun - interval '1 hour' where job = 'shared document'")
	if got := step(5000, true); len(got) != many {
		t.Errorf("after an hour %d agents are told", len(got))
	}
	step(5000, false)
	sqlExec(t, db, "update cursors set begun = begun - interval '1 hour' where job = 'shared document'")
	step(5000, false)
	var left int
	ok(t, db.Pool().QueryRow(ctxOf(t), "select count(*) from cursors where job = 'shared document'").Scan(&left))
	if left != 0 {
		t.Errorf("%d cursors of shared documents stay", left)
	}
}

// The proof of a domain that many agents name is news to those it names, or named.
func TestCrowdsOfADomain(t *testing.T) {
	t.Parallel()
	const uri, proof = "https://x/shared", "https://b.example/.well-known/agent-registration.json"
	db, w := queue(t, uri)
	share(t, db, uri, 100, 1500)
	read(t, db, claim(t, db, "")[uri], "0", linked("zero"), docdb.Domain{Name: "b.example", Proof: proof})
	p := claim(t, db, "")[proof]
	since := ""
	for n, names := range [][]int{{0, 100}, {100, 101}, {999}} {
		ids := linked("")
		for _, id := range names {
			ids.Registrations = append(ids.Registrations, linked("", w.id(id)).Registrations...)
		}
		told(t, db, "", &since)
		read(t, db, p, fmt.Sprint("proof ", n), ids)
		want := [][]string{{"0", "100"}, {"0", "100", "101"}, {"100", "101", "999"}}[n]
		var got []string
		for id := range told(t, db, "proof.updated", &since) {
			got = append(got, id)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("a proof of %v: told %v, want %v", names, got, want)
		}
	}
}
