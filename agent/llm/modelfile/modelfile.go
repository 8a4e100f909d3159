// Package modelfile has the table of language models: the provider, model, address, key and price of a name such as
// sonnet, which agents use. The table is a part of the operator's files (agent.yaml, and that of the orchestrator);
// Table.Check judges it where it is read.
//
// Agents name a model by an alias of the table or by provider and model, and get one that the operator listed or none.
// A key is a reference to a variable or a file: Entry.Secret reads it when a client is made, and no error has its text.
// Prices are dollars for a million tokens, and Entry.Cost rounds up, so that a budget is never exceeded by rounding.
// The package opens no connection.
package modelfile

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"repute"
	"repute/orchestrator/wallet/keys"
)

// Table names the models that agents may use.
type Table struct {
	Default string           `json:"default" doc:"name of the model of agents that name none"`
	Table   map[string]Entry `json:"table" doc:"models by name: sonnet, opus, haiku, or any other"`
}

// Entry is one model.
type Entry struct {
	Provider  string `json:"provider" doc:"anthropic (Messages), openai (Chat Completions, also of other servers) or google (Gemini)"`
	Model     string `json:"model" doc:"the provider's name of the model"`
	BaseURL   string `json:"base_url" doc:"address of the API, http or https; the provider's own. A server of its own is asked without a key if none is given"`
	Key       string `json:"key" doc:"secret: env:NAME or file:PATH"`
	InputUSD  Price  `json:"input_usd" doc:"dollars for a million tokens that the model reads; counts against maxCostUsd"`
	OutputUSD Price  `json:"output_usd" doc:"dollars for a million tokens that the model writes"`
	// MaxTokens bounds one answer where the agent asks for more; 0 for no bound.
	MaxTokens int64 `json:"max_tokens" doc:"bound of the tokens of one answer, whatever the agent asks for; 0: none"`
}

// Providers whose API a client exists for.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Google    = "google"
)

const (
	maxModels = 200
	maxKey    = 8 << 10 // bytes of a secret
	// perMillion is the number of tokens that a Price is for.
	perMillion = 1_000_000
)

// Check refuses a table that cannot be used. field is the table's place in its file.
func (t *Table) Check(field string) error {
	if len(t.Table) > maxModels {
		return repute.Invalid(field+".table", fmt.Sprintf("has %d models", len(t.Table)), fmt.Sprintf("at most %d",
			maxModels))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Table)) {
		e := t.Table[name]
		if err := e.check(field + ".table." + name); err != nil {
			return err
		}
	}
	if _, ok := t.Table[t.Default]; !ok && t.Default != "" {
		return repute.Invalid(field+".default", fmt.Sprintf("%.80q is not in the table", t.Default), t.names())
	}
	return nil
}

// names lists the names of the table with their providers for errors.
func (t *Table) names() string {
	if len(t.Table) == 0 {
		return "add models to the table"
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(t.Table)) {
		out = append(out, name+" ("+t.Table[name].Provider+")")
	}
	return "one of " + strings.Join(out, ", ")
}

// check refuses an entry that no client can use. The error never repeats a key.
func (e *Entry) check(field string) error {
	switch e.Provider {
	case Anthropic, OpenAI, Google:
	default:
		return repute.Invalid(field+".provider", fmt.Sprintf("%.40q has no client", e.Provider),
			strings.Join([]string{Anthropic, OpenAI, Google}, ", "))
	}
	if e.Model == "" {
		return repute.Invalid(field+".model", "is missing", "the provider's name of the model")
	}
	if e.MaxTokens < 0 {
		return repute.Invalid(field+".max_tokens", "is negative", "0 or more")
	}
	if kind, rest, _ := strings.Cut(e.Key, ":"); e.Key != "" && (kind != "env" && kind != "file" || rest == "") {
		return repute.Invalid(field+".key", "is no reference to a secret", "env:NAME or file:PATH")
	}
	if e.BaseURL == "" {
		if e.Key == "" {
			return repute.Invalid(field+".key", "is missing",
				"env:NAME or file:PATH, or the base_url of a server that needs none")
		}
		return nil
	}
	u, err := url.Parse(e.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return repute.Invalid(field+".base_url", "is no address of an API",
			"https://host/path without a password or a query")
	}
	return nil
}

// Find returns the model that an agent names: by a name of the table, or by provider and model. Empty names
// are the default. repute.ErrNotFound: the table has no such model; the error lists the names.
func (t *Table) Find(provider, name string) (Entry, error) {
	if name == "" && provider == "" {
		name = t.Default
	}
	if e, ok := t.Table[name]; ok && (provider == "" || provider == e.Provider) {
		return e, nil
	}
	for _, known := range slices.Sorted(maps.Keys(t.Table)) {
		if e := t.Table[known]; e.Model == name && (provider == "" || provider == e.Provider) {
			return e, nil
		}
	}
	if name == "" {
		return Entry{}, fmt.Errorf("the agent names no model and the table of models has no default: %w",
			repute.ErrNotFound)
	}
	of := ""
	if provider != "" {
		of = fmt.Sprintf(" of provider %.80q", provider)
	}
	return Entry{}, fmt.Errorf("the table of models has no %.80q%s: %s: %w", name, of, t.names(), repute.ErrNotFound)
}

// Secret reads the key; empty where the entry names none. The error never has the key's text.
func (e *Entry) Secret(getenv func(string) string) (string, error) {
	kind, rest, _ := strings.Cut(e.Key, ":")
	switch kind {
	case "env":
		if v := getenv(rest); v != "" {
			return v, nil
		}
		return "", repute.Invalid("key", fmt.Sprintf("the variable %.80s of the environment is empty", rest),
			"the provider's key")
	case "file":
		raw, err := keys.SecretFile("key", rest, maxKey)
		return strings.TrimSpace(string(raw)), err
	}
	return "", nil
}

// Locate makes the relative paths of secrets follow the directory of the file that has the table.
func (t *Table) Locate(dir string) {
	for name, e := range t.Table {
		e.Key = Located(e.Key, dir)
		t.Table[name] = e
	}
}

// Located returns a reference to a secret with a relative path of file:PATH resolved against dir. Other references are
// returned unchanged.
func Located(reference, dir string) string {
	kind, path, _ := strings.Cut(reference, ":")
	if kind != "file" || path == "" || filepath.IsAbs(path) {
		return reference
	}
	return "file:" + filepath.Join(dir, path)
}

// Cost is what tokens cost, rounded up. It never decreases with more tokens.
func (e *Entry) Cost(input, output int64) repute.Micros {
	input, output = min(max(input, 0), maxTokens), min(max(output, 0), maxTokens)
	return repute.Micros((input*int64(e.InputUSD) + output*int64(e.OutputUSD) + perMillion - 1) / perMillion)
}

// maxTokens keeps a cost within 64 bits at the highest price.
const maxTokens = 1 << 31

// Price is what a million tokens cost.
type Price repute.Micros

// maxPrice is the highest price, 1,000 dollars.
const maxPrice = 1_000_000_000

// UnmarshalJSON reads a number of dollars, or a text of one, with at most six decimals.
func (p *Price) UnmarshalJSON(raw []byte) error {
	v, err := repute.ParseDollars("price", strings.Trim(string(raw), `"`))
	if err != nil || v > maxPrice {
		return repute.Invalid("price", fmt.Sprintf("%.40q is no price", raw),
			"dollars from 0 to 1000 with at most six decimals")
	}
	*p = Price(v)
	return nil
}
