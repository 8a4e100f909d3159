package main

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"repute/devnet"
	"repute/internal/freeport"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
)

// tool runs the program in this process and gives exit code and output.
func tool(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := tool(t, args...)
	if code != 0 {
		t.Fatalf("%v: exit code %d, says %s", args, code, stderr)
	}
	return stdout
}

// The way to start on free endpoints: import a snapshot, then follow.
func TestStartFromSnapshot(t *testing.T) {
	c := small(t)
	c.MineEmpty(3)
	c.Finalize(4, 4)
	first, second := pgtest.New(t), pgtest.New(t)
	mustRun(t, "serve", "--once", "--config", configure(t, c, first))
	dir := t.TempDir()
	plain, zipped := filepath.Join(dir, "events.jsonl"), filepath.Join(dir, "events.jsonl.gz")
	for _, file := range []string{plain, zipped} {
		if _, _, says := tool(t, "export", "events", "--database-url", first, "-o", file); !strings.Contains(says,
			"blocks 1 to 4") || strings.Contains(says, "not enough") {
			t.Errorf("export says %s", says)
		}
	}
	mustRun(t, "import", zipped, "--database-url", second)
	if again := mustRun(t, "export", "events", "--chain", "31337", "--config",
		configure(t, c, second)); again != read(t,
		plain) {
		t.Errorf("the second export differs:\n%s\n%s", again, read(t, plain))
	}
	if a, b := mustRun(t, "dump", "--canonical", "--database-url", first),
		mustRun(t, "dump", "--canonical", "--database-url", second); a != b || a == "" {
		t.Errorf("the dumps differ:\n%s\n%s", a, b)
	}
	c.Mine(c.Feedback(0, rpctest.Account(3), 2, 70, "starred"))
	for _, database := range []string{first, second} {
		mustRun(t, "serve", "--once", "--config", configure(t, c, database))
	}
	if a, b := dump(t, openTest(t, first)), dump(t, openTest(t, second)); !bytes.Equal(a, b) ||
		!bytes.Contains(a, []byte(`"index" : 2`)) {
		t.Errorf("after following on the dumps differ:\n%s\n%s", a, b)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestExportRefuses(t *testing.T) {
	c := small(t)
	database := pgtest.New(t)
	config := configure(t, c, database)
	mustRun(t, "serve", "--once", "--config", config)
	file := filepath.Join(t.TempDir(), "events.jsonl")
	for _, args := range [][]string{
		{"--chain", "base"},
		{"--to", "99"},
		{"--from", "2", "--to", "1"},
		{"-o", "/nonexistent/file"},
	} {
		if code, _, says := tool(t, append([]string{"export", "events", "--config", config, "-o", file},
			args...)...); code != 2 || !strings.Contains(says, "(") {
			t.Errorf("%v: exit code %d, says %s", args, code, says)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a refused export left a file")
	}
	if err := os.WriteFile(file, []byte("\x1f\x8bnonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, says := tool(t, "import", file, "--chain", "base", "--database-url", database); code != 2 ||
		!strings.Contains(says, "file") {
		t.Errorf("broken gzip: exit code %d, says %s", code, says)
	}
}

func TestServeUntilBlock(t *testing.T) {
	c := small(t)
	c.MineEmpty(5)
	database := pgtest.New(t)
	db := openTest(t, database)
	mustRun(t, "serve", "--until-block", "4", "--config", configure(t, c, database))
	if at := cursor(t, db); at != 4 {
		t.Errorf("stopped at block %d, want 4", at)
	}
	mustRun(t, "serve", "--until-block", "2", "--config", configure(t, c, database)) // reached long ago
	mustRun(t, "serve", "--once", "--roles", "indexer,documents,api", "--listen", freeport.Address(t), "--config",
		configure(t, c, database))
	if at := cursor(t, db); at != c.Head().Number() {
		t.Errorf("stopped at block %d, the head is %d", at, c.Head().Number())
	}
	for _, args := range [][]string{
		{"--once", "--roles", "api"},
		{"--once", "--until-block", "3"},
		{"--until-block", "3", "--chain", "busy", "--chain", "base", "--rpc", "http://h"},
	} {
		if code, _, says := tool(t, append([]string{"serve", "--config", configure(t, c, database)},
			args...)...); code != 2 {
			t.Errorf("%v: exit code %d, says %s", args, code, says)
		}
	}
	c.SetChainID(5)
	if code, _, says := tool(t, "serve", "--once", "--config", configure(t, c, database)); code != 2 ||
		!strings.Contains(says, "chain 5") {
		t.Errorf("wrong chain: exit code %d, says %s", code, says)
	}
}

// The documented way, on a real node: what one index exported another one imports,
// compares with the chain, and follows on from.
func TestImportVerifyFollow(t *testing.T) {
	dn, err := devnet.Start(t.Context(), devnet.Options{SafeDepth: 1, FinalizedDepth: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dn.Close() })
	mine := func(n int) {
		t.Helper()
		for i := range n {
			b := dn.Batch()
			b.Register(dn.Account(i), fmt.Sprintf("https://a.example/%d", i))
			b.GiveFeedback(dn.Account(9), devnet.Rating{Agent: 0, Value: big.NewInt(int64(i)), Tag1: "t"})
			if _, err := b.Mine(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := dn.Batch()
	b.Register(dn.Account(0), "https://a.example")
	if _, err := b.Mine(t.Context()); err != nil {
		t.Fatal(err)
	}
	mine(6)
	first, second := pgtest.New(t), pgtest.New(t)
	mustRun(t, "serve", "--once", "--config", devnetConfig(t, dn, first, dn.RPCURL()))
	file := filepath.Join(t.TempDir(), "devnet.jsonl.gz")
	mustRun(t, "export", "events", "--database-url", first, "-o", file)
	mustRun(t, "import", file, "--database-url", second)
	config := devnetConfig(t, dn, second, dn.RPCURL())
	if out := mustRun(t, "verify", "--config", config); !strings.Contains(out, "0 differences") {
		t.Errorf("verify says %s", out)
	}
	mine(3)
	for _, c := range []string{config, devnetConfig(t, dn, first, dn.RPCURL())} {
		mustRun(t, "serve", "--once", "--config", c)
	}
	if a, b := dump(t, openTest(t, first)), dump(t, openTest(t, second)); !bytes.Equal(a, b) || len(a) == 0 {
		t.Errorf("the dumps differ:\n%s\n%s", a, b)
	}
	if out := mustRun(t, "verify", "--config", config); !strings.Contains(out, "0 differences") {
		t.Errorf("verify says %s", out)
	}
}
