package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/pflag"

	"repute"
	"repute/intent/sentence"
	"repute/trust/source"
)

// loadWith parses args and merges; file, when not empty, becomes the YAML file.
func loadWith(t *testing.T, file string, args ...string) (Config, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "repute.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	var f Flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Serving(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Load()
}

func TestConfigPrecedence(t *testing.T) {
	const file = "listen: file:1\ndefault_chain: 10\n"
	t.Setenv("REPUTE_LISTEN", "env:1")
	t.Setenv("REPUTE_DEFAULT_CHAIN", "137")
	t.Setenv("REPUTE_LOG_FORMAT", "json")
	c, err := loadWith(t, file, "--listen", "flag:1")
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "flag:1" || c.DefaultChain != 137 || c.LogFormat != "json" || c.LogLevel != "info" {
		t.Errorf("got listen %s, default chain %d, log format %s, log level %s", c.Listen, c.DefaultChain, c.LogFormat,
			c.LogLevel)
	}
}

// The lease and the embedder are set by environment alone.
func TestEnvironmentAlone(t *testing.T) {
	t.Setenv("REPUTE_LEASE", "20s")
	c, err := loadWith(t, "")
	if err != nil || c.Lease != 20*time.Second {
		t.Errorf("%s, %v", c.Lease, err)
	}
	for _, wrong := range []string{"soon", "1ms", "2m"} {
		t.Setenv("REPUTE_LEASE", wrong)
		if _, err := loadWith(t, ""); err == nil || !strings.Contains(err.Error(), "REPUTE_LEASE") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	own, err := c.Embedder()
	if err != nil || own.Dim() != sentence.Dim {
		t.Errorf("%v, %v", own, err)
	}
	t.Setenv("REPUTE_EMBEDDER_URL", "http://127.0.0.1:1/v1")
	if _, err := c.Embedder(); err == nil || !strings.Contains(err.Error(), "REPUTE_EMBEDDER_DIM") {
		t.Errorf("without dimensions: %v", err)
	}
	t.Setenv("REPUTE_EMBEDDER_DIM", "8")
	t.Setenv("REPUTE_EMBEDDER_MODEL", "small")
	if e, err := c.Embedder(); err != nil || e.Dim() != 8 || e.ID() == own.ID() {
		t.Errorf("%v, %v", e, err)
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
	chains, err := c.Followed()
	if err != nil || len(chains) != 1 || chains[0].ID != 31337 || chains[0].StartBlock != 7 {
		t.Fatalf("got %+v, %v", chains, err)
	}
	c, err = loadWith(t, file, "--chain", "base", "--rpc", "https://base.example", "--chain", "mine", "--rpc",
		"http://other.example")
	if err != nil {
		t.Fatal(err)
	}
	chains, err = c.Followed()
	if err != nil || len(chains) != 2 || chains[0].ID != 8453 || chains[0].StartBlock == 0 ||
		!slices.Equal(chains[1].RPC, []string{"http://other.example"}) || chains[1].StartBlock != 7 {
		t.Errorf("got %+v, %v", chains, err)
	}
}

func TestConfigRefuses(t *testing.T) {
	const custom = "chains: [{name: x, id: 5, identity: \"0x8004a169fb4a3325136eb29fa0ceb6d2e539a432\", reputation: \"0x12\", rpc: \"http://h\"}]"
	cases := []struct{ name, file, field, args string }{
		{"unknown key", "lisen: x", "config", ""},
		{"not YAML", "a: [", "config", ""},
		{"no such file of sources", "trust: {sources: /nonexistent.yaml}", "trust.sources", ""},
		{"empty sources", "trust: {sources: ''}", "trust.sources", ""},
		{"a file of sources that is none", "trust: {sources: config_test.go}", "trust.sources", ""},
		{"log format in the file", "log_format: json", "config", ""},
		{"unknown role", "roles: [indexer, cook]", "roles", ""},
		{"lease in the file", "lease: 10s", "config", ""},
		{"no directory of issuers", "documents: {issuers: config_test.go}", "documents.issuers", ""},
		{"unknown chain", "", "chain", "--chain nowhere --rpc http://h"},
		{"rpc without chain", "", "rpc", "--rpc http://h"},
		{"chain without rpc", "", "rpc", "--chain base"},
		{"chain twice", "", "chains", "--chain base --rpc http://a --chain 8453 --rpc http://b"},
		{"bad address", custom, "reputation", ""},
		{"wrong id of a known chain", "chains: [{name: base, id: 1, rpc: \"http://h\"}]", "id", ""},
		{"missing file", "", "config", "--config /nonexistent.yaml"},
		{"another database", "database: mysql://u:secret@h/x", "database", ""},
		{"a broken database URL", "database: postgres://u:secret@h:port/x", "database", ""},
		{"an allowed host with scheme", "allow_hosts: [http://127.0.0.1:9000]", "allow_hosts", ""},
		{"a host of agents with scheme", "orchestrator: {agent_hosts: [http://127.0.0.1:9000]}",
			"orchestrator.agent_hosts",
			""},
		{"who may do more than read", "orchestrator: {roles: {\"*\": [ask]}}", "orchestrator.roles.*", ""},
		{"a short token of a person", "orchestrator: {tokens: {ann: secret}}", "orchestrator.tokens.ann", ""},
		{"a role of nobody", "orchestrator: {roles: {bob: [ask]}}", "orchestrator.roles.bob", ""},
		{"a public URL without host", "orchestrator: {public_url: repute}", "orchestrator.public_url", ""},
		{"an allowed host with path", "", "allow_hosts", "--allow-host 127.0.0.1:9000/x"},
		{"a gateway that is no URL", "ipfs_gateways: [foo]", "ipfs_gateways", ""},
		{"a gateway with a password", "ipfs_gateways: [https://u:secret@gw.example]", "ipfs_gateways", ""},
		{"a gateway with a token", "ipfs_gateways: [https://gw.example/?token=secret]", "ipfs_gateways", ""},
		{"two own nodes", "ipfs_gateways: [http://a:8080, http://b:8080]", "ipfs_gateways", ""},
		{"a key in place of a reference", "signing: {key: secret0123}", "signing.key", ""},
		{"one contract for two", strings.Replace(custom, "0x12", identityHex, 1), "reputation", ""},
		{"a chain without registries", "chains: [{name: x, id: 5, rpc: \"http://h\"}]", "chain", ""},
		{"a chain without reputation", "chains: [{name: x, id: 5, identity: \"" + identityHex +
			"\", rpc: \"http://h\"}]",
			"reputation", ""},
		{"an example for a URL", "", "rpc", "--chain base --rpc https://…"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := loadWith(t, c.file, strings.Fields(c.args)...)
			if err == nil {
				_, err = got.Followed()
			}
			var input *repute.InputError
			if !errors.As(err, &input) || input.Field != c.field || input.Hint == "" ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want an error naming %s with a hint", err, c.field)
			}
		})
	}
}

// What is wrong in the file is told by line and key, in no words of the program's own.
func TestConfigMistakes(t *testing.T) {
	for file, want := range map[string]string{
		"lisen: x":                       "line 1: there is no key lisen",
		"\nrate: often":                  "line 2: rate is text, wanted is a number",
		"roles: {a: 1}":                  "line 1: roles is a group of keys, wanted is a list",
		"chains: base":                   "line 1: chains is text, wanted is a list of entries, each a group of keys",
		"chains:\n  - id: -3":            "line 2: chains[0].id is a number, wanted is a whole number, 0 or more",
		"chains:\n  - id: 3\n  - 4":      "line 3: chains[1] is a number, wanted is a group of keys",
		"chains:\n  - rpc: {a: b}":       "line 2: chains[0].rpc is a group of keys, wanted is a list",
		"rate: x\ndefault_chain: y":      "line 1: rate is text, wanted is a number; line 2: default_chain is text, wanted is a whole number, 0 or more",
		"chains:\n  - validations: some": "any, listed nor a list",

		"orchestrator: {wallets: [{identities: [a]}]}": "wallets[0].identities is a list, wanted is a group of keys",
	} {
		_, err := loadWith(t, file)
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "config.") || strings.Contains(err.Error(), "!!") {
			t.Errorf("%q: got %v, want %s", file, err, want)
		}
	}
}

// A chain that another source knows goes by its name or id alone.
func TestChainsThatOthersKnow(t *testing.T) {
	known := repute.Chain{ID: 31337, Name: "mine", Identity: common.HexToAddress(identityHex),
		Reputation:  common.HexToAddress(reputationHex),
		Validations: []common.Address{{7}}, StartBlock: 9}
	for _, name := range []string{"mine", "31337"} {
		c, err := loadWith(t, "", "--chain", name, "--rpc", "http://h")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Followed(); err == nil {
			t.Fatalf("%s is known without being told", name)
		}
		c.Complete(repute.Chain{ID: 5, Name: "other"}, known)
		if chains, err := c.Followed(); err != nil || !reflect.DeepEqual(chains[0].Chain, known) {
			t.Errorf("%s: got %+v, %v", name, chains, err)
		}
		c.DefaultChain = 5
		var input *repute.InputError
		if err := c.CheckDefault(nil); !errors.As(err, &input) || input.Field != "default_chain" {
			t.Errorf("an unknown default chain: %v", err)
		}
		if err := c.CheckDefault([]repute.ChainStatus{{Chain: repute.Chain{ID: 5}}}); err != nil {
			t.Errorf("a stored default chain: %v", err)
		}
	}
}

func TestWalletsRefused(t *testing.T) {
	for field, entry := range map[string]string{
		"orchestrator.wallets[0].chain":               `{treasury: "0x00000000000000000000000000000000000000aa"}`,
		"orchestrator.wallets[0].treasury":            `{chain: base, treasury: "0x1"}`,
		"orchestrator.wallets[0].max_fee_per_gas":     `{chain: base, max_fee_per_gas: "5 finney"}`,
		"orchestrator.wallets[0].max_transaction_fee": `{chain: base, max_transaction_fee: "-1"}`,
		"orchestrator.wallets[0].owner":               `{chain: base, owner: "http://127.0.0.1#none"}`,
		"orchestrator.wallets[0].operator":            `{chain: base, operator: 0123456789abcdef}`,
		"orchestrator.wallets[0].identities.payer":    `{chain: base, identities: {payer: "env:A#none"}}`,
		"orchestrator.wallets[0].identities.safe":     `{chain: base, identities: {safe: "keystore:key.json"}}`,
		"config": `{chain: base, operator: {key: abc}}`,
	} {
		var wrong *repute.InputError
		if _, err := loadWith(t, "orchestrator:\n  wallets:\n    - "+entry+"\n"); !errors.As(err, &wrong) ||
			wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	c := Config{Orchestrator: orchestratorConfig{Wallets: []walletConfig{{Chain: "nowhere"}}}}
	if _, err := c.Wallets(); err == nil || !strings.Contains(err.Error(), "orchestrator.wallets[0].chain") {
		t.Errorf("an unknown chain: %v", err)
	}
	c.Orchestrator.Wallets[0].Chain = "424242"
	if list, err := c.Wallets(); err != nil || list[0].ChainID != 424242 {
		t.Errorf("a chain by its id: %v, %v", list, err)
	}
}

// Sources are those of the program unless the configuration names others or none.
func TestConfigSources(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sources.yaml")
	text := strings.Replace(string(source.DefaultFile()), "weight: 0.25 # no published price", "weight: 0.2", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	shipped, err := source.Default()
	if err != nil {
		t.Fatal(err)
	}
	for file, same := range map[string]bool{"": true, "trust: {sources: default}": true,
		"trust: {sources: " + path + "}": false} {
		c, err := loadWith(t, file)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := c.Trust.Policy(); err != nil || (p.Hash() == shipped.Hash()) != same {
			t.Errorf("%q: %v, another policy than wanted", file, err)
		}
	}
	c, err := loadWith(t, "trust: {sources: none}", "--chain", "base", "--rpc", "http://h", "--chain", "polygon")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Trust.Policy(); err != nil || p != nil {
		t.Errorf("none is %v, %v", p, err)
	}
	if got, err := c.Reachable(); err != nil || len(got) != 1 || len(got[8453]) != 1 {
		t.Errorf("reaches %v, %v: want Base alone", got, err)
	}
}

// A replica is for processes that only answer, and allowed_hosts has names and sites.
func TestReplicaAndSites(t *testing.T) {
	const both = "database: postgres://a/repute\ndatabase_read_url: postgres://b/repute\n"
	if c, err := loadWith(t, both+"roles: [api]\n"); err != nil || c.DatabaseRead != "postgres://b/repute" {
		t.Errorf("%+v, %v", c.DatabaseRead, err)
	}
	for _, file := range []string{both, both + "roles: [api, orchestrator]\n", both + "roles: [api, trust]\n",
		"roles: [api]\ndatabase_read_url: mysql://user:secret@b/repute\n"} {
		var wrong *repute.InputError
		if _, err := loadWith(t, file); !errors.As(err, &wrong) || wrong.Field != "database_read_url" ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", file, err)
		}
	}
	c, err := loadWith(t, `
allowed_hosts: [a.example, "https://app.example"]
orchestrator: {public_url: "https://own.example"}
`)
	if err != nil || !slices.Equal(c.Hosts(), []string{"a.example"}) ||
		!slices.Equal(c.Origins(), []string{"https://app.example", "https://own.example"}) {
		t.Errorf("%v, %v, %v", c.Hosts(), c.Origins(), err)
	}
}

// Processes share kept answers only where their answers are the same.
func TestCacheName(t *testing.T) {
	names := map[string]string{}
	for _, file := range []string{"database: postgres://a/one", "database: postgres://a/two",
		"database: postgres://a/one\ndefault_chain: 1", "database: postgres://a/one\ntrust: {sources: none}",
		"data_dir: /x"} {
		c, err := loadWith(t, file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := c.CacheName()
		if err != nil || names[name] != "" || strings.Contains(name, "postgres") {
			t.Errorf("%s: %q is that of %q, %v", file, name, names[name], err)
		}
		names[name] = file
		if again, err := c.CacheName(); err != nil || again != name {
			t.Errorf("%s: %s and %s", file, name, again)
		}
	}
}
