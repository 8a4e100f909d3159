package verify

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/verify/state"
	"repute/indexer/verify/witness"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// gap is an event that seems to be missing. It is stored once a second comparison shows it too.
type gap = chaindb.Gap

// callsAtOnce is the burst of the rate limit for calls.
const callsAtOnce = 500

// ErrNothingNew is returned when there is nothing to verify now. It is no failure.
var ErrNothingNew = errors.New("nothing new to verify")

// nothingNew reports whether an error means that there is nothing to do, or no endpoint to ask.
func nothingNew(err error) bool {
	return errors.Is(err, ErrNothingNew) || errors.Is(err, witness.ErrNone)
}

// Options of a Verifier. Zero values are replaced by the defaults named.
type Options struct {
	// Rate is how many JSON-RPC calls per second may be made, 25; fifty headers count as
	// one, and so do the receipts of five blocks. They go out in batches. An endpoint that
	// refuses the rate halves it for a while; what a node itself limits comes on top.
	Rate float64
	// Agents is how many agents are compared at the same time, 32.
	Agents int
	// Window is how many blocks are examined at the same time, 400.
	Window uint64
	// Every is the time between two comparisons of all agents, 10 min; where one
	// takes long it is twenty times as long as that, but three days at most.
	Every time.Duration
	// Poll is the time between looks for something to do, 5 s.
	Poll time.Duration
	// RetryMin and RetryMax are the first and the longest pause before a gap is
	// looked for again, 30 s and 1 h.
	RetryMin, RetryMax time.Duration
	// HistoryOnly compares nothing: the verifier only reads what a contract emitted in blocks that were indexed
	// before it was listed.
	HistoryOnly bool
	NoBloom     bool         // headers' blooms prove nothing: the receipts of every block are read
	Metrics     *Metrics     // nil: not exposed
	Log         *slog.Logger // nil: discarded
}

// withDefaults replaces zero values by the named defaults.
func (o Options) withDefaults() Options {
	if o.Rate <= 0 {
		o.Rate = 25
	}
	setDefault(&o.Agents, 32)
	setDefault(&o.Window, 400)
	setDefault(&o.Every, 10*time.Minute)
	setDefault(&o.Poll, 5*time.Second)
	setDefault(&o.RetryMin, 30*time.Second)
	setDefault(&o.RetryMax, time.Hour)
	if o.Metrics == nil {
		o.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Verifier compares what is stored of a chain with the chain itself, behind the cursor: the state
// of every agent at a finalized block, and every final block. It searches for missing events and
// stores them, or publishes them as gaps and searches again. All progress is in the store. Run and
// Step MUST be called by one goroutine.
type Verifier struct {
	db        *store.DB
	chain     repute.Chain
	witnesses *witness.Set
	opts      Options
	states    *state.Comparer
	decoder   contracts.Decoder
	label     string
	log       *slog.Logger

	began         time.Time     // when this process began to compare all agents
	swept         time.Time     // when it last had
	rest          time.Duration // how long to wait then
	tasks         []task
	first         int             // the task to begin with
	dense         bool            // too many blooms of this chain admit events to search by them
	bloomless     bool            // blooms lack logs of their blocks, so that none excludes any
	wrongBlooms   map[uint64]bool // proven blocks whose bloom lacks some of their logs, until bloomless
	unanswered    map[uint64]int  // failed tries of blocks that hold up a window; see givesUp
	sweeps        int             // calls of sweepBlocks
	unprovenRetry struct {        // when unproven blocks are compared again, and below which block
		retry node.Backoff
		next  time.Time
		below uint64
	}
	widened   map[uint64]bool
	startSeen bool // whether the registry is older than the start block
}

// New returns a Verifier of chain c. The witnesses are the chain's nodes, the preferred one first;
// there may be none at times.
func New(db *store.DB, c repute.Chain, witnesses func() []*node.Node, o Options) *Verifier {
	o = o.withDefaults()
	c.StartBlock = max(c.StartBlock, 1)
	v := &Verifier{db: db, chain: c, witnesses: witness.New(witnesses, o.Rate, int(min(max(o.Rate, 1), callsAtOnce))),
		opts: o, decoder: contracts.NewDecoder(c),
		label: strconv.FormatUint(c.ID, 10), log: o.Log.With("chain", c.ID),
		widened: map[uint64]bool{}, wrongBlooms: map[uint64]bool{}, unanswered: map[uint64]int{}, dense: o.NoBloom,
		bloomless: o.NoBloom}
	v.states = state.New(db, c, v.witnesses.Spend, v.log)
	v.unprovenRetry.retry = node.Backoff{Min: o.RetryMin, Max: o.RetryMax}
	retry := node.Backoff{Min: time.Second, Max: time.Minute}
	v.tasks = []task{{run: v.checkStart, retry: retry}, {run: v.settleNext, retry: retry},
		{run: v.sweepAgents, retry: retry}, {run: v.sweepBlocks, retry: retry}}
	if o.HistoryOnly {
		v.tasks = []task{{run: v.settleNext, retry: retry}}
	}
	return v
}

// readTreasuries reads the treasuries whose events are indexed. Adding one ends the lease, so that Run reads them once.
func (v *Verifier) readTreasuries(ctx context.Context) error {
	treasuries, start, _, err := chaindb.Contracts(ctx, v.db, v.chain.ID)
	if err != nil {
		return err
	}
	if v.chain.WithoutRegistries() {
		v.chain.StartBlock = start
	}
	v.chain.Treasuries = treasuries
	v.decoder = contracts.NewDecoder(v.chain)
	return nil
}

// Run verifies under the chain's lease until ctx ends, which is no error, or the lease is lost,
// which is repute.ErrFenced. A signal on nudge reports that events were stored which wait for
// missing ones.
func (v *Verifier) Run(ctx context.Context, l store.Lease, nudge <-chan struct{}) error {
	known := false // whether the treasuries are
	for ctx.Err() == nil {
		var err error
		if !known {
			err = v.readTreasuries(ctx)
		}
		if known = err == nil; known {
			err = v.Step(ctx, l)
		}
		wait := time.Duration(0)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
		case errors.Is(err, ErrNothingNew):
			wait = v.opts.Poll
		case errors.Is(err, repute.ErrFenced):
			return err
		default:
			v.log.Warn("verification failed", "error", err)
			wait = min(v.opts.Poll, time.Second)
		}
		if wait > 0 {
			waitOrNudge(ctx, wait, nudge)
		}
	}
	return nil
}

// waitOrNudge waits for d, until ctx ends, or until a signal arrives.
func waitOrNudge(ctx context.Context, d time.Duration, nudge <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-nudge:
	case <-t.C:
	}
}

// nearEnough is how far behind its head a chain may be, in blocks, to be verified:
// farther behind the endpoints are left to the indexing.
const nearEnough = 256

// Step does one unit of work: it tries to close one gap, compares some agents or
// looks through some blocks. ErrNothingNew when there is nothing to do, also while
// the chain is far behind its head.
func (v *Verifier) Step(ctx context.Context, l store.Lease) error {
	at, err := verifydb.ReadStanding(ctx, v.db, v.chain.ID)
	if err != nil {
		return err
	}
	if at.Cursor+nearEnough < at.Head || at.Newest.Number < v.chain.StartBlock || len(v.witnesses.Nodes()) == 0 {
		return ErrNothingNew
	}
	v.first++
	failed := ErrNothingNew
	for i := range len(v.tasks) + 1 {
		t := &v.tasks[(v.first+i)%len(v.tasks)]
		if i == 0 && v.first%blocksShare > 0 {
			t = &v.tasks[len(v.tasks)-1]
		}
		if time.Now().Before(t.next) {
			continue
		}
		err := t.run(ctx, l, at)
		v.witnesses.Adapt(err)
		switch {
		case err == nil:
			t.retry.Reset()
			return nil
		case errors.Is(err, repute.ErrFenced), ctx.Err() != nil:
			return err
		case !nothingNew(err):
			t.next = time.Now().Add(t.retry.Next())
			failed = err
		}
	}
	return failed
}

// blocksShare: all but one of that many units of work compare blocks, while there are any to
// compare. A large chain has many more agents than new blocks.
const blocksShare = 5

// task is one kind of work of a verifier. A failed task waits without delaying the others.
type task struct {
	run   func(context.Context, store.Lease, verifydb.Standing) error
	retry node.Backoff
	next  time.Time
}

// open stores confirmed gaps. It returns chaindb.ErrGapsFull if there was no room for all of them:
// the affected events must not be called verified then.
func (v *Verifier) open(ctx context.Context, l store.Lease, gaps []gap) error {
	if len(gaps) == 0 {
		return nil
	}
	for _, h := range gaps {
		v.log.Warn("event missing", "kind", h.Kind, "subject", h.Subject, "from", h.Blocks.From, "to", h.Blocks.To,
			"reason", h.Reason)
		v.opts.Metrics.missing.WithLabelValues(v.label, h.Kind.String()).Inc()
	}
	return chaindb.OpenGaps(ctx, v.db, v.chain.ID, l, gaps)
}

// setDefault replaces a zero value.
func setDefault[T ~int | ~int64 | ~uint64](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}
