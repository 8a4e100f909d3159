package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"repute/internal/bench/harness"
	"repute/orchestrator"
	"repute/orchestrator/policyfile"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/policy"
	"repute/store"
)

// RunsOptions say what Runs measures.
type RunsOptions struct {
	Worker   harness.Program // does runs when started as runs-worker
	Runs     int             // at full load, and again with kills
	Single   int             // one after the other
	Kills    int             // of worker processes, 0 for none
	Workers  int             // processes while some are killed
	Progress io.Writer       // lines for a person; nil: none
}

// RunsMeasurements is what Runs found. Times are in seconds. Load counts the runs that ended after the clock began,
// which may be fewer than RunsOptions.Runs.
type RunsMeasurements struct {
	Single struct {
		Runs   int     `json:"runs"`
		Median float64 `json:"median"` // from taking a run to its record
		P95    float64 `json:"p95"`
	} `json:"single"`
	Load struct {
		Runs       int     `json:"runs"`
		Seconds    float64 `json:"seconds"`
		PerSecond  float64 `json:"per_second"`
		Statements float64 `json:"statements_per_run"` // 0: the server does not count them
		Commits    float64 `json:"commits_per_run"`
		ServerCPU  float64 `json:"server_cpu"` // of the sessions that were open at the end
	} `json:"load"`
	Kills struct {
		Runs      int     `json:"runs"`
		Kills     int     `json:"kills"`
		Seconds   float64 `json:"seconds"`
		Lost      int     `json:"lost"`      // not completed
		Doubled   int     `json:"doubled"`   // with a phase or a step recorded twice, or a step counted twice
		Undecided int     `json:"undecided"` // whose task does not say what its run says
	} `json:"kills"`
}

// Targets of Runs.
const (
	maxOverhead   = 0.060 // seconds, the median
	minThroughput = 40    // runs per second
)

// Runs measures what the nine phases cost in addition to the agent's work, with an agent that
// does nothing, and that killing workers loses and doubles nothing.
func Runs(ctx context.Context, o RunsOptions) (r harness.Report, err error) {
	r = harness.Report{Name: "runs", Config: map[string]any{"runs": o.Runs, "single": o.Single, "kills": o.Kills,
		"workers": o.Workers}}
	say := harness.Progress{To: o.Progress}
	return harness.OnServer(ctx, say, r, true, func(server *harness.Server) (any, []harness.Target, error) {
		x := &running{o: o, server: server, Progress: say}
		if err := x.unloaded(ctx); err != nil {
			return nil, nil, err
		}
		if err := x.killed(ctx); err != nil {
			return nil, nil, err
		}
		return x.m, []harness.Target{
			harness.AtMost("nine phases of an agent that does nothing, median", x.m.Single.Median*1000,
				maxOverhead*1000, "ms"),
			harness.AtLeast("runs at full load", x.m.Load.PerSecond, minThroughput, "/s"),
			harness.AtMost("runs lost by kills", float64(x.m.Kills.Lost+x.m.Kills.Undecided), 0, ""),
			harness.AtMost("runs doubled by kills", float64(x.m.Kills.Doubled), 0, ""),
		}, nil
	})
}

// running is one call of Runs. The first database has the runs of Single and Load, a second one those of Kills: judge
// counts every run of its database.
type running struct {
	o      RunsOptions
	server *harness.Server
	harness.Progress
	m RunsMeasurements
}

// noopAgent is the slug of the agent that does nothing. The tasks name it as their coordinator, so that no matching of
// goals is measured.
const noopAgent = "noop"

// submit asks for n tasks of the agent that does nothing, and returns when all are stored.
func submit(ctx context.Context, db *store.DB, n int) error {
	client, err := tasks.NewClient(db)
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(8)
	for range n {
		g.Go(func() error {
			_, _, err := client.Submit(ctx, standard.Request{Goal: "nothing", Coordinator: noopAgent})
			return err
		})
	}
	return g.Wait()
}

// unloaded measures runs by themselves, then all at once, with one worker process.
func (x *running) unloaded(ctx context.Context) (err error) {
	d, db, err := x.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	w, err := x.worker(ctx, d)
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }()
	for n := range x.o.Single {
		if err := submit(ctx, db, 1); err != nil {
			return err
		}
		if err := x.await(ctx, d, w, n+1); err != nil {
			return err
		}
	}
	if err := x.single(ctx, d); err != nil {
		return err
	}
	return x.load(ctx, d, db, w)
}

// single reads the times of runs from their records, from taking a run to its end. The wait for a worker to notice the
// run is not a part of it.
func (x *running) single(ctx context.Context, d *harness.Database) error {
	took, err := harness.Value[[]float64](ctx, d,
		`select array_agg(t order by t) from (select extract(epoch from ended_at - started_at)::float8 as t from runs) as took`)
	if err != nil || len(took) == 0 {
		return fmt.Errorf("times of %d runs: %w", len(took), err)
	}
	x.m.Single.Runs, x.m.Single.Median, x.m.Single.P95 = len(took), took[len(took)/2], took[len(took)*95/100]
	x.Say("%d runs one after the other: median %.1f ms, 95 %% within %.1f ms", len(took), x.m.Single.Median*1000,
		x.m.Single.P95*1000)
	return nil
}

// load submits all runs and measures until the last one has ended. Runs that ended before the clock began are not
// counted.
func (x *running) load(ctx context.Context, d *harness.Database, db *store.DB, w *harness.Process) error {
	if err := submit(ctx, db, x.o.Runs); err != nil {
		return err
	}
	before, err := x.work(ctx, d)
	if err != nil {
		return err
	}
	already, err := harness.Value[int](ctx, d, `select count(*)::int from runs where ended_at is not null`)
	if err != nil {
		return err
	}
	started := time.Now()
	if err := x.await(ctx, d, w, x.o.Single+x.o.Runs); err != nil {
		return err
	}
	took := time.Since(started).Seconds()
	after, err := x.work(ctx, d)
	if err != nil {
		return err
	}
	n := float64(x.o.Single + x.o.Runs - already)
	l := &x.m.Load
	l.Runs, l.Seconds, l.PerSecond, l.Commits, l.ServerCPU = int(n), took, n/took, (after.commits-before.commits)/n,
		after.cpu-before.cpu
	l.Statements = (after.statements - before.statements) / n
	x.Say("%d runs at once: %.1f/s, %.0f statements and %.0f commits each", l.Runs, l.PerSecond, l.Statements,
		l.Commits)
	return nil
}

// serverWork is what the server has done so far.
type serverWork struct{ commits, statements, cpu float64 }

// work reads the counters of the database, of which only differences mean something.
func (x *running) work(ctx context.Context, d *harness.Database) (w serverWork, err error) {
	if w.commits, err = harness.Value[float64](ctx, d,
		`select xact_commit::float8 from pg_stat_database where datname = current_database()`); err != nil {
		return w, err
	}
	if w.statements, err = harness.Value[float64](ctx, d,
		`select coalesce(sum(calls), 0)::float8 from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())`); err != nil {
		w.statements = 0 // not loaded
	}
	used, err := d.CPU(ctx)
	w.cpu = used.Seconds()
	return w, err
}

// killed has several workers do the runs, and kills one after the other at random, each time replacing the killed one.
// A run of a killed worker goes on when its claim of three seconds has ended: see WorkRuns.
func (x *running) killed(ctx context.Context) error {
	d, db, err := x.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	workers := make([]*harness.Process, x.o.Workers)
	defer func() {
		for _, w := range workers {
			if w != nil {
				_ = w.Stop()
			}
		}
	}()
	for i := range workers {
		if workers[i], err = x.worker(ctx, d); err != nil {
			return err
		}
	}
	if err := submit(ctx, db, x.o.Runs); err != nil {
		return err
	}
	started := time.Now()
	for range x.o.Kills {
		// No seed: a kill at another moment each time finds more than the same ones again and again.
		time.Sleep(time.Duration(100+rand.IntN(900)) * time.Millisecond)
		i := rand.IntN(len(workers))
		workers[i].Kill()
		if workers[i], err = x.worker(ctx, d); err != nil {
			return err
		}
		x.m.Kills.Kills++
	}
	if err := x.await(ctx, d, workers[0], x.o.Runs); err != nil {
		return err
	}
	x.m.Kills.Seconds = time.Since(started).Seconds()
	return x.judge(ctx, d)
}

// judge looks for what was lost or done twice. A run is doubled where it has other than nine phases, one step and one
// attempt, or where the feed has another number of events of its end: a subscriber would see the work twice.
func (x *running) judge(ctx context.Context, d *harness.Database) (err error) {
	k := &x.m.Kills
	k.Runs = x.o.Runs
	for _, q := range []struct {
		into *int
		sql  string
	}{
		{&k.Lost, `select count(*)::int from runs where status <> 'completed'`},
		{&k.Undecided, `select count(*)::int from tasks where status <> 'completed'`},
		{&k.Doubled, `select count(*)::int from runs r where steps <> 1 or attempt <> 1
			or (select count(*) from run_phases p where p.run_id = r.id) <> 9
			or (select count(*) from run_events e where e.root_id = r.id and e.kind = 'run.finished') <> 1
			or (select count(*) from run_events e where e.root_id = r.id and e.kind = 'phase.finished') <> 9`},
	} {
		if *q.into, err = harness.Value[int](ctx, d, q.sql); err != nil {
			return err
		}
	}
	x.Say("%d runs with %d kills in %.0f s: %d lost, %d doubled", k.Runs, k.Kills, k.Seconds, k.Lost+k.Undecided,
		k.Doubled)
	return nil
}

// database makes a database. Its caller closes the store; the connection of the Database ends with the server.
func (x *running) database(ctx context.Context) (*harness.Database, *store.DB, error) {
	d, err := x.server.Fresh(ctx)
	if err != nil {
		return nil, nil, err
	}
	// Without the library it is not there, and nothing is counted: work then reads 0 statements.
	_, _ = d.Exec(ctx, "create extension if not exists pg_stat_statements")
	db, err := store.Open(ctx, d.URL, store.Options{})
	return d, db, err
}

// worker starts a process and waits until its agent is known. It looks at the table of agents, where that of an earlier
// worker stays: only of the first worker it proves that it is ready.
func (x *running) worker(ctx context.Context, d *harness.Database) (*harness.Process, error) {
	w, err := x.o.Worker.Start("runs-worker", "--database-url", d.URL)
	if err != nil {
		return nil, err
	}
	return w, w.Await(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		return harness.Value[bool](ctx, d, `select exists (select from modules)`)
	})
}

// await waits until so many runs have ended, in whatever way. It fails when the worker ends first.
func (x *running) await(ctx context.Context, d *harness.Database, w *harness.Process, n int) error {
	return w.Await(ctx, 2*time.Millisecond, func(ctx context.Context) (bool, error) {
		return harness.Value[bool](ctx, d, fmt.Sprintf(`select count(*) >= %d from runs where ended_at is not null`, n))
	})
}

// WorkRuns is a worker of Runs: an engine with the agent that does nothing, until ctx
// ends. Its claims last three seconds instead of the product's own time, so that the
// runs of killed workers are taken up within the benchmark.
func WorkRuns(ctx context.Context, url string) error {
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	p, err := policy.Parse([]byte(policyfile.DefaultPolicy))
	if err != nil {
		return err
	}
	e, err := orchestrator.New(db, orchestrator.Options{Lenient: true, Hold: 3 * time.Second,
		Policy: func() *policy.Policy { return p }, Modules: []orchestrator.Module{noop{}}})
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// noop does nothing, in all nine phases.
type noop struct{}

// Info implements orchestrator.Module.
func (noop) Info() standard.Info {
	return standard.Info{Slug: noopAgent, DisplayName: "Does nothing", Version: "1.0.0",
		IdentityMode: standard.IdentityMode,
		Manifest: standard.Manifest{Schema: standard.ManifestSchema, Name: "Does nothing", Slug: noopAgent,
			Version: "1.0.0"}}
}

// CanHandle implements orchestrator.Module.
func (noop) CanHandle(context.Context, standard.Task) (bool, error) { return true, nil }

// Plan implements orchestrator.Module.
func (noop) Plan(_ context.Context, t standard.Task, _ *orchestrator.Context) (standard.Plan, error) {
	return standard.Plan{Steps: []standard.Step{{ID: "nothing", Description: t.Goal, Agent: noopAgent}}}, nil
}

// Execute implements orchestrator.Module.
func (noop) Execute(ctx context.Context, _ standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.Execution, error) {
	return c.RunPlan(ctx, p, func(context.Context, standard.Step, map[string]json.RawMessage,
		*orchestrator.Context) (json.RawMessage, error) {
		return json.RawMessage("null"), nil
	})
}

// Verify implements orchestrator.Module.
func (noop) Verify(_ context.Context, _ standard.Task, done standard.Execution,
	_ *orchestrator.Context) (standard.Verification, error) {
	return standard.Verification{Checks: []standard.Check{{Name: "done", Passed: done.Success}}, Score: 1}, nil
}

// Summarize implements orchestrator.Module.
func (noop) Summarize(context.Context, standard.Task, standard.Execution, standard.Verification,
	*orchestrator.Context) (standard.Summary, error) {
	return standard.Summary{Text: "nothing was done"}, nil
}
