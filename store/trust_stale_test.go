package store_test

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/scoredb"
	"repute/store/trustmark"
)

// followed is a chain with a run on which an engine has resolved every mark.
func followed(t *testing.T, chain uint64) (*store.DB, *world) {
	t.Helper()
	db, w := open(t), newWorld(chain, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	ok(t, scoredb.AddRun(t.Context(), db, scoredb.Run{ChainID: chain, Run: 1, Scorer: "test"}))
	for marked(t, db, chain) > 0 {
	}
	clear(t, db)
	return db, w
}

// marked is how many marks of a chain were resolved.
func marked(t *testing.T, db *store.DB, chain uint64) int {
	t.Helper()
	n, err := scoredb.ResolveMarks(t.Context(), db, chain, 1000)
	ok(t, err)
	return n
}

func clear(t *testing.T, db *store.DB) {
	t.Helper()
	_, err := db.Pool().Exec(t.Context(), "delete from trust_stale")
	ok(t, err)
}

func stale(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	ok(t, db.Pool().QueryRow(t.Context(), "select count(*) from trust_stale").Scan(&n))
	return n
}

// staleTokens are the stale agents, in order.
func staleTokens(t *testing.T, db *store.DB) (tokens []string) {
	t.Helper()
	rows, err := db.Pool().Query(t.Context(), "select token_id::text from trust_stale order by token_id")
	ok(t, err)
	tokens, err = pgx.CollectRows(rows, pgx.RowTo[string])
	ok(t, err)
	return tokens
}

// Every kind of mark makes its agents stale, once, and those of other chains stay for themselves.
func TestMarksAreResolved(t *testing.T) {
	t.Parallel()
	db, w := followed(t, 7)
	add := func(chain uint64, m trustmark.Marks) {
		t.Helper()
		ok(t, pgx.BeginFunc(t.Context(), db.Pool(),
			func(tx pgx.Tx) error { return trustmark.Add(t.Context(), tx, chain, m) }))
	}
	query := func(sql string, args ...any) (tokens []string) {
		t.Helper()
		ok(t, db.Pool().QueryRow(t.Context(),
			"select coalesce(array_agg(token_id::text order by token_id), '{}') from ("+sql+") q",
			args...).Scan(&tokens))
		return tokens
	}
	var owner []byte
	ok(t, db.Pool().QueryRow(t.Context(), "select owner from agents where feedback > 0 limit 1").Scan(&owner))
	for name, c := range map[string]struct {
		marks trustmark.Marks
		want  []string
	}{
		"agents": {trustmark.Marks{Tokens: []repute.TokenID{tokenID(2), tokenID(1), tokenID(2)}}, []string{"1", "2"}},
		"owner": {trustmark.Marks{Owners: []common.Address{common.BytesToAddress(owner)}},
			query("select token_id from agents where owner = $1 and feedback + revoked + validations > 0", owner)},
		"blocks": {trustmark.Marks{Blocks: []repute.BlockRange{{From: w.tip().Number - 3, To: w.tip().Number}}},
			query("select distinct token_id from events where block > $1 and token_id is not null", w.tip().Number-4)},
		"nothing": {trustmark.Marks{}, []string{}},
	} {
		clear(t, db)
		add(7, c.marks)
		add(8, trustmark.Marks{Tokens: []repute.TokenID{tokenID(5)}})
		for marked(t, db, 7) > 0 {
		}
		if got := staleTokens(t, db); !slices.Equal(got, c.want) || name != "nothing" && len(got) == 0 {
			t.Errorf("%s: stale %v, want %v", name, got, c.want)
		}
	}
	clear(t, db)
	if n := marked(t, db, 7); n > 0 || stale(t, db) > 0 {
		t.Errorf("%d marks are resolved again", n)
	}
}

// Events found late make all agents be scored again, and a run due until one has followed them.
func TestLateEventsMakeARunDue(t *testing.T) {
	t.Parallel()
	db, _ := followed(t, 7)
	_, err := db.Pool().Exec(t.Context(), "update trust_runs set scored_to = null")
	ok(t, err)
	late := func() int64 {
		t.Helper()
		chains, err := scoredb.Chains(t.Context(), db)
		ok(t, err)
		return chains[0].Repaired
	}
	if n := late(); n != 0 {
		t.Fatalf("repaired %d before", n)
	}
	ok(t, pgx.BeginFunc(t.Context(), db.Pool(), func(tx pgx.Tx) error {
		return trustmark.Add(t.Context(), tx, 7, trustmark.Marks{Late: true, All: true})
	}))
	marked(t, db, 7)
	first := late()
	if _, err := scoredb.ReadPass(t.Context(), db, 7); err != nil || first == 0 {
		t.Errorf("repaired %d, pass %v", first, err)
	}
	ok(t, pgx.BeginFunc(t.Context(), db.Pool(), func(tx pgx.Tx) error {
		return trustmark.Add(t.Context(), tx, 7, trustmark.Marks{Tokens: []repute.TokenID{tokenID(1)}, Late: true})
	}))
	marked(t, db, 7)
	second := late()
	ok(t, scoredb.AddRun(t.Context(), db, scoredb.Run{ChainID: 7, Run: 2, Scorer: "test", Repaired: first}))
	if n := late(); n != second || n <= first {
		t.Errorf("repaired %d after a run that followed %d, want %d", n, first, second)
	}
	ok(t, scoredb.AddRun(t.Context(), db, scoredb.Run{ChainID: 7, Run: 3, Scorer: "test", Repaired: second}))
	if n := late(); n != 0 {
		t.Errorf("repaired %d after a run that followed it", n)
	}
}

// Marks of a chain without a run are forgotten: its first run reads everything. A mark that is
// written while the first run is stored is kept.
func TestMarksBeforeTheFirstRun(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	if marked(t, db, 7) == 0 {
		t.Fatal("the events left no mark")
	}
	if n := stale(t, db); n > 0 {
		t.Errorf("%d agents are stale without a run", n)
	}
	writer, err := db.Pool().Begin(t.Context())
	ok(t, err)
	ok(t, trustmark.Add(t.Context(), writer, 7, trustmark.Marks{Tokens: []repute.TokenID{tokenID(1)}}))
	ok(t, scoredb.AddRun(t.Context(), db, scoredb.Run{ChainID: 7, Run: 1, Scorer: "test"}))
	marked(t, db, 7)
	ok(t, writer.Commit(t.Context()))
	marked(t, db, 7)
	if n := stale(t, db); n != 1 {
		t.Errorf("%d agents are stale, want the one of the open transaction", n)
	}
}

// Agents whose events a rewind removes are stale, whatever replaces them.
func TestRewindMarksItsAgents(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number-8)
	ok(t, scoredb.AddRun(t.Context(), db, scoredb.Run{ChainID: 7, Run: 1, Scorer: "test"}))
	for marked(t, db, 7) > 0 {
	}
	clear(t, db)
	var above uint64
	ok(t, db.Pool().QueryRow(t.Context(), "select max(block) from events where block < $1",
		w.tip().Number-9).Scan(&above))
	var want []string
	ok(t, db.Pool().QueryRow(t.Context(), `select coalesce(array_agg(token_id::text order by token_id), '{}') from (
		select distinct token_id from events where block > $1 and token_id is not null) e`, above).Scan(&want))
	ancestor, err := chaindb.StoredBlock(t.Context(), db, 7, above)
	ok(t, err)
	ok(t, eventdb.Rewind(t.Context(), db, ancestor, eventdb.Batch{ChainID: 7, Parent: ancestor, To: ancestor}))
	for marked(t, db, 7) > 0 {
	}
	if got := staleTokens(t, db); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("stale %v, want %v", got, want)
	}
}

// markAll marks all agents instead of beginning a pass.
func markAll(t *testing.T, db *store.DB) {
	t.Helper()
	for _, sql := range []string{"update trust_runs set scored_to = null", `
		insert into trust_stale (chain_id, token_id, cause, final)
		select chain_id, token_id, 1, true from agents where feedback + revoked + validations > 0`} {
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
}

// Agents that are stale because of a run wait until its pass is behind them, others do not, and the
// run is not closed before.
func TestStaleAgentsWaitForThePass(t *testing.T) {
	t.Parallel()
	db, _ := followed(t, 7)
	ok(t, scoredb.AddRun(t.Context(), db, scoredb.Run{ChainID: 7, Run: 2, Scorer: "test"}))
	markAll(t, db)
	want := stale(t, db)
	if want < 4 {
		t.Fatalf("%d agents: the test shows nothing", want)
	}
	claimed := func(urgent bool) int {
		list, err := scoredb.ClaimStale(t.Context(), db, 7, 2, urgent, 1000, 0)
		ok(t, err)
		return len(list)
	}
	exec := func(sql string) {
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
	exec("update trust_runs set scored_to = -1")
	if n := claimed(false); n != 0 {
		t.Errorf("%d agents are claimed before the pass reached them", n)
	}
	exec("update trust_stale set cause = 0 where token_id = (select max(token_id) from trust_stale)")
	if n := claimed(true); n != 1 {
		t.Errorf("%d agents with an event are claimed", n)
	}
	exec("update trust_runs set scored_to = (select min(token_id) from trust_stale)")
	if n := claimed(false); n != 1 {
		t.Errorf("%d agents behind the pass are claimed", n)
	}
	clear(t, db)
	if closed, err := scoredb.CloseRun(t.Context(), db, 7); closed || err != nil {
		t.Errorf("closed %v, %v", closed, err)
	}
	exec("update trust_runs set scored_to = null")
	if closed, err := scoredb.CloseRun(t.Context(), db, 7); !closed || err != nil {
		t.Errorf("closed %v, %v", closed, err)
	}
}

// A late mark that is resolved before the first run is stored still makes a run due when that run's graph was read
// before the mark.
func TestLateMarksBeforeTheFirstRun(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	for marked(t, db, 7) > 0 {
	}
	repaired := func() int64 {
		t.Helper()
		chains, err := scoredb.Chains(t.Context(), db)
		ok(t, err)
		return chains[0].Repaired
	}
	before := repaired()
	ok(t, pgx.BeginFunc(t.Context(), db.Pool(), func(tx pgx.Tx) error {
		return trustmark.Add(t.Context(), tx, 7, trustmark.Marks{Late: true, All: true})
	}))
	if n := marked(t, db, 7); n != 1 {
		t.Fatalf("%d marks", n)
	}
	late := repaired()
	if late <= before {
		t.Errorf("the late mark is lost: repaired %d", late)
	}
	ok(t, scoredb.AddRun(t.Context(), db, scoredb.Run{ChainID: 7, Run: 1, Scorer: "test", Repaired: before}))
	if n := repaired(); n != late {
		t.Errorf("repaired %d after a run that does not follow the mark, want %d", n, late)
	}
}
