package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/scoredb"
	"repute/trust/rating"
	"repute/trust/replay"
	"repute/trust/source"
)

// EngineVersion names how scores are computed, in stored scores. It changes when equal
// evidence and parameters may give another result.
const EngineVersion = "repute/6"

// EngineOptions tune an Engine. The zero value works.
type EngineOptions struct {
	// Params and Tags are the two files of parameters; nil: those of this package. They count from the next run on.
	Params, Tags []byte
	// Poll is how often new events are looked for, 200 ms when 0.
	Poll time.Duration
	// Exact writes every score at every epoch. Without it one that age alone changed, by less
	// than scoredb.Tolerance, stays as an earlier epoch left it.
	Exact bool
	// Finals is for how long a final score is kept after another one replaced it, for ever when 0.
	Finals time.Duration
	// Sources is the policy of sources of trust, nil for none. Ask reads them; with nil every source is incomplete.
	Sources *source.Policy
	Ask     SourceReader
	// AskLimit bounds one reading of all sources of a chain, 15 minutes when 0.
	AskLimit time.Duration
	Graphs   *Graphs  // where readers find the graphs of this engine; nil: nowhere
	Metrics  *Metrics // nil: not counted
	Log      *slog.Logger
}

// Engine keeps the stored scores of all indexed chains up to date. Any number of engines may
// share a database and then share the work. A crash at any moment loses nothing.
type Engine struct {
	db      *store.DB
	files   [2][]byte // parameters and tags
	poll    time.Duration
	exact   bool
	finals  time.Duration
	sources *source.Policy
	ask     SourceReader
	limit   time.Duration // of one reading of sources
	graphs  *Graphs
	metrics *Metrics
	log     *slog.Logger
	owner   string        // of leases
	batch   int           // most agents of a batch of a pass
	renewal time.Duration // how often the lease of a pass is renewed while rows are read

	mu   sync.Mutex
	kept map[common.Hash]bool // inputs known to be stored
}

// New makes an engine. repute.ErrInvalid: the parameters are wrong.
func New(db *store.DB, o EngineOptions) (*Engine, error) {
	e := &Engine{db: db, files: [2][]byte{o.Params, o.Tags}, poll: cmp.Or(o.Poll, 200*time.Millisecond), exact: o.Exact,
		finals: o.Finals, sources: o.Sources, ask: o.Ask, limit: cmp.Or(o.AskLimit, maxSourceRead), metrics: o.Metrics,
		graphs: o.Graphs,
		log:    o.Log, owner: rand.Text(), batch: passAgents,
		renewal: scoredb.PassLeaseTTL / 4, kept: map[common.Hash]bool{}}
	params, tags := rating.DefaultFiles()
	for i, file := range [][]byte{params, tags} {
		if e.files[i] == nil {
			e.files[i] = file
		}
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.metrics == nil {
		e.metrics = NewMetrics(nil)
	}
	_, err := rating.ParseParams(e.files[0], e.files[1])
	return e, err
}

// Run scores until ctx ends and returns nil. Failures are logged and retried.
func (e *Engine) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	var keepers sync.Map // *keeper by chain id in decimal
	running.Go(func() { e.tidy(ctx) })
	running.Go(func() { e.listen(ctx, &keepers) })
	for ctx.Err() == nil {
		chains, err := scoredb.Chains(ctx, e.db)
		if err != nil && ctx.Err() == nil {
			e.log.Warn("scores wait for the database", "error", err)
		}
		for _, c := range chains {
			id := label(c.ChainID)
			if _, started := keepers.Load(id); !started {
				k := newKeeper(e, c.ChainID)
				keepers.Store(id, k)
				running.Go(func() { k.run(ctx) })
			}
		}
		e.measure(ctx)
		repute.Pause(ctx, 2*time.Second)
	}
	return nil
}

// tidy deletes final scores after their retention, and inputs that no stored score names.
func (e *Engine) tidy(ctx context.Context) {
	finals := func(ctx context.Context) (bool, error) { return scoredb.PruneFinals(ctx, e.db, e.finals) }
	inputs := func(ctx context.Context) (bool, error) { return scoredb.PruneInputs(ctx, e.db) }
	for ctx.Err() == nil {
		for _, prune := range []func(context.Context) (bool, error){finals, inputs} {
			more, err := true, error(nil)
			for more && err == nil && ctx.Err() == nil {
				more, err = prune(ctx)
			}
			if err != nil && ctx.Err() == nil {
				e.log.Warn("old inputs of scores could not be forgotten", "error", err)
			}
		}
		repute.Pause(ctx, time.Hour)
	}
}

// measure sets the gauges.
func (e *Engine) measure(ctx context.Context) {
	states, _ := scoredb.ReadStates(ctx, e.db) // the loops log the same failure
	for _, s := range states {
		e.metrics.set(s)
	}
}

// keep stores inputs of scores, each once per process.
func (e *Engine) keep(ctx context.Context, bodies ...[]byte) error {
	e.mu.Lock()
	fresh := slices.DeleteFunc(slices.Clone(bodies), func(b []byte) bool { return e.kept[replay.HashInput(b)] })
	e.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	if err := scoredb.KeepInputs(ctx, e.db, fresh...); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.kept) > maxKept {
		clear(e.kept)
	}
	for _, b := range fresh {
		e.kept[replay.HashInput(b)] = true
	}
	return nil
}

// forget clears the cache of keep, so that inputs are stored again.
func (e *Engine) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.kept)
}

// maxKept bounds the memory of inputs that are known to be stored.
const maxKept = 100_000

// loop calls step until ctx ends: again at once while there is work, else after every or when it is woken.
func (k *keeper) loop(ctx context.Context, what string, every time.Duration, woken <-chan struct{},
	step func(context.Context) (bool, error)) {
	for ctx.Err() == nil {
		more, err := step(ctx)
		switch {
		case err != nil && ctx.Err() == nil && !errors.Is(err, repute.ErrFenced):
			k.log.Warn("scoring failed, trying again", "chain", k.chain, "step", what, "error", err)
			repute.Pause(ctx, max(every, time.Second))
		case !more:
			pause(ctx, every, woken)
		}
	}
}

// pause waits for d, or until it is woken or ctx ends.
func pause(ctx context.Context, d time.Duration, woken <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	case <-woken:
	}
}

// wake wakes the loop that waits for a channel, or ends its next pause.
func wake(sleeper chan<- struct{}) {
	select {
	case sleeper <- struct{}{}:
	default:
	}
}

// listen wakes the loop of follow of a chain when it has new marks, until ctx ends. Without a connection that hears of
// them the loops poll alone.
func (e *Engine) listen(ctx context.Context, keepers *sync.Map) {
	for ctx.Err() == nil {
		err := e.db.Listen(ctx, scoredb.MarksChannel, func(chain string) {
			if k, known := keepers.Load(chain); known {
				wake(k.(*keeper).marked)
			}
		})
		if err != nil && ctx.Err() == nil {
			e.log.Debug("scores wait for the next poll", "error", err)
		}
		repute.Pause(ctx, listenAgain)
	}
}

// listenAgain is the pause between two attempts to listen. The engine polls during the pause.
const listenAgain = 10 * time.Second
