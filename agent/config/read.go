package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"repute"
	"repute/internal/strictjson"
)

// maxFile bounds the file, in bytes.
// A file of a hundred capabilities has some ten KiB.
const maxFile = 1 << 20

// Load reads a file, "" for none, and the environment. repute.ErrInvalid names the member or
// variable that is wrong, and what is allowed.
//
// The order is: the file, its paths, the environment, defaults, checks. A default therefore fills in only what
// neither the file nor a variable has set, and a check sees the values that count.
func Load(path string, getenv func(string) string) (*Config, error) {
	if path == "" {
		return Parse(nil, getenv)
	}
	text, err := strictjson.ReadFile("config", path, maxFile)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("config: the directory of %s: %w", path, err)
	}
	return parse(text, dir, getenv)
}

// Parse is Load of a text in no file: its relative paths stay as they are.
func Parse(text []byte, getenv func(string) string) (*Config, error) { return parse(text, "", getenv) }

// parse reads a text whose relative paths follow a directory, an absolute one or "" for none. Those of the environment
// follow the working directory.
func parse(text []byte, dir string, getenv func(string) string) (*Config, error) {
	c := &Config{}
	if len(strings.TrimSpace(string(text))) > 0 {
		raw, err := strictjson.FromYAML("config", text, "see docs/reference/agent.md")
		if err != nil {
			return nil, err
		}
		if err := decode("config", raw, c); err != nil {
			return nil, err
		}
	}
	c.locate(dir)
	if err := c.environment(getenv); err != nil {
		return nil, err
	}
	c.complete()
	return c, c.check()
}

// decode reads JSON strictly. The error names the member and, for an unknown one, the allowed ones.
func decode(field string, raw []byte, into any) error {
	err := jsonv2.Unmarshal(raw, into, jsonv2.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	var input *repute.InputError
	if errors.As(err, &input) {
		return input
	}
	var wrong *jsonv2.SemanticError
	if !errors.As(err, &wrong) {
		return repute.Invalid(field, fmt.Sprintf("%.300s", err.Error()), "see docs/reference/agent.md")
	}
	at := strings.Split(strings.Trim(string(wrong.JSONPointer), "/"), "/")
	name := strings.Join(at, ".")
	if errors.Is(err, jsonv2.ErrUnknownName) {
		allowed := members(reflect.TypeOf(into), at[:len(at)-1])
		return repute.Invalid(name, "is not known", "one of "+strings.Join(allowed, ", "))
	}
	reason := "has the wrong type"
	if wrong.Err != nil {
		reason = fmt.Sprintf("%.200s", wrong.Err.Error())
	}
	return repute.Invalid(name, reason, fmt.Sprintf("a value of type %s", kindOf(wrong.GoType)))
}

// kindOf names the type of a member as a person writes it.
func kindOf(t reflect.Type) string {
	if t == nil {
		return "that is documented"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return "number"
}

// members lists the names that are allowed at a place of a type.
// at is the path to an object whose member is wrong. An element of a list is passed by its index, which is not looked
// at.
func members(t reflect.Type, at []string) (out []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(at) > 0 && at[0] != "" {
		switch t.Kind() {
		case reflect.Slice:
			return members(t.Elem(), at[1:])
		case reflect.Struct:
			for i := range t.NumField() {
				if name(t.Field(i)) == at[0] {
					return members(t.Field(i).Type, at[1:])
				}
			}
		}
		return nil
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		if n := name(t.Field(i)); n != "" {
			out = append(out, n)
		}
	}
	return out
}

// name is the member of a field, "" for none.
func name(f reflect.StructField) string {
	n, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if n == "-" {
		return ""
	}
	return n
}

// Variables are those of section 14, with what they set.
func Variables() []string {
	return []string{"AGENT_ID", "AGENT_PRIVATE_KEY", "AGENT_METADATA_URI", "AGENT_REGISTRY_CONTRACT", "RPC_URL",
		"INDEXER_URL", "AGENT_PORT", "AGENT_LOG_LEVEL", "AGENT_PAYMENT_ADDRESS", "AGENT_POLICY_URI"}
}

// environment sets what variables say.
// A variable that is empty counts as not set. Values are never in the notes, as they may be secret.
func (c *Config) environment(getenv func(string) string) error {
	set := func(variable, key, old string, into func(string)) {
		v := getenv(variable)
		if v == "" {
			return
		}
		if old != "" && old != v {
			c.Notes = append(c.Notes, variable+" of the environment wins over "+key+" of the file")
		}
		into(v)
	}
	text := func(variable, key string, s *string) { set(variable, key, *s, func(v string) { *s = v }) }
	text("AGENT_ID", "agent.id", (*string)(&c.Agent.ID))
	text("AGENT_METADATA_URI", "agent.metadata_uri", &c.Agent.MetadataURI)
	text("AGENT_REGISTRY_CONTRACT", "agent.registry", &c.Agent.Registry)
	text("INDEXER_URL", "agent.indexer", &c.Agent.Indexer)
	text("AGENT_LOG_LEVEL", "log_level", &c.LogLevel)
	text("AGENT_PAYMENT_ADDRESS", "payments.address", &c.Payments.Address)
	text("AGENT_POLICY_URI", "policy.uri", &c.Policy.URI)
	set("RPC_URL", "agent.rpc", strings.Join(c.Agent.RPC, ","), func(v string) { c.Agent.RPC = strings.Split(v, ",") })
	if getenv("AGENT_PRIVATE_KEY") != "" {
		if c.Agent.Key != "" && c.Agent.Key != "env:AGENT_PRIVATE_KEY" {
			c.Notes = append(c.Notes, "AGENT_PRIVATE_KEY of the environment wins over agent.key of the file")
		}
		c.Agent.Key = "env:AGENT_PRIVATE_KEY"
	}
	if port := getenv("AGENT_PORT"); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return repute.Invalid("AGENT_PORT", fmt.Sprintf("%.20q is no port", port), "1 to 65535")
		}
		host, old, err := net.SplitHostPort(c.Listen)
		if err != nil {
			host = "127.0.0.1"
		}
		if old != "" && old != port {
			c.Notes = append(c.Notes, "AGENT_PORT of the environment wins over listen of the file")
		}
		c.Listen = net.JoinHostPort(host, port)
	}
	return nil
}

// complete fills in the defaults, which the tags name too.
// A value of zero counts as not set, so that none of these members can be set to 0 by the file.
func (c *Config) complete() {
	values := []reflect.Value{reflect.ValueOf(c).Elem(), reflect.ValueOf(&c.Profile).Elem(),
		reflect.ValueOf(&c.Limits).Elem(), reflect.ValueOf(&c.Validation).Elem(), reflect.ValueOf(&c.Receipts).Elem()}
	for i := range c.Capabilities {
		if h := &c.Capabilities[i].Handler; len(h.Exec) > 0 {
			values = append(values, reflect.ValueOf(h).Elem())
		}
		if h := c.Capabilities[i].Validates; h != nil && len(h.Exec) > 0 {
			values = append(values, reflect.ValueOf(h).Elem())
		}
	}
	for _, v := range values {
		for i := range v.NumField() {
			text := v.Type().Field(i).Tag.Get("default")
			if f := v.Field(i); text != "" && f.IsZero() {
				fill(f, text)
			}
		}
	}
}

// fill sets a field to the default of its tag.
func fill(f reflect.Value, text string) {
	switch f.Kind() {
	case reflect.String:
		f.SetString(text)
	case reflect.Int, reflect.Int64:
		n, _ := strconv.ParseInt(text, 10, 64) // defaults are numbers
		f.SetInt(n)
	case reflect.Float64:
		n, _ := strconv.ParseFloat(text, 64)
		f.SetFloat(n)
	}
}

// check refuses what cannot be served. The error joins all that is wrong.
//
// It asks nothing outside: whether a node answers, a file exists or a key is that of the owner is found at the start
// of the agent.
func (c *Config) check() error {
	var wrong []error
	need := func(ok bool, field, reason, hint string) {
		if !ok {
			wrong = append(wrong, repute.Invalid(field, reason, hint))
		}
	}
	need(c.Agent.ID != "", "agent.id", "is missing", "the agent's token id (AGENT_ID)")
	need(c.Agent.Key != "", "agent.key", "is missing", "env:NAME or file:PATH, or AGENT_PRIVATE_KEY")
	need(len(c.Agent.RPC) > 0, "agent.rpc", "is missing", "a URL (RPC_URL)")
	need(c.Profile.Name != "", "profile.name", "is missing", "a name")
	need(len(c.Capabilities) > 0, "capabilities", "is empty", "at least one")
	need((c.Validation.Validator == "") == (c.Validation.Sender == ""), "validation", "has validator or sender alone",
		"both, or none")
	need(len(c.Payments.Facilitators) == 0 || c.Payments.Settler == "", "payments",
		"names facilitators and a settler", "one of both")
	need(slices.Contains([]string{"debug", "info", "warn", "error"}, strings.ToLower(c.LogLevel)), "log_level",
		fmt.Sprintf("%.20q is no level", c.LogLevel), "debug, info, warn or error (AGENT_LOG_LEVEL)")
	need(c.Limits.Concurrency > 0 && c.Limits.Degraded >= 0 && c.Limits.Degraded <= c.Limits.Concurrency,
		"limits.concurrency", "is out of range", "1 or more, and degraded not above it")
	need(c.Receipts.Days >= 90, "receipts.days", fmt.Sprintf("%d is too short", c.Receipts.Days), "90 or more")
	need(c.Limits.MaxBody > 0, "limits.max_body", "is out of range", "1 or more")
	for _, u := range slices.Concat(c.Agent.RPC, c.Payments.Facilitators, List{c.Agent.Indexer, c.Profile.URL}) {
		at, err := url.Parse(u)
		need(u == "" || err == nil && at.Host != "", "agent", fmt.Sprintf("%.80q is no URL", safeURL(u)),
			"https://host/path")
	}
	need(len(c.Manifest.Commitments) == 0 || c.Manifest.KeyEnv != "", "manifest.commitments", "nobody signs them",
		"manifest.key_env, or no commitments")
	_, err := c.Limits.Prefixes()
	wrong = append(wrong, err, c.checkAnswers(), c.Models.Check("models"))
	for i := range c.Capabilities {
		wrong = append(wrong, c.Capabilities[i].Handler.check(fmt.Sprintf("capabilities.%d.handler", i)))
	}
	return errors.Join(wrong...)
}

// checkAnswers refuses an agent that is to answer as a validator without a handler, or the reverse.
func (c *Config) checkAnswers() error {
	wrong, judges := []error{}, false
	for i := range c.Capabilities {
		if h := c.Capabilities[i].Validates; h != nil {
			judges = true
			wrong = append(wrong, h.check(fmt.Sprintf("capabilities.%d.validates", i)))
		}
	}
	if judges != (c.Validation.Answerer != "") {
		wrong = append(wrong, repute.Invalid("validation.answerer", "and validates of a capability need each other",
			"both, or none"))
	}
	if c.Validation.Daily < 1 {
		wrong = append(wrong, repute.Invalid("validation.daily", fmt.Sprintf("%d is out of range", c.Validation.Daily),
			"1 or more"))
	}
	return errors.Join(wrong...)
}

// Prefixes are the networks of trusted proxies.
func (l *Limits) Prefixes() (out []netip.Prefix, err error) {
	for _, text := range l.Proxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, repute.Invalid("limits.trusted_proxies", fmt.Sprintf("%.60q is no network", text),
				"such as 10.0.0.0/8")
		}
		out = append(out, p)
	}
	return out, nil
}

// safeURL is a URL without what may be secret in it.
func safeURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "…"
	}
	return u.Scheme + "://" + u.Host
}
