package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/scoredb"
)

// pruneInputs does a whole pass, whatever the time.
func pruneInputs(t *testing.T, db *store.DB) {
	t.Helper()
	_, err := db.Pool().Exec(t.Context(), "update cursors set due = now()")
	ok(t, err)
	for more := true; more; {
		more, err = scoredb.PruneInputs(t.Context(), db)
		ok(t, err)
	}
}

// What something names stays, what nobody names goes once it is old.
func TestPruneTrustInputs(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{MaxConns: 2})
	ok(t, err)
	t.Cleanup(db.Close)
	hash := map[string][]byte{}
	for _, body := range []string{"score", "final", "roots", "pin", "policy", "loose", "renewed", "kept"} {
		sum := sha256.Sum256([]byte(body))
		hash[body] = sum[:]
		ok(t, scoredb.KeepInputs(t.Context(), db, []byte(body)))
	}
	// more than a page
	sqlExec(t, db,
		`insert into trust_inputs (hash, body) select sha256(i::text::bytea), i::text::bytea from generate_series(1, 2000) i`)
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := db.Pool().Exec(t.Context(), sql, args...)
		ok(t, err)
	}
	exec(`insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, scorer, params, tags, roots, links, weights, identities, edges)
		values (1, 1, 1, 1, 1, '', '', '', '', $1, '', '', 0, 0)`, hash["roots"])
	exec(`insert into trust_scores (chain_id, token_id, run, block, block_hash, evidence, status, score, low, high, mean, confidence, tier, result)
		values (1, 1, 1, 1, '', $1, 'rated', 0, 0, 0, 0, 0, 0, '')`, hash["score"])
	exec(`insert into trust_finals (chain_id, token_id, run, evidence, status, score, low, high, mean, confidence, tier, facts, result)
		values (1, 1, 1, $1, 'rated', 0, 0, 0, 0, 0, 0, '', '')`, hash["final"])
	exec(`insert into tasks (id, goal, input, coordinator, terms, asked_by, status) values ('t', '', '{}', '', '{}', '', 'running')`)
	exec(`insert into runs (id, task_id, root_id, slug, goal, input, max_steps, max_tool_calls, max_writes, max_runtime_ms) values ('r', 't', 'r', '', '', '{}', 0, 0, 0, 0)`)
	exec(`insert into run_decisions (root_id, run_id, number, attempt, phase, kind, subject, effect, reasons, policy, input, previous, hash, pins) values ('r', 'r', 1, 1, 3, 'trust', '', 'allow', '{}', $1, '{}', '', '', array[$2::bytea])`, hash["policy"], hash["pin"])
	left := func() (n int) {
		t.Helper()
		ok(t, db.Pool().QueryRow(t.Context(), "select count(*) from trust_inputs").Scan(&n))
		return n
	}
	before := left()
	if pruneInputs(t, db); left() != before {
		t.Errorf("%d of %d are left of what was kept just now", left(), before)
	}
	exec(`update trust_inputs set kept_at = now() - interval '2 days'`)
	ok(t, scoredb.RenewInputs(t.Context(), db, common.BytesToHash(hash["renewed"])))
	_, err = scoredb.KeepInput(t.Context(), db, []byte("kept"))
	ok(t, err)
	pruneInputs(t, db)
	for body, sum := range hash {
		if _, err := scoredb.ReadInput(t.Context(), db, common.BytesToHash(sum)); (body == "loose") != errors.Is(err,
			repute.ErrNotFound) {
			t.Errorf("%s: %v", body, err)
		}
	}
	if n := left(); n != len(hash)-1 {
		t.Errorf("%d are left, want %d", n, len(hash)-1)
	}
	if err := scoredb.RenewInputs(t.Context(), db, common.BytesToHash(hash["loose"])); !errors.Is(err, repute.ErrGone) {
		t.Errorf("renewing what is gone: %v", err)
	}
	exec(`delete from tasks`) // and the run with it
	pruneInputs(t, db)
	if n := left(); n != len(hash)-3 {
		t.Errorf("%d are left after the run, want %d", n, len(hash)-3)
	}
}

// Nothing that a saver names is pruned under it, and what was pruned before it came it
// hears of.
func TestSaverRacesThePruner(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{MaxConns: 8})
	ok(t, err)
	t.Cleanup(db.Close)
	sqlExec(t, db,
		`insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, scorer, params, tags, roots, links, weights, identities, edges)
		values (1, 1, 1, 1, 1, '', '', '', '', '', '', '', 0, 0)`)
	const agents = 40
	done := make(chan struct{})
	var pruners sync.WaitGroup
	for range 2 {
		pruners.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := db.Pool().Exec(t.Context(),
					"update cursors set due = now() where due > now()"); err != nil {
					t.Error(err)
				}
				if _, err := scoredb.PruneInputs(t.Context(), db); err != nil {
					t.Error(err)
				}
			}
		})
	}
	gone := 0
	for i := range agents {
		body := fmt.Append(nil, "manifest ", i)
		for {
			ok(t, scoredb.KeepInputs(t.Context(), db, body))
			// it is as if it had been there for long
			_, err := db.Pool().Exec(t.Context(), "update trust_inputs set kept_at = now() - interval '2 days'")
			ok(t, err)
			_, err = db.Pool().Exec(t.Context(),
				"insert into trust_stale (chain_id, token_id, cause, final) values (1, $1, 0, false) on conflict do nothing", i)
			ok(t, err)
			s := scoredb.AgentScore{Score: repute.Score{Status: repute.Unrated, Evidence: sha256.Sum256(body),
				Result: []byte("{}")}}
			err = scoredb.SaveScores(t.Context(), db, 1, 1,
				[]scoredb.ScoredAgent{{StaleAgent: scoredb.StaleAgent{TokenID: tokenID(i)}, Current: &s}},
				scoredb.Identities{})
			if err == nil {
				break
			}
			if gone++; !errors.Is(err, repute.ErrGone) {
				t.Fatal(err)
			}
		}
	}
	close(done)
	pruners.Wait()
	pruneInputs(t, db)
	var named, stored int
	ok(t, db.Pool().QueryRow(t.Context(),
		"select count(*), count(i.hash) from trust_scores left join trust_inputs i on i.hash = evidence").Scan(&named,
		&stored))
	if t.Logf("%d savers came too late", gone); named != agents || stored != named {
		t.Errorf("%d scores of %d, %d have their manifests", named, agents, stored)
	}
}
