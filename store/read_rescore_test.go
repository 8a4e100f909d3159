package store_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/scoredb"
)

// The statement that replaces the scores of many agents does not compare each of them with each other one. It would take
// a minute for a batch of a pass, with the lock of scores held.
func TestScoresOfABatchAreNotComparedWithAllOthers(t *testing.T) {
	t.Parallel()
	const agents = 1000
	ctx, url, r := t.Context(), pgtest.New(t), &recorder{}
	db := store.OpenTraced(t, url, r)
	ok(t, chaindb.AddChain(ctx, db, newWorld(1, 100, 0).chain))
	ok(t, scoredb.AddRun(ctx, db, scoredb.Run{ChainID: 1, Run: 1, Scorer: "test"}))
	p, err := scoredb.ReadPass(ctx, db, 1)
	ok(t, err)
	batch := make([]scoredb.ScoredAgent, agents)
	for i := range batch {
		batch[i] = scoredb.ScoredAgent{StaleAgent: scoredb.StaleAgent{TokenID: tokenID(i)},
			Current: &scoredb.AgentScore{Score: repute.Score{Status: repute.Thin, Result: []byte("{}")}}}
	}
	r.take()
	_, err = scoredb.SavePass(ctx, db, store.Lease{}, p, batch, true, scoredb.Identities{})
	ok(t, err)
	conn, err := pgx.Connect(ctx, url)
	ok(t, err)
	t.Cleanup(func() { conn.Close(ctx) })
	again := &planned{conn: conn}
	for _, s := range r.take() {
		if strings.Contains(s.sql, "insert into trust_scores") {
			again.list = append(again.list, s)
		}
	}
	if len(again.list) != 1 {
		t.Fatalf("%d statements store scores", len(again.list))
	}
	sqlExec(t, db, `update trust_scores set status = 'unrated', facts = 'other'`) // so that each is replaced
	plan := again.execute(t)[0].plan
	for _, removed := range regexp.MustCompile(`"Rows Removed by Join Filter": (\d+)`).FindAllStringSubmatch(plan, -1) {
		if n, err := strconv.Atoi(removed[1]); err != nil || n > 10*agents {
			t.Fatalf("%s pairs were compared:\n%s", removed[1], plan)
		}
	}
	if !strings.Contains(plan, `"Actual Rows": 1000`) {
		t.Errorf("no scores were replaced:\n%s", plan)
	}
}
