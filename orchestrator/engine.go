package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"repute"
	"repute/contracts"
	"repute/orchestrator/builtin"
	"repute/orchestrator/leases"
	"repute/orchestrator/pending"
	"repute/orchestrator/safety"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/orchestrator/telemetry"
	"repute/orchestrator/transaction"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// Options tune an Engine.
type Options struct {
	// Modules are the agents of this binary.
	Modules []Module
	// Remote returns the module of an agent on another server; nil: there are none.
	Remote func(repute.Module) (Module, error)
	// Policy is called for each decision, because the policy may change during runs.
	Policy func() *policy.Policy
	Tools  map[string]Tool
	Chain  transaction.Chain // nil: no chain can be reached
	HTTP   *http.Client      // guards what agents may reach; nil: no HTTP
	Payer  Payer             // nil: no answer is paid for
	// Intents reads manifests of domains for Context.Intent; nil: agents cannot act on intents.
	Intents IntentPlanner
	// Keys returns the signing address of an agent of this binary on a chain, which proves the
	// agent's identity. Nil: no agent has a key.
	Keys func(chainID uint64, slug string) (common.Address, error)
	// Registries are the contracts in which an agent must not change its own records.
	Registries []safety.Registries
	// Tokens are the tokens of which approvals show symbol and decimals.
	Tokens []repute.Stablecoin
	// Names returns the configured names of an address, for treasuries and wallets. Nil: no names.
	Names func(chainID uint64, a common.Address) []string
	// TrustChain is the chain of identities, ExecutionChain that of transactions.
	TrustChain, ExecutionChain uint64
	// Lenient lets agents without identity work, for development.
	Lenient bool
	Workers int                // simultaneous runs, 16 when 0
	Hold    time.Duration      // after which a silent process has lost its runs, 10 s when 0
	Drain   time.Duration      // for running phases after the end of Run's context, 5 s when 0
	Metrics *telemetry.Metrics // nil: not counted
	Trace   *telemetry.Trace   // nil: not traced
	Log     *slog.Logger
}

// Engine runs tasks. Any number of engines may share a database: each run has one owner, and
// another engine takes it over when the owner stops renewing its lease.
type Engine struct {
	db      *store.DB
	o       Options
	gate    *trustgate.Gate
	local   map[string]Module
	metrics *telemetry.Metrics
	trace   *telemetry.Trace
	log     *slog.Logger
	calls   *contracts.CallDecoder
	leases  *leases.Set
}

// errStopping is the cause of the context of a run whose process stops.
var errStopping = errors.New("the process stops")

// New returns an engine. A module that cannot be installed is repute.ErrInvalid.
func New(db *store.DB, o Options) (*Engine, error) {
	o.Workers, o.Hold, o.Drain = cmp.Or(o.Workers, 16), cmp.Or(o.Hold, 10*time.Second), cmp.Or(o.Drain, 5*time.Second)
	e := &Engine{db: db, o: o, gate: &trustgate.Gate{Db: db, Policy: o.Policy, Lenient: o.Lenient},
		local:   map[string]Module{},
		metrics: o.Metrics, trace: o.Trace, log: o.Log, leases: leases.New()}
	var err error
	if e.calls, err = contracts.NewCallDecoder(); err != nil {
		return nil, err
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.metrics == nil {
		e.metrics = telemetry.NewMetrics(nil)
	}
	for _, m := range o.Modules {
		_, dry := m.(DryRunner)
		info := m.Info()
		if err := standard.CheckInfo(info, dry); err != nil {
			return nil, fmt.Errorf("agent %q: %w", info.Slug, err)
		}
		if e.local[info.Slug] != nil {
			return nil, fmt.Errorf("agent %q: %w", info.Slug,
				repute.Invalid("slug", "is another agent's", "one of its own"))
		}
		e.local[info.Slug] = m
	}
	return e, nil
}

// jobTimeout is far above every budget, because leases already detect stuck runs.
const jobTimeout = 2 * time.Hour

// Run works until ctx ends, which is no error; running phases get a moment.
func (e *Engine) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := e.session(ctx)
		if err == nil {
			return nil
		}
		e.log.Warn("runs wait for the database", "error", err)
		repute.Pause(ctx, time.Second)
	}
	return nil
}

// session works on runs until the connection to the database is lost or ctx ends. Run begins
// another session after a pause.
func (e *Engine) session(ctx context.Context) error {
	if err := e.install(ctx); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(e.work))
	client, err := river.NewClient(riverpgxv5.New(e.db.Pool()), &river.Config{
		Queues: map[string]river.QueueConfig{tasks.Queue: {MaxWorkers: e.o.Workers}}, Workers: workers,
		FetchCooldown: 20 * time.Millisecond, FetchPollInterval: time.Second, JobTimeout: jobTimeout,
		RescueStuckJobsAfter:        jobTimeout + time.Minute,
		CompletedJobRetentionPeriod: 10 * time.Minute, SoftStopTimeout: e.o.Drain,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return fmt.Errorf("river: %w", err)
	}
	if err := client.Start(ctx); err != nil {
		return fmt.Errorf("river: %w", err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { e.watch(watching, ctx, client) })
	<-client.Stopped()
	stop()
	watch.Wait()
	return nil
}

// install registers the agents of this binary.
func (e *Engine) install(ctx context.Context) error {
	r := builtin.Registrar{Db: e.db, Keys: e.o.Keys, TrustChain: e.o.TrustChain, Lenient: e.o.Lenient, Log: e.log}
	for slug, m := range e.local {
		_, isDry := m.(DryRunner)
		if err := r.Register(ctx, slug, m.Info().Manifest, isDry); err != nil {
			return err
		}
	}
	return nil
}

// watch renews the leases of this engine's runs, ends cancelled and lost runs, and queues runs whose lease has
// expired: five times while a lease holds, so that one slow statement loses none. It goes on while the process
// stops, for as long as runs have, and tells them at half of that time.
func (e *Engine) watch(ctx, working context.Context, client *river.Client[pgx.Tx]) {
	for ctx.Err() == nil {
		if working.Err() != nil { // stopping: current runs have their drain time
			time.AfterFunc(e.o.Drain/2, func() { e.leases.EndAll(errStopping) })
		}
		if err := e.leases.Renew(ctx, e.db, e.o.Hold); err != nil && ctx.Err() == nil {
			e.log.Warn("runs could not be held", "error", err)
		}
		if _, err := rundb.RequeueLost(ctx, e.db, 100,
			func(tx pgx.Tx, roots []string) error { return tasks.Insert(ctx, client, tx, roots...) }); err != nil &&
			ctx.Err() == nil {
			e.log.Warn("lost runs could not be queued", "error", err)
		}
		if err := pending.Settle(ctx, e.db, e.o.Chain); err != nil && ctx.Err() == nil {
			e.log.Warn("receipts of runs that ended could not be completed", "error", err)
		}
		repute.Pause(ctx, e.o.Hold/5)
	}
}

// work is the handler of River's job: it acquires the run and does its remaining phases. A job is only a hint that
// there is work: the lease decides who does it, so that a job that is delivered twice, or too late, does no harm.
func (e *Engine) work(ctx context.Context, job *river.Job[tasks.RunJob]) error {
	found, lease, err := rundb.TakeRun(ctx, e.db, job.Args.Root, e.o.Hold)
	if errors.Is(err, repute.ErrHeld) || errors.Is(err, repute.ErrConflict) || errors.Is(err, repute.ErrNotFound) {
		return nil // another engine owns it, or nothing is left to do
	}
	if err != nil {
		return err
	}
	ctx, drop := e.leases.Keep(ctx, lease)
	defer drop()
	w, err := e.workOn(ctx, found, lease, nil)
	if err == nil {
		err = w.steps(e.trace.Join(ctx, &w.Run), job)
	}
	if err == nil {
		e.metrics.Ended(w.Run.Status)
		if w.Run.Status.Ended() {
			e.trace.Ended(&w.Run)
		}
		return nil
	}
	e.log.Warn("run not finished here", "run", job.Args.Root, "error", err)
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if errors.Is(err, repute.ErrFenced) {
		return nil
	}
	return errors.Join(err, rundb.ReleaseRun(releasing, e.db, lease))
}

// steps does the phases as resumable steps of the job, each stored with its checkpoint. Steps that
// an earlier job completed are skipped.
func (w *work) steps(ctx context.Context, job *river.Job[tasks.RunJob]) (err error) {
	w.checkpoint = func(ctx context.Context, tx pgx.Tx) error {
		_, err := river.ResumableSetStepTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	}
	for _, p := range repute.Phases() {
		river.ResumableStep(ctx, p.String(), nil, func(ctx context.Context) error {
			err = w.advance(ctx, p)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// workOn prepares a run for this process.
func (e *Engine) workOn(ctx context.Context, found rundb.Work, lease rundb.Lease, parent *work) (*work, error) {
	w := &work{e: e, lease: lease, Work: found, parent: parent,
		log: e.log.With("run", found.Run.ID, "task", found.Run.Task, "agent", found.Run.Agent)}
	if parent != nil {
		w.depth = parent.depth + 1
	}
	if err := w.load(ctx); err != nil {
		return nil, err
	}
	if w.Run.Awaiting != "" { // it waits for a person while another run of the task continues
		open, err := rundb.Awaited(ctx, e.db, found.Run.ID)
		if err != nil {
			return nil, err
		}
		for _, d := range open {
			w.wait(&ApprovalError{Run: found.Run.ID, Subject: d.Subject})
		}
	}
	module, err := rundb.Module(ctx, e.db, found.Run.Agent)
	if errors.Is(err, repute.ErrNotFound) {
		return w, nil // the phase discover reports the error
	}
	if err != nil {
		return nil, err
	}
	w.module = module
	if module.URL == "" {
		w.agent = e.local[module.Slug]
	} else if e.o.Remote != nil {
		w.agent, w.broken = e.o.Remote(module)
	}
	if w.agent != nil {
		w.info = w.agent.Info()
	}
	return w, nil
}

// cancelled reports whether somebody cancelled the run.
func (w *work) cancelled() bool {
	root := w.root()
	root.mu.Lock()
	defer root.mu.Unlock()
	return root.wasCancelled
}

// registered returns the agents that a plan may name by their slugs, with their identities; nil for none.
func (e *Engine) registered(ctx context.Context) (map[string]*repute.AgentID, error) {
	list, err := rundb.Modules(ctx, e.db)
	out := map[string]*repute.AgentID{}
	for _, m := range list {
		out[m.Slug] = m.Agent
	}
	return out, err
}

// domain returns "trust" or "execution" for the receipts of a chain.
func (e *Engine) domain(chainID uint64) string {
	switch chainID {
	case e.o.ExecutionChain:
		return "execution"
	case e.o.TrustChain:
		return "trust"
	}
	return "other"
}
