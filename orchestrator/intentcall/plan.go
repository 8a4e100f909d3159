package intentcall

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"repute"
	"repute/manifest/agentjson"
	"repute/orchestrator/payer"
	"repute/resolver/wellknown"
)

// Manifests fetches the manifest that a domain serves.
type Manifests interface {
	Manifest(ctx context.Context, host string, known wellknown.Known) (wellknown.Found, error)
}

// Target names an intent of a domain.
type Target struct{ Name, Domain string }

// ParseTarget reads NAME@DOMAIN.
func ParseTarget(text string) (Target, error) {
	name, domain, ok := strings.Cut(text, "@")
	if !ok || name == "" || domain == "" || strings.Contains(domain, "@") {
		return Target{}, repute.Invalid("intent", fmt.Sprintf("%.80q names none", text), "NAME@DOMAIN")
	}
	return Target{name, domain}, nil
}

// Plan is an intent that was found, and how it is paid. Nothing was sent to its endpoint.
type Plan struct {
	Intent agentjson.Intent
	Terms  agentjson.Terms
	Origin string
}

// Find fetches the manifest of a domain and finds an intent. repute.ErrNotFound: the manifest has none of that name;
// repute.ErrInvalid: the manifest has errors, or speaks for another domain.
func Find(ctx context.Context, from Manifests, t Target) (*Plan, error) {
	found, err := from.Manifest(ctx, t.Domain, wellknown.Known{})
	if err != nil {
		return nil, err
	}
	m, problems := agentjson.Parse(found.Bytes, agentjson.Options{Host: found.Host})
	if p, wrong := repute.FirstError(problems); wrong {
		return nil, repute.Invalid("manifest",
			fmt.Sprintf("that of %.80s is wrong at %.80q: %s", t.Domain, p.Path, p.Message),
			"a manifest without errors: repute manifest check "+t.Domain)
	}
	for i, in := range m.Intents {
		if in.Name == t.Name {
			return &Plan{Intent: in, Terms: m.Terms(i), Origin: m.Origin}, nil
		}
	}
	return nil, fmt.Errorf("intent %.80q of %.80s: %w", t.Name, t.Domain, repute.ErrNotFound)
}

// Arguments reads arguments of the form NAME=VALUE by the types of the parameters.
func (p *Plan) Arguments(texts []string) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage, len(texts))
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, repute.Invalid("param", fmt.Sprintf("%.80q has no value", text), "NAME=VALUE")
		}
		if _, twice := out[name]; twice {
			return nil, repute.Invalid("param", fmt.Sprintf("%.80q is given twice", name), "each parameter once")
		}
		raw, err := p.Intent.Argument(name, value)
		if err != nil {
			return nil, err
		}
		out[name] = raw
	}
	return out, nil
}

// Semantic reports whether the intent is said in words alone: there is nothing to call.
func (p *Plan) Semantic() bool { return p.Intent.Endpoint == "" }

// Request is the call of the intent with arguments. repute.ErrInvalid: the arguments are not what the manifest asks
// for, or the endpoint is not of the manifest's own origin.
func (p *Plan) Request(arguments map[string]json.RawMessage) (r payer.Request, err error) {
	if err := p.Intent.CheckArguments(arguments); err != nil {
		return r, err
	}
	u, err := url.Parse(p.Intent.URL)
	if err != nil || p.Intent.URL == "" || u.Scheme != "https" || !agentjson.SameHost(p.Origin, u.Host) {
		return r, repute.Invalid("endpoint", fmt.Sprintf("%.80q is not of %.80s", p.Intent.Endpoint, p.Origin),
			"a path, or an https URL of the domain itself")
	}
	r.Method = p.Intent.Method
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		r.URL, r.Type = u.String(), "application/json"
		r.Body, err = body(arguments)
		return r, err
	}
	query := u.Query()
	for name, raw := range arguments {
		query.Set(name, plain(raw))
	}
	u.RawQuery = query.Encode()
	r.URL = u.String()
	return r, nil
}

// body is the JSON object of arguments; with names in order, so that the same call has the same bytes.
func body(arguments map[string]json.RawMessage) ([]byte, error) {
	if arguments == nil {
		arguments = map[string]json.RawMessage{}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(arguments); err != nil {
		return nil, repute.Invalid("param", err.Error(), "JSON values")
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// plain is a value as a query has it: a text as it is, any other value as JSON.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
