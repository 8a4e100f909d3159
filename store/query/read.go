package query

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/scoredb"
)

// Orders of the agent list. Agents with equal keys follow by chain and token.
const (
	// SortID orders by chain and token. It is the default.
	SortID = "id"
	// SortFeedback orders by the number of live ratings.
	SortFeedback = "feedback"
	// SortUpdated orders by the time of the last event.
	SortUpdated = "updated"
	// SortScore lists agents that have a score, rated or not, ordered by it.
	SortScore = "score"
	// SortRelevance is how well a text matches, then live feedback; without a text live
	// feedback alone.
	SortRelevance = "relevance"
)

// Orders of the feedback list.
const (
	NewestFirst = "newest" // the default
	OldestFirst = "oldest"
)

// FeedbackFilter selects feedback of one agent.
type FeedbackFilter struct {
	// Clients selects ratings of these clients; nil for all.
	Clients []common.Address
	// Tag1 and Tag2 select ratings with these tags; nil for any, and "" for the empty tag.
	Tag1, Tag2 *string
	// IncludeRevoked adds revoked ratings.
	IncludeRevoked bool
	// Order is NewestFirst when empty.
	Order string
	// After is Next of the page before, which must have the same filter.
	After string
	// Limit is the size of the page, 1 to MaxPage.
	Limit int
	// At is the block of the answer.
	At repute.At
}

// ValidationFilter selects validations of one agent, newest request first.
type ValidationFilter struct {
	TrustedOnly bool   // only of contracts on the chain's allow-list
	After       string // Next of the page before, with the same filter
	Limit       int    // 1..MaxPage
	At          repute.At
}

// ReputationQuery selects what Reputation's Summary adds up.
type ReputationQuery struct {
	Clients    []common.Address // nil for all; duplicates count again, as on chain
	Tag1, Tag2 string           // "" for any, as on chain
	At         repute.At
	Run        bool // with the newest closed run too
}

// Reputation is the unweighted view of one agent, from one snapshot.
type Reputation struct {
	Agent repute.AgentID
	// Summary is of the clients and tags of the query.
	Summary repute.Summary
	Tagged  // of all clients
	// Counts are the agent's totals.
	Counts repute.AgentCounts
	// Score is the zero value when none was computed.
	Score repute.Score
	// Run is the newest closed one up to the block; zero when there is none or the query does not
	// ask for it.
	Run scoredb.Run
	// Independence is zero when the query does not ask for it.
	Independence repute.Independence
	AsOf         repute.AsOf
}
