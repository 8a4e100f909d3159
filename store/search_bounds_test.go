package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/store/query"
	"repute/store/searchdb"
)

// Of a word that very many documents hold the names that do are found, and nobody claims
// to have counted them all.
func TestSearchOfFrequentWords(t *testing.T) {
	t.Parallel()
	db := open(t)
	catalogue(t, db, 7, []int{0}, agentDoc("plain", "bargain"))
	const many = 21_000 // more than are put in order
	sqlExec(t, db,
		`insert into documents (sha256, body, media_type, first_seen) select sha256(i::text::bytea), 'b', '', now() from generate_series(1, $1::int) i`, many)
	sqlExec(t, db, `
		insert into searchable (sha256, form, version, errors, name, words, vector, services, skills, domains, trust)
		select sha256, 9, 1, 0, '', 'bargain', 'bargain:1C', '{}', '{}', '{}', '{}' from documents where media_type = ''
			and octet_length(body) = 1`)
	haveAgents(t, db, 7)
	w := newWorld(8, 100, 1)
	id := tokenID(0)
	w.mine(repute.Transfer{To: person(0), TokenID: id}, repute.Registered{TokenID: id, URI: "https://last",
		Owner: person(0)})
	w.store(t, db, w.tip().Number)
	read(t, db, claim(t, db, "")["https://last"], "last", agentDoc("Bargain hunter", ""))
	for range 2 {
		found, got := search(t, db, searchdb.AgentFilter{Text: "bargain"})
		if !strings.HasPrefix(got, "8:0 ") || !found.Total.AtLeast {
			t.Fatalf("found %q of %+v", got, found.Total)
		}
	}
	facets, err := searchdb.SearchFacets(t.Context(), db, searchdb.AgentFilter{Text: "bargain"}, "")
	if err != nil || !facets.Total.AtLeast || facets.Total.Value < 1 {
		t.Errorf("facets %+v, %v", facets.Total, err)
	}
	if found, _ := search(t, db, searchdb.AgentFilter{Text: "hunter"}); found.Total.AtLeast {
		t.Errorf("of a rare word %+v", found.Total)
	}
}

// However many search, others are answered.
func TestSearchesLeaveReaders(t *testing.T) {
	t.Parallel()
	db := hasty(t)
	w := catalogue(t, db, 7, []int{0}, agentDoc("robot", ""))
	tx, err := db.Pool().Begin(t.Context())
	ok(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), "lock table searchable in access exclusive mode")
	ok(t, err)
	const searches = 40
	done := make(chan error, searches)
	for range searches {
		go func() {
			_, err := searchdb.Agents(context.Background(), db, searchdb.AgentFilter{Text: "robot", Limit: 1})
			done <- err
		}()
	}
	for {
		var waiting int
		ok(t, tx.QueryRow(t.Context(),
			"select count(*) from pg_locks where not granted and relation = 'searchable'::regclass").Scan(&waiting))
		if waiting > 0 {
			break
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, _, err := query.Agent(ctx, db, w.id(0), latest); err != nil {
		t.Errorf("an agent while all search: %v", err)
	}
	ok(t, tx.Rollback(context.Background()))
	for range searches {
		if err := <-done; err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("search: %v", err)
		}
	}
}

// What takes too long to count is at least as many as the page shows, and the page is there.
func TestTotalOfSlowCount(t *testing.T) {
	t.Parallel()
	db := hasty(t)
	docs := make([]*repute.Registration, 90)
	for i := range docs {
		docs[i] = agentDoc("robot", "")
	}
	catalogue(t, db, 7, []int{1}, docs...)
	sqlExec(t, db, "alter table votes rename to fast_votes")
	sqlExec(t, db, "create view votes as select * from fast_votes where pg_sleep(0.02) is not null")
	found, err := searchdb.Agents(t.Context(), db, searchdb.AgentFilter{Tag: "starred", Limit: 2})
	ok(t, err)
	if len(found.Items) != 2 || found.Next == "" || found.Total != (searchdb.Count{Value: 2, AtLeast: true}) {
		t.Errorf("%d agents of %+v, next %q", len(found.Items), found.Total, found.Next)
	}
}
