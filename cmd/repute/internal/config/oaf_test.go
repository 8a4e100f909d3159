package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"repute"
)

// The file of models and agents is read strictly, with directories relative to it.
func TestOAF(t *testing.T) {
	const good = "models: {default: m, table: {m: {provider: openai, model: x, key: \"file:keys/m\"}}}\n"
	for text, field := range map[string]string{
		good + "agents: [{dir: a}, {dir: /b, programs: true, env: [X]}]":     "",
		"agents: [{programs: true}]":                                         "orchestrator.oaf.agents.0.dir",
		"agents: [{dir: a, program: true}]":                                  "orchestrator.oaf",
		"models: {default: absent}":                                          "orchestrator.oaf.models.default",
		"models: {table: {m: {provider: openai, model: x, key: sk-secret}}}": "orchestrator.oaf.models.table.m.key",
		"- x": "orchestrator.oaf",
	} {
		path := filepath.Join(t.TempDir(), "oaf.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &Config{}
		c.Orchestrator.OAF = path
		f, err := c.OAF()
		if field != "" {
			if !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), field) ||
				strings.Contains(err.Error(),
					"sk-secret") {
				t.Errorf("%s: %v, want %s", text, err, field)
			}
			continue
		}
		if err != nil || f.Agents[0].Dir != filepath.Join(filepath.Dir(path),
			"a") || f.Models.Table["m"].Key != "file:"+filepath.Join(filepath.Dir(path), "keys/m") ||
			f.Agents[1].Dir != "/b" || !f.Agents[1].Programs {
			t.Errorf("%+v, %v", f, err)
		}
	}
	if f, err := (&Config{}).OAF(); err != nil || len(f.Agents) != 0 {
		t.Errorf("no file: %+v, %v", f, err)
	}
}
