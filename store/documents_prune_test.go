package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"repute"
	"repute/store"
	"repute/store/docdb"
)

// prune forgets until there is nothing to forget.
func prune(t *testing.T, db *store.DB) {
	t.Helper()
	for more := true; more; {
		var err error
		more, err = docdb.PruneVersions(ctxOf(t), db)
		ok(t, err)
	}
}

func rowsIn(t *testing.T, db *store.DB, sql string, args ...any) (n int) {
	t.Helper()
	ok(t, db.Pool().QueryRow(ctxOf(t), "select count(*) from "+sql, args...).Scan(&n))
	return n
}

// Of a file that never is the same the newest versions are kept, and nothing of others,
// except what is shown, what comes from elsewhere too, and what is denied.
func TestVersionsHaveAnEnd(t *testing.T) {
	t.Parallel()
	const clock, other, kept = "https://x/clock", "https://x/other", 200
	db, w := queue(t, clock, other)
	u := claim(t, db, "")
	start := time.Now().Add(-24 * time.Hour)
	version := func(n int) {
		t.Helper()
		r := docdb.FetchResult{URIID: u[clock].ID, Body: fmt.Append(nil, n), Source: "https",
			FetchedAt:     start.Add(time.Duration(n) * time.Minute),
			ParserVersion: 1, Registration: linked(fmt.Sprint("v", n), w.id(0)), Domains: []docdb.Domain{{Name: "x"}}}
		if n == 3 {
			r.Blocks = []docdb.Block{{Multihash: []byte{3}, Data: []byte("own")},
				{Multihash: []byte{7}, Data: []byte("shared")}}
		}
		if n == 250 {
			r.Blocks = []docdb.Block{{Multihash: []byte{7}, Data: []byte("shared")}}
		}
		save(t, db, r)
	}
	read(t, db, u[other], "5", linked("v5"))
	for n := range kept + 1 {
		version(n)
	}
	prune(t, db)
	if got := rowsIn(t, db, "fetches"); got != kept+2 {
		t.Fatalf("%d outcomes while there are few", got)
	}
	sqlExec(t, db, "insert into denied values ('sha256', encode(sha256('6'), 'hex'), 'r')")
	for n := kept + 1; n <= 300; n++ {
		version(n)
	}
	prune(t, db)
	if got := rowsIn(t, db, "fetches where uri_id = $1", u[clock].ID); got != kept {
		t.Errorf("%d outcomes, want %d", got, kept)
	}
	for n, want := range map[int]error{0: repute.ErrNotFound, 5: nil, 6: repute.ErrGone, 100: repute.ErrNotFound,
		101: nil, 300: nil} {
		if _, err := docdb.Body(ctxOf(t), db, sha256.Sum256(fmt.Append(nil, n))); !errors.Is(err, want) {
			t.Errorf("version %d: %v, want %v", n, err, want)
		}
	}
	for table, want := range map[string]int{"documents": kept + 2, "parses": kept + 2, "links": kept + 1,
		"domains": kept + 2, "searchable": kept + 2,
		"ipfs_blocks": 1, "uris where overgrown": 0} {
		if got := rowsIn(t, db, table); got != want {
			t.Errorf("%d rows in %s, want %d", got, table, want)
		}
	}
	// What is shown stays, however often its host fails afterwards.
	for n := range 2*kept + 3 {
		save(t, db, docdb.FetchResult{URIID: u[clock].ID,
			FetchedAt: start.Add(10*time.Hour + time.Duration(n)*time.Minute),
			Reason:    []string{"timeout", "dns"}[n%2]})
	}
	prune(t, db)
	if got := rowsIn(t, db, "fetches where uri_id = $1", u[clock].ID); got != kept+1 {
		t.Errorf("%d outcomes, want %d", got, kept+1)
	}
	if d := documentOf(t, db, w.id(0)); d.Status != repute.DocumentOK || d.Registration == nil ||
		d.Registration.Name != "v300" {
		t.Errorf("shown %+v", d)
	}
}
