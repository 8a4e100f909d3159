package wire

import (
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
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
		Redis   string `json:"redis,omitempty" enum:"ok,away" doc:"away: Redis is down, each process limits callers by itself; absent where none is configured"`
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

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b AgentAnswer) Steady() any { b.AsOf = SteadyAsOf(b.AsOf); return b }

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b ReputationAnswer) Steady() any { b.AsOf = SteadyAsOf(b.AsOf); return b }

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b AgentList) Steady() any { b.AsOf = Each(b.AsOf, SteadyAsOf); return b }

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b FeedbackList) Steady() any { b.AsOf = Each(b.AsOf, SteadyAsOf); return b }

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b ValidationList) Steady() any { b.AsOf = Each(b.AsOf, SteadyAsOf); return b }

// NewStatus is what /status answers about chains, for other ways to show it.
func NewStatus(version string, chains []repute.ChainStatus) StatusAnswer {
	s := StatusAnswer{Version: version, Status: "ok", Chains: Each(chains, EncodeChain)}
	for _, c := range chains {
		notStarted := c.Block.Hash == (common.Hash{}) && !c.Imported
		if notStarted || c.Halted || c.Stalled || c.Failing() || c.Scoring.Late && c.Scoring.Run > 0 ||
			c.Completeness.Status == repute.Incomplete {
			s.Status = "degraded"
		}
	}
	return s
}
