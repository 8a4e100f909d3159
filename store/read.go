package store

import (
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Everywhere below, At has no default: the zero At is block 0, as in package
// repute. Callers who want the newest state say repute.Latest.

// MaxPage is the largest page of any list.
const MaxPage = 200

// Page is one page of a list and what it is true at: one AsOf per chain asked.
type Page[T any] struct {
	Items []T
	Next  string // cursor of the next page, "" at the end
	AsOf  []repute.AsOf
}

// FirstRows are the first rows of a list that several agents have one of each.
type FirstRows[T any] struct {
	Items []T
	More  bool // there are others
}

// firstRowsOf parts rows, in order, by their agents. Each has up to limit of them, and one more
// where there are others.
func firstRowsOf[T any](rows []T, agentOf func(T) repute.AgentID, limit int) map[repute.AgentID]FirstRows[T] {
	out := map[repute.AgentID]FirstRows[T]{}
	for _, row := range rows {
		id := agentOf(row)
		h := out[id]
		if h.More = len(h.Items) == limit; !h.More {
			h.Items = append(h.Items, row)
		}
		out[id] = h
	}
	return out
}

// Orders of the agent list. Agents with equal keys follow by chain and token.
const (
	SortID       = "id"       // chain, token; the default
	SortFeedback = "feedback" // live feedback
	SortUpdated  = "updated"  // time of the last event
	SortScore    = "score"    // of agents that have one, rated or not
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
	Clients        []common.Address // nil for all
	Tag1, Tag2     *string          // nil for any; "" is the empty tag
	IncludeRevoked bool
	Order          string // NewestFirst when empty
	After          string // Next of the page before, with the same filter
	Limit          int    // 1..MaxPage
	At             repute.At
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
	Agent   repute.AgentID
	Summary repute.Summary // of the query's clients and tags
	Tagged                 // of all clients
	Counts  repute.AgentCounts
	// Score is the zero one, unrated, when none was computed.
	Score        repute.Score
	Run          TrustRun // the newest closed one up to the block asked; zero where there is none or the query wants none
	Independence repute.Independence
	AsOf         repute.AsOf
}

// URI is a claimed entry of the document queue.
type URI struct {
	ID                 int64
	URI                string // raw bytes of the chain
	Kind, Host         string
	Rank               Rank
	Attempts           int // claims since the last success, this one included
	Failures           int // in a row
	ETag, LastModified string
	// Used: an agent shows it now, or a file that an agent shows names its domain;
	// always true of files.
	Used bool
	// Denied is set where the operator's deny-list forbids the fetch.
	Denied *repute.DeniedError
	// Claimed is until when the claim holds, by the database's clock: FetchResult.Claimed.
	Claimed time.Time
}

// URIStats counts document URIs.
type URIStats struct {
	Total    int64 // distinct URIs, the empty one excluded
	Due      int64 // waiting now
	Planned  int64 // with a next try, due or later
	ByStatus map[repute.DocumentStatus]int64
	ByReason map[string]int64 // last failures by code
}
