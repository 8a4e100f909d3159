package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"repute"
	"repute/agent/llm"
)

// Bounds of the limits of a program.
const (
	maxMemory = 1 << 20 // MiB
	maxCPU    = 300     // seconds: no run takes longer
)

// check refuses a handler that cannot do work. The error joins all that is wrong below a field.
func (h *Handler) check(field string) error {
	kinds := []string{}
	for _, k := range []struct {
		name string
		is   bool
	}{{"exec", len(h.Exec) > 0}, {"http", h.HTTP != ""}, {"mcp", h.MCP != nil}, {"task", h.Task != nil},
		{"oaf", h.OAF != nil}} {
		if k.is {
			kinds = append(kinds, k.name)
		}
	}
	if len(kinds) != 1 {
		what := "names no work"
		if len(kinds) > 1 {
			what = "names " + strings.Join(kinds, " and ")
		}
		return repute.Invalid(field, what, "one of exec, http, mcp, task and oaf")
	}
	wrong := []error{h.checkProgram(field)}
	switch kinds[0] {
	case "http":
		wrong = append(wrong, checkURL(field+".http", h.HTTP))
	case "mcp":
		wrong = append(wrong, h.MCP.check(field+".mcp"))
	case "task":
		wrong = append(wrong, h.Task.check(field+".task"))
	case "oaf":
		_, err := h.OAF.Budget(field + ".oaf")
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// checkProgram refuses members of programs where the handler has none, and limits out of range.
func (h *Handler) checkProgram(field string) error {
	exec := len(h.Exec) > 0
	program := exec || h.MCP != nil && len(h.MCP.Command) > 0
	switch {
	case exec && h.Exec[0] == "":
		return repute.Invalid(field+".exec", "names no program", "its path and arguments")
	case !program && (h.Dir != "" || len(h.Env) > 0):
		return repute.Invalid(field, "has dir or env without a program", "exec or mcp.command")
	case !exec && (h.Memory != 0 || h.CPU != 0):
		return repute.Invalid(field, "has memory or cpu without exec", "limits of exec alone")
	case exec && (h.Memory < 1 || h.Memory > maxMemory):
		return repute.Invalid(field+".memory", fmt.Sprintf("%d is out of range", h.Memory),
			fmt.Sprintf("1 to %d MiB", maxMemory))
	case exec && (h.CPU <= 0 || h.CPU > maxCPU):
		return repute.Invalid(field+".cpu", fmt.Sprintf("%g is out of range", float64(h.CPU)),
			fmt.Sprintf("above 0, %d seconds at most", maxCPU))
	}
	return nil
}

// check refuses a tool that cannot be called.
func (m *MCP) check(field string) error {
	program := len(m.Command) > 0 && m.Command[0] != ""
	switch {
	case program == (m.URL != ""):
		return repute.Invalid(field, "names no server, or two", "url or command")
	case m.Tool == "":
		return repute.Invalid(field+".tool", "is missing", "the name of a tool of the server")
	case program && m.TokenEnv != "":
		return repute.Invalid(field+".token_env", "is of url alone", "env of the handler for a program")
	case program:
		return nil
	}
	return checkURL(field+".url", m.URL)
}

// Budget is what one call of the agent may use. repute.ErrInvalid: it is malformed, or the agent has no directory.
func (o *OAF) Budget(field string) (b llm.Budget, err error) {
	switch {
	case o.Dir == "":
		return b, repute.Invalid(field+".dir", "is missing", "a directory with an AGENTS.md")
	case o.MaxTokens < 0:
		return b, repute.Invalid(field+".max_tokens", "is negative", "1 or more, or 0 for no bound")
	}
	b.Tokens = o.MaxTokens
	if o.MaxCostUSD != "" {
		b.Cost, err = repute.ParseDollars(field+".max_cost_usd", string(o.MaxCostUSD))
	}
	return b, err
}

// check refuses a task that cannot be submitted.
func (t *Task) check(field string) error {
	wrong := []error{checkURL(field+".url", t.URL)}
	if t.TokenEnv == "" {
		wrong = append(wrong, repute.Invalid(field+".token_env", "is missing",
			"the name of a variable of the environment"))
	}
	if err := t.Budget.Check(); err != nil {
		wrong = append(wrong, fmt.Errorf("%s.budget: %w", field, err))
	}
	if len(t.Tags) > 16 {
		wrong = append(wrong, repute.Invalid(field+".tags", "are too many", "at most 16"))
	}
	return errors.Join(wrong...)
}

// checkURL refuses a text that is no URL of HTTP. The error shows no path, which may be secret.
func checkURL(field, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return repute.Invalid(field, "is no URL", "https://host/path")
	}
	return nil
}
