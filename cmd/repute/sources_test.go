package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute/cmd/repute/internal/cli"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store/scoredb"
	"repute/trust/replay"
	"repute/trust/source"
)

// The commands of sources on an index that has read none yet.
func TestSourcesCommands(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	chain := rpctest.New(t, rpctest.Options{ChainID: 8453})
	chain.MineEmpty(100)
	text := string(source.DefaultFile())
	path := filepath.Join(t.TempDir(), "sources.yaml")
	off, wrong := filepath.Join(t.TempDir(), "off.yaml"), filepath.Join(t.TempDir(), "wrong.yaml")
	for name, body := range map[string]string{path: strings.Replace(text, "class: A", "class: Z", 1),
		off: "trust: {sources: none}\n", wrong: "trust: {sources: " + path + "}\n"} {
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const address = "0x1111111111111111111111111111111111111111"
	reach := " --chain base --rpc " + chain.URL()
	for _, step := range []struct {
		args string
		code int
		want string
	}{
		{"sources list --file", 0, "id: coinbase-account"},
		{"sources list", 0, "no source counts on any chain that is indexed"},
		{"sources list --json", 0, "[]"},
		{"sources list --config " + wrong, 2, "sources[0].class"},
		{"sources list --file --config " + off, 2, "trust.sources: is none"},
		{"sources check " + address + " --chain base", 2, "no endpoint of chain 8453"},
		{"sources check 0x12" + reach, 2, "address"},
		{"sources check " + address + reach, 0, "weight 0.00 from sources"},
		{"sources check " + address + reach, 0, "unknown"}, // the scripted chain has no contracts that can be asked
		{"sources check " + address + reach + " --config " + off, 2, "trust.sources: is none"},
		{"sources verify --chain base", 2, "no endpoint of chain 8453"},
		{"sources verify" + reach, 0, "0 credentials of run 0 compared, 0 differences"},
	} {
		var stdout, stderr bytes.Buffer
		args := append(strings.Fields(step.args), "--database-url", url)
		if code := run(t.Context(), args, &stdout, &stderr); code != step.code ||
			!strings.Contains(stdout.String()+stderr.String(), step.want) {
			t.Errorf("%s: code %d, want %d: %s%s", step.args, code, step.code, stdout.String(), stderr.String())
		}
	}
	var stdout, stderr bytes.Buffer
	run(t.Context(), append(strings.Fields("sources check "+address+reach+" --json"), "--database-url", url), &stdout,
		&stderr)
	var v struct{ Sources []struct{ Says, Why string } }
	if err := json.Unmarshal(stdout.Bytes(), &v); err != nil || len(v.Sources) != 8 || v.Sources[0].Says != "unknown" ||
		v.Sources[7].Why != "no epoch has read it yet" {
		t.Errorf("%+v: %v, %s", v, err, stderr.String())
	}
}

// What verify cannot see is told and is no success: credentials of sources that cannot be asked, those that are in no
// policy, and inputs that were pruned.
func TestVerifyTellsWhatItDoesNotCheck(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db := openTest(t, url)
	chain := rpctest.New(t, rpctest.Options{ChainID: 8453})
	chain.MineEmpty(100)
	head := chain.Head()
	policy := []byte(strings.ReplaceAll(string(source.DefaultFile()), "coinbase-business", "other-business"))
	held, err := source.Encode([]source.Credential{
		{Source: "other-business", Version: 1, Rater: common.Address{1}, Chain: 8453, Block: head.Number(),
			Hash: head.Hash()},
		{Source: "agentbook", Version: 7, Rater: common.Address{2}, Chain: 8453},
		{Source: "bab", Version: 1, Rater: common.Address{3}, Chain: 56, Lapsed: 5},
	})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := source.Parse(policy)
	if err != nil {
		t.Fatal(err)
	}
	if err := scoredb.KeepInputs(t.Context(), db, parsed.Encode(), held); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db,
		`insert into chains (chain_id, name, identity, reputation, validations, start_block, imported, cursor_block, cursor_hash)
		values (8453, 'base', decode(repeat('01', 20), 'hex'), decode(repeat('02', 20), 'hex'), '{}', 0, false, 60, decode(repeat('03', 32), 'hex'))`)
	if err := scoredb.AddRun(t.Context(), db, scoredb.Run{ChainID: 8453, Run: 1, Epoch: 3, Boundary: 60, Scorer: "test",
		Readings: "[]", Sources: parsed.Hash(), Credentials: replay.HashInput(held)}); err != nil {
		t.Fatal(err)
	}
	verify := func(wants ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args := []string{"sources", "verify", "--chain", "base", "--rpc", chain.URL(), "--database-url", url}
		if code := run(t.Context(), args, &stdout, &stderr); code != cli.CodeUnchecked {
			t.Errorf("code %d: %s%s", code, stdout.String(), stderr.String())
		}
		for _, w := range wants {
			if !strings.Contains(stdout.String(), w) {
				t.Errorf("no %q in\n%s", w, stdout.String())
			}
		}
	}
	verify("other-business: 1 credentials", "1 credentials of version 7 of agentbook",
		"1 credentials of version 1 of bab")
	mustExec(t, db, "delete from trust_inputs")
	verify("credentials of run 1: not stored", "policy of sources of run 1: not stored")
}
