package answers

import (
	"fmt"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/internal/httpapi"
	"repute/store/query"
)

// The parameters of the REST operations, which GraphQL and the tools fill in too. The tags only
// document; ids.go parses.

// Request has the parameters of every operation. It is embedded by the parameters of each operation.
type Request struct {
	IfNoneMatch string `header:"If-None-Match" doc:"ETag of an earlier answer; 304 when nothing changed"`
	MinBlock    string `query:"minBlock" pattern:"^([1-9][0-9]{0,18}:)?[0-9]{1,18}$" doc:"block that the answer must know, with its chain as chainId:block where several are indexed: the answer waits two seconds for it and then is 503"`

	values url.Values
}

// Resolve stores the query of the URL, because an empty parameter differs from an absent one. The package huma calls
// it. It never returns an error; the signature is that of huma.Resolver.
func (r *Request) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	r.values = u.Query()
	return nil
}

// Common returns the part that every input has.
func (r *Request) Common() *Request { return r }

// SetGiven says which query parameters were given, for inputs that come by another way than HTTP. Only names with at
// least one value count. Without a call no parameter counts as given.
func (r *Request) SetGiven(values url.Values) { r.values = values }

// optional returns the value of a query parameter, nil when it is absent. Of a parameter that is given several times
// the first value counts.
func (r *Request) optional(name string) *string {
	if v, ok := r.values[name]; ok {
		return &v[0]
	}
	return nil
}

// AgentPath names an agent by one id. The pattern has the three forms of ids; a tokenId has at most 78 digits, as 2^256
// does.
type AgentPath struct {
	ID      string         `path:"id" pattern:"^(eip155:[1-9][0-9]{0,18}:0x[0-9a-fA-F]{40}:|[1-9][0-9]{0,18}:)?(0|[1-9][0-9]{0,77})$" doc:"eip155:{chainId}:{registry}:{tokenId}, {chainId}:{tokenId}, or a bare token id with chainId, with one chain indexed or with a default chain; also written /agents/{chainId}/{tokenId} and /chains/{chainId}/agents/{tokenId}" example:"8453:22"`
	ChainID httpapi.Number `query:"chainId" minimum:"1" doc:"chain of a bare token id"`
}

// Ref parses the id and the chain.
func (p *AgentPath) Ref() (repute.AgentRef, error) { return ParseAgent(p.ID, string(p.ChainID)) }

// ChainPath names a chain.
type ChainPath struct {
	ChainID httpapi.Number `path:"chainId" minimum:"1" example:"8453"`
}

// AtQuery selects the view of the chain.
type AtQuery struct {
	At string `query:"at" pattern:"^(latest|safe|finalized|[0-9]{1,19})$" doc:"latest (default), safe, finalized or a block number"`
}

// PageQuery walks a list. A cursor holds for one list: with other filters or in another order it is refused.
type PageQuery struct {
	Limit  httpapi.Number `query:"limit" minimum:"1" maximum:"200" doc:"page size, 1 to 200, 50 when absent"`
	Cursor string         `query:"cursor" doc:"next of the page before; only with the same filters"`
}

// ReputationQuery are the parameters of a reputation.
type ReputationQuery struct {
	Request
	AtQuery
	Clients string       `query:"clients" pattern:"^ *0x[0-9a-fA-F]{40} *(, *0x[0-9a-fA-F]{40} *)*$" doc:"addresses divided by commas: only their ratings count in summary; one given twice counts twice, as on chain"`
	Tag1    string       `query:"tag1" doc:"only ratings with this tag1 count in summary; all when absent"`
	Tag2    string       `query:"tag2" doc:"only ratings with this tag2 count in summary; all when absent"`
	Roots   string       `query:"roots" doc:"addresses divided by commas, no more than 100, or the name of one of the chain's sets of roots: whom to trust instead of the chain's own roots, at latest only; new roots are limited to one a second"`
	Sources string       `query:"sources" enum:"none,default" doc:"beside roots: default counts the chain's sources, facts that give raters a first weight, as in its own scores; none, which is the default, leaves them out"`
	OpenFi  httpapi.Flag `query:"openfi" doc:"1: with OpenFi's trust snapshot of the agent"`
	Signed  httpapi.Flag `query:"signed" doc:"1: with the newest final score as a signed statement that can be verified offline; the answer is of the finalized view, and any other at is refused"`
}

// FeedbackQuery are the parameters of a list of ratings.
type FeedbackQuery struct {
	Request
	AtQuery
	PageQuery
	Client         string       `query:"client" pattern:"^ *0x[0-9a-fA-F]{40} *(, *0x[0-9a-fA-F]{40} *)*$" doc:"addresses divided by commas: only their ratings"`
	Tag1           string       `query:"tag1" minLength:"0" doc:"only ratings with exactly this tag1; the empty tag is one too"`
	Tag2           string       `query:"tag2" minLength:"0" doc:"only ratings with exactly this tag2; the empty tag is one too"`
	IncludeRevoked httpapi.Flag `query:"includeRevoked" doc:"also ratings that were withdrawn"`
}

// ValidationQuery are the parameters of a list of validations.
type ValidationQuery struct {
	Request
	AtQuery
	PageQuery
	TrustedOnly httpapi.Flag `query:"trustedOnly" doc:"only allow-listed contracts"`
}

// AgentsFilter selects agents. All of it may be given together.
type AgentsFilter struct {
	SearchQuery
	Owner       string         `query:"owner" pattern:"^0x[0-9a-fA-F]{40}$" doc:"address: only agents it owns"`
	Wallet      string         `query:"wallet" pattern:"^0x[0-9a-fA-F]{40}$" doc:"address: only agents with this verified wallet"`
	MinScore    httpapi.Real   `query:"minScore" minimum:"-100" maximum:"100" doc:"-100 to 100: only rated agents, or thin ones with rating=thin, with this score or a better one"`
	MaxScore    httpapi.Real   `query:"maxScore" minimum:"-100" maximum:"100" doc:"-100 to 100: only rated agents, or thin ones with rating=thin, with this score or a worse one"`
	Tier        httpapi.Number `query:"tier" minimum:"0" maximum:"4" doc:"0 to 4: only rated agents of this tier; 0: rated ones to be rejected, rating=unrated gives the others"`
	RatedStatus string         `query:"rating" enum:"rated,thin,unrated" doc:"only agents with this status; unrated: also those without any score"`
	MinPrice    httpapi.Real   `query:"minPrice" minimum:"0" maximum:"1000000000000" doc:"only agents whose document names a domain with a known price, the lowest of which is at least this, in USD or a coin of one USD"`
	MaxPrice    httpapi.Real   `query:"maxPrice" minimum:"0" maximum:"1000000000000" doc:"as minPrice: the lowest known price is at most this"`
	Operator    string         `query:"operator" pattern:"^0x[0-9a-fA-F]{40}$" doc:"address: only agents that it may act for, approved for the agent or for all agents of its owner"`
	Host        string         `query:"host" doc:"only agents whose document has an endpoint on this host or on one below it, e.g. shop.example; domainProofs of an agent say whether the host confirms it"`
	Since       httpapi.Since  `query:"registeredSince" doc:"RFC 3339 time or date (UTC): only agents registered in a block of this time or later, not those whose block has no known time; or the number of a block, with one chain"`
	Updated     httpapi.Since  `query:"updatedSince" doc:"as registeredSince, of the last event that touched the agent"`
}

// AgentsQuery are the parameters of the list of agents.
type AgentsQuery struct {
	Request
	PageQuery
	AgentsFilter
	Fold  httpapi.Flag `query:"fold" doc:"false: near-identical agents of one owner one by one; else a search by text gives one of them, whose similar counts the others"`
	Sort  string       `query:"sort" enum:"id,feedback,updated,score,relevance" doc:"id, feedback: live ratings, updated: block of the last event, score: of agents that have one, relevance: best matches of q, among equals most ratings; relevance when absent beside any of q to minFeedback, else id"`
	Order string       `query:"order" enum:"asc,desc" doc:"asc (default for id) or desc (default for the others)"`
}

// FacetsQuery are the parameters of facets: those of the list without its order.
type FacetsQuery struct {
	Request
	AgentsFilter
}

// Filter reads the parameters of a list of feedback. A cursor is checked by the store.
func (q *FeedbackQuery) Filter() (f query.FeedbackFilter, err error) {
	f = query.FeedbackFilter{Tag1: q.optional("tag1"), Tag2: q.optional("tag2"), After: q.Cursor}
	if f.At, err = ParseAt(q.At); err != nil {
		return f, err
	}
	if f.Clients, err = ParseAddresses("client", q.Client); err != nil {
		return f, err
	}
	if f.IncludeRevoked, err = q.IncludeRevoked.Bool("includeRevoked"); err != nil {
		return f, err
	}
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// Filter reads the parameters of a list of validations.
func (q *ValidationQuery) Filter() (f query.ValidationFilter, err error) {
	f.After = q.Cursor
	if f.At, err = ParseAt(q.At); err != nil {
		return f, err
	}
	if f.TrustedOnly, err = q.TrustedOnly.Bool("trustedOnly"); err != nil {
		return f, err
	}
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// TextOf returns an optional argument as the text of a query parameter, "" for nil.
func TextOf[T any](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}
