package batch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/batchdb"
	"repute/store/manifestdb"
	"repute/trust/rating"
)

// Bounds of a comparison.
const (
	leastCompared = 2
	mostCompared  = 5
	// comparedTags is how many tags of each agent are shown: those with most ratings.
	comparedTags = 10
)

type (
	// Comparison shows agents side by side.
	Comparison struct {
		Agents      []ComparedAgent `json:"agents" doc:"in the order of the ids"`
		Differences []Difference    `json:"differences" doc:"what sets the agents apart, the score first; empty where nothing does"`
		AsOf        []wire.AsOf     `json:"asOf" doc:"one per chain; everything is of this one state"`
	}
	// ComparedAgent is one agent of a comparison.
	ComparedAgent struct {
		Agent   wire.ID `json:"agent" doc:"agent id"`
		ShortID wire.ID `json:"shortId" doc:"{chainId}:{tokenId}"`
		Name    *string `json:"name" doc:"from the agent's document; null without one"`
		wire.Standing
		Sentence    string              `json:"sentence" doc:"what the score says, and on what it rests, in words"`
		Reason      *string             `json:"reason" doc:"why the agent is thin or unrated, and what limits it; null when it is rated and nothing does"`
		Reviewers   wire.Long           `json:"reviewers" doc:"distinct clients with live ratings"`
		Ratings     wire.Long           `json:"ratings" doc:"live ones"`
		Tags        []wire.TagSummary   `json:"tags" doc:"the ten tag1 with most ratings"`
		Lacks       []wire.Gate         `json:"lacks" doc:"gates that admit which the agent does not pass, with what is missing"`
		KeptOut     []string            `json:"keptOut" doc:"gates that keep the agent out"`
		Services    []wire.AgentService `json:"services"`
		X402Support *bool               `json:"x402Support" doc:"null when the document says nothing"`
		Manifest    *wire.AgentManifest `json:"manifest" doc:"as in GET /agents/{id}"`
		Prices      []IntentCost        `json:"prices" doc:"the first twenty intents of the manifest, in its order; empty without one"`
	}
	// IntentCost is what one intent costs.
	IntentCost struct {
		Intent   string        `json:"intent"`
		Price    *wire.Decimal `json:"price" doc:"the lowest of one unit, in USD or a coin of one USD; null where only the service's answer tells"`
		Networks []string      `json:"networks"`
	}
	// Difference is one thing that sets agents apart.
	Difference struct {
		What     string   `json:"what" enum:"status,score,tier,ratings,gates,tag,services,price"`
		Best     *wire.ID `json:"best" doc:"the agent that is best in this; null where none is, or where it is no better or worse"`
		Sentence string   `json:"sentence"`
	}
)

// Steady returns the body without what moves while nothing happens, for its ETag.
func (c Comparison) Steady() any {
	c.AsOf = wire.Each(c.AsOf, wire.SteadyAsOf)
	return c
}

// ParseIDs reads the ids of a comparison, divided by commas. It returns the first id that is wrong; spaces beside
// commas are allowed.
func ParseIDs(s string) ([]repute.AgentRef, error) {
	parts := strings.Split(s, ",")
	if s == "" || len(parts) < leastCompared || len(parts) > mostCompared {
		return nil, repute.Invalid("ids", "not a number of agents that is compared",
			fmt.Sprintf("%d to %d ids divided by commas, e.g. 8453:22,8453:45", leastCompared, mostCompared))
	}
	refs := make([]repute.AgentRef, len(parts))
	for i, id := range parts {
		var err error
		if refs[i], err = answers.ParseAgent(strings.TrimSpace(id), ""); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// Compare compares agents by what is known of them in one state of the index. Two forms of one id, such as 22 and
// 8453:22, are the same agent, which shows only after they are resolved: so the check for repeated agents comes after
// the read. asOf has all chains of the index; only those of compared agents are answered. Where one agent
// is unknown, the answer is repute.ErrNotFound: callers rely on a comparison of all the agents that they named.
func Compare(ctx context.Context, x *answers.Index, refs []repute.AgentRef) (w Comparison, err error) {
	list, asOf, err := batchdb.Compare(ctx, x.DB, refs, x.DefaultChain())
	if err != nil {
		return w, answers.UnknownAgent(err)
	}
	w = Comparison{AsOf: []wire.AsOf{}, Differences: []Difference{}}
	seen := map[repute.AgentID]bool{}
	for _, c := range list {
		if seen[c.Agent.ID] {
			return w, repute.Invalid("ids", "an agent is named twice", "give each agent once")
		}
		seen[c.Agent.ID] = true
		one, err := encodeCompared(x, c)
		if err != nil {
			return w, fmt.Errorf("score of agent %s: %w", c.Agent.ID.Short(), err)
		}
		w.Agents = append(w.Agents, one)
	}
	for _, a := range asOf {
		if slices.ContainsFunc(list, func(c batchdb.Compared) bool { return c.Agent.ID.ChainID == a.ChainID }) {
			w.AsOf = append(w.AsOf, wire.EncodeAsOf(a))
		}
	}
	w.Differences = append(w.Differences, differences(w.Agents)...)
	return w, nil
}

// encodeCompared writes one agent. A gate that admits and is not passed is lacking; a gate that keeps out and is passed
// is against the agent. Lists are never null in JSON.
func encodeCompared(x *answers.Index, c batchdb.Compared) (w ComparedAgent, err error) {
	scored, err := wire.EncodeScored(c.Reputation.Score)
	if err != nil {
		return w, err
	}
	agent := wire.EncodeAgent(c.Agent)
	w = ComparedAgent{Agent: agent.ID, ShortID: agent.ShortID, Name: agent.Name, Standing: scored.Standing,
		Sentence: scored.Sentence, Reason: scored.Reason, Reviewers: agent.Counts.Clients,
		Ratings: agent.Counts.Feedback,
		Tags:    wire.Each(c.Reputation.Tags[:min(len(c.Reputation.Tags), comparedTags)], x.TagSummary),
		Lacks:   []wire.Gate{}, KeptOut: []string{}, Services: agent.Services, X402Support: agent.X402Support,
		Prices: wire.Each(c.Prices, encodePrice)}
	for _, g := range scored.Gates {
		switch isBar := g.Direction == string(rating.KeepsOut); {
		case isBar && g.Passed:
			w.KeptOut = append(w.KeptOut, g.ID)
		case !isBar && !g.Passed:
			w.Lacks = append(w.Lacks, g)
		}
	}
	if c.Manifest != nil {
		w.Manifest = wire.EncodeAgentManifest(*c.Manifest)
	}
	return w, nil
}

// encodePrice writes what an intent costs. The texts come from a manifest that anybody may write: Clean replaces what
// is no text in JSON.
func encodePrice(p manifestdb.Price) IntentCost {
	w := IntentCost{Intent: httpapi.Clean(p.Intent), Networks: wire.Each(p.Networks, httpapi.Clean)}
	if p.USD != nil {
		w.Price = wire.OrNull(wire.Decimal(*p.USD))
	}
	return w
}
