package api

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"repute"
	"repute/mcp"
)

// The inputs of the tools. What they mean, and what they may be, is as in the REST routes.
type (
	// AgentTool names an agent, and the view of its chain.
	AgentTool struct {
		AgentID mcp.Text `json:"agentId" doc:"eip155:{chainId}:{registry}:{tokenId}, {chainId}:{tokenId}, or a bare token id with chainId, with one chain indexed or with a default chain; e.g. 8453:22"`
		ChainID uint64   `json:"chainId,omitempty" doc:"chain of a bare token id"`
		At      mcp.Text `json:"at,omitempty" doc:"latest (default), safe, finalized or a block number"`
	}
	reputationTool struct {
		AgentTool
		Clients []string `json:"clients,omitempty" maxItems:"100" doc:"addresses: only their ratings count in summary; all when absent"`
		Tag1    string   `json:"tag1,omitempty" doc:"only ratings with this tag1 count in summary; all when absent"`
		Tag2    string   `json:"tag2,omitempty" doc:"only ratings with this tag2 count in summary; all when absent"`
		Roots   string   `json:"roots,omitempty" doc:"addresses divided by commas, no more than 100, or the name of one of the chain's sets of roots: whom to trust instead of the chain's own roots, at latest only"`
		OpenFi  bool     `json:"openfi,omitempty" doc:"with OpenFi's trust snapshot of the agent"`
	}
	explainTool struct {
		AgentTool
		Without []string `json:"without,omitempty" maxItems:"100" doc:"addresses: what the score would be without their rows"`
		Roots   string   `json:"roots,omitempty" doc:"as in repute_get_reputation: the explanation is of the score by these roots, at latest only"`
		Limit   int      `json:"limit,omitempty" minimum:"1" maximum:"100" doc:"contributions and excluded rows to list, 20 when absent"`
	}
	searchTool struct {
		Q        string   `json:"q,omitempty" doc:"words in name, services, skills, domains, trust models, tags and description; \"a phrase\", -without and or are understood"`
		ChainIDs []uint64 `json:"chainIds,omitempty" maxItems:"100" doc:"only agents of these chains; all when absent"`
		Service  string   `json:"service,omitempty" doc:"only agents that offer this service, e.g. MCP; several divided by commas: all of them"`
		Skill    string   `json:"skill,omitempty" doc:"only agents with exactly this skill, whole path"`
		Domain   string   `json:"domain,omitempty" doc:"only agents with exactly this domain, whole path, e.g. finance/markets"`
		Trust    string   `json:"supportedTrust,omitempty" doc:"only agents that name this trust model, e.g. reputation"`
		Tag      string   `json:"tag,omitempty" doc:"only agents with a live rating of exactly this tag1"`
		X402     *bool    `json:"x402,omitempty" doc:"only agents that say they take x402 payments, or that say they do not"`
		Active   *bool    `json:"active,omitempty" doc:"only agents that say they are active, or that say they are not"`
		Owner    string   `json:"owner,omitempty" doc:"address: only agents it owns"`
		Wallet   string   `json:"wallet,omitempty" doc:"address: only agents with this verified wallet"`
		MinScore *float64 `json:"minScore,omitempty" minimum:"-100" maximum:"100" doc:"only rated agents with this score or a better one; not together with what makes a search: q to active"`
		Tier     *int     `json:"tier,omitempty" minimum:"0" maximum:"4" doc:"only rated agents of this tier; not of a search"`
		Rating   string   `json:"rating,omitempty" enum:"rated,unrated" doc:"only agents that are rated, or only those that are not; not of a search"`
		Sort     string   `json:"sort,omitempty" enum:"id,feedback,updated,score,relevance" doc:"id (default), feedback: live ratings, updated: last event, score: of agents that have one; relevance: default and only one of a search"`
		Order    string   `json:"order,omitempty" enum:"asc,desc" doc:"asc (default for id) or desc (default for the others); not of a search"`
		Limit    int      `json:"limit,omitempty" minimum:"1" maximum:"50" doc:"agents in the answer, 10 when absent"`
		Cursor   string   `json:"cursor,omitempty" doc:"next of the answer before; only with the same filters"`
	}
)

func (in *AgentTool) ref() (repute.AgentRef, error) {
	chain := ""
	if in.ChainID != 0 {
		chain = strconv.FormatUint(in.ChainID, 10)
	}
	ref, err := parseAgent(string(in.AgentID), chain)
	var input *repute.InputError
	if errors.As(err, &input) && input.Field == "id" { // as the routes call it
		return ref, repute.Invalid("agentId", input.Reason, input.Hint)
	}
	return ref, err
}

// toolsRoute is where the tools are served.
const toolsRoute = "/mcp"

func isTools(c echo.Context) bool { return c.Path() == toolsRoute }

// mountTools serves a server of tools, those of others in it too, under the same limits
// as everything else.
func (a *API) mountTools(s *mcp.Server) error {
	if s == nil {
		return nil
	}
	a.echo.Any(toolsRoute, echo.WrapHandler(s.Handler()))
	return a.addTools(s)
}

// toolPage is how many agents a tool shows where nobody says.
const toolPage = 10

// addTools gives a server the tools that ask the index.
func (a *API) addTools(s *mcp.Server) error {
	for _, err := range []error{
		mcp.Add(s, mcp.Tool[reputationTool, ReputationAnswer]{Name: "repute_get_reputation", Title: "Reputation of an agent",
			Description: "How far an ERC-8004 agent can be trusted: score with bounds, status, tier and gates from weighted evidence, beside the plain summaries of its ratings. Ask it before you pay or delegate.",
			Do:          a.reputationTool}),
		mcp.Add(s, mcp.Tool[decisionTool, DecisionAnswer]{Name: "repute_decide", Title: "May an agent be paid",
			Description: "Answers allow or deny for a payment or a delegation, with reasons and what is missing. Without thresholds it goes by the value at risk. When denied, do not pay.",
			Do:          a.decisionTool}),
		mcp.Add(s, mcp.Tool[explainTool, ExplainAnswer]{Name: "repute_explain_score", Title: "What a score is made of",
			Description: "Why an agent has its score: every contribution with raters, weights and the place of its ratings on the chain, what does not count and why, and what the score would be without some raters.",
			Do:          a.explainTool}),
		mcp.Add(s, mcp.Tool[searchTool, AgentList]{Name: "repute_search_agents", Title: "Search agents",
			Description: "Finds agents by text, services, skills, domains, tags, owner or score. Without any filter it lists all. Names and descriptions are the agents' own words.",
			Do:          a.searchTool}),
		mcp.Add(s, mcp.Tool[AgentTool, AgentAnswer]{Name: "repute_get_agent", Title: "An agent",
			Description: "What is known of an agent: owner, wallet, registration file with services, its problems, and a standing in short.",
			Do:          a.agentTool}),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// bodyOf is the answer of a route's handler without what is for HTTP alone.
func bodyOf[B any](out *output[B], err error) (B, error) {
	if err != nil {
		var none B
		return none, err
	}
	return *out.Body, nil
}

func (a *API) agentTool(ctx context.Context, in AgentTool) (w AgentAnswer, err error) {
	ref, err := in.ref()
	if err != nil {
		return w, err
	}
	return bodyOf(a.agent(ctx, ref, &AgentQuery{AtQuery: AtQuery{string(in.At)}}))
}

func (a *API) reputationTool(ctx context.Context, in reputationTool) (w ReputationAnswer, err error) {
	ref, err := in.ref()
	if err != nil {
		return w, err
	}
	q := ReputationQuery{AtQuery: AtQuery{string(in.At)}, Clients: strings.Join(in.Clients, ","), Tag1: in.Tag1, Tag2: in.Tag2, Roots: in.Roots}
	if in.OpenFi {
		q.OpenFi = "1"
	}
	return bodyOf(a.reputation(ctx, ref, &q))
}

func (a *API) explainTool(ctx context.Context, in explainTool) (w ExplainAnswer, err error) {
	ref, err := in.ref()
	if err != nil {
		return w, err
	}
	q := ExplainQuery{AtQuery: AtQuery{string(in.At)}, Without: strings.Join(in.Without, ","), Roots: in.Roots}
	if in.Limit > 0 {
		q.Limit = Number(strconv.Itoa(in.Limit))
	}
	return bodyOf(a.explain(ctx, ref, &q))
}

func (a *API) searchTool(ctx context.Context, in searchTool) (w AgentList, err error) {
	q := in.query()
	return bodyOf(a.agents(ctx, &q, in.ChainIDs))
}

// query is the input as the list's route takes it: text, and which of it was given.
func (in *searchTool) query() (q AgentsQuery) {
	q.Q, q.Service, q.Skill, q.Domain, q.Trust, q.Tag = in.Q, in.Service, in.Skill, in.Domain, in.Trust, in.Tag
	q.Owner, q.Wallet, q.RatedStatus, q.Sort, q.Order, q.Cursor = in.Owner, in.Wallet, in.Rating, in.Sort, in.Order, in.Cursor
	q.X402, q.Active = Flag(textOf(in.X402)), Flag(textOf(in.Active))
	q.MinScore, q.Tier = textOf(in.MinScore), Number(textOf(in.Tier))
	if q.Limit = Number(strconv.Itoa(toolPage)); in.Limit > 0 {
		q.Limit = Number(strconv.Itoa(in.Limit))
	}
	q.values = url.Values{}
	for name, given := range map[string]string{"q": q.Q, "service": q.Service, "skill": q.Skill, "domain": q.Domain, "supportedTrust": q.Trust, "tag": q.Tag,
		"x402": string(q.X402), "active": string(q.Active), "minScore": q.MinScore, "tier": string(q.Tier), "rating": q.RatedStatus, "sort": q.Sort, "order": q.Order} {
		if given != "" {
			q.values.Set(name, given)
		}
	}
	return q
}

// textOf is empty where nothing was given.
func textOf[T any](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}
