package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"repute/internal/pgtest"
	"repute/internal/rpctest"
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
	run(t.Context(), append(strings.Fields("sources check "+address+reach+" --json"), "--database-url", url), &stdout, &stderr)
	var v checkView
	if err := json.Unmarshal(stdout.Bytes(), &v); err != nil || len(v.Sources) != 8 || v.Sources[0].Says != "unknown" ||
		v.Sources[7].Why != "no epoch has read it yet" {
		t.Errorf("%+v: %v, %s", v, err, stderr.String())
	}
}
