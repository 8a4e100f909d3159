package store_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"repute"
	"repute/store"
	"repute/store/docdb"
	"repute/store/docstats"
	"repute/store/query"
)

// queue is a chain with one agent per URI, all documents due.
func queue(t *testing.T, uris ...string) (*store.DB, *world) {
	t.Helper()
	return queueWith(t, store.Options{}, uris...)
}

func queueWith(t *testing.T, o store.Options, uris ...string) (*store.DB, *world) {
	t.Helper()
	db, w := openWith(t, o), newWorld(7, 100, 1)
	for i, uri := range uris {
		id := tokenID(i)
		w.mine(repute.Transfer{To: person(i), TokenID: id}, repute.Registered{TokenID: id, URI: uri, Owner: person(i)})
		w.agents++
		// One at a time, as near the head: each is due from its own moment.
		w.store(t, db, w.tip().Number)
	}
	return db, w
}

// claim takes everything due at a host.
func claim(t *testing.T, db *store.DB, host string) map[string]docdb.URI {
	t.Helper()
	due, err := docdb.DueURIs(context.Background(), db, host, 100)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]docdb.URI{}
	for _, u := range due {
		out[u.URI] = u
	}
	return out
}

func save(t *testing.T, db *store.DB, r docdb.FetchResult) {
	t.Helper()
	if err := docdb.SaveDocuments(context.Background(), db, r); err != nil {
		t.Fatal(err)
	}
}

// sqlExec changes rows behind the store's back.
func sqlExec(t *testing.T, db *store.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Pool().Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func documentOf(t *testing.T, db *store.DB, id repute.AgentID) repute.Document {
	t.Helper()
	a, _, err := query.Agent(context.Background(), db, id, latest)
	if err != nil {
		t.Fatal(err)
	}
	return a.Document
}

// documentChanges are the data of the change feed's document changes, by agent.
func documentChanges(t *testing.T, db *store.DB) (out []string) {
	t.Helper()
	for _, c := range readChanges(t, context.Background(), db, "") {
		if c.Kind == "document.updated" {
			out = append(out, fmt.Sprintf("%s %s", c.TokenID.Dec(), c.Data))
		}
	}
	return out
}

var fetched = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestDocumentLifecycle(t *testing.T) {
	t.Parallel()
	const uri = "https://a.example/agent.json"
	db, w := queue(t, uri, uri, "")
	if d := documentOf(t, db, w.id(0)); d.Status != repute.DocumentPending || d.NextTry.IsZero() {
		t.Errorf("before the first fetch: %+v", d)
	}
	if d := documentOf(t, db, w.id(2)); d.Status != repute.DocumentNone {
		t.Errorf("of the empty uri: %+v", d)
	}
	u := claim(t, db, "")[uri]
	if u.Attempts != 1 || u.Kind != "https" {
		t.Fatalf("claimed %+v", u)
	}
	retry := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	save(t, db, docdb.FetchResult{URIID: u.ID, FetchedAt: fetched, Reason: "timeout", Detail: "took\x00 too long \xff",
		NextDue: retry})
	if d := documentOf(t, db, w.id(0)); d.Status != repute.DocumentFailed || d.Reason != "timeout" ||
		d.Detail != "took� too long �" || !d.NextTry.Equal(retry) {
		t.Errorf("after a failure: %+v", d)
	}

	yes := true
	reg := &repute.Registration{Name: "Anna", Active: &yes,
		Services: []repute.Service{{Name: "MCP", Endpoint: "https://a"}}}
	body := []byte(`{"name":"Anna"}`)
	save(t, db, docdb.FetchResult{
		URIID: u.ID, Body: body, MediaType: "application/json", Source: "https", ETag: `"1"`,
		FetchedAt:     fetched.Add(time.Hour),
		ParserVersion: 1, Registration: reg, NextDue: retry,
		Problems: []repute.Problem{{Code: "WA001", Severity: repute.SeverityWarning, Message: "m"}},
	})
	want := repute.Document{
		Status: repute.DocumentOK, Source: "https", SHA256: sha256.Sum256(body), Size: int64(len(body)),
		FetchedAt: fetched.Add(time.Hour),
		NextTry:   retry, Registration: reg,
		Problems: []repute.Problem{{Code: "WA001", Severity: repute.SeverityWarning, Message: "m"}}, ProblemCount: 1,
	}
	for token := range 2 {
		if d := documentOf(t, db, w.id(token)); !reflect.DeepEqual(d, want) {
			t.Errorf("after a success agent %d has\n%+v, want\n%+v", token, d, want)
		}
	}

	// Unchanged bytes, then a failure: what was read stays.
	save(t, db, docdb.FetchResult{URIID: u.ID, FetchedAt: fetched.Add(2 * time.Hour), ETag: `"1"`})
	save(t, db, docdb.FetchResult{URIID: u.ID, FetchedAt: fetched.Add(3 * time.Hour), Reason: "not_found"})
	want.FetchedAt, want.Reason, want.NextTry = fetched.Add(2*time.Hour), "not_found", time.Time{}
	if d := documentOf(t, db, w.id(0)); !reflect.DeepEqual(d, want) {
		t.Errorf("after a later failure\n%+v, want\n%+v", d, want)
	}

	// Worse bytes.
	save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte("<html>"), Source: "https",
		FetchedAt: fetched.Add(4 * time.Hour), ParserVersion: 1,
		Problems: []repute.Problem{{Code: "WA000", Severity: repute.SeverityError}}})
	if d := documentOf(t, db, w.id(0)); d.Status != repute.DocumentInvalid || d.Registration != nil || d.Reason != "" ||
		len(d.Problems) != 1 {
		t.Errorf("after bytes that are no document: %+v", d)
	}
	// The same bytes, better understood by a newer parser; an older one changes nothing.
	for _, version := range []int{3, 2} {
		save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte("<html>"), Source: "https",
			FetchedAt:     fetched.Add(5 * time.Hour),
			ParserVersion: version, Registration: &repute.Registration{Name: fmt.Sprint("v", version)}})
	}
	if d := documentOf(t, db, w.id(0)); d.Status != repute.DocumentOK || d.Registration.Name != "v3" {
		t.Errorf("after a newer parser: %+v", d)
	}
}

// TestDocumentChangesAreWhatShows expects one change per agent and visible
// difference, and none for agents that moved to another URI.
func TestDocumentChangesAreWhatShows(t *testing.T) {
	t.Parallel()
	const uri = "https://a.example/agent.json"
	db, w := queue(t, uri, uri, uri)
	u := claim(t, db, "")[uri]
	w.mine(repute.URIUpdated{TokenID: tokenID(1), URI: "https://elsewhere.example/", UpdatedBy: person(1)})
	w.store(t, db, w.tip().Number)
	result := docdb.FetchResult{URIID: u.ID, Body: []byte("{}"), Source: "https", FetchedAt: fetched, ParserVersion: 1,
		Registration: &repute.Registration{Name: "A\x00"}}
	steps := []struct {
		change func(*docdb.FetchResult)
		want   string // of the change, "" for none
	}{
		{func(r *docdb.FetchResult) {}, `"name": "A�"`},
		{func(r *docdb.FetchResult) { r.FetchedAt = fetched.Add(time.Hour) }, ""},
		{func(r *docdb.FetchResult) { r.Body = nil }, ""},
		{func(r *docdb.FetchResult) { r.Reason = "timeout" }, ""}, // the bytes are still shown
		{func(r *docdb.FetchResult) { r.Reason = "timeout"; r.Detail = "again" }, ""},
		{func(r *docdb.FetchResult) { r.Reason = "" }, ""},
		{func(r *docdb.FetchResult) { r.Body = []byte("{ }") }, `"sha256"`},
		{func(r *docdb.FetchResult) {
			r.ParserVersion, r.Registration = 2, &repute.Registration{Name: "A", Image: "i"}
		}, `"name": "A"`},
	}
	for i, step := range steps {
		before := len(documentChanges(t, db))
		r := result
		r.Body = slices.Clone(result.Body)
		step.change(&r)
		if r.Body != nil {
			result.Body = r.Body
		}
		save(t, db, r)
		got := documentChanges(t, db)[before:]
		if step.want == "" {
			if len(got) != 0 {
				t.Errorf("step %d announced %v", i, got)
			}
			continue
		}
		if len(got) != 2 || !strings.HasPrefix(got[0], "0 ") || !strings.HasPrefix(got[1], "2 ") ||
			!strings.Contains(got[0], step.want) {
			t.Errorf("step %d announced %v, want %s for agents 0 and 2", i, got, step.want)
		}
	}
}

// TestHostileDocumentsAreKept stores what jsonb would refuse and expects it back.
func TestHostileDocumentsAreKept(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "data:,")
	u := claim(t, db, "")["data:,"]
	deep := strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000)
	extra := map[string]json.RawMessage{
		"huge": json.RawMessage(`1e1000000`), "nul": json.RawMessage(`"\u0000"`), "lone": json.RawMessage(`"\ud800"`),
		"twice": json.RawMessage(`{"a":1,  "a":2}`), "deep": json.RawMessage(deep), "key\x00": json.RawMessage(`{}`),
	}
	reg := &repute.Registration{
		Name: `back\slash \u0000 stays`, Description: "nul\x00 and \xff", Extra: extra,
		Services: []repute.Service{{Name: "x", Extra: map[string]json.RawMessage{"n": json.RawMessage("-0.0e-99999")}}},
		Registrations: []repute.RegistrationLink{{TokenID: nil, Registry: "r"},
			{TokenID: new(repute.TokenID).SetAllOne(), Registry: "s"}},
	}
	save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte{0, 255}, MediaType: "\x00\xff", Source: "data",
		FetchedAt: fetched, ParserVersion: 1,
		ETag: "\x00", LastModified: "\xff", Registration: reg,
		Problems: []repute.Problem{{Message: "quotes \x00 \xff"}}})
	d := documentOf(t, db, w.id(0))
	if d.Status != repute.DocumentOK || d.Problems[0].Message != "quotes \ufffd \ufffd" {
		t.Errorf("document = %+v", d)
	}
	want := *reg
	want.Description = "nul\ufffd and \ufffd"
	delete(extra, "key\x00")
	extra["key\ufffd"] = json.RawMessage(`{}`)
	if !reflect.DeepEqual(d.Registration, &want) {
		t.Errorf("registration came back as\n%+.200v, want\n%+.200v", d.Registration, &want)
	}
}

// TestClaimsDoNotOverlap has many workers claim at once: each URI goes to one,
// and comes back when its claim runs out.
func TestClaimsDoNotOverlap(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 1)
	const n = 200
	var events []repute.Event
	for i := range n {
		events = append(events, repute.Transfer{To: person(i), TokenID: tokenID(i)},
			repute.Registered{TokenID: tokenID(i), URI: fmt.Sprint("https://x/", i)})
	}
	w.mine(events...)
	w.store(t, db, w.tip().Number)
	var mu sync.Mutex
	seen := map[int64]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				due, err := docdb.DueURIs(context.Background(), db, "", 7)
				if err != nil {
					t.Error(err)
				}
				if len(due) == 0 {
					return
				}
				mu.Lock()
				for _, u := range due {
					seen[u.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != n {
		t.Errorf("%d of %d claimed", len(seen), n)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("uri %d was claimed %d times", id, times)
		}
	}
	ok(t, docdb.FinishHost(context.Background(), db, docdb.HostClaim{Host: ""}))
	if hosts := dueHosts(t, db); len(hosts) != 0 {
		t.Errorf("hosts while all is claimed: %q", hosts)
	}
	sqlExec(t, db, "update uris set next_due = next_due - interval '6 minutes' where next_due is not null")
	again := claim(t, db, "")
	if len(again) != 100 {
		t.Errorf("%d of the expired claims came back", len(again))
	}
	for _, u := range again {
		if u.Attempts != 2 {
			t.Fatalf("second claim counts %d attempts", u.Attempts)
		}
	}
}

func TestDueOrder(t *testing.T) {
	t.Parallel()
	db, _ := queue(t, "https://x/1", "https://x/2", "https://x/3")
	sqlExec(t, db, `insert into uris (hash, uri, kind, host, next_due)
		select sha256(h::bytea), h::bytea, 'https', h, now() + w from (values ('a.example', interval '-1 s'),
			('b.example', interval '1 h'),
			('c.example', interval '-1 h'), ('d.example', null)) v(h, w)`)
	sqlExec(t, db,
		"insert into hosts (host, due_at) select host, next_due from uris where host <> '' and next_due is not null")
	ctx := context.Background()
	hosts := dueHosts(t, db)
	if !slices.Equal(hosts, []string{"c.example", "a.example", ""}) &&
		!slices.Equal(hosts, []string{"c.example", "", "a.example"}) {
		t.Errorf("due hosts = %q", hosts)
	}
	if hosts, err := docdb.DueOf(ctx, db, "b.example", "a.example"); err != nil ||
		!slices.Equal(hosts, []string{"a.example"}) {
		t.Errorf("due of two = %q, %v", hosts, err)
	}
	due, err := docdb.DueURIs(ctx, db, "", 2)
	if err != nil || len(due) != 2 || due[0].URI != "https://x/3" || due[1].URI != "https://x/2" {
		t.Errorf("the newest come first: %+v, %v", due, err)
	}
	if due, err := docdb.DueURIs(ctx, db, "b.example", 2); err != nil || len(due) != 0 {
		t.Errorf("not yet due: %+v, %v", due, err)
	}
}

func TestFetchesKeepOutcomesThatDiffer(t *testing.T) {
	t.Parallel()
	db, _ := queue(t, "https://x/1")
	u := claim(t, db, "")["https://x/1"]
	good := docdb.FetchResult{URIID: u.ID, Body: []byte("{}"), Source: "https", ParserVersion: 1}
	bad := docdb.FetchResult{URIID: u.ID, Reason: "timeout"}
	other := docdb.FetchResult{URIID: u.ID, Body: []byte("[]"), Source: "https", ParserVersion: 1}
	for i, r := range []docdb.FetchResult{bad, bad, good, good, good, bad, good, other, other} {
		r.FetchedAt = fetched.Add(time.Duration(i) * time.Hour)
		save(t, db, r)
	}
	var hours []int
	rows, err := db.Pool().Query(context.Background(),
		"select extract(epoch from fetched_at - $1)::int / 3600 from fetches order by fetched_at", fetched)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var h int
		if err := rows.Scan(&h); err != nil {
			t.Fatal(err)
		}
		hours = append(hours, h)
	}
	if rows.Err() != nil || !slices.Equal(hours, []int{0, 2, 5, 6, 7}) {
		t.Errorf("fetches at hours %v, %v", hours, rows.Err())
	}
}

func TestURIStats(t *testing.T) {
	t.Parallel()
	db, _ := queue(t, "https://x/1", "https://x/2", "https://x/3", "https://x/4", "https://x/5", "")
	uris := claim(t, db, "")
	save(t, db, docdb.FetchResult{URIID: uris["https://x/1"].ID, Body: []byte("{}"), Source: "https",
		FetchedAt:     fetched,
		ParserVersion: 1})
	save(t, db, docdb.FetchResult{URIID: uris["https://x/2"].ID, Body: []byte("x"), Source: "https", FetchedAt: fetched,
		ParserVersion: 1,
		Problems:      []repute.Problem{{Severity: repute.SeverityError}}})
	save(t, db, docdb.FetchResult{URIID: uris["https://x/3"].ID, FetchedAt: fetched, Reason: "timeout",
		NextDue: time.Now().Add(-time.Minute)})
	save(t, db, docdb.FetchResult{URIID: uris["https://x/4"].ID, Body: []byte("feedback"), Source: "https",
		FetchedAt: fetched, ParserVersion: 1, FileOnly: true,
		Files: []docdb.FileParse{{Kind: repute.FeedbackDocument, Feedback: &repute.FeedbackFile{},
			Problems: []repute.Problem{{Severity: repute.SeverityError}}}}})
	got, err := docstats.ReadURIStats(context.Background(), db)
	want := docdb.URIStats{Total: 5, Due: 1, Planned: 2,
		ByStatus: map[repute.DocumentStatus]int64{repute.DocumentOK: 1, repute.DocumentInvalid: 2,
			repute.DocumentFailed:  1,
			repute.DocumentPending: 1},
		ByReason: map[string]int64{"timeout": 1}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("stats = %+v, %v, want %+v", got, err, want)
	}
	if err := docdb.SaveDocuments(context.Background(), db,
		docdb.FetchResult{URIID: 1 << 40, FetchedAt: fetched}); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("an unknown uri gave %v", err)
	}
}

// TestNoHostStarves has more hosts than one look takes, each with more documents
// than a turn takes, all waiting longer than the newcomer: it is claimed within the
// rounds it takes to serve everybody once. Own hosts are nobody's claim.
func TestNoHostStarves(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	const hosts, limit = 600, 500
	sqlExec(t, db, `insert into uris (hash, uri, kind, host, next_due)
		select sha256((i || '-' || n)::bytea), (i || '-' || n)::bytea, 'https', '0-' || i || '.example', now() - interval
			'1 hour'
		from generate_series(1, $1::int) i, generate_series(1, 5) n`, hosts)
	sqlExec(t, db, `insert into uris (hash, uri, kind, host, next_due) values
		(sha256('i'), 'i', 'ipfs', 'ipfs', now()), (sha256('d'), 'd', 'data', '', now()), (sha256('z'), 'z', 'https', 'z.example', now())`)
	sqlExec(t, db, "insert into hosts (host, due_at) select host, min(next_due) from uris group by host")
	for range 2 {
		claims, err := docdb.ClaimHosts(ctx, db, []docdb.Rank{docdb.RankNew, docdb.RankFile}, limit, "", "ipfs")
		ok(t, err)
		if len(claims) != limit {
			t.Fatalf("%d hosts claimed", len(claims))
		}
		for _, c := range claims {
			switch c.Host {
			case "z.example":
				return
			case "", "ipfs":
				t.Fatalf("host %q was claimed", c.Host)
			}
			_, err := docdb.DueURIs(ctx, db, c.Host, 1)
			ok(t, err)
			ok(t, docdb.FinishHost(ctx, db, c))
		}
	}
	t.Error("a host was never claimed")
}

// TestFinishedHostComesBack interns beside a host's end.
func TestFinishedHostComesBack(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0")
	ctx := ctxOf(t)
	for i := 1; i < 30; i++ {
		claim(t, db, "")
		id := tokenID(i)
		w.mine(repute.Transfer{To: person(i), TokenID: id},
			repute.Registered{TokenID: id, URI: fmt.Sprint("https://x/", i),
				Owner: person(i)})
		w.agents++
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := docdb.FinishHost(ctx, db, docdb.HostClaim{Host: ""}); err != nil {
				t.Error(err)
			}
		})
		w.store(t, db, w.tip().Number)
		wg.Wait()
		if hosts := dueHosts(t, db); len(hosts) != 1 {
			t.Fatalf("after uri %d: %q", i, hosts)
		}
	}
}

// TestOnlyURIsOfAgentsAreDue expects a URI of feedback to wait for an agent.
func TestOnlyURIsOfAgentsAreDue(t *testing.T) {
	t.Parallel()
	const later = "https://x/feedback-first"
	db, w := queue(t, "https://x/agent")
	w.mine(repute.NewFeedback{TokenID: tokenID(0), Client: person(9), Index: 1, Value: big.NewInt(1), URI: later})
	w.store(t, db, w.tip().Number)
	if due := claim(t, db, ""); len(due) != 1 || due["https://x/agent"].ID == 0 {
		t.Fatalf("due: %v", due)
	}
	if stats, err := docstats.ReadURIStats(ctxOf(t), db); err != nil || stats.Total != 1 {
		t.Errorf("stats = %+v, %v", stats, err)
	}
	ok(t, docdb.FinishHost(ctxOf(t), db, docdb.HostClaim{Host: ""}))
	for range 2 { // once more changes nothing
		w.mine(repute.URIUpdated{TokenID: tokenID(0), URI: later, UpdatedBy: person(0)})
		w.store(t, db, w.tip().Number)
	}
	if hosts := dueHosts(t, db); len(hosts) != 1 {
		t.Errorf("due hosts %q", hosts)
	}
	u := claim(t, db, "")[later]
	if u.Attempts != 1 {
		t.Fatalf("an agent's new uri is not due: %+v", u)
	}
	ok(t, docdb.ReleaseURI(ctxOf(t), db, u))
	if again := claim(t, db, "")[later]; again.Attempts != 1 {
		t.Errorf("a released claim came back as %+v", again)
	}
	save(t, db, docdb.FetchResult{URIID: u.ID, FetchedAt: time.Now(), Reason: "bad_url"})
	w.mine(repute.URIUpdated{TokenID: tokenID(0), URI: later, UpdatedBy: person(0)})
	w.store(t, openAgain(t, db), w.tip().Number)
	if due := claim(t, db, ""); len(due) != 0 {
		t.Errorf("a final failure is due again: %v", due)
	}
}

// openAgain is the same database without the caches.
func openAgain(t *testing.T, db *store.DB) *store.DB {
	t.Helper()
	return openDB(t, db.Pool().Config().ConnString())
}
