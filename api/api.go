// Package api serves the index over HTTP: REST described by OpenAPI 3.1, health and metrics, the tools
// of agents, and a few pages for people; it mounts GraphQL (package graph) and the IPFS gateway
// (package ipfs). Handlers decode, ask package answers or the store, and encode with package wire.
// Everything is read-only, and whatever comes from the chain or from documents is treated as hostile
// text.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"repute/api/answers"
	"repute/api/graph"
	"repute/api/ipfs"
	"repute/internal/httpapi"
	"repute/mcp"
	"repute/store"
	"repute/trust/engine"
	"repute/trust/statement"
)

// Options say what the API serves and how much of it. Server and DB are needed; the
// zero value of everything else works.
type Options struct {
	// Server gets the routes.
	Server *httpapi.Server
	DB     *store.DB
	// DefaultChain completes bare token ids where several chains are indexed.
	DefaultChain uint64
	// Version of the program, shown by /status.
	Version string
	// Ready adds to /readyz what only the caller knows, e.g. that an RPC
	// endpoint answers. Its error is shown to callers.
	Ready func(context.Context) error
	// Restarts says how often the Postgres that this process keeps was started again, and when
	// last. Nil: this process keeps none.
	Restarts func() (n int, last time.Time)
	// Trust tunes explanations of scores and scores by a caller's roots.
	Trust engine.ReaderOptions
	// Tools gets the tools that ask the index, and is served at /mcp. Nil: neither.
	Tools *mcp.Server
	// Signer signs final scores for those who ask. Nil: nothing is signed.
	Signer *statement.Signer
	// QueryDepth is the deepest nesting of a GraphQL query: 16, so that the
	// introspection query of common tools fits.
	QueryDepth int
	// QueryCost is how many rows a GraphQL query may ask for: 10000.
	QueryCost int
}

// API serves the routes of the index. Make one with New.
type API struct {
	*answers.Index
	server    *httpapi.Server
	ready     func(context.Context) error
	readiness readiness
	log       *slog.Logger
	restarts  func() (n int, last time.Time)
}

// New adds the routes of the index to the server of o. It talks to nobody yet, so it succeeds also
// while the database is away.
func New(o Options) (*API, error) {
	httpapi.Fill(&o.QueryDepth, 16)
	httpapi.Fill(&o.QueryCost, 10_000)
	a := &API{server: o.Server, ready: o.Ready, log: o.Server.Log, restarts: o.Restarts}
	if err := a.server.Registry.Register(newIndexCollector(o.DB, a.log)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	var err error
	if a.Index, err = answers.New(answers.Options{Server: o.Server, DB: o.DB, DefaultChain: o.DefaultChain,
		Version: o.Version,
		Trust:   o.Trust, Signer: o.Signer}); err != nil {
		return nil, err
	}
	a.server.Rewrite(oneForm)
	a.mount()
	a.mountPlain()
	if err := graph.Mount(o.Server, a.Index, graph.Options{Depth: o.QueryDepth, Cost: o.QueryCost}); err != nil {
		return nil, err
	}
	a.mountKeys()
	return a, errors.Join(a.mountTools(o.Tools), ipfs.Mount(o.Server, o.DB), a.mountAdmin())
}
