package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/api/wire"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/rootdb"
	"repute/trust/engine"
)

func client(n int) common.Address { return common.BigToAddress(big.NewInt(int64(0xc000 + n))) }

// scoredDatabase has an agent that four roots rated up to block 30 of a chain with epochs
// of twenty, and its scores.
func scoredDatabase(t *testing.T) string {
	t.Helper()
	url := pgtest.New(t)
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	chain := repute.Chain{ID: 31337, Name: "devnet", Identity: client(1), Reputation: client(2), StartBlock: 1}
	if err := chaindb.AddChain(t.Context(), db, chain); err != nil {
		t.Fatal(err)
	}
	var roots []repute.TrustRoot
	b := eventdb.Batch{ChainID: chain.ID}
	for n := uint64(1); n <= 30; n++ {
		block := repute.Block{Number: n, Parent: b.To.Hash, Hash: common.BigToHash(big.NewInt(int64(n))),
			Time: time.Unix(1_750_000_000+int64(n), 0).UTC()}
		events := []repute.Event{repute.NewFeedback{Client: client(10 + int(n)%4), Index: (n + 2) / 4,
			Value: big.NewInt(90), Tag1: "starred"}}
		if n == 1 {
			events = []repute.Event{repute.Transfer{To: client(3)}, repute.Registered{Owner: client(3)}}
		}
		for i, e := range events {
			from := chain.Reputation
			if n == 1 {
				from = chain.Identity
			}
			b.Records = append(b.Records,
				repute.Record{Event: e, Time: block.Time, Log: types.Log{Address: from, Topics: []common.Hash{{1}},
					BlockNumber: n, BlockHash: block.Hash,
					Index: uint(i), TxHash: common.BigToHash(big.NewInt(int64(1000 + n)))}})
		}
		b.Blocks, b.To = append(b.Blocks, block), block
	}
	for i := range 4 {
		roots = append(roots, repute.TrustRoot{Address: client(10 + i), Weight: repute.RootUnit, Reason: "test"})
	}
	for _, err := range []error{
		eventdb.Apply(t.Context(), db, b), rootdb.AddRoots(t.Context(), db, chain.ID, repute.DefaultRoots, roots,
			false),
		chaindb.SetHead(t.Context(), db, chain.ID, store.Lease{},
			chaindb.Head{Head: 30, Finalized: 25, SeenAt: time.Now()}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	keepScores(t, db)
	return url
}

// keepScores runs an engine until the first epoch is closed and nothing is left to do.
func keepScores(t *testing.T, db *store.DB) {
	t.Helper()
	e, err := engine.New(db, engine.EngineOptions{Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	defer func() { stop(); <-done }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var quiet bool
		err := db.Pool().QueryRow(t.Context(), `select exists (select from trust_runs where closed_at is not null)
			and exists (select from trust_scores where block = 30) and not exists (select from trust_stale)`).Scan(&quiet)
		if err == nil && quiet {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("scores do not settle: %v", err)
		}
	}
}

// TestScoreCommands explains a score, makes one again, and says what is missing when that
// cannot be done.
func TestScoreCommands(t *testing.T) {
	t.Parallel()
	url := scoredDatabase(t)
	args := func(more ...string) []string {
		return append([]string{"score"}, append(more, "--database-url", url)...)
	}
	code, said := command(t, args("explain", "31337:0", "--json", "--at", "latest", "--without", client(10).Hex())...)
	var e wire.ExplainAnswer
	if err := json.Unmarshal([]byte(said), &e); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s", code, err, said)
	}
	sum := int64(0)
	for _, c := range e.Contributions {
		sum += thousandths(c.Points)
	}
	if e.Status != "rated" || sum != thousandths(e.Score) || *e.Finality != "provisional" ||
		len(e.Counterfactuals) != 5 || e.Contributions[0].Rows[0].Tx == nil {
		t.Errorf("parts add up to %d: %s", sum, said)
	}
	code, said = command(t, args("explain", "31337:0", "--at", "finalized")...)
	for _, want := range []string{"agent", fmt.Sprintf("block %d", 20), "final, epoch 1", "service", "must be below",
		"without", client(11).Hex(), "0 steps from root", "not verified", "their weight comes from roots"} {
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("exit %d, %q is not in %s", code, want, said)
		}
	}
	if first, _, _ := strings.Cut(said, "\n"); !strings.Contains(first, " trusted client") {
		t.Errorf("the first line is %q", first)
	}
	explainedByRoots(t, url)
	if code, said := command(t, args("replay", "31337:0", "--at", "24")...); code != 0 ||
		!strings.Contains(said, "byte by byte") {
		t.Errorf("exit %d: %s", code, said)
	}
	for want, line := range map[string][]string{
		"no epoch that ended by block 12":        {"replay", "31337:0", "--at", "12"},
		"--at":                                   {"replay", "31337:0"},
		"agent 31337:9":                          {"replay", "31337:9", "--at", "24"},
		"agent 31337:8":                          {"explain", "31337:8"},
		"limit":                                  {"explain", "31337:0", "--limit", "0"},
		"without":                                {"explain", "31337:0", "--without", "0x12"},
		"not a view of the chain":                {"explain", "31337:0", "--at", "noon"},
		"block 31 of chain 31337 is not indexed": {"explain", "31337:0", "--at", "31"},
	} {
		if code, said := command(t, args(line...)...); code == 0 || !strings.Contains(said, want) {
			t.Errorf("%v: exit %d, %q is not in %s", line, code, want, said)
		}
	}
	pruned(t, url, args("replay", "31337:0", "--at", "24"))
}

// explainedByRoots asks by roots of one's own: two who rated the agent, one of them with a
// stranger, a set, and what cannot be meant.
func explainedByRoots(t *testing.T, url string) {
	t.Helper()
	explain := func(more ...string) []string {
		return append([]string{"score", "explain", "31337:0", "--database-url", url}, more...)
	}
	code, said := command(t, explain("--roots", client(10).Hex()+","+client(99).Hex(), "--json")...)
	var e wire.ExplainAnswer
	if err := json.Unmarshal([]byte(said), &e); err != nil || code != 0 || *e.Roots != "given" ||
		*e.OwnRoots != (wire.OwnRoots{Given: 2, Known: 1}) {
		t.Errorf("exit %d, %v: %.300s", code, err, said)
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{0, "1, of which 0 ever rated anybody", []string{"--roots", client(99).Hex()}},
		{0, "none of these roots ever rated anybody", []string{"--roots", client(99).Hex()}},
		{0, "4, of which 4 ever rated anybody", []string{"--root-set", "default"}},
		{2, "has no set of roots named nobody", []string{"--root-set", "nobody"}},
		{2, "--roots is given too", []string{"--root-set", "default", "--roots", client(10).Hex()}},
		{2, "stands twice", []string{"--roots", client(10).Hex(), "--roots", client(10).Hex()}},
		{2, "score at latest only", []string{"--root-set", "default", "--at", "24"}},
	} {
		if code, said := command(t, explain(c.args...)...); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%v: exit %d, %q is not in %.400s", c.args, code, c.want, said)
		}
	}
}

// pruned takes inputs away, one after another, and wants each of them named.
func pruned(t *testing.T, url string, replay []string) {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, step := range []struct{ sql, want string }{
		{"delete from feedback where block = 10", "up to block 20 makes another result"},
		{"delete from trust_inputs where hash = (select roots from trust_runs)", "the roots with sha256"},
		{"delete from trust_inputs where hash = (select params from trust_runs)", "the parameters with sha256"},
	} {
		if _, err := db.Pool().Exec(t.Context(), step.sql); err != nil {
			t.Fatal(err)
		}
		if code, said := command(t, replay...); code == 0 || !strings.Contains(said, "input pruned") ||
			!strings.Contains(said, step.want) {
			t.Errorf("%s: exit %d, %q is not in %s", step.sql, code, step.want, said)
		}
	}
}

// thousandths are the points that a number with three digits stands for.
func thousandths(points float64) int64 {
	if points < 0 {
		return -thousandths(-points)
	}
	return int64(points*1000 + 0.5)
}
