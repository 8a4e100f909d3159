package config_test

import (
	"errors"
	"strings"
	"testing"

	"repute"
	"repute/agent/config"
)

const file = `agent: {id: 42, key: "file:/key", rpc: https://a.example/rpc, registry: "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}
profile: {name: echo}
capabilities:
  - name: echo
    version: 1.0.0
    inputSchema: {type: object}
    outputSchema: {type: object}
    pricing: {amount: "0.001", currency: USDC}
    handler: {exec: [/bin/cat]}
    repeatable: true
`

func env(m map[string]string) func(string) string { return func(name string) string { return m[name] } }

// TestParse: what the file says, with defaults.
func TestParse(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte(file), env(nil))
	if err != nil {
		t.Fatal(err)
	}
	if c.Agent.ID != "42" || c.Agent.RPC[0] != "https://a.example/rpc" || c.Listen != "127.0.0.1:3000" ||
		c.Limits.Concurrency != 10 ||
		c.Limits.MaxBody != 10<<20 || c.Limits.Drain != 30 || c.Receipts.Days != 90 || !c.Capabilities[0].Repeatable ||
		c.Capabilities[0].Pricing[0].Amount != "0.001" || c.Capabilities[0].Handler.Exec[0] != "/bin/cat" ||
		len(c.Notes) != 0 {
		t.Errorf("%+v", c)
	}
}

// TestEnvironment: each variable of the specification wins over the file, and says so.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte(file+
		"log_level: warn\npolicy: {uri: p}\npayments: {address: x}\nlisten: 0.0.0.0:1\n"), env(map[string]string{
		"AGENT_ID": "7", "AGENT_PRIVATE_KEY": "0xsecret", "AGENT_METADATA_URI": "m", "AGENT_REGISTRY_CONTRACT": "r",
		"RPC_URL": "https://b.example,https://c.example", "INDEXER_URL": "https://i.example", "AGENT_PORT": "4000",
		"AGENT_LOG_LEVEL":       "debug",
		"AGENT_PAYMENT_ADDRESS": "a", "AGENT_POLICY_URI": "q"}))
	if err != nil {
		t.Fatal(err)
	}
	if c.Agent.ID != "7" || c.Agent.Key != "env:AGENT_PRIVATE_KEY" || c.Agent.MetadataURI != "m" ||
		c.Agent.Registry != "r" ||
		len(c.Agent.RPC) != 2 || c.Agent.Indexer != "https://i.example" || c.Listen != "0.0.0.0:4000" ||
		c.LogLevel != "debug" ||
		c.Payments.Address != "a" || c.Policy.URI != "q" {
		t.Errorf("%+v", c)
	}
	notes := strings.Join(c.Notes, "\n")
	for _, v := range config.Variables() {
		inFile := v != "AGENT_METADATA_URI" && v != "INDEXER_URL"
		if strings.Contains(notes, v+" ") != inFile {
			t.Errorf("%s: %s", v, notes)
		}
	}
	if strings.Contains(notes, "secret") {
		t.Error("a note shows the key")
	}
}

// TestWrong: errors name the member and what is allowed.
func TestWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		file + "limit: {}":                               {"limit: is not known", "limits"},
		file + "limits: {burts: 1}":                      {"limits.burts: is not known", "concurrency", "burst"},
		file + "receipts: {days: 30}":                    {"receipts.days", "90"},
		file + "payments: {promises: 3}":                 {"payments.promises", "true or false"},
		file + "listen: [":                               {"config"},
		strings.Replace(file, "repeatable", "repeat", 1): {"repeat"},
		strings.Replace(file, "exec", "exek", 1):         {"exek: is not known", "exec"},
		strings.Replace(file, "amount", "amout", 1):      {"amout"},
		"": {"agent.id", "agent.key", "agent.rpc", "profile.name", "capabilities"},
	} {
		_, err := config.Parse([]byte(text), env(nil))
		for _, w := range want {
			if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), w) {
				t.Errorf("%.40s…: %v, want %s", text[len(text)-min(len(text), 40):], err, w)
			}
		}
	}
	if _, err := config.Parse([]byte(file), env(map[string]string{"AGENT_PORT": "x"})); !errors.Is(err,
		repute.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// FuzzParse: untrusted text is refused as invalid input.
func FuzzParse(f *testing.F) {
	f.Add([]byte(file))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("? [1]: 2"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := config.Parse(text, env(nil)); err != nil && !errors.Is(err, repute.ErrInvalid) {
			t.Fatal(err)
		}
	})
}
