// Package api answers questions about the index over HTTP: REST described by
// OpenAPI 3.1, GraphQL, health and metrics, and a few pages for people. Handlers
// decode, ask package store and encode. Everything is read-only, and whatever
// comes from the chain or from documents is treated as hostile text.
package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"repute"
	"repute/internal/httpapi"
	"repute/mcp"
	"repute/policy"
	"repute/store"
	"repute/trust/engine"
	"repute/trust/statement"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	graphql "github.com/graph-gophers/graphql-go"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// Options say what the handler serves and how much of it. DB is needed; the
// zero value of everything else works.
type Options struct {
	DB *store.DB
	// DefaultChain completes bare token ids where several chains are indexed.
	DefaultChain uint64
	// Version of the program, shown by /status.
	Version string
	// Registry collects the handler's metrics and is served at /metrics. Nil: a
	// registry of its own.
	Registry *prometheus.Registry
	// Redis lets several processes share one rate limit per caller. Nil: each
	// counts alone.
	Redis *redis.Client
	// Ready adds to /readyz what only the caller knows, e.g. that an RPC
	// endpoint answers. Its error is shown to callers.
	Ready func(context.Context) error
	// Restarts says how often the Postgres that this process keeps was started again, and when
	// last. Nil: this process keeps none.
	Restarts func() (n int, last time.Time)
	// Logger takes the access log and failures. Nil: slog's default.
	Logger *slog.Logger
	// AdminTokens open the operator's pages under /admin. None: there are no pages.
	AdminTokens []string
	// Trust tunes explanations of scores and scores by a caller's roots.
	Trust engine.ReaderOptions
	// Tools gets the tools that ask the index, and is served at /mcp. Nil: neither.
	Tools *mcp.Server
	// Signer signs final scores for those who ask. Nil: nothing is signed.
	Signer *statement.Signer
	Limits Limits
}

// Limits bound what one request or caller may use. Zero fields get the default
// named in their comment.
type Limits struct {
	// Timeout of one request: 15 s.
	Timeout time.Duration
	// Body is the largest request body in bytes: 256 KiB.
	Body int64
	// Rate is how many requests per second one caller may keep up: 50. Negative:
	// no limit.
	Rate float64
	// Burst is how many may come at once: 200.
	Burst int
	// QueryDepth is the deepest nesting of a GraphQL query: 16, so that the
	// introspection query of common tools fits.
	QueryDepth int
	// QueryCost is how many rows a GraphQL query may ask for: 10000.
	QueryCost int
	// TrustedProxies may name the caller in X-Forwarded-For; from others the
	// header is ignored.
	TrustedProxies []netip.Prefix
}

// withDefaults fills in what is not set.
func (l Limits) withDefaults() Limits {
	fill(&l.Timeout, 15*time.Second)
	fill(&l.Body, 256<<10)
	fill(&l.Rate, 50)
	fill(&l.Burst, 200)
	fill(&l.QueryDepth, 16)
	fill(&l.QueryCost, 10_000)
	return l
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// API is the handler with its parts. Make one with New.
type API struct {
	db           *store.DB
	defaultChain uint64
	version      string
	ready        func(context.Context) error
	readiness    readiness
	log          *slog.Logger
	limits       Limits
	limiter      *httpapi.Limiter
	refreshes    *httpapi.Limiter // of refreshes, which cost others a fetch
	walks        *httpapi.Limiter // of explanations, and of walks by a caller's roots
	trust        *engine.Reader
	payments     *policy.Policy // of decisions by the value at risk
	bare         *policy.Policy // of decisions by the caller's thresholds alone
	metrics      *metrics
	registry     *prometheus.Registry
	signer       *statement.Signer
	restarts     func() (n int, last time.Time)
	echo         *echo.Echo
	huma         huma.API
	schema       *graphql.Schema
	openapi      []byte
}

// New builds the handler. It talks to nobody yet, so it succeeds also while the
// database is away.
func New(o Options) (*API, error) {
	a := &API{
		db: o.DB, defaultChain: o.DefaultChain, version: o.Version, ready: o.Ready,
		log: o.Logger, signer: o.Signer, restarts: o.Restarts, limits: o.Limits.withDefaults(), registry: o.Registry,
		echo: echo.New(),
	}
	if a.log == nil {
		a.log = slog.Default()
	}
	if a.registry == nil {
		a.registry = prometheus.NewRegistry()
	}
	var err error
	if a.metrics, err = newMetrics(a.registry); err != nil {
		return nil, err
	}
	if err := a.registry.Register(newIndexCollector(a.db, a.log)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	a.limiter = httpapi.NewLimiter("rate", a.limits.Rate, a.limits.Burst, o.Redis, a.log)
	a.refreshes = httpapi.NewLimiter("refresh", 1/refreshPeriod.Seconds(), refreshBurst, o.Redis, a.log)
	a.walks = httpapi.NewLimiter("walk", 1/walkPeriod.Seconds(), walkBurst, o.Redis, a.log)
	if a.trust, err = engine.NewReader(a.db, o.Trust); err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	if a.payments, err = policy.ForPayments(); err != nil {
		return nil, err
	}
	if a.bare, err = policy.Parse([]byte(`version: "1"`)); err != nil {
		return nil, fmt.Errorf("policy without thresholds: %w", err)
	}
	if err := a.watchRedis(); err != nil {
		return nil, err
	}
	if a.schema, err = a.parseSchema(repute.Schema); err != nil {
		return nil, fmt.Errorf("graphql schema: %w", err)
	}
	a.use()
	config := httpapi.Config("repute", apiVersion, apiDescription)
	a.huma = huma.NewAPI(config, httpapi.Literal{Adapter: humaecho.New(a.echo, config).Adapter()})
	a.mount()
	a.describePlain()
	if a.openapi, err = httpapi.Describe(a.huma.OpenAPI()); err != nil {
		return nil, err
	}
	a.mountPlain()
	if err := a.mountTools(o.Tools); err != nil {
		return nil, err
	}
	a.mountKeys()
	if err := a.mountGateway(); err != nil {
		return nil, err
	}
	if err := a.mountAdmin(o.AdminTokens); err != nil {
		return nil, err
	}
	return a, nil
}

// Handler serves every route. HEAD is answered wherever GET is, and ids may come
// percent-encoded.
func (a *API) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A copy: the server must still see HEAD to leave the body out.
		in, u := *r, *r.URL
		// The router would match, and hand on, an escaped path as it is.
		u.RawPath, in.URL = "", &u
		if r.Method == http.MethodHead {
			in.Method = http.MethodGet
		}
		a.echo.ServeHTTP(w, &in)
	})
}
