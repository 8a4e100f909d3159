package indexer

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/importdb"
	"repute/store/query"
)

func openStore(t *testing.T) *store.DB {
	t.Helper()
	return openStoreAt(t, pgtest.New(t))
}

func openStoreAt(t *testing.T, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{Decode: contracts.Read, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func chainOf(c *rpctest.Chain) repute.Chain {
	return repute.Chain{ID: 31337, Name: "scripted", Identity: c.Identity, Reputation: c.Reputation,
		Validations: []common.Address{c.Validation}, StartBlock: 1,
		Gateways: []repute.WatchedContract{{Address: rpctest.Gateway, From: 1}}}
}

func follow(t *testing.T, db *store.DB, c *rpctest.Chain, o Options) *Follower {
	t.Helper()
	if err := chaindb.AddChain(t.Context(), db, chainOf(c)); err != nil {
		t.Fatal(err)
	}
	o.Poll, o.RetryMin, o.RetryMax = 10*time.Millisecond, 5*time.Millisecond, 50*time.Millisecond
	return NewFollower(db, chainOf(c), newNode(t, c,
		node.Options{Timeout: 20 * time.Second, OpenMin: 1, OpenMax: 1}), o)
}

func newNode(t *testing.T, c *rpctest.Chain, o node.Options) *node.Node {
	t.Helper()
	n, err := node.New(c.URL(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// catchUp steps until there is nothing new and counts the reorganizations.
func catchUp(t *testing.T, f *Follower) (reorgs int) {
	t.Helper()
	for range 10_000 {
		err := f.Step(t.Context(), store.Lease{})
		switch {
		case errors.Is(err, ErrNothingNew):
			return reorgs
		case errors.Is(err, repute.ErrReorged):
			reorgs++
		// as many logs as some cap: the next range is shorter
		case err != nil && strings.Contains(err.Error(), "may be cut off"):
		case err != nil:
			t.Fatalf("step: %v", err)
		}
	}
	t.Fatal("no end after 10,000 steps")
	return 0
}

func dump(t *testing.T, db *store.DB) string {
	t.Helper()
	var b strings.Builder
	if err := importdb.Dump(t.Context(), db, &b, 0); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wantFresh compares the store with an index made from the chain as it is now.
func wantFresh(t *testing.T, db *store.DB, c *rpctest.Chain) {
	t.Helper()
	other := openStore(t)
	catchUp(t, follow(t, other, c, Options{}))
	got, want := dump(t, db), dump(t, other)
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("differs from a fresh index at line %d of %d/%d:\n got %s\nwant %s", i+1, len(g), len(w),
				g[i], w[i])
		}
	}
	t.Fatalf("%d lines, a fresh index has %d", len(g), len(w))
}

func cursorOf(t *testing.T, db *store.DB) repute.Block {
	t.Helper()
	b, err := chaindb.Cursor(t.Context(), db, 31337)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantCursor(t *testing.T, db *store.DB, b *rpctest.Block) {
	t.Helper()
	if got := cursorOf(t, db); got.Number != b.Number() || got.Hash != b.Hash() {
		t.Fatalf("cursor is %d %s, want %d %s", got.Number, got.Hash, b.Number(), b.Hash())
	}
}

// eventually waits for a condition; the time limit only ends a failed test.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func TestBackfillThenFollow(t *testing.T) {
	t.Parallel()
	for _, noTime := range []bool{false, true} {
		t.Run(fmt.Sprintf("noBlockTime=%t", noTime), func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{NoBlockTime: noTime})
			w := newWorld(c, 1)
			w.grow(700)
			c.Finalize(690, 650)
			db := openStore(t)
			f := follow(t, db, c, Options{StartRange: 100})
			catchUp(t, f)
			wantCursor(t, db, c.Head())
			for range 3 {
				w.grow(2)
				catchUp(t, f)
				wantCursor(t, db, c.Head())
			}
			wantTimes(t, db, c)
			wantFresh(t, db, c)
		})
	}
}

// wantTimes checks the stored headers against the chain.
func wantTimes(t *testing.T, db *store.DB, c *rpctest.Chain) {
	t.Helper()
	stored, err := chaindb.RecentBlocks(t.Context(), db, 31337, 10_000)
	if err != nil || len(stored) == 0 {
		t.Fatalf("%d stored blocks, %v", len(stored), err)
	}
	blocks := c.Blocks()
	for _, s := range stored {
		b := blocks[s.Number]
		if s.Hash != b.Hash() || s.Time.Unix() != int64(b.Header.Time) {
			t.Errorf("block %d is stored as %s at %s", s.Number, s.Hash, s.Time)
		}
	}
}

func TestBackfillCost(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	newWorld(c, 2).grow(3_000)
	c.Finalize(2_990, 2_980)
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{StartRange: 1_000, MaxRange: 1_000}))
	wantCursor(t, db, c.Head())
	// Ranges up to finality, and one call per open block, asked by its hash.
	if calls := c.Calls("eth_getLogs"); calls > 5+20 {
		t.Errorf("%d eth_getLogs calls for 3,000 blocks", calls)
	}
	busy := 0
	for _, b := range c.Blocks() {
		if len(b.Logs()) > 0 {
			busy++
		}
	}
	// One header per block with logs, fifty in a request: they vouch for the logs.
	if calls := c.Calls("eth_getBlockByNumber"); calls > busy+60 {
		t.Errorf("%d block calls for %d blocks with logs", calls, busy)
	}
}

func TestHeadersNearTheHead(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.MineEmpty(100)
	c.Finalize(95, 90)
	db := openStore(t)
	f := follow(t, db, c, Options{})
	catchUp(t, f)
	for n := uint64(90); n <= 100; n++ {
		if _, err := chaindb.StoredBlock(t.Context(), db, 31337, n); err != nil {
			t.Errorf("open block %d: %v", n, err)
		}
	}
	if _, err := chaindb.StoredBlock(t.Context(), db, 31337, 50); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("an empty final block is kept: %v", err)
	}
}

func status(t *testing.T, db *store.DB) repute.ChainStatus {
	t.Helper()
	list, err := query.Chains(t.Context(), db)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d chains, %v", len(list), err)
	}
	return list[0]
}

// unbroken tells whether a chain that nobody compared yet has all its blocks and no
// gap that is known.
func unbroken(s repute.ChainStatus) bool {
	c := s.Completeness
	return c.Status == repute.Verifying && c.Pending+c.Undecoded == 0 &&
		slices.Equal(c.Ranges, []repute.BlockRange{{From: s.StartBlock, To: s.Block.Number}})
}

// A node left the newest event out and nothing was compared yet.
func TestNotComparedIsNotComplete(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), "https://a"), c.Feedback(0, rpctest.Account(2), 1, 5, "x"))
	c.Mine(c.Feedback(0, rpctest.Account(2), 2, 5, "x"))
	c.MineEmpty(5)
	c.Finalize(6, 6)
	c.MapLogs(rpctest.Drop(rpctest.AtBlock(2)))
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{}))
	if s := status(t, db); s.Feedback != 1 || !unbroken(s) {
		t.Errorf("%d of 2 ratings, %+v", s.Feedback, s.Completeness)
	}
}

func TestWrongChain(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.MineEmpty(3)
	db := openStore(t)
	f := follow(t, db, c, Options{})
	c.SetChainID(1)
	err := f.Run(t.Context())
	if !errors.Is(err, repute.ErrConflict) || !strings.Contains(err.Error(), "serves chain 1,") ||
		!strings.Contains(err.Error(), "31337") {
		t.Errorf("Run: %v, want a conflict that names both chains", err)
	}
	if got := cursorOf(t, db); got.Number != 0 {
		t.Errorf("cursor moved to %d", got.Number)
	}
}

// A lie or a fault stores nothing, moves nothing, and does no lasting harm.
func TestFaultsStoreNothing(t *testing.T) {
	t.Parallel()
	logs := func(fn func([]types.Log) []types.Log) func(*rpctest.Chain) func() {
		return func(c *rpctest.Chain) func() { return c.MapLogs(fn) }
	}
	rule := func(r rpctest.Rule) func(*rpctest.Chain) func() {
		return func(c *rpctest.Chain) func() { return c.Inject(r) }
	}
	tests := map[string]func(*rpctest.Chain) func(){
		"removed":      logs(rpctest.Corrupt(rpctest.Every, func(l *types.Log) { l.Removed = true })),
		"out of range": logs(rpctest.Corrupt(rpctest.Every, func(l *types.Log) { l.BlockNumber += 1_000 })),
		"foreign":      logs(rpctest.Corrupt(rpctest.Every, func(l *types.Log) { l.Address = common.Address{1} })),
		"other hash":   logs(rpctest.Corrupt(rpctest.Every, func(l *types.Log) { l.BlockHash = common.Hash{1} })),
		"no such time": logs(rpctest.Corrupt(rpctest.Every, func(l *types.Log) { l.BlockTimestamp = 1<<63 - 1 })),
		"conflict":     logs(rpctest.Corrupt(rpctest.Every, func(l *types.Log) { l.Index = 0 })),
		"HTML":         rule(rpctest.Always(rpctest.Answer{Raw: []byte("<html>")})),
		"truncated":    rule(rpctest.Always(rpctest.Answer{Raw: []byte(`[{"jsonrpc":"2.0","id":3,"result":[`)})),
		"null":         rule(rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{}))),
		"200 with error": rule(rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{
			Error: &rpctest.Error{Code: -32000, Message: "internal"}}))),
		"dark": func(c *rpctest.Chain) func() { c.GoDark(true); return func() { c.GoDark(false) } },
	}
	for name, inject := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			w := newWorld(c, 9)
			w.grow(20)
			db := openStore(t)
			f := follow(t, db, c, Options{})
			catchUp(t, f)
			at, before := c.Head(), dump(t, db)
			w.grow(20)
			undo := inject(c)
			for range 3 {
				if err := f.Step(t.Context(), store.Lease{}); err == nil || errors.Is(err, ErrNothingNew) {
					t.Fatalf("step: %v, want a failure", err)
				}
			}
			wantCursor(t, db, at)
			if dump(t, db) != before {
				t.Error("something was stored")
			}
			undo()
			catchUp(t, f)
			wantFresh(t, db, c)
		})
	}
}

func TestDuplicatesAreStoredOnce(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	newWorld(c, 10).grow(30)
	undo := c.MapLogs(rpctest.Duplicate(rpctest.Every))
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{}))
	undo()
	wantFresh(t, db, c)
}

func TestRangeLimits(t *testing.T) {
	t.Parallel()
	refusals := []rpctest.Error{
		{Code: -32602, Message: "exceed maximum block range 50"},
		{Code: -32005, Message: "query returned more than 10000 results"},
		{Code: -32000, Message: "a wording nobody has seen before"},
		{Code: 35, Message: "ranges over 10000 blocks are not supported on free plan"},
	}
	for _, refusal := range refusals {
		t.Run(refusal.Message, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			newWorld(c, 11).grow(600)
			c.Finalize(595, 590)
			c.Inject(rpctest.LimitRange(37, refusal))
			db := openStore(t)
			stepUntilDone(t, follow(t, db, c, Options{}))
			wantCursor(t, db, c.Head())
		})
	}
}

// One block whose logs cannot be had at any range stops the cursor before it.
func TestNeverSkips(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	newWorld(c, 12).grow(100)
	c.Finalize(95, 90)
	undo := c.Inject(rpctest.On("eth_getLogs", func(call rpctest.Call) *rpctest.Answer {
		if from, to, ok := rpctest.Range(call); ok && from <= 60 && to >= 60 {
			return &rpctest.Answer{Error: &rpctest.Error{Code: -32000, Message: "response too large"}}
		}
		return nil
	}))
	db := openStore(t)
	f := follow(t, db, c, Options{})
	for range 40 {
		_ = f.Step(t.Context(), store.Lease{})
	}
	wantCursor(t, db, c.Blocks()[59])
	undo()
	catchUp(t, f)
	wantFresh(t, db, c)
}

// A log that nobody can read is kept and counted as a gap, also by a reindex.
func TestUndecodedLogIsKept(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	bad := c.Log(repute.Registered{TokenID: rpctest.Token(1), URI: "x", Owner: rpctest.Account(1)})
	bad.Data = bad.Data[:40]
	old := c.Log(repute.NewFeedback{TokenID: rpctest.Token(0), Client: rpctest.Account(2), Index: 1,
		Value: big.NewInt(1)})
	old.Topics = append([]common.Hash{contracts.LegacyTopics()[0]}, old.Topics[1:]...)
	c.Mine(c.Register(0, rpctest.Account(1), "x"), []types.Log{bad, old})
	reg := prometheus.NewRegistry()
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{Metrics: NewMetrics(reg)}))
	if got := status(t, db).Completeness; got.Undecoded != 2 || got.Status != repute.Incomplete {
		t.Errorf("%+v, want two undecoded logs and an incomplete chain", got)
	}
	if n := metric(t, reg, "repute_undecoded_logs_total"); n != 2 {
		t.Errorf("%v logs counted, want 2", n)
	}
	before := dump(t, db)
	for _, reason := range []repute.UndecodedReason{repute.MalformedEvent, repute.LegacyEvent} {
		if !strings.Contains(before, string(reason)) {
			t.Errorf("%s is not in the dump", reason)
		}
	}
	if err := importdb.Reindex(t.Context(), db, chainOf(c).ID, contracts.Read); err != nil || dump(t, db) != before {
		t.Errorf("reindex: %v, or another dump", err)
	}
}

// metric adds up a counter or gauge over all its labels.
func metric(t *testing.T, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// Transfers of the reputation registry's address are none of ours.
func TestForeignEventOfOurAddress(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	odd := c.Log(repute.Transfer{To: rpctest.Account(1), TokenID: rpctest.Token(5)})
	odd.Address = c.Reputation
	c.Mine([]types.Log{odd})
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{}))
	if got := dump(t, db); strings.Contains(got, `"table" : "events"`) {
		t.Errorf("stored: %s", got)
	}
}
