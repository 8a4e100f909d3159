package api

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/httpapi"
	"repute/store/chaindb"
	"repute/store/docdb"
	"repute/store/query"
)

// The bodies of the REST answers.
type (
	// AgentAnswer is one agent.
	AgentAnswer struct {
		Agent
		// Beside holds what others say of the document.
		Beside
		AsOf AsOf `json:"asOf"`
	}
	// AgentList is a page of agents.
	AgentList struct {
		Items []Agent `json:"items"`
		Next  *string `json:"next" doc:"cursor of the next page, null at the end"`
		Total Total   `json:"total" doc:"how many there are on all pages"`
		Match *string `json:"match" enum:"all,most,near" doc:"all: every item has all words of q; most: no agent has all of them, every item has more than half of them, or one of two; near: no agent has these either, every item has a name with words that are nearly the same; null without q, and when no agent matches"`
		AsOf  []AsOf  `json:"asOf" doc:"one per chain asked"`
	}
	// ReputationAnswer is what a runtime asks before it pays or delegates.
	ReputationAnswer struct {
		Agent ID `json:"agent" doc:"agent id"`
		Scored
		Independence Independence `json:"independence" doc:"how far the raters look like different people; no part of the score"`
		Summary      Summary      `json:"summary" doc:"exactly what the registry's getSummary(clients, tag1, tag2) returns; without clients over all of them"`
		Tags         []TagSummary `json:"tags" doc:"robust view of the hundred tag1 with most ratings: one vote per reviewer, not narrowed by clients and tags"`
		// TagsTotal is beside what is shown of them.
		TagsTotal Long   `json:"tagsTotal" doc:"how many tag1 are in use"`
		Counts    Counts `json:"counts"`
		// OpenFi is there where it was asked for.
		OpenFi *OpenFi `json:"openfi,omitempty" doc:"OpenFi's checks of who the agent is; no part of the score"`
		// Signed is there where it was asked for.
		Signed *SignedScore `json:"signed,omitempty" doc:"the final score as EIP-712 typed data with its signature"`
		AsOf   AsOf         `json:"asOf"`
	}
	// FeedbackList is a page of ratings.
	FeedbackList struct {
		Items []Feedback `json:"items"`
		Next  *string    `json:"next" doc:"cursor of the next page, null at the end"`
		AsOf  []AsOf     `json:"asOf"`
	}
	// ValidationList is a page of validations.
	ValidationList struct {
		Items []Validation `json:"items"`
		Next  *string      `json:"next" doc:"cursor of the next page, null at the end"`
		AsOf  []AsOf       `json:"asOf"`
	}
	// ChainList is every chain.
	ChainList struct {
		Items []Chain `json:"items"`
	}
	// StatusAnswer is the index as a whole.
	StatusAnswer struct {
		Version string `json:"version"`
		Status  string `json:"status" enum:"ok,degraded" doc:"degraded: a chain is halted, stalled, failing or incomplete"`
		Redis   string `json:"redis,omitempty" enum:"ok,away" doc:"away: processes count their callers each alone; absent where none is configured"`
		// Documents is as FetchState says.
		Documents string `json:"documents,omitempty" enum:"unfetched,late" doc:"unfetched: documents wait and no process with the role documents runs; late: they wait for a quarter of an hour; absent while they are fetched in time"`
		// Database is absent where this process keeps no Postgres of its own.
		Database *DatabaseState `json:"database,omitempty" doc:"the private Postgres that this process keeps running; absent where another one is used"`
		Chains   []Chain        `json:"chains"`
	}
	// DatabaseState says how often a private Postgres was started again.
	DatabaseState struct {
		Restarts    int        `json:"restarts" minimum:"0" doc:"how often it ended by itself and was started again, since this process started"`
		RestartedAt *time.Time `json:"restartedAt,omitempty" doc:"when it was started again last; absent: never"`
	}
)

func (b AgentAnswer) steady() any      { b.AsOf = b.AsOf.steady(); return b }
func (b ReputationAnswer) steady() any { b.AsOf = b.AsOf.steady(); return b }
func (b AgentList) steady() any        { b.AsOf = each(b.AsOf, AsOf.steady); return b }
func (b FeedbackList) steady() any     { b.AsOf = each(b.AsOf, AsOf.steady); return b }
func (b ValidationList) steady() any   { b.AsOf = each(b.AsOf, AsOf.steady); return b }

// resolve fills in what the caller left open and says how ids look when there
// is nothing of that name.
func (a *API) resolve(ctx context.Context, ref repute.AgentRef) (repute.AgentID, error) {
	id, err := chaindb.ResolveAgent(ctx, a.db, ref, a.defaultChain)
	return id, missing(err, repute.AgentIDForms+"; GET /chains lists the chains that are indexed")
}

// unknownAgent says where to look for an agent that is not there although its id can be.
func unknownAgent(err error) error {
	return missing(err, "GET /agents and the tool repute_search_agents list the agents that are, GET /chains how far each chain is indexed")
}

// missing adds a hint to what was not found and has none.
func missing(err error, hint string) error {
	if !errors.Is(err, repute.ErrNotFound) {
		return err
	}
	b := *httpapi.ErrorOf(err)
	b.Hint = cmp.Or(b.Hint, hint)
	return &b
}

// agent serves GET /agents/{id}.
func (a *API) agent(ctx context.Context, ref repute.AgentRef, q *AgentQuery) (*output[AgentAnswer], error) {
	agent, asOf, at, err := a.agentAt(ctx, ref, q.At)
	if err != nil {
		return nil, err
	}
	beside, err := a.beside(ctx, agent, at)
	if err != nil {
		return nil, unknownAgent(err)
	}
	return ok(AgentAnswer{Agent: encodeAgentAt(agent, at), Beside: beside, AsOf: encodeAsOf(asOf)}), nil
}

// agentAt is an agent in the view that a caller wrote.
func (a *API) agentAt(ctx context.Context, ref repute.AgentRef, view string) (agent repute.Agent, asOf repute.AsOf,
	at repute.At, err error) {
	if at, err = parseAt(view); err != nil {
		return agent, asOf, at, err
	}
	id, err := a.resolve(ctx, ref)
	if err != nil {
		return agent, asOf, at, err
	}
	agent, asOf, err = query.Agent(ctx, a.db, id, at)
	return agent, asOf, at, unknownAgent(err)
}

// reputation serves GET /agents/{id}/reputation: score, gates and what clients say, of one
// snapshot.
func (a *API) reputation(ctx context.Context, ref repute.AgentRef, q *ReputationQuery) (*output[ReputationAnswer],
	error) {
	sign, view, err := signedAt(q.Signed, q.At)
	if err != nil {
		return nil, err
	}
	at, err := parseAt(view)
	if err != nil {
		return nil, err
	}
	clients, err := parseAddresses("clients", q.Clients)
	if err != nil {
		return nil, err
	}
	if err := checkRoots(q.Roots, sign, at); err != nil {
		return nil, err
	}
	openfi, err := q.OpenFi.Bool("openfi")
	if err != nil {
		return nil, err
	}
	id, err := a.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	r, err := query.ReadReputation(ctx, a.db, id, query.ReputationQuery{Clients: clients, Tag1: q.Tag1, Tag2: q.Tag2,
		At: at, Run: sign})
	if err != nil {
		return nil, unknownAgent(err)
	}
	var signed *SignedScore
	if sign {
		if signed, err = a.signedScore(&r, time.Now()); err != nil {
			return nil, err
		}
	}
	scored, err := a.scored(ctx, id, r.Score, q.Roots)
	if err != nil {
		return nil, unknownAgent(err)
	}
	var checks *OpenFi
	if openfi {
		if checks, err = a.openFi(ctx, id, at); err != nil {
			return nil, unknownAgent(err)
		}
	}
	out := ok(ReputationAnswer{
		Agent: ID(id.String()), Scored: scored, Signed: signed, OpenFi: checks,
		Independence: encodeIndependence(r.Independence),
		Summary:      encodeSummary(r.Summary), Tags: each(r.Tags, a.encodeTag), TagsTotal: Long(r.Total),
		Counts: encodeCounts(r.Counts), AsOf: encodeAsOf(r.AsOf),
	})
	if sign {
		out.CacheControl = asked
	}
	return out, nil
}

// feedback serves GET /agents/{id}/feedback.
func (a *API) feedback(ctx context.Context, ref repute.AgentRef, q *FeedbackQuery) (*output[FeedbackList], error) {
	f, err := q.filter()
	if err != nil {
		return nil, err
	}
	id, err := a.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	page, err := query.Feedback(ctx, a.db, id, f)
	if err != nil {
		return nil, unknownAgent(err)
	}
	return ok(FeedbackList{Items: each(page.Items, encodeFeedback), Next: orNull(page.Next),
		AsOf: each(page.AsOf, encodeAsOf)}), nil
}

// filter reads the parameters of a list of feedback.
func (q *FeedbackQuery) filter() (f query.FeedbackFilter, err error) {
	f = query.FeedbackFilter{Tag1: q.optional("tag1"), Tag2: q.optional("tag2"), After: q.Cursor}
	if f.At, err = parseAt(q.At); err != nil {
		return f, err
	}
	if f.Clients, err = parseAddresses("client", q.Client); err != nil {
		return f, err
	}
	if f.IncludeRevoked, err = q.IncludeRevoked.Bool("includeRevoked"); err != nil {
		return f, err
	}
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// validations serves GET /agents/{id}/validations.
func (a *API) validations(ctx context.Context, ref repute.AgentRef, q *ValidationQuery) (*output[ValidationList],
	error) {
	f, err := q.filter()
	if err != nil {
		return nil, err
	}
	id, err := a.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	page, err := query.Validations(ctx, a.db, id, f)
	if err != nil {
		return nil, unknownAgent(err)
	}
	return ok(ValidationList{Items: each(page.Items, encodeValidation), Next: orNull(page.Next),
		AsOf: each(page.AsOf, encodeAsOf)}), nil
}

// filter reads the parameters of a list of validations.
func (q *ValidationQuery) filter() (f query.ValidationFilter, err error) {
	f.After = q.Cursor
	if f.At, err = parseAt(q.At); err != nil {
		return f, err
	}
	if f.TrustedOnly, err = q.TrustedOnly.Bool("trustedOnly"); err != nil {
		return f, err
	}
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// listAgents serves GET /agents: lists, or searches where a search parameter is given.
func (a *API) listAgents(ctx context.Context, in *agentsInput) (*output[AgentList], error) {
	chains, err := parseChains(in.ChainIDs)
	if err != nil {
		return nil, err
	}
	return a.agents(ctx, &in.AgentsQuery, chains)
}

// listChains serves GET /chains.
func (a *API) listChains(ctx context.Context, _ *plainInput) (*output[ChainList], error) {
	chains, err := query.Chains(ctx, a.db)
	if err != nil {
		return nil, err
	}
	return ok(ChainList{Items: each(chains, encodeChain)}), nil
}

// getChain serves GET /chains/{chainId}.
func (a *API) getChain(ctx context.Context, in *chainInput) (*output[Chain], error) {
	chain, err := a.chain(ctx, string(in.ChainID))
	if err != nil {
		return nil, err
	}
	return ok(encodeChain(chain)), nil
}

// chain returns a chain that is indexed. The error names those that are.
func (a *API) chain(ctx context.Context, id string) (repute.ChainStatus, error) {
	want, err := repute.ParseChainID(id)
	if err != nil {
		return repute.ChainStatus{}, err
	}
	chains, err := query.Chains(ctx, a.db)
	if err != nil {
		return repute.ChainStatus{}, err
	}
	for _, c := range chains {
		if c.Chain.ID == want {
			return c, nil
		}
	}
	return repute.ChainStatus{}, repute.Missing("chain %d", want)
}

// chainStatus serves GET /chains/{chainId}/status.
func (a *API) chainStatus(ctx context.Context, in *chainInput) (*output[StatusAnswer], error) {
	chain, err := a.chain(ctx, string(in.ChainID))
	if err != nil {
		return nil, err
	}
	return ok(a.statusOf([]repute.ChainStatus{chain})), nil
}

// status serves GET /status.
func (a *API) status(ctx context.Context, _ *plainInput) (*output[StatusAnswer], error) {
	chains, err := query.Chains(ctx, a.db)
	if err != nil {
		return nil, err
	}
	s := a.statusOf(chains)
	s.Redis = a.server.Redis(ctx)
	fetching, err := docdb.ReadFetching(ctx, a.db)
	if err != nil {
		return nil, err
	}
	s.Documents = FetchState(fetching, time.Now())
	if a.restarts != nil {
		s.Database = databaseState(a.restarts())
	}
	return ok(s), nil
}

func databaseState(n int, last time.Time) *DatabaseState {
	s := &DatabaseState{Restarts: n}
	if !last.IsZero() {
		at := last.UTC().Truncate(time.Second)
		s.RestartedAt = &at
	}
	return s
}

func (a *API) statusOf(chains []repute.ChainStatus) StatusAnswer { return NewStatus(a.version, chains) }

// How long documents may wait: for a process that starts, and for those that work.
const (
	fetchStart = time.Minute
	fetchLate  = 15 * time.Minute
)

// FetchState is StatusAnswer.Documents: "" while documents are fetched in time,
// "unfetched" where they wait and no process fetches any, "late" where they wait long.
func FetchState(f docdb.Fetching, now time.Time) string {
	switch waits := now.Sub(f.Since); {
	case f.Since.IsZero() || waits < fetchStart:
		return ""
	case !f.Workers:
		return "unfetched"
	case waits > fetchLate:
		return "late"
	}
	return ""
}

// NewStatus is what /status answers about chains, for other ways to show it.
func NewStatus(version string, chains []repute.ChainStatus) StatusAnswer {
	s := StatusAnswer{Version: version, Status: "ok", Chains: each(chains, encodeChain)}
	for _, c := range chains {
		notStarted := c.Block.Hash == (common.Hash{}) && !c.Imported
		if notStarted || c.Halted || c.Stalled || c.Failing() || c.Scoring.Late && c.Scoring.Run > 0 ||
			c.Completeness.Status == repute.Incomplete {
			s.Status = "degraded"
		}
	}
	return s
}
