package store_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/denydb"
	"repute/store/docdb"
	"repute/store/query"
)

// hostOf puts the https URIs of a test on one host.
func hostOf(t *testing.T, db *store.DB, host string) {
	t.Helper()
	sqlExec(t, db, "update uris set host = $1 where kind = 'https'", host)
	sqlExec(t, db, "delete from hosts where host in ('', $1)", host)
	sqlExec(t, db, "insert into hosts (host, due_at) values ($1, now())", host)
}

// Any number of hosts with files of ratings wait apart from one with a new agent.
func TestHostsOfAgentsComeFirst(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	sqlExec(t, db, `insert into uris (hash, uri, kind, host, rank, next_due)
		select sha256(h::bytea), h::bytea, 'https', h, r, now() - interval '1 minute'
		from generate_series(1, 2000) i, lateral (select case when i > 1000 then 3 else 1 end) v(r), lateral (select 'h'
			|| i || '.example') w(h)`)
	sqlExec(t, db, "insert into uris (hash, uri, kind, host, rank, next_due) values (sha256('n'), 'n', 'https', 'new.example', 0, now())")
	ok(t, docdb.RestoreHosts(ctx, db))
	ofAgents := []docdb.Rank{docdb.RankAgent, docdb.RankNew, docdb.RankProof}
	hosts := claimHosts(t, db, ofAgents, 100)
	if len(hosts) != 100 || !slices.Contains(hosts, "new.example") {
		t.Errorf("%d hosts of agents", len(hosts))
	}
	files := claimHosts(t, db, []docdb.Rank{docdb.RankFile}, 2000, "h1001.example")
	if len(files) != 999 || slices.Contains(files, "h1000.example") {
		t.Errorf("%d hosts of files", len(files))
	}
	if again := claimHosts(t, db, ofAgents, 2000); len(again) != 901 || slices.Contains(again, "new.example") {
		t.Errorf("%d other hosts of agents", len(again))
	}
	sqlExec(t, db, "update hosts set claimed_until = null")
	// What was read of the new agent leaves its host with its files.
	sqlExec(t, db, "update uris set next_due = now() + interval '1 day' where rank = 0")
	sqlExec(t, db, `insert into uris (hash, uri, kind, host, rank, next_due) values (sha256('f'), 'f', 'https', 'new.example', 3, now())`)
	ok(t, docdb.FinishHost(ctx, db, docdb.HostClaim{Host: "new.example"}))
	if files := claimHosts(t, db, []docdb.Rank{docdb.RankFile}, 2000); !slices.Contains(files, "new.example") {
		t.Errorf("%d hosts of files", len(files))
	}
}

// claimHosts returns the names of the hosts that ClaimHosts claims.
func claimHosts(t *testing.T, db *store.DB, ranks []docdb.Rank, limit int, except ...string) (hosts []string) {
	t.Helper()
	claims, err := docdb.ClaimHosts(ctxOf(t), db, ranks, limit, except...)
	ok(t, err)
	for _, c := range claims {
		hosts = append(hosts, c.Host)
	}
	return hosts
}

// dueHosts returns the hosts with documents due, the longest waiting first.
func dueHosts(t *testing.T, db *store.DB) []string {
	t.Helper()
	rows, err := db.Pool().Query(ctxOf(t), "select host from hosts where due_at <= now() order by due_at")
	ok(t, err)
	hosts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	ok(t, err)
	return hosts
}

// What a host asked for stands against wishes, new documents and a new start; its
// silence stands for minutes.
func TestRestOutlastsWishes(t *testing.T) {
	t.Parallel()
	const url, host = "https://busy.example/0", "busy.example"
	for name, c := range map[string]struct {
		asked time.Duration
		rests string // longer than, and not as long as
		until string
	}{"asked": {24 * time.Hour, "23 hours", "25 hours"}, "silent": {0, "4 minutes", "6 minutes"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, w := queue(t, url)
			ctx := ctxOf(t)
			hostOf(t, db, host)
			u := claim(t, db, host)[url]
			save(t, db, docdb.FetchResult{URIID: u.ID, FetchedAt: time.Now(), Reason: "http_status",
				NextDue: time.Now().Add(24 * time.Hour)})
			ok(t, docdb.BackOffHost(ctx, db, docdb.HostClaim{Host: host}, c.asked, time.Hour, time.Hour))
			r, err := query.RequestRefresh(ctx, db, w.id(0))
			if err != nil || !r.Queued {
				t.Errorf("refresh %+v, %v", r, err)
			}
			_, err = docdb.RetryDocuments(ctx, db, docdb.RetryFilter{})
			ok(t, err)
			ok(t, docdb.RestoreHosts(ctx, db))
			if hosts := dueHosts(t, db); len(hosts) != 0 {
				t.Errorf("due while it rests: %q", hosts)
			}
			var within bool
			ok(t, db.Pool().QueryRow(ctx,
				"select due_at between now() + $1::text::interval and now() + $2::text::interval from hosts",
				c.rests, c.until).Scan(&within))
			if !within {
				t.Errorf("the turn is not between %s and %s from now", c.rests, c.until)
			}
		})
	}
}

// Wishes neither revive what is dead nor fetch what cannot change.
func TestRefreshIsNoRevival(t *testing.T) {
	t.Parallel()
	const cid, url = "ipfs://cid", "https://x/dead"
	db, w := queue(t, cid, url)
	u := claim(t, db, "")
	save(t, db, docdb.FetchResult{URIID: u[cid].ID, Body: []byte("{}"), Source: "ipfs", FetchedAt: fetched,
		ParserVersion: 1})
	for range 2 {
		save(t, db, docdb.FetchResult{URIID: u[url].ID, FetchedAt: fetched, Reason: "timeout", Dead: true,
			NextDue: fetched.Add(1e6 * time.Hour)})
	}
	for token := range 2 {
		r, err := query.RequestRefresh(ctxOf(t), db, w.id(token))
		if err != nil || !r.Queued {
			t.Errorf("agent %d: %+v, %v", token, r, err)
		}
	}
	due := claim(t, db, "")
	if len(due) != 1 || due[url].Failures != 2 || due[url].Rank != docdb.RankAgent {
		t.Errorf("due %+v", due)
	}
	// Bytes that were dropped can be asked for.
	sqlExec(t, db, "update documents set body = null; update uris set refresh_at = null")
	_, err := query.RequestRefresh(ctxOf(t), db, w.id(0))
	ok(t, err)
	if due := claim(t, db, ""); len(due) != 1 || due[cid].ID == 0 {
		t.Errorf("dropped bytes: %+v", due)
	}
}

// A URI that an agent gets is read though an earlier agent's was read long ago, or
// found dead; what was read lately, or cannot change, is not.
func TestURISetAgainIsRead(t *testing.T) {
	t.Parallel()
	uris := []string{"https://x/dead", "https://x/old", "https://x/fresh", "ipfs://old", "data:dead"}
	db, w := queue(t, uris...)
	sqlExec(t, db, "update uris set kind = split_part(convert_from(uri, 'UTF8'), ':', 1) where uri <> ''")
	u := claim(t, db, "")
	now := time.Now()
	save(t, db, docdb.FetchResult{URIID: u[uris[0]].ID, FetchedAt: now, Reason: "not_found", Dead: true,
		NextDue: now.Add(7 * 24 * time.Hour)})
	for i, at := range []time.Time{1: now.Add(-48 * time.Hour), 2: now, 3: now.Add(-48 * time.Hour)} {
		if i > 0 {
			source, _, _ := strings.Cut(uris[i], ":")
			save(t, db, docdb.FetchResult{URIID: u[uris[i]].ID, Body: []byte("{}"), Source: source, ETag: "e", FetchedAt: at,
				ParserVersion: 1, NextDue: now.Add(30 * 24 * time.Hour)})
		}
	}
	save(t, db, docdb.FetchResult{URIID: u[uris[4]].ID, FetchedAt: now, Reason: "bad_data_uri", Dead: true})
	ok(t, docdb.FinishHost(ctxOf(t), db, docdb.HostClaim{Host: ""}))
	for _, uri := range uris {
		w.mine(repute.URIUpdated{TokenID: tokenID(2), URI: uri, UpdatedBy: person(2)})
	}
	w.store(t, openAgain(t, db), w.tip().Number)
	due := claim(t, db, "")
	if len(due) != 2 || due[uris[0]].Failures != 0 || due[uris[0]].Attempts != 1 || due[uris[1]].ETag != "e" ||
		due[uris[1]].Rank != docdb.RankAgent {
		t.Errorf("due %+v", due)
	}
	if d := documentOf(t, db, w.id(0)); d.Status != repute.DocumentDead {
		t.Errorf("before the try it is %+v", d)
	}
}

// The bound is one of bodies and of the blocks that prove them.
func TestBlocksCountAsBytes(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "data:,a")
	var u map[string]docdb.URI
	for i, uri := range []string{"ipfs://1", "ipfs://2", "ipfs://3"} {
		w.mine(repute.NewFeedback{TokenID: tokenID(0), Client: person(9), Index: uint64(i + 1), Value: big.NewInt(1),
			URI: uri})
	}
	w.store(t, db, w.tip().Number)
	_, err := docdb.PlanFiles(ctxOf(t), db, 10)
	ok(t, err)
	u = claim(t, db, "")
	blockOf := func(b byte, size int) docdb.Block {
		data := bytes.Repeat([]byte{b}, size)
		sum := sha256.Sum256(data)
		return docdb.Block{Multihash: append([]byte("\x12\x20"), sum[:]...), Data: data}
	}
	shared := blockOf(0, 1000)
	for i, uri := range []string{"ipfs://1", "ipfs://2", "ipfs://3"} {
		save(t, db, docdb.FetchResult{URIID: u[uri].ID, Body: []byte("tiny" + uri), Source: "ipfs",
			FetchedAt:     fetched.Add(time.Duration(i) * time.Hour),
			ParserVersion: 1, FileOnly: true, Blocks: []docdb.Block{shared, blockOf(byte(i+1), 4000)}})
	}
	const tiny = 12 // bytes of a body
	for _, step := range []struct{ most, freed int64 }{{13000 + 3*tiny, 0}, {10000, 4000 + tiny}, {2000, 9000 + 2*tiny},
		{0, 0}} {
		if freed := dropBodies(t, db, step.most); freed != step.freed {
			t.Errorf("down to %d freed %d, want %d", step.most, freed, step.freed)
		}
	}
}

// What failed twice on ipfs waits in a queue of its own, until somebody wants all of it
// tried again.
func TestDeadCIDsHaveTheirQueue(t *testing.T) {
	t.Parallel()
	const cid, url = "ipfs://cid", "https://x/0"
	db, _ := queue(t, cid, url)
	sqlExec(t, db, "update uris set host = 'ipfs' where kind = 'ipfs'")
	sqlExec(t, db, "insert into hosts (host, due_at) values ('ipfs', now())")
	fail := func(u docdb.URI) {
		t.Helper()
		save(t, db, docdb.FetchResult{URIID: u.ID, FetchedAt: time.Now(), Reason: "gateway",
			NextDue: time.Now().Add(-time.Second)})
	}
	fail(claim(t, db, "")[url])
	fail(claim(t, db, "")[url])
	fail(claim(t, db, "ipfs")[cid])
	again := claim(t, db, "ipfs")
	if len(again) != 1 {
		t.Fatal("after the first failure it is gone from the queue")
	}
	fail(again[cid])
	if due := claim(t, db, "ipfs"); len(due) != 0 {
		t.Errorf("after the second failure still due: %+v", due)
	}
	if hosts := dueHosts(t, db); !slices.Contains(hosts, docdb.RetryHost) {
		t.Errorf("hosts %q", hosts)
	}
	fail(claim(t, db, docdb.RetryHost)[cid])
	if n, err := docdb.RetryDocuments(ctxOf(t), db, docdb.RetryFilter{Host: "ipfs"}); err != nil || n != 1 {
		t.Errorf("%d to be tried again, %v", n, err)
	}
	if due := claim(t, db, "ipfs"); len(due) != 1 {
		t.Errorf("due %+v", due)
	}
}

// URIs are interned before the block that names them is stored: one that is read in
// between is nobody's yet, and of interest for all that.
func TestURIsAreOfInterestBeforeTheirAgents(t *testing.T) {
	t.Parallel()
	const uri = "https://x/left"
	db, w := queue(t, uri)
	w.mine(repute.URIUpdated{TokenID: tokenID(0), URI: "https://x/next", UpdatedBy: person(0)})
	w.store(t, db, w.tip().Number)
	u := claim(t, db, "")[uri]
	if u.ID == 0 || !u.Used {
		t.Fatalf("never tried: %+v", u)
	}
	save(t, db, docdb.FetchResult{URIID: u.ID, FetchedAt: time.Now(), Reason: "timeout",
		NextDue: time.Now().Add(-time.Second)})
	if u := claim(t, db, "")[uri]; u.ID == 0 || u.Used {
		t.Errorf("tried, and nobody has it: %+v", u)
	}
}

// A wish made while the document is fetched outlasts the outcome of that fetch.
func TestWishDuringFetch(t *testing.T) {
	t.Parallel()
	const uri = "https://x/0"
	for _, reason := range []string{"", "timeout"} {
		db, w := queue(t, uri)
		u := claim(t, db, "")[uri]
		r, err := query.RequestRefresh(ctxOf(t), db, w.id(0))
		if err != nil || !r.Queued {
			t.Fatalf("%+v, %v", r, err)
		}
		out := docdb.FetchResult{URIID: u.ID, Claimed: u.Claimed, FetchedAt: time.Now(), Reason: reason,
			NextDue: time.Now().Add(time.Hour)}
		if reason == "" {
			out.Body, out.Source, out.ParserVersion = []byte("{}"), "https", 1
		}
		save(t, db, out)
		u, due := claim(t, db, "")[uri]
		if !due {
			t.Errorf("after %q the refresh that was queued is gone", reason)
		}
		out.Claimed = u.Claimed
		save(t, db, out)
		if _, due := claim(t, db, "")[uri]; due {
			t.Errorf("after %q it is due without a wish", reason)
		}
	}
}

// A denial that is taken back while its refusal is on the way to the table leaves no
// document refused.
func TestAllowedDuringClaim(t *testing.T) {
	t.Parallel()
	const uri = "https://evil.example/0"
	db, w := queue(t, uri, "https://good.example/1")
	ok(t, denydb.Deny(ctxOf(t), db, repute.Denial{Kind: repute.DenyAgent, Value: "7:0", Reason: "r"}, false))
	due := claim(t, db, "")
	u, other := due[uri], due["https://good.example/1"]
	if u.Denied == nil || other.Denied != nil {
		t.Fatalf("%+v, %+v", u, other)
	}
	// what the loop makes of it
	refusal := docdb.FetchResult{URIID: u.ID, Claimed: u.Claimed, FetchedAt: time.Now(), Reason: docdb.ReasonDenied,
		Dead: true}
	ok(t, denydb.Undeny(ctxOf(t), db, repute.DenyAgent, "7:0"))
	ok(t, docdb.SaveDocuments(ctxOf(t), db, refusal, docdb.FetchResult{URIID: other.ID, FetchedAt: time.Now(),
		Reason: "timeout"}))
	if d := documentOf(t, db, w.id(1)); d.Reason != "timeout" {
		t.Errorf("of the other %+v", d)
	}
	if d := documentOf(t, db, w.id(0)); d.Status != repute.DocumentPending {
		t.Errorf("allowed: %+v", d)
	}
	again, isDue := claim(t, db, "")[uri]
	if !isDue || again.Denied != nil {
		t.Fatalf("allowed, and not due: %+v", again)
	}
	// What the loop looked up for itself is denied for as long as that is.
	ok(t, denydb.Deny(ctxOf(t), db, repute.Denial{Kind: repute.DenyHost, Value: "led.example", Reason: "r"}, false))
	refusal.Claimed, refusal.Denial = again.Claimed, repute.Denial{Kind: repute.DenyHost, Value: "led.example"}
	save(t, db, refusal)
	if d := documentOf(t, db, w.id(0)); d.Reason != docdb.ReasonDenied {
		t.Errorf("denied by where it leads: %+v", d)
	}
}

// A host is claimed once, by one of any number of processes, also when new documents of it are due meanwhile. A claim
// that expired is another's, and its former holder changes nothing of it.
func TestHostClaims(t *testing.T) {
	t.Parallel()
	db, w := queue(t)
	sqlExec(t, db, `insert into uris (hash, uri, kind, host, rank, next_due)
		select sha256(h::bytea), h::bytea, 'https', h, 1, now() - interval '1 minute' from generate_series(1, 100) i,
			lateral (select 'h' || i || '.example') w(h)`)
	ok(t, docdb.RestoreHosts(ctxOf(t), db))
	of := []docdb.Rank{docdb.RankAgent}
	var mu sync.Mutex
	claimed := map[string]docdb.HostClaim{}
	var processes sync.WaitGroup
	for range 8 {
		processes.Go(func() {
			for {
				claims, err := docdb.ClaimHosts(ctxOf(t), db, of, 3)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, c := range claims {
					if _, twice := claimed[c.Host]; twice {
						t.Errorf("%s is claimed twice", c.Host)
					}
					claimed[c.Host] = c
				}
				all := len(claimed) == 100
				mu.Unlock()
				if all || err != nil || len(claims) == 0 && t.Failed() {
					return
				}
			}
		})
	}
	processes.Wait()
	w.mine(repute.Transfer{To: person(1), TokenID: tokenID(0)},
		repute.Registered{TokenID: tokenID(0), URI: "https://x/new", Owner: person(1)})
	w.store(t, db, w.tip().Number)
	sqlExec(t, db, "update uris set host = 'h1.example' where uri = 'https://x/new'")
	sqlExec(t, db, "update hosts set due_at = now() where host = 'h1.example'")
	if again := claimHosts(t, db, of, 100); len(again) != 0 {
		t.Errorf("claimed again: %q", again)
	}
	old := claimed["h1.example"]
	sqlExec(t, db, "update hosts set claimed_until = now() - interval '1 second' where host = 'h1.example'")
	next, err := docdb.ClaimHosts(ctxOf(t), db, of, 100)
	if err != nil || len(next) != 1 || next[0].Host != "h1.example" {
		t.Fatalf("the claim that expired: %+v, %v", next, err)
	}
	ok(t, docdb.FinishHost(ctxOf(t), db, old))
	ok(t, docdb.ReleaseHost(ctxOf(t), db, old))
	ok(t, docdb.BackOffHost(ctxOf(t), db, old, time.Hour, time.Hour, time.Hour))
	if again := claimHosts(t, db, of, 100); len(again) != 0 || !slices.Contains(dueHosts(t, db), "h1.example") {
		t.Errorf("its former holder ended the claim: %q", again)
	}
	ok(t, docdb.ReleaseHost(ctxOf(t), db, next[0]))
	if again := claimHosts(t, db, of, 100); !slices.Equal(again, []string{"h1.example"}) {
		t.Errorf("after the release: %q", again)
	}
}

// A backoff of an hour holds the documents that the claim found. One that becomes due during the claim waits for the
// shortest backoff alone.
func TestBackoffHoldsWhatTheClaimFound(t *testing.T) {
	t.Parallel()
	const host = "silent.example"
	for name, c := range map[string]struct {
		arrives      bool
		asked        time.Duration
		rests, until string
	}{"nothing new": {false, 0, "50 minutes", "70 minutes"}, "a new document": {true, 0, "4 minutes", "6 minutes"},
		"a new document of a host that asked for a pause": {true, 2 * time.Hour, "119 minutes", "121 minutes"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, w := queueWith(t, store.Options{Classify: func(uri string) (kind, at string) {
				if uri == "" {
					return "empty", ""
				}
				return "https", host
			}}, "https://silent.example/0")
			ctx := ctxOf(t)
			backOff := func(rests, until string) {
				t.Helper()
				sqlExec(t, db, "update hosts set due_at = now() where host = $1", host)
				claims, err := docdb.ClaimHosts(ctx, db, []docdb.Rank{docdb.RankNew, docdb.RankAgent}, 100)
				if err != nil || len(claims) != 1 || claims[0].Host != host {
					t.Fatalf("claims %v, %v", claims, err)
				}
				if c.arrives && rests == c.rests {
					w.mine(repute.Transfer{To: person(1), TokenID: tokenID(1)},
						repute.Registered{TokenID: tokenID(1), URI: "https://silent.example/1", Owner: person(1)})
					w.store(t, db, w.tip().Number)
				}
				ok(t, docdb.BackOffHost(ctx, db, claims[0], c.asked, time.Hour, time.Hour))
				var within bool
				var due time.Time
				ok(t, db.Pool().QueryRow(ctx, `select due_at between now() + $1::text::interval and now() + $2::text::interval,
					due_at from hosts where host = $3`, rests, until, host).Scan(&within, &due))
				if !within {
					t.Errorf("due at %s, want %s to %s from now", due, rests, until)
				}
			}
			backOff(c.rests, c.until)
			if c.arrives && c.asked == 0 { // the next claim finds that document too
				backOff("50 minutes", "70 minutes")
			}
		})
	}
}

// The last free place goes to each rank in turn, however many hosts of another rank wait.
func TestRanksTakeTurns(t *testing.T) {
	t.Parallel()
	db, _ := queue(t)
	sqlExec(t, db, `insert into hosts (host, due_at, rank) select 'h' || i, now() - i * interval '1 second', i % 3
		from generate_series(1, 90) i`)
	of := []docdb.Rank{docdb.RankProof, docdb.RankNew, docdb.RankAgent}
	if got := claimHosts(t, db, of, 1); !slices.Equal(got, []string{"h89"}) {
		t.Errorf("one place: %q, want the longest waiting of the first rank", got)
	}
	if got := claimHosts(t, db, of, 6); len(got) != 6 || !slices.Contains(got, "h90") || !slices.Contains(got, "h87") ||
		!slices.Contains(got, "h86") || !slices.Contains(got, "h88") {
		t.Errorf("six places: %q, want two of each rank", got)
	}
}

// Batches that share blocks are saved side by side, in whichever order each has them.
func TestBatchesShareBlocks(t *testing.T) {
	t.Parallel()
	db, _ := queue(t, "https://x/0", "https://x/1", "https://x/2", "https://x/3")
	u := claim(t, db, "")
	outcome := func(uri, body string, block byte) docdb.FetchResult {
		return docdb.FetchResult{URIID: u[uri].ID, Body: []byte(body), Source: "ipfs", FetchedAt: time.Now(),
			ParserVersion: 1,
			Blocks:        []docdb.Block{{Multihash: []byte{block}, Data: []byte{block}}}}
	}
	for i := range 30 {
		sqlExec(t, db, "delete from document_blocks; delete from ipfs_blocks")
		done := make(chan error, 2)
		for from, blocks := range map[int][2]byte{0: {2, 1}, 2: {1, 2}} {
			var batch []docdb.FetchResult
			for j, b := range blocks {
				batch = append(batch, outcome(fmt.Sprintf("https://x/%d", from+j), fmt.Sprintf("%d of %d", from+j, i), b))
			}
			go func() { done <- docdb.SaveDocuments(ctxOf(t), db, batch...) }()
		}
		for range 2 {
			ok(t, <-done)
		}
	}
	if n := count(t, db, "ipfs_blocks"); n != 2 {
		t.Errorf("%d blocks", n)
	}
	if n := count(t, db, "document_blocks"); n != 4 {
		t.Errorf("%d blocks of documents", n)
	}
}
