package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/internal/httprule"
	"repute/internal/strictjson"
	"repute/store/batchdb"
	"repute/store/column"
	"repute/store/manifestdb"
)

type (
	// ReputationsRequest is the body of a batch.
	ReputationsRequest struct {
		Agents []AgentItem `json:"agents" minItems:"1" maxItems:"500" doc:"ids, wallets and domains, in any order"`
	}
	// ReputationsAnswer has an item for each item of the request.
	ReputationsAnswer struct {
		Items []ReputationsItem `json:"items" doc:"one for each item of the request, in its order"`
		AsOf  []wire.AsOf       `json:"asOf" doc:"one per chain; everything is of this one state"`
	}
	// ReputationsItem is what one item names.
	ReputationsItem struct {
		Agents  []MatchedAgent     `json:"agents" doc:"all agents that the item names, at most 20: the proven ones first, then by chain and token; none where it has a problem, and where nobody has the wallet or the domain"`
		More    bool               `json:"more" doc:"there are more than 20"`
		Problem *httpapi.ErrorBody `json:"problem,omitempty" doc:"why the item has no answer; the other items have theirs"`
	}
	// MatchedAgent is an agent that an item names.
	MatchedAgent struct {
		How        []string         `json:"how" doc:"id; of a wallet: wallet, the agent's verified wallet, and owner; of a domain: domain, whose own file names the agent, wallet, which the domain's manifest pays, and registration, the agent's document names the domain. The strongest first"`
		Proven     bool             `json:"proven" doc:"nobody but the holder of the wallet or the domain can make this match: wallet and owner on the chain, domain, and a paid wallet whose agent names the domain back"`
		Reputation ReputationAnswer `json:"reputation" doc:"as GET /agents/{id}/reputation answers it"`
	}
)

// AgentItem names agents: as a JSON string the id of one agent, as an object by one of agent, wallet and domain.
type AgentItem struct {
	Agent  string `json:"agent,omitempty"`
	Wallet string `json:"wallet,omitempty"`
	Domain string `json:"domain,omitempty"`

	err error // what is wrong with its JSON
}

// Schema describes both forms. The schema only documents: ParseRequest reads the body, because huma would refuse the
// whole batch for one wrong item.
func (AgentItem) Schema(huma.Registry) *huma.Schema {
	member := func(name, doc string, example any) *huma.Schema {
		return &huma.Schema{Type: huma.TypeObject, Required: []string{name}, AdditionalProperties: false,
			Properties: map[string]*huma.Schema{
				name: {Type: huma.TypeString, Description: doc, Examples: []any{example}}}}
	}
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString, Description: "id of an agent, in any of its forms", Examples: []any{"8453:22"}},
		member("agent", "id of an agent, in any of its forms", "8453:22"),
		member("wallet", "address: all agents whose verified wallet or owner it is",
			"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"),
		member("domain", "host: all agents that it or its manifest names, or that name it", "shop.example"),
	}}
}

// UnmarshalJSON reads either form. What is wrong with an item is kept for its answer and does not fail the batch. A
// JSON string is the common form and needs no strict reading. null and other values reach form.Decode, which refuses
// them. Members of the wrong type and unknown members are errors of the item, since a caller that misspells wallet must
// not get "no agent".
func (i *AgentItem) UnmarshalJSON(raw []byte) error {
	*i = AgentItem{}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &i.Agent)
	}
	var members struct {
		Agent  string `json:"agent"`
		Wallet string `json:"wallet"`
		Domain string `json:"domain"`
	}
	form := strictjson.Document{Name: "agents", Unknown: "unknown member", Hint: itemForms}
	if i.err = form.Decode(raw, &members); i.err == nil {
		i.Agent, i.Wallet, i.Domain = members.Agent, members.Wallet, members.Domain
	}
	return nil
}

// MaxItems is the most items of a batch, and MaxMatches the most agents that one wallet or domain may name.
const (
	MaxItems   = batchdb.MaxItems
	MaxMatches = batchdb.MaxMatches
)

// itemForms is the hint for an item that names no agent.
const itemForms = `"8453:22", {"wallet": "0x…"} or {"domain": "shop.example"}`

// parse returns what the item asks the database for. An error of the JSON comes first. An item with an error names
// nothing else, so that batchdb leaves it out of its statements and keeps its place.
func (i *AgentItem) parse() (out batchdb.Item) {
	given := 0
	for _, s := range []string{i.Agent, i.Wallet, i.Domain} {
		if s != "" {
			given++
		}
	}
	switch {
	case i.err != nil:
		out.Err = i.err
	case given != 1:
		out.Err = repute.Invalid("agents", "an item names one of agent, wallet and domain", itemForms)
	case i.Agent != "":
		var ref repute.AgentRef
		ref, out.Err = answers.ParseAgent(i.Agent, "")
		out.ID = &ref
	case i.Wallet != "":
		a, err := repute.ParseAddress("wallet", i.Wallet)
		out.Address, out.Err = &a, err
	default:
		out.Domain, out.Err = parseDomain(i.Domain)
	}
	if out.Err != nil {
		return batchdb.Item{Err: out.Err}
	}
	return out
}

// parseDomain returns a host as it is stored: in small letters and punycode, without the dot at its end. A URL, a port
// and a user are refused instead of being cut off, because a caller who pays by the answer must know which host it is
// about.
func parseDomain(s string) (string, error) {
	domain := httprule.Host(s)
	if domain == "" || len(domain) > column.LongestHost || !utf8.ValidString(domain) ||
		strings.ContainsFunc(domain, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("/:@?#", r)
		}) {
		return "", repute.Invalid("domain", "not a host", "a name without scheme, port and path, e.g. shop.example")
	}
	return domain, nil
}

// ParseRequest reads the body of a batch. repute.ErrInvalid: it is no object with a list of 1 to MaxItems items.
// CheckJSON comes first: it refuses what Postgres and readers in other languages cannot take, such as deep nesting and
// zero bytes. An item that is only wrong in itself passes, with its error kept.
func ParseRequest(body []byte) (r ReputationsRequest, err error) {
	if err := repute.CheckJSON("body", body); err != nil {
		return r, err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return r, repute.Invalid("agents", fmt.Sprintf("cannot be read: %.200s", err), `{"agents": [`+itemForms+`]}`)
	}
	if len(r.Agents) == 0 || len(r.Agents) > MaxItems {
		return r, repute.Invalid("agents", fmt.Sprintf("has %d items", len(r.Agents)),
			fmt.Sprintf("1 to %d", MaxItems))
	}
	return r, nil
}

// Found is what the items of a batch name, before it is written. GraphQL and REST write it in their own forms, from one
// read.
type Found struct {
	batchdb.Batch
	index *answers.Index
}

// Read reads what items name, from one snapshot. An error is a fault of the database, or a minBlock that is not
// reached; what is wrong with an item is in its Found.
func Read(ctx context.Context, x *answers.Index, items []AgentItem) (Found, error) {
	asked := make([]batchdb.Item, len(items))
	for i := range items {
		asked[i] = items[i].parse()
	}
	b, err := batchdb.Read(ctx, x.DB, asked, x.DefaultChain())
	return Found{b, x}, err
}

// Answer writes what was found. Each reputation is encoded once, although several items may name the same agent.
func (f Found) Answer(ctx context.Context) (w ReputationsAnswer, err error) {
	w = ReputationsAnswer{Items: make([]ReputationsItem, len(f.Found)), AsOf: wire.Each(f.AsOf, wire.EncodeAsOf)}
	written := make(map[repute.AgentID]ReputationAnswer, len(f.Reputations))
	for id, r := range f.Reputations {
		scored, err := wire.EncodeScored(r.Score)
		if err != nil {
			return w, fmt.Errorf("score of agent %s: %w", id.Short(), err)
		}
		written[id] = NewReputation(f.index.EncodeReputation(r, scored))
	}
	for i, found := range f.Found {
		w.Items[i] = ReputationsItem{More: found.More, Problem: Problem(ctx, found.Err),
			Agents: wire.Each(found.Matches, func(m batchdb.Match) MatchedAgent {
				return MatchedAgent{How: Ways(m), Proven: m.Proven, Reputation: written[m.Agent]}
			})}
	}
	return w, nil
}

// Ways returns how an item names an agent.
func Ways(m batchdb.Match) []string {
	return wire.Each(m.How, func(h manifestdb.How) string { return string(h) })
}

// Problem returns the problem of an item, nil for no error. Nothing is logged: an item fails by a mistake of the caller
// alone, because what fails by a fault of ours fails the whole batch.
func Problem(ctx context.Context, err error) *httpapi.ErrorBody {
	if err == nil {
		return nil
	}
	if missing, isMissing := errors.AsType[*repute.MissingError](err); isMissing && missing.Hint == "" {
		err = answers.UnknownAgent(err)
	}
	return httpapi.Report(ctx, slog.New(slog.DiscardHandler), err)
}
