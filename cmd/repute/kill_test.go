package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"repute"
	"repute/indexer/documents"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/importdb"
)

// TestMain lets a test run this binary as the program itself.
func TestMain(m *testing.M) {
	if os.Getenv("REPUTE_RUN_PROGRAM") != "" {
		ctx, stop := interruptible()
		defer stop()
		os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// child starts the program; its output goes to the test's log when it fails.
func child(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	return leasing(t, time.Second, args...)
}

// leasing is child with another time for which a frozen process keeps its chains.
func leasing(t *testing.T, lease time.Duration, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "REPUTE_RUN_PROGRAM=1", "REPUTE_LEASE="+lease.String())
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, out
}

const busyBlocks = 2000

// busyChain holds blocks of registrations, ratings, moves and updates.
func busyChain(t *testing.T) *rpctest.Chain {
	c := rpctest.New(t, rpctest.Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	given := map[[2]uint64]uint64{}
	owner := map[uint64]uint64{}
	agents := uint64(0)
	for block := range uint64(busyBlocks) {
		if agents < 3 || block%9 == 0 {
			owner[agents] = 1 + block%40
			c.Mine(c.Register(agents, rpctest.Account(owner[agents]),
				fmt.Sprintf("data:,{%%22name%%22:%%22%d%%22}", agents)))
			agents++
			continue
		}
		agent, client := rng.Uint64N(agents), 100+rng.Uint64N(30)
		given[[2]uint64{agent, client}]++
		rating := c.Feedback(agent, rpctest.Account(client), given[[2]uint64{agent, client}], rng.Int64N(100),
			"starred")
		switch block % 5 {
		case 0:
			to := 1 + rng.Uint64N(40)
			c.Mine(rating, c.Move(agent, rpctest.Account(owner[agent]), rpctest.Account(to)))
			owner[agent] = to
		case 1:
			c.Mine(rating, c.SetURI(agent, rpctest.Account(owner[agent]), fmt.Sprintf("data:,%d", block)))
		default:
			c.Mine(rating)
		}
	}
	return c
}

// configure writes a configuration that indexes c into database.
func configure(t *testing.T, c *rpctest.Chain, database string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "repute.yaml")
	text := fmt.Sprintf(`database: %q
roles: [indexer]
chains:
  - name: busy
    id: 31337
    identity: "%s"
    reputation: "%s"
    start_block: 0
    rpc: %q
`, database, c.Identity, c.Reputation, c.URL())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openTest(t *testing.T, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{Classify: documents.Classify})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// cursor is how far the chain is indexed, 0 before it is known.
func cursor(t *testing.T, db *store.DB) uint64 {
	t.Helper()
	b, err := chaindb.Cursor(t.Context(), db, 31337)
	if err != nil || b.Hash == (repute.Block{}).Hash {
		return 0
	}
	return b.Number
}

// waitCursor fails when nothing moves for a while.
func waitCursor(t *testing.T, db *store.DB, at uint64, out *bytes.Buffer) {
	t.Helper()
	moved, last := time.Now(), uint64(0)
	for now := cursor(t, db); now < at; now = cursor(t, db) {
		if now != last {
			moved, last = time.Now(), now
		}
		if time.Since(moved) > 60*time.Second {
			t.Fatalf("stuck at block %d, want %d; the program says:\n%s", now, at, out)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func dump(t *testing.T, db *store.DB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := importdb.Dump(t.Context(), db, &b, 0); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Twenty kills at random moments of a backfill must leave no trace.
func TestKillDuringBackfill(t *testing.T) {
	const kills = 20
	chain := busyChain(t)
	chain.Inject(rpctest.LimitRange(20, rpctest.Error{Code: -32602, Message: "exceed maximum block range 20"}))
	var given atomic.Uint64 // blocks above are not, so that each kill finds work under way, however late it comes
	chain.Inject(rpctest.On("eth_getLogs", func(call rpctest.Call) *rpctest.Answer {
		time.Sleep(2 * time.Millisecond)
		if from, _, isRange := rpctest.Range(call); isRange && from > given.Load() {
			return &rpctest.Answer{Hang: true}
		}
		return nil
	}))
	database := pgtest.New(t)
	db := openTest(t, database)
	config := configure(t, chain, database)
	part := func(kill uint64) uint64 { return (busyBlocks - 500) * kill / kills }
	for kill := range uint64(kills) {
		given.Store(part(kill+1) + 40) // no range is longer than 20
		cmd, out := child(t, "serve", "--config", config)
		from := cursor(t, db)
		waitCursor(t, db, max(from+1, part(kill)), out)
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	if at := cursor(t, db); at == 0 || at >= busyBlocks {
		t.Fatalf("the last kill found the cursor at %d: not in mid-backfill", at)
	}
	given.Store(busyBlocks)
	_, out := child(t, "serve", "--config", config)
	waitCursor(t, db, busyBlocks, out)

	fresh := pgtest.New(t)
	undisturbed := openTest(t, fresh)
	_, out = child(t, "serve", "--config", configure(t, chain, fresh))
	waitCursor(t, undisturbed, busyBlocks, out)
	if got, want := dump(t, db), dump(t, undisturbed); !bytes.Equal(got, want) {
		t.Errorf("the dump after %d kills differs: %d bytes, undisturbed %d", kills, len(got), len(want))
	}
}
