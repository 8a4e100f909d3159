package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/api/answers"
)

// Inputs of the operations on one agent, which the path names, and of lists of agents.
type (
	agentInput struct {
		answers.AgentPath
		answers.Request
		answers.AtQuery
	}
	reputationInput struct {
		answers.AgentPath
		answers.ReputationQuery
	}
	feedbackInput struct {
		answers.AgentPath
		answers.FeedbackQuery
	}
	validationsInput struct {
		answers.AgentPath
		answers.ValidationQuery
	}
	explainInput struct {
		answers.AgentPath
		answers.ExplainQuery
	}
	decisionInput struct {
		answers.AgentPath
		answers.DecisionQuery
	}
	historyInput struct {
		answers.AgentPath
		answers.HistoryQuery
	}
	seriesInput struct {
		answers.AgentPath
		answers.SeriesQuery
	}
	agentsInput struct {
		answers.AgentsQuery
		answers.ChainsQuery
	}
	facetsInput struct {
		answers.FacetsQuery
		answers.ChainsQuery
	}
	chainInput struct {
		answers.ChainPath
		answers.Request
	}
)

// oneForm rewrites the forms of an agent's path to one: /agents/{chainId}/{tokenId} and
// /chains/{chainId}/agents/{id} become /agents/{id}?chainId=, with the rest of the path;
// /chains/{chainId}/agents becomes /agents?chainId=. Other paths stay.
func oneForm(u *url.URL) {
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "chains" && parts[2] == "agents":
		onChain(u, parts[1], parts[3:])
	case len(parts) >= 3 && parts[0] == "agents" && !strings.Contains(parts[1], ":") && !startsWithLetter(parts[2]):
		onChain(u, parts[1], parts[2:])
	}
}

// onChain returns the path below /agents for an agent or list of a chain. It does not accept a list
// of chains.
func onChain(u *url.URL, chain string, below []string) {
	if strings.Contains(chain, ",") {
		return
	}
	u.Path = "/" + strings.Join(append([]string{"agents"}, below...), "/")
	named := "chainId=" + url.QueryEscape(chain)
	if u.RawQuery != "" {
		named += "&" + u.RawQuery
	}
	u.RawQuery = named
}

// startsWithLetter distinguishes the name of an agent's subresource, perhaps misspelled, from a
// token id.
func startsWithLetter(s string) bool {
	return s == "" || s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z'
}

// mount is the table of the routes of the REST API.
func (a *API) mount() {
	get(a, "/agents", "list-agents", "Lists agents, or searches them where a search parameter is given", a.listAgents)
	get(a, "/agents/facets", "get-facets",
		"Counts what the agents that a search finds offer: services, skills, domains and more", a.listFacets)

	onAgent(a, "", "get-agent",
		"Returns an agent: owner, wallet, registration file, problems of that file and score", a.agent)
	onAgent(a, "/reputation", "get-reputation",
		"Returns an agent's trust score and summaries of its ratings", a.reputation)
	onAgent(a, "/reputation/explain", "explain-reputation",
		"Explains an agent's score: which ratings count, by how much, and which do not",
		byAgent(a, (*explainInput).Plan, a.Explanation))
	onAgent(a, "/decision", "get-decision",
		"Decides whether an agent may be paid or given work: allow or deny, with reasons", a.decision)
	onAgent(a, "/feedback", "list-feedback", "Lists an agent's ratings, newest first",
		byAgent(a, (*feedbackInput).Filter, a.feedback))
	onAgent(a, "/validations", "list-validations",
		"Lists requests to validate an agent's work and their answers, newest first",
		byAgent(a, (*validationsInput).Filter, a.validations))
	onAgent(a, "/history", "list-history",
		"Lists how an agent's owner, wallet, URI, metadata and operators changed, with the log of each change",
		byAgent(a, (*historyInput).Filter, a.History))
	onAgent(a, "/series", "get-series",
		"Returns an agent's score, ratings or reviewers by hour, day or week, without gaps",
		byAgent(a, (*seriesInput).Filter, a.Series))

	a.mountBatch()
	a.mountAttestation()
	a.mountCompare()
	a.mountBadge()
	a.mountDocuments()
	a.mountManifests()
	a.mountStats()
	a.mountTexts()

	get(a, "/chains", "list-chains", "Lists the chains that are indexed, with their progress", a.listChains)
	get(a, "/chains/{chainId}", "get-chain", "Returns one chain with the progress of its index", a.getChain)
	get(a, "/chains/{chainId}/status", "get-chain-status", "Returns the state of one chain's index: ok or degraded",
		a.chainStatus)
	get(a, "/status", "get-status", "Returns the state of the whole index: ok or degraded, with every chain", a.status)
}

// output is an answer with its cache headers.
type output[B any] struct {
	Status       int
	ETag         string `header:"ETag"`
	CacheControl string `header:"Cache-Control"`
	Body         *B
}

// agentInputOf is an input whose path names an agent.
type agentInputOf[I any] interface {
	requestOf[I]
	Ref() (repute.AgentRef, error)
}

// settled is an answer that can compare itself with the caller's cached one.
type settled[O any] interface {
	*O
	settle(ifNoneMatch string)
}

// onAgent mounts an operation on one agent: it parses the agent's id, and answer reads the agent. change completes the
// description. answer gets the agent besides its input, so that tools call it too, whose agents have no path.
func onAgent[I, O any, PI agentInputOf[I], PO settled[O]](a *API, path, id, summary string,
	answer func(context.Context, repute.AgentRef, *I) (*O, error), change ...func(*huma.Operation)) {
	op := describeOperation(a, "/agents/{id}"+path, id, summary)
	for _, f := range change {
		f(&op)
	}
	register[I, O, PI, PO](a, op, func(ctx context.Context, in *I) (*O, error) {
		ref, err := PI(in).Ref()
		if err != nil {
			return nil, err
		}
		return answer(ctx, ref, in)
	})
}

// byAgent returns the handler of an operation on one agent whose answer is what read returns by a filter of the input.
func byAgent[I, F, B any](a *API, filter func(*I) (F, error),
	read func(context.Context, repute.AgentID, F) (B, error),
) func(context.Context, repute.AgentRef, *I) (*output[B], error) {
	return func(ctx context.Context, ref repute.AgentRef, in *I) (*output[B], error) {
		f, err := filter(in)
		if err != nil {
			return nil, err
		}
		id, err := a.Resolve(ctx, ref)
		if err != nil {
			return nil, err
		}
		body, err := read(ctx, id, f)
		if err != nil {
			return nil, answers.UnknownAgent(err)
		}
		return ok(body), nil
	}
}

// byFilter returns the handler of an operation whose answer is what read returns by a filter of the input.
func byFilter[I, F, B any](filter func(*I) (F, error), read func(context.Context, F) (B, error),
) func(context.Context, *I) (*output[B], error) {
	return func(ctx context.Context, in *I) (*output[B], error) {
		f, err := filter(in)
		if err != nil {
			return nil, err
		}
		body, err := read(ctx, f)
		if err != nil {
			return nil, err
		}
		return ok(body), nil
	}
}

// get mounts one reading operation.
func get[I, O any, PI requestOf[I], PO settled[O]](a *API, path, id, summary string,
	handle func(context.Context, *I) (*O, error)) {
	register[I, O, PI, PO](a, describeOperation(a, path, id, summary), handle)
}

// describeOperation describes an operation that reads.
func describeOperation(a *API, path, id, summary string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary,
		SkipValidateParams: true, // httpapi.Server does, with other error texts
		Responses: map[string]*huma.Response{
			"304":     {Description: "Nothing changed since the answer with this ETag."},
			"default": a.server.Problems(),
		},
	}
}

// requestOf is an input with access to the request.
type requestOf[I any] interface {
	*I
	Common() *answers.Request
}

// register adds an operation to the router and converts its errors.
func register[I, O any, PI requestOf[I], PO settled[O]](a *API, op huma.Operation,
	handle func(context.Context, *I) (*O, error)) {
	huma.Register(a.server.API, op, func(ctx context.Context, in *I) (*O, error) {
		r := PI(in).Common()
		reads, err := a.Demand(ctx, r.MinBlock)
		if err != nil {
			return nil, a.server.Fail(ctx, err)
		}
		out, err := handle(reads, in)
		if err != nil {
			return nil, a.server.Fail(ctx, err)
		}
		if op.Method == http.MethodGet {
			PO(out).settle(r.IfNoneMatch)
		}
		return out, nil
	})
}
