package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/query"
)

func chainsOf(t *testing.T, db *store.DB) []repute.ChainStatus {
	t.Helper()
	out, err := query.Chains(context.Background(), db)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAsOfTellsTheLag(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 51)
	w.grow(20)
	ctx := context.Background()
	if err := chaindb.AddChain(ctx, db, w.chain); err != nil {
		t.Fatal(err)
	}
	if c := chainsOf(t, db)[0]; c.Block.Number != 99 || c.LagSeconds != nil || c.LagBlocks != nil ||
		c.Completeness.Status != repute.Partial {
		t.Errorf("before the first block: %+v", c.AsOf)
	}
	w.store(t, db, w.tip().Number)
	proveTo(t, db, 7, 100, w.tip().Number)
	sqlExec(t, db,
		"update chains set cursor_time = now() - interval '90 seconds', head_block = cursor_block + 5, head_seen_at = now() - interval '10 seconds'")
	c := chainsOf(t, db)[0]
	if c.Block.Number != w.tip().Number || c.Block.Hash != w.tip().Hash || c.Finality != repute.Latest {
		t.Errorf("block = %+v (%s)", c.Block, c.Finality)
	}
	if seconds(c.LagSeconds) != 90 || c.LagBlocks == nil || *c.LagBlocks != 5 {
		t.Errorf("lag = %d s, %v blocks", seconds(c.LagSeconds), c.LagBlocks)
	}
	if want := []repute.BlockRange{{From: 100, To: w.tip().Number}}; c.Completeness.Status != repute.Complete ||
		c.Completeness.Ranges[0] != want[0] {
		t.Errorf("completeness = %+v", c.Completeness)
	}
	sqlExec(t, db, "update chains set head_seen_at = now() - interval '2 minutes'")
	if c := chainsOf(t, db)[0]; c.LagBlocks != nil || seconds(c.LagSeconds) != 90 {
		t.Errorf("lag with a stale head = %d s, %v blocks", seconds(c.LagSeconds), c.LagBlocks)
	}
	// A head behind us (a node that fell back) is no negative lag.
	sqlExec(t, db, "update chains set head_seen_at = now(), head_block = cursor_block - 3")
	if c := chainsOf(t, db)[0]; c.LagBlocks == nil || *c.LagBlocks != 0 {
		t.Errorf("lag behind a lower head = %v blocks", c.LagBlocks)
	}
}

func TestCompleteness(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	tip := w.tip().Number
	w.store(t, db, tip)
	proveTo(t, db, 7, 100, tip)
	for _, c := range []struct {
		name, sql string
		want      repute.CompletenessStatus
	}{
		{"all of it", "select", repute.Complete},
		{"a contradiction is no gap", "insert into pending values (7, 105, 0, 0, 'already_revoked')", repute.Complete},
		{"an event waits", "insert into pending values (7, 106, 0, 0, 'index_gap')", repute.Incomplete},
		{"imported, an event waits", "update chains set imported = true", repute.Partial},
		{"imported, all of it", "delete from pending", repute.Complete},
		{"not from the start", "update chains set covered = covered * '{[101,)}'", repute.Partial},
		{"a hole", "update chains set covered = covered + '{[50,100)}'", repute.Partial},
		{"not to the cursor", fmt.Sprintf("update chains set covered = '{[100,%d)}'", tip), repute.Partial},
	} {
		sqlExec(t, db, c.sql)
		if got := chainsOf(t, db)[0].Completeness; got.Status != c.want {
			t.Errorf("%s: %+v, want %s", c.name, got, c.want)
		}
	}
}

func TestViewsOfTheChain(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 53)
	w.mine(w.mint(person(0))...)
	w.grow(30)
	tip := w.tip().Number
	w.store(t, db, tip)
	ctx := context.Background()
	ask := func(at repute.At) (repute.AsOf, error) {
		_, asOf, err := query.Agent(ctx, db, w.id(0), at)
		return asOf, err
	}
	refused := func(what string, at repute.At, hint string) {
		t.Helper()
		_, err := ask(at)
		if wantField(err) != "at" || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v, want %q", what, err, hint)
		}
	}
	refused("safe while unknown", repute.At{Finality: repute.Safe}, "no safe block is known")
	refused("finalized while unknown", repute.At{Finality: repute.Finalized}, "no finalized block is known")
	sqlExec(t, db, "update chains set safe_block = 120, finalized_block = 110")
	refused("ahead", at(tip+1), fmt.Sprintf("newest indexed block is %d", tip))
	refused("far ahead", at(1<<64-1), "not indexed yet")
	refused("behind", at(99), "first block is 100")
	refused("zero", repute.At{}, "first block is 100")
	refused("no view", repute.At{Finality: "pending"}, "no view of a chain")
	for _, c := range []struct {
		at       repute.At
		block    uint64
		finality repute.Finality
	}{
		{latest, tip, repute.Latest},
		{repute.At{Finality: repute.Safe}, 120, repute.Safe},
		{repute.At{Finality: repute.Finalized}, 110, repute.Finalized},
		{at(100), 100, repute.Finalized},
		{at(110), 110, repute.Finalized},
		{at(111), 111, repute.Safe},
		{at(121), 121, repute.Latest},
	} {
		asOf, err := ask(c.at)
		if err != nil {
			t.Fatal(err)
		}
		b := w.blocks[c.block-100]
		if asOf.Block.Number != c.block || asOf.Block.Hash != b.Hash || !asOf.Block.Time.Equal(b.Time) ||
			asOf.Finality != c.finality {
			t.Errorf("%+v: as of %+v %s, want block %d %s", c.at, asOf.Block, asOf.Finality, c.block, c.finality)
		}
		if want := int64(time.Since(b.Time) / time.Second); seconds(asOf.LagSeconds) < want-60 ||
			seconds(asOf.LagSeconds) > want+60 {
			t.Errorf("%+v: lag %d s, want about %d", c.at, seconds(asOf.LagSeconds), want)
		}
	}
	// Safe and finalized never run ahead of what is indexed.
	sqlExec(t, db, "update chains set safe_block = 100000")
	if asOf, err := ask(repute.At{Finality: repute.Safe}); err != nil || asOf.Block.Number != tip {
		t.Errorf("safe ahead of the cursor: %+v, %v", asOf.Block, err)
	}
	// A header that is not kept is not made up; the lag counts from the one below.
	sqlExec(t, db, "delete from blocks where number = 105")
	if asOf, err := ask(at(105)); err != nil || asOf.Block != (repute.Block{Number: 105}) ||
		seconds(asOf.LagSeconds) == 0 {
		t.Errorf("without header: %+v, %v", asOf, err)
	}
	sqlExec(t, db, "update chains set imported = true")
	refused("imported", at(105), "only its newest state")
	if _, err := ask(latest); err != nil {
		t.Errorf("latest of an imported chain: %v", err)
	}
}

func TestChainsCount(t *testing.T) {
	t.Parallel()
	db, worlds := threeChains(t)
	sqlExec(t, db, "update chains set halted = true, last_error = 'deep', reorgs = 3 where chain_id = 10")
	chains := chainsOf(t, db)
	if len(chains) != 3 {
		t.Fatalf("%d chains", len(chains))
	}
	for i, w := range worlds {
		c := chains[i]
		live := 0
		for token := range w.agents {
			for _, r := range w.ratings(tokenID(token), w.tip().Number) {
				if r.revoked == nil {
					live++
				}
			}
		}
		if c.ID != w.chain.ID || c.Name != w.chain.Name || c.Identity != w.chain.Identity ||
			c.Agents != int64(w.agents) ||
			c.Feedback != int64(live) {
			t.Errorf("chain %d = %+v, want %d agents, %d ratings", c.ID, c, w.agents, live)
		}
		if c.URIs == 0 || c.URIs != c.URIsDue {
			t.Errorf("chain %d: %d uris, %d due", c.ID, c.URIs, c.URIsDue)
		}
	}
	if c := chains[1]; !c.Halted || c.LastError != "deep" || c.Reorgs != 3 || chains[0].Halted {
		t.Errorf("trouble is told as %+v", c)
	}
}

func TestResolveAgent(t *testing.T) {
	t.Parallel()
	db := open(t)
	one, two := newWorld(1, 50, 1), newWorld(10, 7, 1)
	ctx := context.Background()
	ref := func(s string) repute.AgentRef {
		r, err := repute.ParseAgentRef(s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if _, err := chaindb.ResolveAgent(ctx, db, ref("5"), 0); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("without chains: %v", err)
	}
	one.store(t, db, 0)
	if id, err := chaindb.ResolveAgent(ctx, db, ref("5"), 0); err != nil || id != one.id(5) {
		t.Errorf("with one chain: %v, %v", id, err)
	}
	two.store(t, db, 0)
	for _, c := range []struct {
		ref          string
		defaultChain uint64
		want         repute.AgentID
		err          error
	}{
		{"5", 0, repute.AgentID{}, repute.ErrInvalid},
		{"5", 10, two.id(5), nil},
		{"1:5", 10, one.id(5), nil},
		{"3:5", 10, repute.AgentID{}, repute.ErrNotFound},
		{"5", 3, repute.AgentID{}, repute.ErrNotFound},
		{fmt.Sprintf("eip155:10:%s:5", two.chain.Identity.Hex()), 0, two.id(5), nil},
		{fmt.Sprintf("eip155:10:%s:5", one.chain.Identity.Hex()), 0, repute.AgentID{}, repute.ErrNotFound},
	} {
		id, err := chaindb.ResolveAgent(ctx, db, ref(c.ref), c.defaultChain)
		if id != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s with default %d = %v, %v", c.ref, c.defaultChain, id, err)
		}
	}
	other := one.id(0)
	other.Registry = common.Address{1}
	if _, _, err := query.Agent(ctx, db, other, latest); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("an agent of another registry: %v", err)
	}
}

// TestAnswersAreOfOneMoment reads while blocks arrive: what an answer says of
// its block must be what was true at that block.
func TestAnswersAreOfOneMoment(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 1)
	w.mine(w.mint(person(0))...)
	w.store(t, db, w.tip().Number)
	const blocks = 60
	for i := range blocks {
		w.mine(w.rate(tokenID(0), person(i), repute.Amount{Value: big.NewInt(int64(i)), Decimals: 0}, "", "")...)
	}
	ctx, stop := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				r, err := query.ReadReputation(context.Background(), db, w.id(0), query.ReputationQuery{At: latest})
				given := r.AsOf.Block.Number - w.chain.StartBlock
				if err != nil || r.Summary.Count != given || r.Counts.Feedback != int64(given) {
					t.Errorf("at block %d: %d summed, %d counted, %v", r.AsOf.Block.Number, r.Summary.Count,
						r.Counts.Feedback, err)
					return
				}
				page, err := query.Feedback(context.Background(), db, w.id(0),
					query.FeedbackFilter{Limit: store.MaxPage, At: latest})
				if given := page.AsOf[0].Block.Number - w.chain.StartBlock; err != nil ||
					len(page.Items) != int(given) {
					t.Errorf("at block %d: %d listed, %v", page.AsOf[0].Block.Number, len(page.Items), err)
					return
				}
			}
		})
	}
	for n := w.chain.StartBlock + 1; n <= w.tip().Number; n++ {
		w.store(t, db, n)
	}
	stop()
	readers.Wait()
}

// TestScoresAndTheirRunAreOfOneMoment reads while runs are closed: an agent's final score
// and the run that says as of which block it holds belong together.
func TestScoresAndTheirRunAreOfOneMoment(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 1)
	w.mine(w.mint(person(0))...)
	w.mine()
	w.store(t, db, w.tip().Number)
	block := w.tip()
	if err := chaindb.SetHead(t.Context(), db, w.chain.ID, store.Lease{},
		chaindb.Head{Head: block.Number, Safe: block.Number, Finalized: block.Number, SeenAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	done, enough := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for run := 0; ; run++ {
			select {
			case <-enough:
				return
			default:
			}
			if _, err := db.Pool().Exec(t.Context(), `
				with r as (insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, block_time, scorer,
					params, tags, roots, links, weights, identities, edges, closed_at)
					values ($1, $2, 1, $3, $3, $4, now(), 'repute/1', $4, $4, $4, $4, $4, 0, 0, now()))
				insert into trust_finals (chain_id, token_id, run, evidence, status, score, low, high, mean, confidence, tier,
					facts, result)
				values ($1, 0, $2, $4, 'rated', 1, 1, 1, 1, 1, 1, $4, '{}')`, w.chain.ID, run+1, block.Number, block.Hash[:]); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for runs := 0; runs < 20; {
		select {
		case <-done:
			t.Fatal("no more runs are closed")
		default:
		}
		r, err := query.ReadReputation(t.Context(), db, w.id(0),
			query.ReputationQuery{At: repute.At{Finality: repute.Finalized}, Run: true})
		if err != nil || r.Score.Run != r.Run.Run {
			t.Fatalf("the score is of run %d, the newest closed one is %d: %v", r.Score.Run, r.Run.Run, err)
		}
		if r.Run.Run > 0 {
			runs++
		}
	}
	close(enough)
	<-done
}

// seconds is -1 for unknown.
func seconds(lag *int64) int64 {
	if lag == nil {
		return -1
	}
	return *lag
}
