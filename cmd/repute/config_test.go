package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"repute"
)

// loadWith parses args and merges; file, when not empty, becomes the YAML file.
func loadWith(t *testing.T, file string, args ...string) (config, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "repute.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	var f flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.bind(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.load()
}

func TestConfigPrecedence(t *testing.T) {
	const file = "listen: file:1\nlog_format: json\ndefault_chain: 10\n"
	t.Setenv("REPUTE_LISTEN", "env:1")
	t.Setenv("REPUTE_DEFAULT_CHAIN", "137")
	c, err := loadWith(t, file, "--listen", "flag:1")
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "flag:1" || c.DefaultChain != 137 || c.LogFormat != "json" || c.LogLevel != "info" {
		t.Errorf("got listen %s, default chain %d, log format %s, log level %s", c.Listen, c.DefaultChain, c.LogFormat, c.LogLevel)
	}
}

func TestConfigChains(t *testing.T) {
	const file = `chains:
  - name: mine
    id: 31337
    identity: "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"
    reputation: "0x8004baa17c55a88189ae136b182e5fda19de9b63"
    start_block: 7
    rpc: http://127.0.0.1:8545
`
	c, err := loadWith(t, file)
	if err != nil {
		t.Fatal(err)
	}
	chains, err := c.followed()
	if err != nil || len(chains) != 1 || chains[0].ID != 31337 || chains[0].StartBlock != 7 {
		t.Fatalf("got %+v, %v", chains, err)
	}
	c, err = loadWith(t, file, "--chain", "base", "--rpc", "https://base.example", "--chain", "mine", "--rpc", "http://other.example")
	if err != nil {
		t.Fatal(err)
	}
	chains, err = c.followed()
	if err != nil || len(chains) != 2 || chains[0].ID != 8453 || chains[0].StartBlock == 0 || !slices.Equal(chains[1].RPC, []string{"http://other.example"}) || chains[1].StartBlock != 7 {
		t.Errorf("got %+v, %v", chains, err)
	}
}

func TestConfigRefuses(t *testing.T) {
	const custom = "chains: [{name: x, id: 5, identity: \"0x8004a169fb4a3325136eb29fa0ceb6d2e539a432\", reputation: \"0x12\", rpc: \"http://h\"}]"
	cases := []struct{ name, file, field, args string }{
		{"unknown key", "lisen: x", "config", ""},
		{"not YAML", "a: [", "config", ""},
		{"unknown role", "roles: [indexer, cook]", "roles", ""},
		{"unknown log level", "log_level: loud", "log_level", ""},
		{"lease out of range", "lease: 1ms", "lease", ""},
		{"unknown chain", "", "chain", "--chain nowhere --rpc http://h"},
		{"rpc without chain", "", "rpc", "--rpc http://h"},
		{"chain without rpc", "", "rpc", "--chain base"},
		{"chain twice", "", "chains", "--chain base --rpc http://a --chain 8453 --rpc http://b"},
		{"bad address", custom, "reputation", ""},
		{"wrong id of a known chain", "chains: [{name: base, id: 1, rpc: \"http://h\"}]", "id", ""},
		{"missing file", "", "config", "--config /nonexistent.yaml"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := loadWith(t, c.file, strings.Fields(c.args)...)
			if err == nil {
				_, err = got.followed()
			}
			var input *repute.InputError
			if !errors.As(err, &input) || input.Field != c.field || input.Hint == "" {
				t.Errorf("got %v, want an error naming %s with a hint", err, c.field)
			}
		})
	}
}

func TestWrongUsageExitsTwo(t *testing.T) {
	for _, args := range [][]string{
		{"serve"},
		{"serve", "--chain", "base"},
		{"import", "nofile.json", "--chain", "ethereum"},
		{"import", "nofile.json"},
		{"dump"},
	} {
		var stderr bytes.Buffer
		if code := run(context.Background(), args, io.Discard, &stderr); code != 2 {
			t.Errorf("%v: exit code %d, says %s", args, code, &stderr)
		}
	}
}
