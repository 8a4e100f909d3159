package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/devnet"
	"repute/internal/livedin"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
)

// verify tells what differs, in words, in JSON and by its exit code, and mends it.
func TestVerifyTellsWhatDiffers(t *testing.T) {
	dn, err := devnet.Start(t.Context(), devnet.Options{SafeDepth: 1, FinalizedDepth: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dn.Close() })
	for i := range 3 {
		b := dn.Batch()
		b.Register(dn.Account(i), fmt.Sprintf("https://a/%d", i))
		if i > 0 {
			b.GiveFeedback(dn.Account(9), devnet.Rating{Agent: 0, Value: big.NewInt(int64(i)), Tag1: "t"})
		}
		if _, err := b.Mine(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		if _, err := dn.Mine(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	url := pgtest.New(t)
	file := devnetConfig(t, dn, url, dn.RPCURL())
	mustRun(t, "serve", "--once", "--config", file)
	if out := mustRun(t, "verify", "--config", file); !strings.Contains(out, "3 agents compared; 0 differences") {
		t.Errorf("equal: %s", out)
	}
	db := openTest(t, url)
	if _, err := db.Pool().Exec(t.Context(),
		"delete from events where kind = 5 and block = (select max(block) from events where kind = 5)"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool().Exec(t.Context(),
		"update agent_states set approved = sha256('x') where token_id = 1"); err != nil {
		t.Fatal(err)
	}
	code, out, _ := tool(t, "verify", "--config", file, "--json")
	var report verifyReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 1 || len(report.Differences) != 2 {
		t.Fatalf("two differences: code %d, %v, %s", code, err, out)
	}
	for i, kind := range []string{"MetadataUpdate", "Approval"} {
		if report.Differences[i].Kind != kind || report.Differences[i].From == 0 || report.Differences[i].What == "" {
			t.Errorf("difference %d: %+v, want %s", i, report.Differences[i], kind)
		}
	}
	if code, out, _ = tool(t, "verify", "--config", file, "--repair"); code != 1 ||
		!strings.Contains(out, "1 event repaired") {
		t.Errorf("repair: code %d, %s", code, out)
	}
	if code, out, _ = tool(t, "verify", "--config", file, "--to", "1"); code != 0 {
		t.Errorf("a part: code %d, %s", code, out)
	}
	if _, err := db.Pool().Exec(t.Context(), "update agents set clients = 7 where token_id = 0"); err != nil {
		t.Fatal(err)
	}
	if code, out, _ = tool(t, "verify", "--config", file, "--repair"); code != 1 || !strings.Contains(out,
		"Total of agent 0, blocks ") || !strings.Contains(out, "agents (clients) is 7, the stored events give 1") ||
		!strings.Contains(out, "2 differences,") { // and the approval, which no event explains
		t.Errorf("a wrong total: code %d, %s", code, out)
	}
	mustRun(t, "reindex", "--config", file)
	if code, out, _ = tool(t, "verify", "--config", file); code != 0 {
		t.Errorf("computed again: code %d, %s", code, out)
	}
	dead := devnetConfig(t, dn, url, "http://127.0.0.1:1/key-that-is-secret")
	code, out, says := tool(t, "verify", "--config", dead)
	if code != 2 || !strings.Contains(says, "not checked") || strings.Contains(out+says, "key-that-is-secret") {
		t.Errorf("no node: code %d, %s, %s", code, out, says)
	}
	if code, _, says = tool(t, "verify", "--config", file, "--to", "999"); code != 2 ||
		!strings.Contains(says, "not stored") {
		t.Errorf("beyond what is stored: code %d, %s", code, says)
	}
}

// A wrong time of a block that serve has compared already is handed over to it by verify
// --repair beside it, and is put right there.
func TestVerifyRepairBesideServe(t *testing.T) {
	dn := livedin.New(t)
	database := pgtest.New(t)
	config := devnetConfig(t, dn, database, dn.RPCURL())
	_, out := child(t, "serve", "--config", config)
	db := openTest(t, database)
	holds := func(what, condition string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			var yes bool
			if err := db.Pool().QueryRow(t.Context(), "select "+condition).Scan(&yes); err == nil && yes {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("never: %s; serve says %s", what, out)
			}
		}
	}
	holds("all blocks are compared", `exists (select from block_proofs p join chains c using (chain_id)
		where p.from_block <= c.start_block and p.to_block = c.finalized_block)`)
	mustExec(t, db,
		"update blocks set time = time + interval '1 year' where number = (select min(block) from events where kind = 9)")
	code, said, errs := tool(t, "verify", "--config", config, "--repair")
	if code != 1 || !strings.Contains(said, "the block's time is") ||
		!strings.Contains(errs, "another process leads the chain") {
		t.Fatalf("code %d, %s, %s", code, said, errs)
	}
	holds("the time is right", "not exists (select from blocks where time > now() + interval '300 days')")
	holds("the agents are made anew", "exists (select from changes where kind = 'repaired')")
	if code, said, errs = tool(t, "verify", "--config", config); code != 0 {
		t.Errorf("afterwards: code %d, %s, %s", code, said, errs)
	}
}

// An endpoint that does not tell its chain is no witness.
func TestWitnessesTellTheirChain(t *testing.T) {
	t.Parallel()
	good, silent := rpctest.New(t, rpctest.Options{}), rpctest.New(t, rpctest.Options{})
	silent.Inject(rpctest.On("eth_chainId",
		rpctest.Always(rpctest.Answer{Error: &rpctest.Error{Code: -32601, Message: "Method not found"}})))
	nodes, stop, err := witnesses(config.URLs{silent.URL(), good.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	p := &cli.Program{Stdout: io.Discard, Stderr: io.Discard}
	if proven, err := ofChain(t.Context(), p, nodes, 31337); err != nil || len(proven) != 1 || proven[0] != nodes[1] {
		t.Errorf("%d witnesses, %v", len(proven), err)
	}
	if proven, err := ofChain(t.Context(), p, nodes[:1], 31337); err == nil {
		t.Errorf("%d witnesses where none tells its chain", len(proven))
	}
	if _, err := ofChain(t.Context(), p, nodes, 1); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("another chain: %v", err)
	}
}

func devnetConfig(t *testing.T, dn *devnet.Devnet, database, rpc string) string {
	t.Helper()
	c := dn.Chain()
	file := filepath.Join(t.TempDir(), "repute.yaml")
	text := fmt.Sprintf("database: %q\nroles: [indexer]\nchains:\n  - {name: devnet, id: %d, identity: %q, reputation: %q, validations: [%q], start_block: %d, rpc: %q}\n",
		database, c.ID, c.Identity, c.Reputation, c.Validations[0], c.StartBlock, rpc)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
