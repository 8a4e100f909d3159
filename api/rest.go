package api

import (
	"context"
	"net/http"

	"repute"

	"github.com/danielgtaylor/huma/v2"
)

// The inputs of the operations on one agent, each under its three paths.
type (
	agentInput struct {
		AgentPath
		AgentQuery
	}
	agentPairInput struct {
		PairPath
		AgentQuery
	}
	agentChainInput struct {
		ChainAgentPath
		AgentQuery
	}
	reputationInput struct {
		AgentPath
		ReputationQuery
	}
	reputationPairInput struct {
		PairPath
		ReputationQuery
	}
	reputationChainInput struct {
		ChainAgentPath
		ReputationQuery
	}
	feedbackInput struct {
		AgentPath
		FeedbackQuery
	}
	feedbackPairInput struct {
		PairPath
		FeedbackQuery
	}
	feedbackChainInput struct {
		ChainAgentPath
		FeedbackQuery
	}
	validationsInput struct {
		AgentPath
		ValidationQuery
	}
	validationsPairInput struct {
		PairPath
		ValidationQuery
	}
	validationsChainInput struct {
		ChainAgentPath
		ValidationQuery
	}
	explainInput struct {
		AgentPath
		ExplainQuery
	}
	explainPairInput struct {
		PairPath
		ExplainQuery
	}
	explainChainInput struct {
		ChainAgentPath
		ExplainQuery
	}
	decisionInput struct {
		AgentPath
		DecisionQuery
	}
	decisionPairInput struct {
		PairPath
		DecisionQuery
	}
	decisionChainInput struct {
		ChainAgentPath
		DecisionQuery
	}
	agentsInput struct {
		AgentsQuery
		ChainIDs string `query:"chainId" pattern:"^ *[1-9][0-9]{0,18} *(, *[1-9][0-9]{0,18} *)*$" doc:"chain ids divided by commas; all chains when absent"`
	}
	agentsChainInput struct {
		ChainPath
		AgentsQuery
	}
	facetsInput struct {
		FacetsQuery
		ChainIDs string `query:"chainId" pattern:"^ *[1-9][0-9]{0,18} *(, *[1-9][0-9]{0,18} *)*$" doc:"chain ids divided by commas; all chains when absent"`
	}
	facetsChainInput struct {
		ChainPath
		FacetsQuery
	}
	plainInput struct{ Request }
	chainInput struct {
		ChainPath
		Request
	}
)

// mount is the table of contents of the REST API.
func (a *API) mount() {
	get(a, "/agents", "list-agents", "Lists agents, or searches them where a search parameter is given", a.listAgents)
	get(a, "/chains/{chainId}/agents", "list-chain-agents", "Lists or searches the agents of one chain", a.listChainAgents)
	get(a, "/agents/facets", "get-facets",
		"Counts what the agents that a search finds offer: services, skills, domains and more", a.listFacets)
	get(a, "/chains/{chainId}/agents/facets", "get-chain-facets",
		"Counts what the agents of one chain that a search finds offer", a.listChainFacets)

	onAgent[agentInput, agentPairInput, agentChainInput](a, "", "get", "agent",
		"Returns an agent: owner, wallet, registration file, problems of that file and score", a.agent)
	onAgent[reputationInput, reputationPairInput, reputationChainInput](a, "/reputation", "get", "reputation",
		"Returns an agent's trust score and summaries of its ratings", a.reputation)
	onAgent[explainInput, explainPairInput, explainChainInput](a, "/reputation/explain", "explain", "reputation",
		"Explains an agent's score: which ratings count, by how much, and which do not", a.explain)
	onAgent[decisionInput, decisionPairInput, decisionChainInput](a, "/decision", "get", "decision",
		"Decides whether an agent may be paid or given work: allow or deny, with reasons", a.decision)
	onAgent[feedbackInput, feedbackPairInput, feedbackChainInput](a, "/feedback", "list", "feedback",
		"Lists an agent's ratings, newest first", a.feedback)
	onAgent[validationsInput, validationsPairInput, validationsChainInput](a, "/validations", "list", "validations",
		"Lists requests to validate an agent's work and their answers, newest first", a.validations)

	a.mountDocuments()
	a.mountTexts()

	get(a, "/chains", "list-chains", "Lists the chains that are indexed, with their progress", a.listChains)
	get(a, "/chains/{chainId}", "get-chain", "Returns one chain with the progress of its index", a.getChain)
	get(a, "/chains/{chainId}/status", "get-chain-status", "Returns the state of one chain's index: ok or degraded",
		a.chainStatus)
	get(a, "/status", "get-status", "Returns the state of the whole index: ok or degraded, with every chain", a.status)
}

// output is an answer with its validators.
type output[B any] struct {
	Status       int
	ETag         string `header:"ETag"`
	CacheControl string `header:"Cache-Control"`
	Body         *B
}

// agentInputOf is an input that names an agent by its path and asks Q of it.
type agentInputOf[I, Q any] interface {
	*I
	Ref() (repute.AgentRef, error)
	Query() *Q
	request() *Request
}

// settled is an answer that compares itself with what the caller has.
type settled[O any] interface {
	*O
	settle(ifNoneMatch string)
}

// onAgent mounts an operation on one agent under its three paths, with an input for each:
// path and query are parsed here, the agent is looked up in answer. The ids are as
// get-agent, get-agent-by-token and get-chain-agent. change completes the description.
func onAgent[I, J, K, Q, O any, PI agentInputOf[I, Q], PJ agentInputOf[J, Q], PK agentInputOf[K, Q], PO settled[O]](
	a *API, path, verb, noun, summary string, answer func(context.Context, repute.AgentRef, *Q) (*O, error),
	change ...func(*huma.Operation),
) {
	describe := func(under, id string) huma.Operation {
		op := describeOperation(a, under+path, id, summary)
		for _, f := range change {
			f(&op)
		}
		return op
	}
	onPath[I, Q, O, PI, PO](a, describe("/agents/{id}", verb+"-"+noun), answer)
	onPath[J, Q, O, PJ, PO](a, describe("/agents/{chainId}/{tokenId}", verb+"-"+noun+"-by-token"), answer)
	onPath[K, Q, O, PK, PO](a, describe("/chains/{chainId}/agents/{id}", verb+"-chain-"+noun), answer)
}

// onPath mounts an operation on one agent under one path.
func onPath[I, Q, O any, PI agentInputOf[I, Q], PO settled[O]](a *API, op huma.Operation,
	answer func(context.Context, repute.AgentRef, *Q) (*O, error)) {
	register[I, O, PI, PO](a, op, func(ctx context.Context, in *I) (*O, error) {
		ref, err := PI(in).Ref()
		if err != nil {
			return nil, err
		}
		return answer(ctx, ref, PI(in).Query())
	})
}

// get mounts one operation that reads.
func get[I, O any, PI requestOf[I], PO settled[O]](a *API, path, id, summary string,
	handle func(context.Context, *I) (*O, error)) {
	register[I, O, PI, PO](a, describeOperation(a, path, id, summary), handle)
}

// describeOperation describes an operation that reads.
func describeOperation(a *API, path, id, summary string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary,
		// The inputs are text and parsed by ids.go, which gives better answers.
		SkipValidateParams: true,
		Responses: map[string]*huma.Response{
			"304":     {Description: "Nothing changed since the answer with this ETag."},
			"default": a.server.Problems(),
		},
	}
}

// requestOf is an input with a request.
type requestOf[I any] interface {
	*I
	request() *Request
}

// register puts an operation on the router; every error goes through the one table.
func register[I, O any, PI requestOf[I], PO settled[O]](a *API, op huma.Operation,
	handle func(context.Context, *I) (*O, error)) {
	huma.Register(a.server.API, op, func(ctx context.Context, in *I) (*O, error) {
		r := PI(in).request()
		out, err := handle(ctx, in)
		if err != nil {
			return nil, a.server.Fail(ctx, err)
		}
		if op.Method == http.MethodGet {
			PO(out).settle(r.IfNoneMatch)
		}
		return out, nil
	})
}
