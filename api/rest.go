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
	get(a, "/agents", "list-agents", "List or search agents", a.listAgents)
	get(a, "/chains/{chainId}/agents", "list-chain-agents", "List or search a chain's agents", a.listChainAgents)
	get(a, "/agents/facets", "get-facets", "What the agents of a search offer, counted", a.listFacets)
	get(a, "/chains/{chainId}/agents/facets", "get-chain-facets", "What the agents of a search of one chain offer, counted", a.listChainFacets)

	onAgent[agentInput](a, "/agents/{id}", "get-agent", "An agent", a.agent)
	onAgent[agentPairInput](a, "/agents/{chainId}/{tokenId}", "get-agent-by-token", "An agent", a.agent)
	onAgent[agentChainInput](a, "/chains/{chainId}/agents/{id}", "get-chain-agent", "An agent", a.agent)

	const reputation = "An agent's reputation"
	onAgent[reputationInput](a, "/agents/{id}/reputation", "get-reputation", reputation, a.reputation)
	onAgent[reputationPairInput](a, "/agents/{chainId}/{tokenId}/reputation", "get-reputation-by-token", reputation, a.reputation)
	onAgent[reputationChainInput](a, "/chains/{chainId}/agents/{id}/reputation", "get-chain-reputation", reputation, a.reputation)

	const explain = "What an agent's score is made of"
	onAgent[explainInput](a, "/agents/{id}/reputation/explain", "explain-reputation", explain, a.explain)
	onAgent[explainPairInput](a, "/agents/{chainId}/{tokenId}/reputation/explain", "explain-reputation-by-token", explain, a.explain)
	onAgent[explainChainInput](a, "/chains/{chainId}/agents/{id}/reputation/explain", "explain-chain-reputation", explain, a.explain)

	const decision = "Whether an agent may be paid or delegated to"
	onAgent[decisionInput](a, "/agents/{id}/decision", "get-decision", decision, a.decision)
	onAgent[decisionPairInput](a, "/agents/{chainId}/{tokenId}/decision", "get-decision-by-token", decision, a.decision)
	onAgent[decisionChainInput](a, "/chains/{chainId}/agents/{id}/decision", "get-chain-decision", decision, a.decision)

	const feedback = "An agent's ratings, newest first"
	onAgent[feedbackInput](a, "/agents/{id}/feedback", "list-feedback", feedback, a.feedback)
	onAgent[feedbackPairInput](a, "/agents/{chainId}/{tokenId}/feedback", "list-feedback-by-token", feedback, a.feedback)
	onAgent[feedbackChainInput](a, "/chains/{chainId}/agents/{id}/feedback", "list-chain-feedback", feedback, a.feedback)

	const validations = "An agent's validations, newest first"
	onAgent[validationsInput](a, "/agents/{id}/validations", "list-validations", validations, a.validations)
	onAgent[validationsPairInput](a, "/agents/{chainId}/{tokenId}/validations", "list-validations-by-token", validations, a.validations)
	onAgent[validationsChainInput](a, "/chains/{chainId}/agents/{id}/validations", "list-chain-validations", validations, a.validations)

	a.mountDocuments()
	a.mountTexts()

	get(a, "/chains", "list-chains", "The chains that are indexed", a.listChains)
	get(a, "/chains/{chainId}", "get-chain", "One chain", a.getChain)
	get(a, "/chains/{chainId}/status", "get-chain-status", "The index of one chain", a.chainStatus)
	get(a, "/status", "get-status", "The index as a whole", a.status)
}

// output is an answer with its validators.
type output[B any] struct {
	Status       int
	ETag         string `header:"ETag"`
	CacheControl string `header:"Cache-Control"`
	Body         *B
}

// onAgent mounts an operation on one agent: path and query are parsed here, the
// agent is looked up in answer.
func onAgent[I, Q, B any, P interface {
	*I
	Ref() (repute.AgentRef, error)
	Query() *Q
	request() *Request
}](a *API, path, id, summary string, answer func(context.Context, repute.AgentRef, *Q) (*output[B], error)) {
	get[I, B, P](a, path, id, summary, func(ctx context.Context, in *I) (*output[B], error) {
		ref, err := P(in).Ref()
		if err != nil {
			return nil, err
		}
		return answer(ctx, ref, P(in).Query())
	})
}

// get mounts one operation: mistakes in the query first, then the handler,
// then every error through the one table.
func get[I, B any, P interface {
	*I
	request() *Request
}](a *API, path, id, summary string, handle func(context.Context, *I) (*output[B], error)) {
	register(a, describeOperation(a, http.MethodGet, path, id, summary), handle, func(in *I) *Request { return P(in).request() })
}

func describeOperation(a *API, method, path, id, summary string) huma.Operation {
	op := huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary,
		// The inputs are text and parsed by ids.go, which gives better answers.
		SkipValidateParams: true,
		Responses:          map[string]*huma.Response{"default": problemResponse(a.huma)},
	}
	if method == http.MethodGet {
		op.Responses["304"] = &huma.Response{Description: "Nothing changed since the answer with this ETag."}
	}
	return op
}

// register puts an operation on the router; requestOf finds its request.
func register[I, B any](a *API, op huma.Operation, handle func(context.Context, *I) (*output[B], error), requestOf func(*I) *Request) {
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*output[B], error) {
		r := requestOf(in)
		if r.err != nil {
			return nil, a.fail(ctx, r.err)
		}
		out, err := handle(ctx, in)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		if op.Method == http.MethodGet {
			out.settle(r.IfNoneMatch)
		}
		return out, nil
	})
}
