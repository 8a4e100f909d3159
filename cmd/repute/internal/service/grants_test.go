package service

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"repute"
	"repute/cmd/repute/internal/config"
	format "repute/manifest/oaf"
)

// A sub-agent gets nothing of what the operator gives its coordinator, but what an entry of its own gives it; a
// directory cannot take the place of another agent.
func TestGrants(t *testing.T) {
	dir := t.TempDir()
	for key, agents := range map[string]string{"main": "  - {vendor: acme, agent: helper, version: \"1.0.0\"}",
		"helper": "  []", "copy": "  []"} {
		name := key
		if key == "copy" {
			name = "main"
		}
		text := strings.NewReplacer("KEY", name, "AGENTS", agents).Replace(`---
name: "Agent"
vendorKey: "acme"
agentKey: "KEY"
version: "1.0.0"
slug: "acme/KEY"
description: "Does what it is told, with all the care that such a thing needs."
author: "@acme"
license: "MIT"
tags: ["test"]
agents:
AGENTS
---

You work.
`)
		if err := os.MkdirAll(filepath.Join(dir, key), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, key, "AGENTS.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(key string, programs bool, env ...string) config.OAFAgent {
		return config.OAFAgent{Dir: filepath.Join(dir, key), Programs: programs, Env: env}
	}
	for name, c := range map[string]struct {
		entries  []config.OAFAgent
		programs bool // of the helper
		env      []string
	}{
		"without an entry": {[]config.OAFAgent{entry("main", true, "TOKEN")}, false, nil},
		"with its own": {[]config.OAFAgent{entry("main", false), entry("helper", true, "OTHER")}, true,
			[]string{"OTHER"}},
		"with one before it": {[]config.OAFAgent{entry("helper", true), entry("main", false, "TOKEN")}, true, nil},
	} {
		got, err := grants(c.entries)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(got, func(g grant) bool { return g.def.ID() == "acme/helper" })
		if len(got) != 2 || at < 0 || got[at].entry.Programs != c.programs || !slices.Equal(got[at].entry.Env, c.env) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, err := grants([]config.OAFAgent{entry("main", true), entry("copy", true)}); !errors.Is(err,
		repute.ErrInvalid) ||
		!strings.HasPrefix(err.Error(), "orchestrator.oaf.agents.1.dir") {
		t.Error(err)
	}
}

// An error names the agent, and how a sub-agent without an entry gets what it needs.
func TestFailedGrants(t *testing.T) {
	cause := repute.Invalid("connection.type", "is stdio", "allow programs")
	for dir, want := range map[string]string{"/agents/main": "",
		"": "give it an entry of its own in orchestrator.oaf"} {
		g := grant{&format.Agent{Slug: "acme/helper"}, config.OAFAgent{Dir: dir}}
		err := g.failed(cause)
		if !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), "agent acme/helper") ||
			!strings.HasSuffix(err.Error(), want) ||
			strings.Contains(err.Error(), "orchestrator.oaf") != (want != "") {
			t.Errorf("%q: %v", dir, err)
		}
	}
}
