// Package api serves the index over HTTP: REST described by OpenAPI 3.1, health and metrics, the change feed, and the
// tools of agents. It mounts what packages below it serve: GraphQL (graph), the agent0 subgraph (subgraph), exports
// (export), the IPFS gateway (ipfs), and the dashboard (package web), which asks GraphQL alone.
//
// # From a request to an answer
//
// New adds all routes to an httpapi.Server, whose middleware has identified, limited and authorized the caller before a
// handler runs. The table of the REST routes is API.mount. A route has a type for its parameters, whose tags are its
// documentation, and a handler that returns an output of a type of package wire:
//
//   - get mounts an operation, and onAgent one on the agent that the path names. byFilter, byAddress and byAgent make
//     the handlers of operations that only parse a filter and read a page by it.
//   - Parameters arrive as text. Package answers parses them, so that the error names the parameter and what is
//     allowed, and GraphQL and the tools, which fill in the same types, refuse the same.
//   - register resolves minBlock, converts errors to problems, and sets the ETag: a hash of the body without what
//     changes by the clock alone (Steady). A caller with the same ETag gets 304.
//
// All forms of an agent's path (/agents/8453:22, /agents/8453/22, /chains/8453/agents/22) become one before the router
// sees them (oneForm), so that there is one route for each operation.
//
// The tools of MCP call the handlers of the routes, and return the same bodies.
//
// # What callers may rely on
//
// Data and its asOf come from one database snapshot. Everything is read-only but the refresh of a document. Whatever
// comes from the chain or from documents is hostile text: mended, bounded, and never sent as a page. Answers at the
// newest block may be one second old: package hot keeps some in memory while the database does not change, and the
// server keeps public ones in Redis for a second. Neither hides a change that a stream of the process has sent.
//
// An API makes no request when it is made, so that a process starts while its database is unavailable: /healthz says
// that it runs, and /readyz why it cannot answer.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"repute/api/answers"
	"repute/api/export"
	"repute/api/feed"
	"repute/api/graph"
	"repute/api/hot"
	"repute/api/ipfs"
	"repute/api/subgraph"
	"repute/internal/httpapi"
	"repute/mcp"
	"repute/store"
	"repute/store/searchdb"
	"repute/trust/explain"
	"repute/trust/statement"
	"repute/web"
)

// Options configure the API. Server and DB are required; the zero value of everything else is
// usable.
type Options struct {
	// Server gets the routes.
	Server *httpapi.Server
	DB     *store.DB
	// DefaultChain completes bare token ids where several chains are indexed.
	DefaultChain uint64
	// Version of the program, shown by /status.
	Version string
	// PublicURL is the URL of the server for links in evaluations, without a slash at the end. Empty: the origin of the
	// request.
	PublicURL string
	// Ready adds a condition to /readyz that only the caller can check, such as that an RPC
	// endpoint answers. Its error is shown to callers.
	Ready func(context.Context) error
	// Restarts returns how often the Postgres that this process manages was restarted, and when
	// last. Nil: this process manages none.
	Restarts func() (n int, last time.Time)
	// Trust tunes explanations of scores and scores by a caller's roots.
	Trust explain.Options
	// Tools receives the tools that read the index, and is served at /mcp. Nil: neither.
	Tools *mcp.Server
	// Signer signs final scores on request. Nil: nothing is signed.
	Signer *statement.Signer
	// Intents finds the intents of manifests. Nil: by their words.
	Intents answers.IntentFinder
	// Feed is the reader of the change feed that the process shares. Nil: one of its own.
	Feed *feed.Feed
	// Done ends streams when it is closed, so that a server can stop. Nil: never.
	Done <-chan struct{}
	// Work reads tasks and runs for GraphQL, and Treasury what they spend from. Nil: no orchestrator is served.
	Work     graph.Work
	Treasury graph.Treasurer
	// Files reads URLs whose files are checked. Nil: only content that is given can be checked.
	Files graph.Fetcher
	// CacheName tells apart servers on one Redis whose answers differ: by their database, and by what is configured.
	CacheName string
	// Streams is how many streams one caller may follow at the same time: 8. AllStreams is how many all callers may:
	// 4000.
	Streams, AllStreams int
	// SlowAfter is how long a client of GraphQL subscriptions may accept no event: 10 s.
	SlowAfter time.Duration
	// QueryDepth is the deepest nesting of a GraphQL query: 16, so that the
	// introspection query of common tools fits.
	QueryDepth int
	// QueryCost is the largest number of rows that a GraphQL query may request: 10000.
	QueryCost int
}

// API serves the routes of the index. Make one with New.
type API struct {
	*answers.Index
	server    *httpapi.Server
	publicURL string
	ready     func(context.Context) error
	readiness readiness
	log       *slog.Logger
	restarts  func() (n int, last time.Time)
	feed      *feed.Feed
	streams   httpapi.StreamLimit
	done      <-chan struct{}
}

// New adds the routes of the index to the server of o. It makes no request, so that it succeeds
// also while the database is unavailable.
func New(o Options) (*API, error) {
	httpapi.Fill(&o.QueryDepth, 16)
	httpapi.Fill(&o.QueryCost, 10_000)
	httpapi.Fill(&o.Streams, 8)
	httpapi.Fill(&o.AllStreams, 4000)
	searchdb.SetTimeouts(o.DB, searchdb.Timeouts{Search: 3 * time.Second, Count: time.Second})
	a := &API{server: o.Server, ready: o.Ready, log: o.Server.Log, restarts: o.Restarts, done: o.Done,
		feed: o.Feed, publicURL: o.PublicURL,
		streams: httpapi.StreamLimit{Caller: o.Streams, All: o.AllStreams}}
	if err := a.server.Registry.Register(newIndexCollector(o.DB, a.log)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if a.feed == nil {
		a.feed = feed.New(o.DB, a.log)
	}
	a.server.CacheAnswers(o.CacheName, a.feed.Newest)
	var err error
	if a.Index, err = answers.New(answers.Options{Server: o.Server, DB: o.DB, DefaultChain: o.DefaultChain,
		Version: o.Version,
		Trust:   o.Trust, Signer: o.Signer, Intents: o.Intents}); err != nil {
		return nil, err
	}
	a.server.Rewrite(oneForm)
	// Scores by a caller's roots count against its limit, and statements have a time of their own.
	a.server.Echo.Use(hot.New(o.DB, []string{"roots", "signed"}, "/agents/:id", "/agents/:id/reputation",
		"/agents/:id/decision", "/agents/:id/badge.svg").Middleware)
	a.mount()
	a.mountHealth()
	a.mountChanges()
	export.Mount(o.Server, o.DB)
	queries, err := graph.Mount(o.Server, a.Index, graph.Options{Depth: o.QueryDepth, Cost: o.QueryCost,
		Feed: a.feed, Streams: &a.streams, Done: o.Done, SlowAfter: o.SlowAfter,
		Work: o.Work, Treasury: o.Treasury, Files: o.Files})
	if err != nil {
		return nil, err
	}
	a.mountKeys()
	return a, errors.Join(web.Mount(web.Options{Server: o.Server, GraphQL: queries}), a.mountTools(o.Tools),
		ipfs.Mount(o.Server, o.DB), subgraph.Mount(o.Server, o.DB), a.mountAdmin())
}
