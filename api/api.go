// Package api answers questions about the index over HTTP: REST described by
// OpenAPI 3.1, GraphQL, health and metrics, and a few pages for people. Handlers
// decode, ask package store and encode. Everything is read-only, and whatever
// comes from the chain or from documents is treated as hostile text.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"repute"
	"repute/internal/httpapi"
	"repute/mcp"
	"repute/policy"
	"repute/store"
	"repute/trust/engine"
	"repute/trust/statement"

	graphql "github.com/graph-gophers/graphql-go"
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

// API answers the routes of the index. Make one with New.
type API struct {
	server       *httpapi.Server
	db           *store.DB
	defaultChain uint64
	version      string
	ready        func(context.Context) error
	readiness    readiness
	log          *slog.Logger
	queryDepth   int
	queryCost    int
	refreshes    *httpapi.Limiter // of refreshes, which cost others a fetch
	walks        *httpapi.Limiter // of explanations, and of walks by a caller's roots
	trust        *engine.Reader
	payments     *policy.Policy // of decisions by the value at risk
	bare         *policy.Policy // of decisions by the caller's thresholds alone
	signer       *statement.Signer
	restarts     func() (n int, last time.Time)
	schema       *graphql.Schema
}

// New adds the routes of the index to the server of o. It talks to nobody yet, so it succeeds also
// while the database is away.
func New(o Options) (*API, error) {
	httpapi.Fill(&o.QueryDepth, 16)
	httpapi.Fill(&o.QueryCost, 10_000)
	a := &API{server: o.Server, db: o.DB, defaultChain: o.DefaultChain, version: o.Version, ready: o.Ready,
		log: o.Server.Log, queryDepth: o.QueryDepth, queryCost: o.QueryCost, signer: o.Signer, restarts: o.Restarts,
		refreshes: o.Server.Limiter("refresh", 1/refreshPeriod.Seconds(), refreshBurst),
		walks:     o.Server.Limiter("walk", 1/walkPeriod.Seconds(), walkBurst)}
	if err := a.server.Registry.Register(newIndexCollector(a.db, a.log)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	var err error
	if a.trust, err = engine.NewReader(a.db, o.Trust); err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	if a.payments, err = policy.ForPayments(); err != nil {
		return nil, err
	}
	if a.bare, err = policy.Parse([]byte(`version: "1"`)); err != nil {
		return nil, fmt.Errorf("policy without thresholds: %w", err)
	}
	if a.schema, err = a.parseSchema(repute.Schema); err != nil {
		return nil, fmt.Errorf("graphql schema: %w", err)
	}
	a.server.Rewrite(oneForm)
	a.mount()
	a.mountPlain()
	a.mountKeys()
	return a, errors.Join(a.mountTools(o.Tools), a.mountGateway(), a.mountAdmin())
}
