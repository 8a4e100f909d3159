package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"repute/internal/freeport"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
)

// fetch gets a page; code 0 means that nobody answered.
func fetch(t *testing.T, url string) (code int, body string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// eventually waits for a page to answer with code and to hold text.
func eventually(t *testing.T, url string, code int, text string, out *bytes.Buffer) {
	t.Helper()
	var gotCode int
	var got string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if gotCode, got = fetch(t, url); gotCode == code && strings.Contains(got, text) {
			return
		}
	}
	t.Fatalf("%s answers %d %s, want %d with %q; the program says:\n%s", url, gotCode, got, code, text, out)
}

// small is a chain with two agents and one rating.
func small(t *testing.T) *rpctest.Chain {
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""), c.Register(1, rpctest.Account(2), "data:,{}"))
	c.Mine(c.Feedback(0, rpctest.Account(3), 1, 80, "starred"))
	return c
}

func TestWrongChainBehindTheURL(t *testing.T) {
	c := small(t)
	c.SetChainID(5)
	cmd, out := child(t, "serve", "--config", configure(t, c, pgtest.New(t)))
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(out.String(), "31337") ||
		!strings.Contains(out.String(), "chain 5") {
		t.Errorf("exit code %d (%v), says %s; want 2 naming both ids", code, err, out)
	}
	address := freeport.Address(t)
	_, out = child(t, "serve", "--config", configure(t, c, pgtest.New(t)), "--roles", "indexer,api", "--listen",
		address)
	eventually(t, "http://"+address+"/readyz", 503, "serves chain 5, configured is 31337", out)
	eventually(t, "http://"+address+"/healthz", 200, "", out)
}

func TestNodeAwayAtStart(t *testing.T) {
	c := small(t)
	c.GoDark(true)
	address := freeport.Address(t)
	cmd, out := child(t, "serve", "--config", configure(t, c, pgtest.New(t)), "--roles", "indexer,documents,api",
		"--listen", address)
	eventually(t, "http://"+address+"/healthz", 200, "", out)
	eventually(t, "http://"+address+"/readyz", 503, strings.TrimPrefix(c.URL(), "http://"), out)
	c.GoDark(false)
	eventually(t, "http://"+address+"/readyz", 200, "", out)
	eventually(t, "http://"+address+"/agents/0/reputation", 200, `"status":"unrated"`, out)
	// What is indexed is answered while the node is unavailable, which is told.
	c.GoDark(true)
	eventually(t, "http://"+address+"/readyz", 200, strings.TrimPrefix(c.URL(), "http://"), out)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v, says %s", err, out)
	}
}

// deployed is a block of Ethereum above that in which its registry was deployed.
const deployed = 24_400_000

// logFile is the chain's logs as eth_getLogs would give them, so many blocks above.
func logFile(t *testing.T, c *rpctest.Chain, above uint64) []byte {
	t.Helper()
	var logs []any
	for _, b := range c.Blocks() {
		for _, l := range b.Logs() {
			l.BlockNumber += above
			logs = append(logs, l)
		}
	}
	file, err := json.Marshal(logs)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestImport(t *testing.T) {
	good := logFile(t, small(t), deployed)
	database := pgtest.New(t)
	importFile := func(content []byte) (int, string) {
		path := filepath.Join(t.TempDir(), "logs.json")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"import", path, "--chain", "ethereum", "--database-url", database}, &out,
			&errs)
		return code, out.String() + errs.String()
	}
	broken := bytes.Replace(good, []byte(`"blockNumber":"0x1745082"`), []byte(`"blockNumber":"0xzz"`), 1)
	if code, said := importFile(broken); code != 2 || !strings.Contains(strings.ToLower(said), "blocknumber") {
		t.Fatalf("broken file: exit code %d, says %s", code, said)
	}
	db := openTest(t, database)
	if d := dump(t, db); bytes.Contains(d, []byte("Registered")) || len(d) > 0 {
		t.Fatalf("a refused file left something: %s", d)
	}
	if code, said := importFile(good); code != 0 {
		t.Fatalf("exit code %d, says %s", code, said)
	}
	before := dump(t, db)
	if code, said := importFile(good); code != 0 || !bytes.Equal(before, dump(t, db)) {
		t.Errorf("importing twice: exit code %d, says %s", code, said)
	}
}

// Two files of a chain may come in any order.
func TestImportInReverse(t *testing.T) {
	var logs []json.RawMessage
	if err := json.Unmarshal(logFile(t, small(t), deployed), &logs); err != nil {
		t.Fatal(err)
	}
	dumps := [2][]byte{}
	for i, parts := range [2][2][]json.RawMessage{{logs[:len(logs)-1], logs[len(logs)-1:]},
		{logs[len(logs)-1:], logs[:len(logs)-1]}} {
		database := pgtest.New(t)
		for _, part := range parts {
			content, err := json.Marshal(part)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "logs.json")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			if code := run(t.Context(), []string{"import", path, "--chain", "ethereum", "--database-url", database},
				io.Discard, &errs); code != 0 {
				t.Fatalf("exit code %d, says %s", code, &errs)
			}
		}
		dumps[i] = dump(t, openTest(t, database))
	}
	if len(dumps[0]) == 0 || !bytes.Equal(dumps[0], dumps[1]) {
		t.Errorf("the dumps differ:\n%s\n%s", dumps[0], dumps[1])
	}
}

// Tools and wrong passwords do not wait for better times.
func TestDatabaseRefusesAtOnce(t *testing.T) {
	wrong, err := url.Parse(pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	wrong.User = url.UserPassword("nobody", "wrong")
	for _, args := range [][]string{{"status", "--database-url", "postgres://" + freeport.Address(t) + "/x"},
		{"serve", "--roles", "documents", "--database-url", wrong.String()}} {
		var errs bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if code := run(ctx, args, io.Discard, &errs); code != 1 || ctx.Err() != nil {
			t.Errorf("%s: exit code %d, says %s", args[0], code, &errs)
		}
		cancel()
	}
}

// A followed chain must not be fed from a file.
func TestImportIntoFollowedChain(t *testing.T) {
	c := small(t)
	database := pgtest.New(t)
	config := configure(t, c, database)
	db := openTest(t, database)
	_, out := child(t, "serve", "--config", config)
	waitCursor(t, db, 2, out)
	path := filepath.Join(t.TempDir(), "logs.json")
	if err := os.WriteFile(path, logFile(t, c, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	code := run(t.Context(), []string{"import", path, "--config", config, "--chain", "busy"}, io.Discard, &errs)
	if code != 2 || !strings.Contains(errs.String(), "follow") {
		t.Errorf("exit code %d, says %s", code, &errs)
	}
}

func TestTools(t *testing.T) {
	c := small(t)
	database := pgtest.New(t)
	config := configure(t, c, database)
	db := openTest(t, database)
	cmd, out := child(t, "serve", "--config", config)
	waitCursor(t, db, 2, out)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	before := dump(t, db)
	for _, args := range [][]string{{"reindex"}, {"status"}, {"status", "--json"}, {"dump", "--canonical"},
		{"migrate", "up"}, {"version"}, {"chains"}} {
		var stdout, stderr bytes.Buffer
		if args[0] != "version" && args[0] != "chains" { // these need no configuration
			args = append(args, "--config", config)
		}
		if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
			t.Errorf("%v: exit code %d, says %s", args, code, &stderr)
		}
		if args[0] == "dump" && stdout.String() != string(before) {
			t.Error("the command's dump differs from the store's")
		}
		if args[0] == "status" && !strings.Contains(stdout.String(), "busy") {
			t.Errorf("%v says %s", args, &stdout)
		}
	}
	if after := dump(t, db); !bytes.Equal(before, after) {
		t.Errorf("reindex changed the dump: %d bytes, before %d", len(after), len(before))
	}
}

// serve and import tell of their progress in plain lines where nobody watches.
func TestServeTellsItsProgress(t *testing.T) {
	c := busyChain(t)
	database := pgtest.New(t)
	_, _, says := tool(t, "serve", "--once", "--config", configure(t, c, database))
	if !strings.Contains(says, `msg="caught up" chain=busy`) {
		t.Errorf("serve says %s", says)
	}
	file := t.TempDir() + "/events.jsonl"
	mustRun(t, "export", "events", "--database-url", database, "--to", "1990", "-o", file)
	if _, _, says := tool(t, "import", file, "--database-url", pgtest.New(t)); !strings.Contains(says,
		`msg=progress chain=busy percent=100 block=1990`) || strings.Contains(says, "caught up") {
		t.Errorf("import says %s", says)
	}
}

// Wrong settings are refused before a database is made.
func TestServeChecksBeforeItMakes(t *testing.T) {
	for says, file := range map[string]string{
		"orchestrator.tokens.ann":               "orchestrator: {tokens: {ann: short}}",
		"orchestrator.wallets[0].identities.me": "orchestrator: {wallets: [{chain: base, rpc: \"http://127.0.0.1:1\", identities: {me: \"file:/nonexistent\"}}]}",
	} {
		path, dir := filepath.Join(t.TempDir(), "repute.yaml"), filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := tool(t, "serve", "--config", path, "--data-dir", dir, "--roles", "orchestrator,api",
			"--listen",
			freeport.Address(t))
		if _, err := os.Stat(dir); code != 2 || !strings.Contains(stderr, says) || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: exit code %d, %s; the data directory: %v", says, code, stderr, err)
		}
	}
}
