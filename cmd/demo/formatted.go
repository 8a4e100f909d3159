package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v4"

	"repute/internal/modeltest"
	"repute/orchestrator/control"
)

// guideSlug names the demo's agent of the Open Agent Format, as the orchestrator knows it.
const guideSlug = "demo-guide"

// guideFile is the agent's AGENTS.md, and trustSkill its skill.
const (
	guideFile = `---
name: "Guide"
vendorKey: "demo"
agentKey: "guide"
version: "1.0.0"
slug: "demo/guide"
description: "Explains what this index is for, with the help of the skill trust."
author: "@demo"
license: "MIT"
tags: ["guide"]
model: "scripted"
config:
  max_tokens: 500
harnessConfig:
  repute:
    maxTokens: 20000
---

# Guide

You explain the index to newcomers.

## How

Read the skill trust first.
`
	trustSkill = `---
name: trust
description: Says where trust comes from. Use it to explain scores.
---

Trust starts at roots and flows along good ratings.
`
)

// writeGuide writes the demo's agent of the Open Agent Format, and the file that names it and its model. It returns
// the path of that file.
func (d *demo) writeGuide() (string, error) {
	dir := filepath.Join(d.dir, "guide")
	skill := filepath.Join(dir, "skills", "trust")
	text, err := yaml.Marshal(map[string]any{"agents": []any{map[string]any{"dir": dir}},
		"models": map[string]any{"table": map[string]any{"scripted": map[string]any{"provider": "anthropic",
			"model": "scripted", "base_url": "http://" + d.model.Addr().String(), "input_usd": 3, "output_usd": 15}}}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(d.dir, "oaf.yaml")
	return file, errors.Join(os.MkdirAll(skill, 0o700), os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(guideFile),
		0o600),
		os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte(trustSkill), 0o600), os.WriteFile(file, text, 0o600))
}

// serveModel opens the port of a model that follows a script, because the demo has no account anywhere: it reads the
// skill and repeats what it says. The returned function ends it.
func (d *demo) serveModel() (stop func(), err error) {
	if d.model, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	script := &modeltest.Server{Script: func(_ int, r *modeltest.Request) modeltest.Turn {
		if r.Contains("flows along good ratings") {
			return modeltest.Turn{Text: "Trust starts at roots and flows along good ratings.", Input: 400, Output: 20}
		}
		return modeltest.Turn{Calls: []modeltest.Call{{Name: "skill", Input: `{"name":"trust"}`}}, Input: 300,
			Output: 12}
	}}
	server := &http.Server{Handler: script, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(d.model) }() // it ends with the demo
	return func() { _ = server.Close() }, nil
}

// guided is what became of the task of the guide.
type guided struct {
	taskShown
	Answer  string `json:"answer"`
	Tokens  int64  `json:"tokens"`
	CostUSD string `json:"costUsd"`
}

// guide gives the agent of the Open Agent Format a task.
func (d *demo) guide(ctx context.Context) (g guided, err error) {
	if g.taskShown, err = d.task(ctx, control.TaskRequest{Goal: "Where does trust come from?",
		Coordinator: guideSlug}); err != nil {
		return g, err
	}
	var run control.Run
	if err := d.call(ctx, demoAsk, "GET", "/v1/runs/"+g.Run, nil, &run); err != nil {
		return g, err
	}
	g.Tokens, g.CostUSD = run.Used.Tokens, run.Used.CostUSD
	if run.Summary != nil {
		g.Answer = run.Summary.Text
	}
	return g, nil
}

// check compares the guide's run with what the script of its model says.
func (g *guided) check() error {
	if want := "Trust starts at roots and flows along good ratings."; g.Answer != want || g.Tokens != 732 ||
		g.CostUSD != "0.00258" {
		return fmt.Errorf("the guide (%s) said %q with %d tokens for %s dollars, not %q with 732 for 0.00258", g.Status,
			g.Answer,
			g.Tokens, g.CostUSD, want)
	}
	return nil
}
