package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/scoredb"
)

// The totals of scores by status are always those of the stored scores, whatever stores, replaces, hides or deletes
// them, and a transaction that fails leaves them as they were. A closed run has the totals of its time.
func TestTotalsAreThoseOfTheScores(t *testing.T) {
	t.Parallel()
	db := testDB(t)
	var chains atomic.Uint64
	closed, gone := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var both [2]*scorer
		for i := range both {
			both[i] = &scorer{db: db, chain: chains.Add(1)}
			ok(t, chaindb.AddChain(ctx, db, testChain(both[i].chain)))
			both[i].addRun(ctx, t)
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			one := both[rapid.IntRange(0, 1).Draw(t, "chain")]
			one.step(ctx, t)
			both[0].check(ctx, t)
			both[1].check(ctx, t)
		}
		closed, gone = closed+both[0].closed+both[1].closed, gone+both[0].gone+both[1].gone
	})
	// With -short there are too few cases to demand that.
	if !testing.Short() && (closed == 0 || gone == 0) {
		t.Errorf("%d runs were closed, and %d times scores were deleted: the test shows less than it should",
			closed, gone)
	}
}

// scorer plays the engines of a chain.
type scorer struct {
	db           *store.DB
	chain, run   uint64
	scores       int // that are stored
	closed, gone int // runs, and how often there were fewer scores than before
}

// mostTokens is how many agents a scorer has.
const mostTokens = 6

func (s *scorer) step(ctx context.Context, t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0:
		s.addRun(ctx, t)
	case 1:
		s.close(ctx, t)
	case 2:
		s.hide(ctx, t)
	case 3, 4, 5:
		s.pass(ctx, t)
	case 6:
		s.saveAtOnce(ctx, t)
	default:
		s.save(ctx, t)
	}
}

func (s *scorer) addRun(ctx context.Context, t *rapid.T) {
	s.run++
	ok(t, scoredb.AddRun(ctx, s.db, scoredb.Run{ChainID: s.chain, Run: s.run, Scorer: "test",
		Block: repute.Block{Number: s.run * 10}}))
}

// drawn draws the result of scoring an agent: a score, that of an agent without ratings, or none.
func (s *scorer) drawn(t *rapid.T, token uint64) scoredb.ScoredAgent {
	one := func(of string) *scoredb.AgentScore {
		if rapid.IntRange(0, 2).Draw(t, "none "+of) == 0 {
			return nil
		}
		score := repute.Score{Status: rapid.SampledFrom(repute.Statuses()).Draw(t, of),
			Score: repute.Points(rapid.IntRange(0, 3).Draw(t, "score") * 50), Result: []byte("{}"),
			Block: repute.Block{Number: s.run*10 + uint64(rapid.IntRange(0, 2).Draw(t, "block")), Hash: common.Hash{1}}}
		return &scoredb.AgentScore{Score: score, Plain: rapid.IntRange(0, 3).Draw(t, "plain") == 0,
			Guarded: rapid.Bool().Draw(t, "guarded")}
	}
	return scoredb.ScoredAgent{StaleAgent: scoredb.StaleAgent{TokenID: tokenID(int(token)), Final: true},
		Current: one("current"), Last: one("last"), Exact: rapid.Bool().Draw(t, "exact")}
}

// spoil sometimes names a manifest that is not stored, so that nothing is stored.
func spoil(t *rapid.T, agents []scoredb.ScoredAgent) {
	if rapid.IntRange(0, 4).Draw(t, "spoiled") > 0 {
		return
	}
	for i := range agents {
		if c := agents[i].Current; c != nil {
			c.Evidence = common.Hash{9}
			return
		}
	}
}

// some draws agents that are stale, or not any more.
func (s *scorer) some(ctx context.Context, t *rapid.T) (agents []scoredb.ScoredAgent) {
	for token := range uint64(mostTokens) {
		if !rapid.Bool().Draw(t, "scored") {
			continue
		}
		one := s.drawn(t, token)
		if rapid.IntRange(0, 4).Draw(t, "stale") > 0 {
			ok(t, s.db.Pool().QueryRow(ctx, `
				insert into trust_stale (chain_id, token_id, cause, final) values ($1, $2, 0, true)
				on conflict (chain_id, token_id) do update set mark = default returning mark`, s.chain, int64(token)).Scan(&one.Mark))
		}
		agents = append(agents, one)
	}
	spoil(t, agents)
	return agents
}

// save stores scores of stale agents.
func (s *scorer) save(ctx context.Context, t *rapid.T) {
	err := scoredb.SaveScores(ctx, s.db, s.chain, s.run, s.some(ctx, t), scoredb.Identities{})
	if !errors.Is(err, repute.ErrGone) {
		ok(t, err)
	}
}

// saveAtOnce stores scores of the same agents by two transactions at a time.
func (s *scorer) saveAtOnce(ctx context.Context, t *rapid.T) {
	first := s.some(ctx, t)
	second := s.some(ctx, t)
	var failed [2]error
	var running sync.WaitGroup
	for i, agents := range [][]scoredb.ScoredAgent{first, second} {
		running.Go(func() {
			failed[i] = scoredb.SaveScores(ctx, s.db, s.chain, s.run, agents, scoredb.Identities{})
		})
	}
	running.Wait()
	for _, err := range failed {
		if !errors.Is(err, repute.ErrGone) {
			ok(t, err)
		}
	}
}

// pass stores the next batch of the pass, if there is one.
func (s *scorer) pass(ctx context.Context, t *rapid.T) {
	p, err := scoredb.ReadPass(ctx, s.db, s.chain)
	if errors.Is(err, repute.ErrNotFound) {
		return
	}
	ok(t, err)
	lease, err := s.db.Acquire(ctx, scoredb.PassLease(s.chain), "test", time.Minute)
	ok(t, err)
	defer func() { ok(t, s.db.Release(ctx, lease)) }()
	from := uint64(0)
	if p.After != "-1" {
		_, err = fmt.Sscan(p.After, &from)
		ok(t, err)
		from++
	}
	to := min(mostTokens, from+uint64(rapid.IntRange(1, mostTokens).Draw(t, "batch")))
	var agents []scoredb.ScoredAgent
	for token := from; token < to; token++ {
		agents = append(agents, s.drawn(t, token))
	}
	spoil(t, agents)
	_, err = scoredb.SavePass(ctx, s.db, lease, p, agents, to == mostTokens, scoredb.Identities{})
	if !errors.Is(err, repute.ErrGone) {
		ok(t, err)
	}
}

// hide removes a block as a reorganization does, or fails after it.
func (s *scorer) hide(ctx context.Context, t *rapid.T) {
	above, fails := uint64(rapid.IntRange(0, int(s.run)*10).Draw(t, "ancestor")), errors.New("fails")
	if rapid.Bool().Draw(t, "succeeds") {
		fails = nil
	}
	err := s.db.InTx(ctx, pgx.TxOptions{}, "hide", func(tx pgx.Tx) error {
		if err := scoredb.BeginRewind(ctx, tx, s.chain); err != nil {
			return err
		}
		return errors.Join(scoredb.HideAbove(ctx, tx, s.chain, repute.Block{Number: above}), fails)
	})
	if !errors.Is(err, fails) || fails == nil {
		ok(t, err)
	}
}

// close ends the pass and closes the run.
func (s *scorer) close(ctx context.Context, t *rapid.T) {
	for _, sql := range []string{"delete from trust_stale where chain_id = $1",
		"update trust_runs set scored_to = null where chain_id = $1"} {
		_, err := s.db.Pool().Exec(ctx, sql, s.chain)
		ok(t, err)
	}
	closed, err := scoredb.CloseRun(ctx, s.db, s.chain)
	ok(t, err)
	if !closed {
		return
	}
	s.closed++
	var wrong bool
	ok(t, s.db.Pool().QueryRow(ctx, `
		select (rated, thin) <> (select count(*) filter (where status = 'rated'), count(*) filter (where status = 'thin')
			from trust_scores where chain_id = $1) from trust_runs where (chain_id, run) = ($1, $2)`, s.chain,
		int64(s.run)).Scan(&wrong))
	if wrong {
		t.Fatalf("the totals of run %d are not those of its scores", s.run)
	}
}

// check compares the totals with the scores.
func (s *scorer) check(ctx context.Context, t *rapid.T) {
	for _, status := range []repute.Status{repute.Rated, repute.Thin} {
		var total, counted int
		ok(t, s.db.Pool().QueryRow(ctx, `
			select coalesce((select position from cursors where (job, chain_id) = ($2, $1)), 0),
				(select count(*) from trust_scores where chain_id = $1 and status = $3)`, s.chain, string(status)+" agents",
			string(status)).Scan(&total, &counted))
		if total != counted {
			t.Fatalf("chain %d: the total of %s agents is %d, their scores are %d", s.chain, status, total, counted)
		}
	}
	before := s.scores
	ok(t, s.db.Pool().QueryRow(ctx, "select count(*) from trust_scores where chain_id = $1", s.chain).Scan(&s.scores))
	if s.scores < before {
		s.gone++
	}
}
