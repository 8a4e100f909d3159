package api

import (
	"net/url"

	"repute"
	"repute/internal/httpapi"

	"github.com/danielgtaylor/huma/v2"
)

// The inputs of the REST operations. Everything arrives as text and is parsed
// by ids.go, so that each mistake is answered 400 with the name of the
// parameter; the tags here only document. Names are exported for the router,
// which reads them by reflection.

// Number is a parameter documented as an integer.
type Number string

// Schema says integer.
func (Number) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
}

// Real is a parameter documented as a number.
type Real string

// Schema says number.
func (Real) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }

// Flag is a parameter documented as a boolean.
type Flag string

// Schema says boolean.
func (Flag) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeBoolean} }

// Request is what every operation has.
type Request struct {
	IfNoneMatch string `header:"If-None-Match" doc:"ETag of an earlier answer; 304 when nothing changed"`

	values url.Values
	err    error
}

// Resolve keeps the query as it came: an empty parameter is not an absent one.
// Unknown, repeated and empty parameters are refused, since ignoring a mistyped or
// forgotten filter would answer another question.
func (r *Request) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		r.err = repute.Invalid("query", "not a query string", "percent-encode it")
		return nil
	}
	r.values, r.err = values, httpapi.CheckQuery(values, ctx.Operation().Parameters)
	return nil
}

func (r *Request) request() *Request { return r }

// optional is nil when the parameter is absent.
func (r *Request) optional(name string) *string {
	if v, ok := r.values[name]; ok {
		return &v[0]
	}
	return nil
}

// AgentPath names an agent by one id.
type AgentPath struct {
	ID      string `path:"id" doc:"eip155:{chainId}:{registry}:{tokenId}, {chainId}:{tokenId}, or a bare token id with chainId, with one chain indexed or with a default chain" example:"8453:22"`
	ChainID Number `query:"chainId" doc:"chain of a bare token id"`
}

// Ref reads the id with the chain beside it.
func (p *AgentPath) Ref() (repute.AgentRef, error) { return parseAgent(p.ID, string(p.ChainID)) }

// PairPath names an agent by chain and token.
type PairPath struct {
	ChainID Number `path:"chainId" example:"8453"`
	TokenID string `path:"tokenId" doc:"uint256, decimal" example:"22"`
}

// Ref reads chain and token.
func (p *PairPath) Ref() (repute.AgentRef, error) { return parsePair(string(p.ChainID), p.TokenID) }

// ChainPath is the chain a whole tree of operations is mounted under.
type ChainPath struct {
	ChainID Number `path:"chainId" example:"8453"`
}

// ChainAgentPath names an agent of the chain in the path.
type ChainAgentPath struct {
	ChainPath
	ID string `path:"id" doc:"token id, or any longer form that names the same chain" example:"22"`
}

// Ref reads the id, which must not name another chain than the path.
func (p *ChainAgentPath) Ref() (repute.AgentRef, error) { return parseAgent(p.ID, string(p.ChainID)) }

// AtQuery selects the view of the chain.
type AtQuery struct {
	At string `query:"at" doc:"latest (default), safe, finalized or a block number"`
}

// PageQuery walks a list.
type PageQuery struct {
	Limit  Number `query:"limit" doc:"page size, 1 to 200, 50 when absent"`
	Cursor string `query:"cursor" doc:"next of the page before; only with the same filters"`
}

// AgentQuery are the parameters of an agent.
type AgentQuery struct {
	Request
	AtQuery
}

// Query is the query itself, also where it is embedded.
func (q *AgentQuery) Query() *AgentQuery { return q }

// ReputationQuery are the parameters of a reputation.
type ReputationQuery struct {
	Request
	AtQuery
	Clients string `query:"clients" doc:"addresses divided by commas: only their ratings count in summary; one given twice counts twice, as on chain"`
	Tag1    string `query:"tag1" doc:"only ratings with this tag1 count in summary; all when absent"`
	Tag2    string `query:"tag2" doc:"only ratings with this tag2 count in summary; all when absent"`
	Roots   string `query:"roots" doc:"addresses divided by commas, no more than 100, or the name of one of the chain's sets of roots: whom to trust instead of the chain's own roots, at latest only; new roots are limited to one a second"`
	OpenFi  Flag   `query:"openfi" doc:"1: with OpenFi's trust snapshot of the agent"`
	Signed  Flag   `query:"signed" doc:"1: with the newest final score as a signed statement that can be verified offline; the answer is of the finalized view, and any other at is refused"`
}

// Query is the query itself, also where it is embedded.
func (q *ReputationQuery) Query() *ReputationQuery { return q }

// FeedbackQuery are the parameters of a list of ratings.
type FeedbackQuery struct {
	Request
	AtQuery
	PageQuery
	Client         string `query:"client" doc:"addresses divided by commas: only their ratings"`
	Tag1           string `query:"tag1" doc:"only ratings with exactly this tag1; the empty tag is one too"`
	Tag2           string `query:"tag2" doc:"only ratings with exactly this tag2; the empty tag is one too"`
	IncludeRevoked Flag   `query:"includeRevoked" doc:"also ratings that were withdrawn"`
}

// Query is the query itself, also where it is embedded.
func (q *FeedbackQuery) Query() *FeedbackQuery { return q }

// ValidationQuery are the parameters of a list of validations.
type ValidationQuery struct {
	Request
	AtQuery
	PageQuery
	TrustedOnly Flag `query:"trustedOnly" doc:"only allow-listed contracts"`
}

// Query is the query itself, also where it is embedded.
func (q *ValidationQuery) Query() *ValidationQuery { return q }

// AgentsFilter selects agents; what is in SearchQuery makes a search of a list.
type AgentsFilter struct {
	SearchQuery
	Owner  string `query:"owner" doc:"address: only agents it owns"`
	Wallet string `query:"wallet" doc:"address: only agents with this verified wallet"`
}

// AgentsQuery are the parameters of the list of agents.
type AgentsQuery struct {
	Request
	PageQuery
	AgentsFilter
	MinScore    string `query:"minScore" doc:"-100 to 100: only rated agents with this score or a better one; not of a search"`
	Tier        Number `query:"tier" doc:"0 to 4: only rated agents of this tier; 0: rated ones to be rejected, rating=unrated gives the others; not of a search"`
	RatedStatus string `query:"rating" enum:"rated,unrated" doc:"only agents that are rated, or only those that are not; not of a search"`
	Sort        string `query:"sort" enum:"id,feedback,updated,score,relevance" doc:"id (default), feedback: live ratings, updated: block of the last event, score: of agents that have one; relevance (default and only one of a search): best matches, among equals most ratings"`
	Order       string `query:"order" enum:"asc,desc" doc:"asc (default for id) or desc (default for feedback, updated and score); not of a search"`
}

// FacetsQuery are the parameters of facets: those of the list without its order.
type FacetsQuery struct {
	Request
	AgentsFilter
}
