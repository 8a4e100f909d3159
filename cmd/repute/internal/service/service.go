// Package service runs the configured roles in one process.
//
// A [Service] is made of a checked configuration, an open database and a log. [Service.Run] creates what each role
// needs and runs it until its context ends, or until one part has failed in a way that waiting does not mend:
//
//   - indexer: a follower for each chain, with the chain's verifier and the lookup of payments. A chain that must stop
//     (a reorganization below finality, a node of another chain) does not stop the others;
//   - documents: the loops that fetch documents of agents and manifests of domains;
//   - trust: the engine that scores;
//   - orchestrator: the engine of tasks, with the wallets, and the treasuries whose events are indexed;
//   - api: one HTTP server for the index and for /v1, behind one guard, with the same tools at /mcp.
//
// Roles know nothing of each other. They meet in the database, so that the same roles may run in other processes at the
// same time: leases and claims in the database say who does what. Within a process they share pools of endpoints
// (pools), so that a limit that one loop meets counts for all, and the graphs of the trust engine, which the API reads.
//
// [Service.ServeStdio] is another way to run: the tools of both for one caller on standard input and output, without
// roles. The commands of other packages use parts: [Service.Sources] to ask sources of trust, and [Outside] for clients
// that reach public addresses only.
//
// The caller that makes a Service MUST close it (Run and ServeStdio do so themselves). A crash at any point loses
// nothing: whatever a role has not committed is done again.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/api"
	"repute/api/finder"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/progress"
	"repute/indexer"
	"repute/indexer/documents"
	"repute/indexer/manifests"
	"repute/indexer/node"
	"repute/indexer/payments"
	"repute/indexer/verify"
	"repute/intent/sentence"
	"repute/internal/httpapi"
	"repute/mcp"
	"repute/orchestrator/control/apikeys"
	"repute/orchestrator/control/workgraph"
	"repute/resolver/wellknown"
	"repute/store"
	"repute/store/query"
	"repute/trust/engine"
	"repute/trust/source"
	"repute/trust/source/read"
)

// Service has the loops and the API around one store.
type Service struct {
	Config   config.Config
	log      *slog.Logger
	db       *store.DB
	registry *prometheus.Registry
	loops    *prometheus.Registry // of metrics alone, which is part of registry
	metrics  *indexer.Metrics
	rpc      *node.Metrics
	verified *verify.Metrics
	// Ending is when Run returns by itself. The caller sets it before Run.
	Ending Ending
	// Screen is where progress is shown, nil for nowhere. The caller sets it before Run.
	Screen *progress.Screen
	// Restarts returns how often the Postgres of this process was restarted; nil if it manages
	// none.
	Restarts func() (n int, last time.Time)

	pools pools
	// graphs are those of the engine of this process, for its readers.
	graphs engine.Graphs

	mu        sync.Mutex
	followers []*indexer.Follower
}

// New returns a service that does nothing until Run.
func New(c config.Config, db *store.DB, log *slog.Logger) *Service {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	loops := prometheus.NewRegistry()
	metrics := indexer.NewMetrics(loops)
	s := &Service{Config: c, log: log, db: db, registry: registry, loops: loops,
		metrics: metrics, rpc: node.NewMetrics(loops), verified: verify.NewMetrics(loops)}
	registry.MustRegister(loops)
	return s
}

// Run starts the configured roles on listener l (used only by role api). It returns when ctx ends,
// or when a role has failed permanently.
func (s *Service) Run(ctx context.Context, l net.Listener) error {
	defer s.Close()
	ctx, done := context.WithCancel(ctx)
	defer done()
	g, ctx := errgroup.WithContext(ctx)
	if s.Config.Has("indexer") {
		chains, err := s.Config.Followed()
		if err != nil {
			return err
		}
		g.Go(func() error {
			if s.Ending.Comes() {
				defer done() // the chains' end is the service's
			}
			return s.followAll(ctx, chains)
		})
		g.Go(func() error { s.forgetChanges(ctx); return nil })
	}
	if s.Config.Has("documents") {
		loop, crawler, err := s.documents()
		if err != nil {
			return err
		}
		g.Go(func() error { return loop.Run(ctx) })
		g.Go(func() error { return crawler.Run(ctx) })
	}
	if s.Config.Has("trust") {
		engine, err := s.trustEngine()
		if err != nil {
			return err
		}
		g.Go(func() error { return engine.Run(ctx) })
	}
	var h sender
	if s.Config.Has("orchestrator") {
		var err error
		if h, err = s.openSender(ctx); err != nil {
			return err
		}
		defer h.close()
		s.work(ctx, g, h)
	}
	if s.Config.Has("api") {
		if err := s.answer(ctx, g, l, h); err != nil {
			return err
		}
	}
	if s.Config.Has("orchestrator") || s.Config.Has("api") {
		g.Go(func() error { s.Config.Orchestrator.File.Watch(ctx, policyEvery, s.log); return nil })
	}
	return g.Wait()
}

// work starts the loops of the role orchestrator.
func (s *Service) work(ctx context.Context, g *errgroup.Group, h sender) {
	g.Go(func() error { return s.orchestrate(ctx, h) })
	g.Go(func() error { return h.run(ctx) })
	for _, t := range h.treasuries {
		g.Go(func() error { s.watch(ctx, t); return nil })
	}
}

// warmTimeout bounds how long the API prepares its connections before it answers: an idle machine takes half a second,
// and without a database the API must answer that it is unavailable.
const warmTimeout = 5 * time.Second

// answer starts the API on listener l. The routes of the orchestrator are there without the
// role too: they read and write rows and jobs. Routes that need keys are there only with a wallet.
func (s *Service) answer(ctx context.Context, g *errgroup.Group, l net.Listener, h sender) error {
	shared, err := shared(&s.Config)
	if err != nil {
		return err
	}
	guard, err := s.Config.Guard()
	if err != nil {
		return err
	}
	intents, err := s.finder()
	if err != nil {
		return err
	}
	hooks := s.webhooks()
	server, err := s.server(ctx, h, shared, s.tools(), intents, hooks)
	if err != nil {
		return err
	}
	g.Go(func() error { return intents.Run(ctx) })
	g.Go(func() error { hooks.Run(ctx); return nil })
	handler, err := server.Handler()
	if err != nil {
		return err
	}
	g.Go(func() error { server.Redis(ctx); return nil }) // the log shows at the start that it does not answer
	warming, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	if err := query.Warm(warming, s.db); err != nil {
		s.log.Warn("the first requests may be slow: connections of the database could not be prepared", "error", err)
	}
	g.Go(func() error { return s.listen(ctx, l, guard.Over(handler)) })
	return nil
}

// server returns the server with every route, and adds the tools of the index and the orchestrator. Without a finder
// intents are searched by words, and without hooks no webhook can be tested.
func (s *Service) server(ctx context.Context, h sender, shared *redis.Client, tools *mcp.Server,
	intents *finder.Finder, hooks *hooks) (*httpapi.Server, error) {
	c := &s.Config
	server, err := httpapi.NewServer(httpapi.ServerOptions{Tokens: c.Orchestrator.Tokens,
		Roles: c.Orchestrator.TokenRoles(), Origins: c.Origins(), Registry: s.registry, Redis: shared, Logger: s.log,
		Keys:   apikeys.Source{DB: s.db},
		Limits: httpapi.Limits{Rate: c.Rate, Burst: int(4 * c.Rate), TrustedProxies: c.ProxyRanges}})
	if err != nil {
		return nil, err
	}
	reader := workgraph.New(s.db, h.operator, c.PrivateReads())
	return server, errors.Join(s.api(ctx, server, tools, intents, hooks, reader),
		s.control(ctx, h, server, tools, hooks))
}

// changesKept is how long the change feed is kept: a reader that was disconnected for longer reads the whole state
// again.
const changesKept = 30 * 24 * time.Hour

// forgetChanges removes old entries of the change feed until ctx ends.
func (s *Service) forgetChanges(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := s.db.PruneChanges(ctx, changesKept); err != nil && ctx.Err() == nil {
			s.log.Warn("old changes could not be forgotten", "error", err)
		}
		repute.Pause(ctx, time.Hour)
	}
}

// followAll runs one loop per chain. A chain that must stop does not stop other chains or roles. It
// is the failure of the service only if indexing is its only role and every chain has stopped.
func (s *Service) followAll(ctx context.Context, chains []config.Followed) error {
	errs := make([]error, len(chains))
	var running sync.WaitGroup
	for i, chain := range chains {
		running.Go(func() { errs[i] = s.follow(ctx, chain) })
	}
	s.show(ctx, chains, &running)
	err := errors.Join(errs...)
	if s.Ending.Comes() {
		return err
	}
	for _, err := range errs {
		if err == nil {
			return nil
		}
	}
	if err != nil && (s.Config.Has("api") || s.Config.Has("documents")) {
		s.log.Error("no chain is followed any more: only stored data is served", "error", err)
		<-ctx.Done()
		return nil
	}
	return err
}

// show prints the progress of the chains until all of them have stopped.
func (s *Service) show(ctx context.Context, chains []config.Followed, running *sync.WaitGroup) {
	var showing sync.WaitGroup
	defer showing.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, c := range chains {
		if s.Screen != nil {
			showing.Go(func() {
				progress.NewReporter(s.Screen, s.log).Follow(ctx, c.Name,
					func() progress.Sample { return progress.SampleOf(s.loops, c.Chain) })
			})
		}
	}
	running.Wait()
}

// follow follows one chain until ctx ends or its requested end. Its error needs an operator: see
// indexer.Follower.Run.
func (s *Service) follow(ctx context.Context, c config.Followed) error {
	pool, err := s.runningPool(ctx, c.ID, c.RPC)
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watched, stop := context.WithCancel(ctx)
	defer stop()
	if len(c.Coins) > 0 && !s.Ending.Comes() {
		loop := payments.New(s.db, pool, c.ID, payments.Options{Coins: c.Coins, Log: s.log})
		watching.Go(func() { _ = loop.Run(watched) }) // ends with watched, without an error
	}
	options := indexer.Options{TTL: s.Config.Lease, Wake: pool.Announced(),
		Until: s.Ending.Until, Once: s.Ending.Once, Depth: c.Depth, AnyValidation: !c.Listed, Bloom: c.Bloom,
		Metrics: s.metrics, Log: s.log}
	options.Verifier = verify.New(s.db, c.Chain, pool.Nodes, verify.Options{Rate: c.VerifyRate,
		HistoryOnly: c.VerifyRate < 0, NoBloom: c.Bloom == indexer.BloomOff, Metrics: s.verified, Log: s.log})
	f := indexer.NewFollower(s.db, c.Chain, pool, options)
	s.mu.Lock()
	s.followers = append(s.followers, f)
	s.mu.Unlock()
	return f.Run(ctx)
}

// ready returns why this process cannot follow a chain. A temporary failure such as an unavailable
// node is repute.ErrUnavailable: other chains and indexed data are served.
func (s *Service) ready(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var wrong, away []error
	for _, f := range s.followers {
		switch err := f.Ready(); {
		case err == nil:
		case errors.Is(err, repute.ErrConflict), errors.Is(err, repute.ErrInvalid), errors.Is(err, repute.ErrFinalized):
			wrong = append(wrong, err)
		default:
			away = append(away, err)
		}
	}
	if len(wrong) == 0 && len(away) > 0 {
		return fmt.Errorf("%w: %w", repute.ErrUnavailable, errors.Join(away...))
	}
	return errors.Join(wrong...)
}

// documents returns the loops that fetch documents and manifests.
func (s *Service) documents() (*documents.Loop, *manifests.Loop, error) {
	client, err := s.Config.Resolver(s.log)
	if err != nil {
		return nil, nil, err
	}
	o := manifests.Options{Log: s.log}
	if dir := s.Config.Documents.Issuers; dir != "" {
		o.Issuers = os.DirFS(dir)
	}
	return documents.New(s.db, client, documents.Options{MaxBytes: s.Config.Documents.MaxBytes,
		Metrics: documents.NewMetrics(s.registry), Log: s.log}), manifests.New(s.db, wellknown.New(client), o), nil
}

// shared returns the Redis in which processes count callers together; nil if none is configured.
func shared(c *config.Config) (*redis.Client, error) {
	if c.Redis == "" {
		return nil, nil
	}
	redis.SetLogger(silent{}) // it would write past the log
	return httpapi.OpenRedis(c.Redis)
}

// api adds the routes of the index to a server.
func (s *Service) api(ctx context.Context, server *httpapi.Server, tools *mcp.Server, intents *finder.Finder,
	hooks *hooks, tasks workgraph.Reader) error {
	reader, err := s.Config.Trust.Reader()
	if err != nil {
		return err
	}
	reader.Graphs = &s.graphs
	name, err := s.Config.CacheName()
	if err != nil {
		return err
	}
	client, err := s.Config.Resolver(s.log)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, client.Close)
	o := api.Options{Server: server, DB: s.db, Trust: reader, DefaultChain: s.Config.DefaultChain,
		Version: config.Version, PublicURL: strings.TrimSuffix(s.Config.Orchestrator.PublicURL, "/"),
		Tools: tools, Ready: s.ready, Signer: s.Config.Signing.Signer, Restarts: s.Restarts,
		Done: ctx.Done(), CacheName: name, Work: tasks,
		Treasury: tasks, Files: files{client, s.db}}
	if intents != nil { // an interface that holds a nil pointer is not nil
		o.Intents = intents
	}
	if hooks != nil {
		o.Feed = hooks.feed
	}
	_, err = api.New(o)
	return err
}

// embeddingRest gives the model of the program a quarter of one processor while the index of meanings loads: with all
// of it, requests wait several times as long on two.
const embeddingRest = 3

// finder returns the index of what services offer.
func (s *Service) finder() (*finder.Finder, error) {
	embedder, err := s.Config.Embedder()
	if err != nil {
		return nil, err
	}
	o := finder.Options{Log: s.log}
	if _, here := embedder.(*sentence.Encoder); here {
		o.Rest = embeddingRest
	}
	return finder.New(s.db, embedder, o)
}

// silent is a log that nobody reads: what it is told comes back as an error too.
type silent struct{}

// Printf does nothing.
func (silent) Printf(context.Context, string, ...any) {}

// listen serves until ctx ends; running requests then get the drain time.
func (s *Service) listen(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	s.log.Info("listening", "address", l.Addr())
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.Drain)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		s.log.Warn("requests were cut off", "error", err)
	}
	return nil
}

// trustEngine returns the engine that keeps scores up to date.
func (s *Service) trustEngine() (*engine.Engine, error) {
	o, err := s.Config.Trust.Options()
	if err != nil {
		return nil, err
	}
	reader, err := s.Sources(o.Sources)
	if err != nil {
		return nil, err
	}
	if reader != nil {
		o.Ask = reader
	}
	o.Metrics, o.Log, o.Graphs = engine.NewMetrics(s.registry), s.log, &s.graphs
	return engine.New(s.db, o)
}

// Sources returns the reader that asks the endpoints of all configured chains about raters; nil if no
// source counts.
func (s *Service) Sources(p *source.Policy) (*read.Reader, error) {
	if p == nil {
		return nil, nil
	}
	chains, err := s.Config.Reachable()
	if err != nil {
		return nil, err
	}
	list := map[uint64]*node.Pool{}
	for id, urls := range chains {
		if list[id], err = s.pool(id, urls); err != nil {
			return nil, err
		}
	}
	return read.New(p.Multicall, list)
}
