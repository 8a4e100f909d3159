package modelfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/agent/llm/modelfile"
	"repute/internal/strictjson"
)

const file = `default: sonnet
table:
  sonnet: {provider: anthropic, model: claude-sonnet-4-5, key: "env:KEY", input_usd: 3, output_usd: "15"}
  local: {provider: openai, model: tiny, base_url: "http://127.0.0.1:1/v1", input_usd: 0.15}
`

// parse reads a table as the files that contain one do.
func parse(text []byte) (*modelfile.Table, error) {
	raw, err := strictjson.FromYAML("models", text, "default and table")
	if err != nil {
		return nil, err
	}
	table := &modelfile.Table{}
	document := strictjson.Document{Name: "models", Unknown: "is not known", Hint: "default, table"}
	if err := document.Decode(raw, table); err != nil {
		return nil, err
	}
	return table, table.Check("models")
}

// Agents find models by alias, by the provider's name and by default.
func TestFind(t *testing.T) {
	table, err := parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{{"", "", "claude-sonnet-4-5"}, {"", "sonnet", "claude-sonnet-4-5"},
		{"anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5"}, {"openai", "tiny", "tiny"}, {"", "local", "tiny"},
		{"openai", "sonnet", ""}, {"", "gpt-9", ""}} {
		e, err := table.Find(c[0], c[1])
		if e.Model != c[2] || (c[2] == "") != errors.Is(err, repute.ErrNotFound) {
			t.Errorf("%q %q: %q, %v", c[0], c[1], e.Model, err)
		}
	}
	_, err = table.Find("openai", "sonnet")
	if err == nil || !strings.Contains(err.Error(),
		`no "sonnet" of provider "openai": one of local (openai), sonnet (anthropic)`) {
		t.Errorf("another provider's model: %v", err)
	}
	e := table.Table["sonnet"]
	if got := e.Cost(1_000_000, 100_000); got.String() != "4.5" {
		t.Errorf("cost %s", got)
	}
	if l := table.Table["local"]; l.Cost(1, 0) != 1 {
		t.Errorf("a cost is rounded up: %d", l.Cost(1, 0))
	}
}

// What is wrong is named, and a key that somebody wrote in the open is not repeated.
func TestRefused(t *testing.T) {
	for text, field := range map[string]string{
		`table: {a: {provider: other, model: m, key: "env:K"}}`:                          "models.table.a.provider",
		`table: {a: {provider: openai, key: "env:K"}}`:                                   "models.table.a.model",
		`table: {a: {provider: openai, model: m}}`:                                       "models.table.a.key",
		`table: {a: {provider: openai, model: m, key: sk-secret}}`:                       "models.table.a.key",
		`table: {a: {provider: openai, model: m, base_url: "http://user:sk-secret@h/"}}`: "models.table.a.base_url",
		`table: {a: {provider: openai, model: m, base_url: "ftp://h/"}}`:                 "models.table.a.base_url",
		`{default: b, table: {a: {provider: openai, model: m, key: "env:K"}}}`:           "models.default",
		`table: {a: {provider: openai, model: m, key: "env:K", input_usd: -1}}`:          "models",
		`table: {a: {provider: openai, model: m, key: "env:K", input_usd: 1001}}`:        "models",
		`table: {a: {provider: openai, model: m, key: "env:K", temperature: 1}}`:         "models",
		`- a`: "models",
	} {
		_, err := parse([]byte(text))
		if !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), field) || strings.Contains(err.Error(),
			"sk-secret") {
			t.Errorf("%s: %v, want %s", text, err, field)
		}
	}
}

// Secrets come from the environment or a file that nobody else reads.
func TestSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("sk-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{"KEY": "sk-env"}[name] }
	for key, want := range map[string]string{"env:KEY": "sk-env", "file:" + path: "sk-file", "": ""} {
		e := modelfile.Entry{Key: key}
		if got, err := e.Secret(getenv); got != want || err != nil {
			t.Errorf("%s: %q, %v", key, got, err)
		}
	}
	e := modelfile.Entry{Key: "env:ABSENT"}
	if _, err := e.Secret(getenv); !errors.Is(err, repute.ErrInvalid) {
		t.Error(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	e = modelfile.Entry{Key: "file:" + path}
	if _, err := e.Secret(getenv); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a file that others read: %v", err)
	}
}

// More tokens never cost less, and no number of tokens overflows.
func TestCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := modelfile.Entry{InputUSD: modelfile.Price(rapid.Int64Range(0, 1e9).Draw(t, "in")),
			OutputUSD: modelfile.Price(rapid.Int64Range(0, 1e9).Draw(t, "out"))}
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		if less := e.Cost(min(a, b), 5); less < 0 || less > e.Cost(max(a, b), 5) {
			t.Fatalf("cost of %d is %d, of %d %d", min(a, b), less, max(a, b), e.Cost(max(a, b), 5))
		}
	})
}

// No bytes make the reader of tables panic, and what it accepts it can find.
func FuzzParse(f *testing.F) {
	f.Add([]byte(file))
	f.Add([]byte(`{"table":{"a":null}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := parse(text)
		if err != nil {
			return
		}
		for name := range table.Table {
			if _, err := table.Find("", name); err != nil && name != "" {
				t.Errorf("%q is in the table: %v", name, err)
			}
		}
	})
}
