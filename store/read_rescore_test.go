package store_test

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/scoredb"
)

// The statements that replace the scores and penalties of many agents do not compare each of them with each other one.
// It would take a minute for a batch of a pass, with the lock of scores held.
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
		penalty := repute.Penalty{TokenID: tokenID(i), Identity: common.BigToAddress(big.NewInt(int64(i)))}
		batch[i] = scoredb.ScoredAgent{StaleAgent: scoredb.StaleAgent{TokenID: tokenID(i)},
			Current: &scoredb.AgentScore{Score: repute.Score{Status: repute.Thin, Result: []byte("{}")},
				Penalties: []repute.Penalty{penalty}}}
	}
	r.take()
	_, err = scoredb.SavePass(ctx, db, store.Lease{}, p, batch, true, scoredb.Identities{
		Members: func(one common.Address) []common.Address { return []common.Address{one} }})
	ok(t, err)
	conn, err := pgx.Connect(ctx, url)
	ok(t, err)
	t.Cleanup(func() { conn.Close(ctx) })
	again := &planned{conn: conn}
	for _, s := range r.take() {
		if strings.Contains(s.sql, "insert into trust_scores") || strings.Contains(s.sql, "insert into trust_penalties") {
			again.list = append(again.list, s)
		}
	}
	sqlExec(t, db, `update trust_scores set status = 'unrated', facts = 'other'`) // so that each is replaced
	done := again.execute(t)
	if len(done) != 3 || !strings.Contains(done[0].plan, `"Actual Rows": 1000`) {
		t.Fatalf("%d statements, the first by\n%s", len(done), done[0].plan)
	}
	for _, s := range done {
		for _, removed := range regexp.MustCompile(`"Rows Removed by Join Filter": (\d+)`).FindAllStringSubmatch(s.plan, -1) {
			if n, err := strconv.Atoi(removed[1]); err != nil || n > 10*agents {
				t.Errorf("%s pairs were compared by\n%s\n%s", removed[1], s.sql, s.plan)
			}
		}
	}
}
