package oafagent_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/handler"
	"repute/agent/llm"
	"repute/agent/llm/oafagent"
	"repute/internal/modeltest"
	"repute/manifest/oaf"
)

const reviewer = `---
name: "Reviewer"
vendorKey: "acme"
agentKey: "reviewer"
version: "1.0.0"
slug: "acme/reviewer"
description: "Reviews code for quality and best practices, with all the care that it needs."
author: "@acme"
license: "MIT"
tags: ["review"]
agents:
  - {vendor: acme, agent: helper, version: "1.0.0"}
harnessConfig:
  repute: {agentId: 7, chain: 1, maxCostUsd: 0.25}
---

You review code.
`

// write writes agents below a directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		ok(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		ok(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// An agent is read with the agents beside it, and nothing outside of their directory.
func TestRead(t *testing.T) {
	helper := strings.NewReplacer("reviewer", "helper", "  - {vendor: acme, agent: helper, version: \"1.0.0\"}",
		"  []").Replace(reviewer)
	dir := write(t, map[string]string{"reviewer/AGENTS.md": reviewer, "helper/AGENTS.md": helper})
	a, err := oafagent.Read(filepath.Join(dir, "reviewer"))
	ok(t, err)
	if family := a.Graph(); len(family) != 2 || family[1].ID() != "acme/helper" {
		t.Errorf("%d agents", len(family))
	}
	s, err := oafagent.SettingsOf(a)
	ok(t, err)
	if b, err := s.Budget(); err != nil || b.Cost != 250_000 || s.Identity() != "1:7" {
		t.Errorf("%+v, %+v, %v", s, b, err)
	}
	for _, bad := range []string{"absent", "."} {
		if _, err := oafagent.Read(filepath.Join(dir, bad)); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	a.Harness["repute"] = json.RawMessage(`{"maxCostUsd": "much"}`)
	if _, err := oafagent.SettingsOf(a); !errors.Is(err, repute.ErrInvalid) {
		t.Error(err)
	}
}

// A capability answers with the model's text: as it is where it is JSON, else in an object.
func TestCapability(t *testing.T) {
	for text, want := range map[string]string{"It is fine.": `{"text":"It is fine."}`,
		` {"grade": 1} `: `{"grade": 1}`} {
		a, err := prepare(t, modeltest.New(modeltest.Turn{Text: text}), &oaf.Agent{Slug: "a/b", Body: "x"}, nil)
		ok(t, err)
		got, err := (&oafagent.Capability{Agent: a}).Run(t.Context(),
			capability.Call{Input: json.RawMessage(`{"code":"x"}`)})
		if ok(t, err); string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What goes wrong is an error of a handler, and the budget of the call ends a loop.
func TestCapabilityFails(t *testing.T) {
	loop := call("skill", `{"name":"sums"}`)
	loop.Input, loop.Output = 5000, 100
	for name, c := range map[string]struct {
		turn modeltest.Turn
		kind error
	}{"loop": {loop, handler.ErrFailed}, "429": {modeltest.Turn{Status: 429}, repute.ErrUnavailable},
		"400": {modeltest.Turn{Status: 400}, handler.ErrFailed}} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.New(c.turn)
			a, err := prepare(t, s, withSkill(), nil)
			ok(t, err)
			_, err = (&oafagent.Capability{Agent: a, Budget: llm.Budget{Tokens: 16_000}}).Run(t.Context(),
				capability.Call{Input: json.RawMessage(`{}`)})
			if !errors.Is(err, c.kind) {
				t.Errorf("%v, want %v", err, c.kind)
			}
			if n := len(s.Seen()); name == "loop" && (n < 2 || n > 3) {
				t.Errorf("%d calls of 5100 tokens with a budget of 16000", n)
			}
		})
	}
}

// One client's words are in the memory of that client alone.
func TestCapabilityMemory(t *testing.T) {
	def := &oaf.Agent{Slug: "acme/a", Body: "x", Memory: &oaf.Memory{Type: oaf.MemoryEditable,
		Blocks: []oaf.MemoryBlock{{Label: "user"}}}}
	s := &modeltest.Server{Script: func(n int, _ *modeltest.Request) modeltest.Turn {
		switch n {
		case 0:
			return call("memory_edit", `{"label":"user","text":"Ann's secret"}`)
		case 2, 4, 6:
			return call("memory_search", `{"query":"secret"}`)
		}
		return modeltest.Turn{Text: "end"}
	}}
	db := memory(t)
	a, err := prepare(t, s, def, func(o *oafagent.Options) { o.DB = db })
	ok(t, err)
	for i, client := range []common.Address{{1}, {1}, {2}, {}} {
		_, err := (&oafagent.Capability{Agent: a}).Run(t.Context(), capability.Call{Client: client, RequestID: "r",
			Input: json.RawMessage(`{}`), Time: time.Now()})
		ok(t, err)
		if i == 0 {
			continue
		}
		seen := s.Seen()
		if got, own := strings.Contains(last(seen[len(seen)-1]),
			"Ann's secret"), client == (common.Address{1}); got != own {
			t.Errorf("client %s finds %q", client, last(seen[len(seen)-1]))
		}
	}
}

var _ agent.Handler = (*oafagent.Capability)(nil)
