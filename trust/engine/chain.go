package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/rootdb"
	"repute/store/scoredb"
	"repute/trust"
	"repute/trust/rating"
	"repute/trust/replay"
	"repute/trust/rows"
	"repute/trust/source"
)

// keeper computes the scores of one chain and keeps them up to date. The engine makes one for each chain.
type keeper struct {
	*Engine
	chain uint64
	basis atomic.Pointer[Basis] // of the newest run that this engine has loaded, nil at first
	// settled says that a run by this engine's own parameters and sources was made. From then on the engine follows
	// those of the newest run, which may be another engine's.
	settled bool
	scorers [reasons]*scoreRun // each is used by one loop only
	lists   listed             // hashes of the roots and links that were read last
	reads   int                // how often roots and links were read, for tests
	stayed  int                // scores that passes left as they were without memory of their own, for tests
	// rows are the agents and ratings as of the newest run that this engine has loaded.
	rows   *rows.Store
	reread passNumber // the pass that rows were read anew for
	// effects are the scores in effect since the last pass; the loop of rescore alone uses them.
	effects *scoredb.Effects
	policy  *source.Policy // another engine's policy of sources that was read last
	retry   sourceRetry
	// marked wakes the loop of follow when there are new marks, and begun that of rescore when there is a new basis.
	marked, begun chan struct{}
}

// newKeeper returns the keeper of a chain.
func newKeeper(e *Engine, chain uint64) *keeper {
	return &keeper{Engine: e, chain: chain, rows: rows.New(e.db, chain), effects: scoredb.NewEffects(e.db),
		marked: make(chan struct{}, 1), begun: make(chan struct{}, 1)}
}

// run keeps the scores of a chain up to date until ctx ends. Three loops run concurrently: walk begins a run at the end
// of an epoch, follow scores agents after events, and rescore scores all agents for a new run.
func (k *keeper) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { k.loop(ctx, "walk", max(k.poll, time.Second/2), nil, k.walk) })
	running.Go(func() { k.loop(ctx, "follow", k.poll, k.marked, k.follow) })
	running.Go(func() { k.loop(ctx, "rescore", k.poll, k.begun, k.rescore) })
}

// follow marks the agents stale whose data changed (see package trustmark), and scores them. more reports whether it
// should be called again at once.
func (k *keeper) follow(ctx context.Context) (more bool, err error) {
	const most = 1000
	n, err := scoredb.ResolveMarks(ctx, k.db, k.chain, most)
	if err != nil {
		return false, err
	}
	scored, err := k.scoreSome(ctx, byEvent, 64)
	return n == most || scored > 0, err
}

// rescore scores all agents for a new run, then the agents that changed penalties apply to, and closes the run when no
// such agent is left. Closing makes the run's final scores visible.
func (k *keeper) rescore(ctx context.Context) (more bool, err error) {
	if done, err := k.pass(ctx); done || err != nil {
		return done, err
	}
	if more, err = scoredb.MarkRelated(ctx, k.db, k.chain, 5000); err != nil {
		return false, err
	}
	n, err := k.scoreSome(ctx, byRun, 256)
	if err != nil || n > 0 || more {
		return n > 0 || more, err
	}
	closed, err := scoredb.CloseRun(ctx, k.db, k.chain)
	if closed {
		k.log.Info("epoch closed", "chain", k.chain)
	}
	return false, err
}

// walk begins the chain's next run when one is due. Otherwise it loads the newest run when another engine made it.
func (k *keeper) walk(ctx context.Context) (more bool, err error) {
	c, err := k.state(ctx)
	if err != nil {
		return false, err
	}
	var last scoredb.Run
	if c.Run > 0 {
		if last, err = scoredb.ReadRun(ctx, k.db, k.chain, c.Run); err != nil {
			return false, err
		}
	}
	next, bodies, due, err := k.next(ctx, c, last)
	if err != nil {
		return false, err
	}
	if due && !k.retry.early(next.Boundary) {
		err := k.begin(ctx, next, last, bodies)
		if !errors.Is(err, errSourcesWait) {
			k.settled = k.settled || err == nil // after an error the run is retried with the same parameters
			return true, err
		}
		k.retry = sourceRetry{next.Boundary, time.Now().Add(retrySources)}
		k.log.Warn("the epoch waits for sources", "chain", k.chain, "block", next.Block.Number, "reason", err)
	}
	k.settled = k.settled || !due && next.Run > 0
	b := k.basis.Load()
	if c.Run > 0 && (b == nil || b.Run.Run != c.Run) && last.Scorer == EngineVersion { // else another version scores it
		return true, k.takeOver(ctx, last, next, bodies)
	}
	return false, nil
}

// state reads the progress of the chain's index and of its scores.
func (k *keeper) state(ctx context.Context) (scoredb.Chain, error) {
	chains, err := scoredb.Chains(ctx, k.db)
	if err != nil {
		return scoredb.Chain{}, err
	}
	for _, c := range chains {
		if c.ChainID == k.chain {
			return c, nil
		}
	}
	return scoredb.Chain{}, fmt.Errorf("chain %d: %w", k.chain, repute.ErrNotFound)
}

// next returns the run that the chain would have now, and whether it is due. It is due when another epoch is final (see
// boundaryOf), when the last epoch's blocks were verified, or its logs or the header of its last block were found,
// after its run, and when roots, links, the list of validation contracts, the list of feedback gateways or this
// engine's parameters or sources changed. A chain that is still far behind gets no run, because its scores would be out
// of date.
func (k *keeper) next(ctx context.Context, c scoredb.Chain, last scoredb.Run) (run scoredb.Run, bodies inputs,
	due bool, err error) {
	final := c.Finalized
	if c.Imported {
		final = c.Cursor
	}
	if final == 0 || c.Cursor < final {
		return run, bodies, false, nil
	}
	if bodies, err = k.inputs(ctx, c, last); err != nil {
		return run, bodies, false, err
	}
	if k.lists == (listed{}) || k.lists.version != c.Lists {
		if err := k.readLists(ctx, c.Lists); err != nil {
			return run, bodies, false, err
		}
	}
	p, err := rating.ParseParams(bodies.params, bodies.tags)
	if err != nil {
		return run, bodies, false, err
	}
	length := p.Epoch.Of(k.chain)
	if c.Epoch != length {
		if err := scoredb.SetEpoch(ctx, k.db, k.chain, length); err != nil {
			return run, bodies, false, err
		}
	}
	sources, err := k.sourcesOf(last)
	if err != nil {
		return run, bodies, false, err
	}
	boundary := boundaryOf(c, last, final, length)
	run = scoredb.Run{ChainID: k.chain, Run: last.Run + 1, Epoch: boundary / length, Boundary: boundary,
		Scorer: EngineVersion,
		Params: replay.HashInput(bodies.params), Tags: replay.HashInput(bodies.tags),
		Roots: k.lists.roots, Links: k.lists.links,
		Validations: replay.HashInput(bodies.validations), Gateways: replay.HashGateways(k.chain, c.Gateways),
		Sources: sources, Repaired: c.Repaired, VerifiedTo: c.VerifiedTo}
	if last.Run > 0 && run.Boundary < last.Boundary { // an epoch was longer once
		run.Epoch, run.Boundary = last.Epoch, last.Boundary
	}
	if run.Block, err = scoredb.EpochEnd(ctx, k.db, k.chain, run.Boundary); err != nil {
		return run, bodies, false, err
	}
	if due = last.Run == 0 || run.Boundary > last.Boundary; !due {
		dated := run.Block.Number == run.Boundary && last.Block.Number < last.Boundary // the header came later
		due = dated || run.Verified() && !last.Verified() || c.Repaired > 0 ||
			run.Params != last.Params || run.Tags != last.Tags || run.Roots != last.Roots ||
			run.Links != last.Links || run.Sources != last.Sources ||
			run.Validations != last.Validations || run.Gateways != last.Gateways ||
			run.Scorer != last.Scorer && !k.settled
	}
	if gateways := replay.EncodeGateways(k.chain, c.Gateways); due && gateways != nil {
		err = k.keep(ctx, gateways)
	}
	return run, bodies, due, err
}

// mostUnverified is for how many epochs a chain's verified scores stay in effect while verification lags. After that
// newer, unverified scores replace them, because older scores would hide how agents behaved since.
const mostUnverified = 3

// boundaryOf returns the block that the chain's next run ends at: the end of the newest final epoch whose blocks are
// all verified. While that block, or the end of the verified scores in effect, is at most mostUnverified epochs behind
// the newest final epoch, the chain waits for verification. When it is further behind, or when no block is verified, as
// on imported chains, the run is that of the newest final epoch and is unverified.
func boundaryOf(c scoredb.Chain, last scoredb.Run, final, length uint64) uint64 {
	newest := final / length * length
	if newest <= c.VerifiedTo {
		return newest
	}
	held := c.VerifiedTo / length * length
	if last.Verified() {
		held = max(held, last.Boundary)
	}
	if held > 0 && newest <= held+mostUnverified*length {
		return held
	}
	return newest
}

// inputs returns parameters, tags and validation contracts for the next run, without roots and links: see readLists.
// When two engines have different parameters, the engine that was started last decides; the other uses those of the
// last run.
func (k *keeper) inputs(ctx context.Context, c scoredb.Chain, last scoredb.Run) (bodies inputs, err error) {
	bodies.params, bodies.tags = k.files[0], k.files[1]
	if k.settled && last.Run > 0 {
		if bodies.params, err = scoredb.ReadInput(ctx, k.db, last.Params); err != nil {
			return bodies, err
		}
		if bodies.tags, err = scoredb.ReadInput(ctx, k.db, last.Tags); err != nil {
			return bodies, err
		}
	}
	bodies.validations = replay.EncodeValidations(c.Validations)
	return bodies, nil
}

// listed has the hashes of a chain's roots and links, as they were when they had the given version. While the version
// is the same, the lists need not be read: there may be a million links.
type listed struct {
	version      int64 // read before the lists
	roots, links common.Hash
}

// readLists reads roots and links, stores them as inputs of the next run and sets lists.
func (k *keeper) readLists(ctx context.Context, version int64) error {
	k.reads++
	roots, err := rootdb.Roots(ctx, k.db, k.chain, repute.DefaultRoots)
	if err != nil {
		return err
	}
	links, err := rootdb.Links(ctx, k.db, k.chain)
	if err != nil {
		return err
	}
	encoded := [][]byte{replay.EncodeRoots(roots), replay.EncodeLinks(links)}
	if err := k.keep(ctx, encoded...); err != nil {
		return err
	}
	k.lists = listed{version, replay.HashInput(encoded[0]), replay.HashInput(encoded[1])}
	return nil
}

// begin makes a run: it reads the sources, computes the weights, and stores the run. repute.ErrFenced means that
// another engine has stored a run since, and errSourcesWait that the run must be made later.
func (k *keeper) begin(ctx context.Context, run, last scoredb.Run, bodies inputs) error {
	started := time.Now()
	if err := k.readFileScales(ctx, &run); err != nil {
		return err
	}
	unnumbered := run
	unnumbered.Run, unnumbered.Sources = 0, common.Hash{} // weights and credentials of the run are not known yet
	if err := k.keep(ctx, bodies.params, bodies.tags, bodies.validations); err != nil {
		return err
	}
	got, err := k.askSources(ctx, &run, last)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, MaxGraphRead)
	defer cancel()
	b, err := k.walkWith(ctx, &run, unnumbered, got)
	if err == nil {
		err = scoredb.RenewInputs(ctx, k.db, run.Inputs()...)
	}
	if err != nil {
		if errors.Is(err, repute.ErrGone) { // inputs were pruned in the meantime: the next try stores them again
			k.forget()
			k.lists = listed{}
		}
		return err
	}
	run.Weights, run.Identities, run.Edges = b.Weights.Sum(), b.Weights.Graph().Len(), b.Weights.Graph().Edges()
	none := trust.Unjudged(b.Params, run.Block)
	stored, err := StoredScore(&none)
	if err != nil {
		return err
	}
	run.Unjudged = scoredb.Unjudged{Low: stored.Low, High: stored.High, Result: string(stored.Result)}
	run.Coverage = b.covers
	if run.Coverage.ToFifty, err = k.toFifty(ctx, &run, b.Params); err != nil {
		return err
	}
	b.Run = run
	if err := k.build(ctx, b); err != nil {
		return err
	}
	if err := scoredb.AddRun(ctx, k.db, b.Run); err != nil {
		return err
	}
	k.use(b)
	took := time.Since(started)
	k.metrics.walked(k.chain, took)
	k.log.Info("walked the graph", "chain", k.chain, "epoch", run.Epoch, "run", run.Run, "block", run.Block.Number,
		"identities", run.Identities, "edges", run.Edges, "seconds", took.Seconds())
	for _, err := range b.refused {
		k.log.Warn("rules of a reviewed writer are left out: its ratings count by the general rules", "chain", k.chain,
			"run", run.Run, "reason", err)
	}
	if run.Roots == replay.NoRoots() && run.Credentials == (common.Hash{}) {
		k.log.Warn("the chain has neither roots nor sources: nobody is rated; repute roots add names a root",
			"chain", k.chain, "epoch", run.Epoch)
	}
	return nil
}

// use makes a basis that of the chain.
func (k *keeper) use(b *Basis) {
	k.basis.Store(b)
	k.graphs.Set(b)
	wake(k.begun)
}

// walkWith walks the graph of a run by its roots, finds by these weights what payments say of raters, and returns the
// basis with what all sources give. The run gets the hash of the credentials.
func (k *keeper) walkWith(ctx context.Context, run *scoredb.Run, unnumbered scoredb.Run, got *sourceReadings) (*Basis,
	error) {
	in, err := readInputs(ctx, k.db, unnumbered)
	if err != nil {
		return nil, err
	}
	k.freeWalk()
	w, err := in.walk(ctx, k.rows, unnumbered, got.paid)
	if err != nil {
		return nil, err
	}
	credits, err := k.settleSources(ctx, run, w, got)
	if err != nil {
		return nil, err
	}
	defer k.rows.Collect()
	return w.Credited(credits)
}

// freeWalk frees memory of the present basis that only walks by own roots of callers need, which take longer until the
// next basis takes its place.
func (k *keeper) freeWalk() {
	if b := k.basis.Load(); b != nil {
		b.Weights.Graph().FreeWalk()
	}
}

// takeOver computes the weights of a run that another engine stored. When they cannot be computed again, because logs
// were found late since, it begins another run.
func (k *keeper) takeOver(ctx context.Context, last, next scoredb.Run, bodies inputs) error {
	read, cancel := context.WithTimeout(ctx, MaxGraphRead)
	defer cancel()
	k.freeWalk()
	b, err := BasisOf(read, k.db, k.rows, last)
	if err == nil {
		if err = k.build(read, b); err == nil {
			k.use(b)
		}
		return err
	}
	if !errors.Is(err, repute.ErrGone) || next.Run == 0 {
		return err
	}
	k.log.Warn("walking the graph again", "chain", k.chain, "reason", err)
	next.Repaired = max(next.Repaired, 1) // no score of the old weights can be computed again
	return k.begin(ctx, next, last, bodies)
}

// MaxGraphRead is how long reading a chain's graph may take.
const MaxGraphRead = 30 * time.Minute
