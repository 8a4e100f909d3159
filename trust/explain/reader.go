package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/cache"
	"repute/store"
	"repute/store/paydb"
	"repute/store/query"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/engine"
	"repute/trust/flow"
	"repute/trust/rating"
	"repute/trust/replay"
	"repute/trust/rows"
)

// Options tune a Reader. The zero value works.
type Options struct {
	// Params are those of chains on which no engine has run. Nil: DefaultParams.
	Params *rating.Params
	// Memory bounds the bytes of cached graphs and walks, 256 MiB when 0. The newest graph is
	// always kept.
	Memory int64
	// Graphs are those of engines in the same process, nil for none. They are used where a graph of the same run is
	// asked for.
	Graphs *engine.Graphs
}

// Reader explains and replays stored scores, and scores agents by the caller's roots. It
// caches graphs and walks and is safe for concurrent use.
type Reader struct {
	db     *store.DB
	params *rating.Params
	worlds *cache.Cache[worldKey, *engine.Basis] // of the newest runs
	older  *cache.Cache[worldKey, *engine.Basis] // of runs that are asked for by an old block
	walks  *cache.Cache[walkKey, *personalWalk]
	graphs *engine.Graphs
}

// Passable are the ids of the gates that an agent can be asked to pass.
func (r *Reader) Passable() []string { return r.params.Passable() }

// Unit says what the values of a tag mean, "" where the table of tags does not know it.
func (r *Reader) Unit(tag string) string {
	if rule := r.params.Tags.Rule(tag); rule != nil {
		return rule.Unit
	}
	return ""
}

// worldKey names a run; without one, the block its graph would be of.
type worldKey struct{ chain, run, block uint64 }

// walkKey names weights by roots of a caller.
type walkKey struct {
	world worldKey
	walkOf
}

// walkOf names what a walk by a caller's roots follows from besides the graph.
type walkOf struct {
	roots   common.Hash
	sources bool
}

// maxWalks is how many walks by callers' roots may be made or wait at once: each takes up to
// a second of all processors on the largest chains, and callers wait no longer than that many.
const maxWalks = 8

// NewReader makes a reader of what an engine has stored in db. It reads nothing yet.
func NewReader(db *store.DB, o Options) (*Reader, error) {
	if o.Params == nil {
		var err error
		if o.Params, err = rating.DefaultParams(); err != nil {
			return nil, err
		}
	}
	if o.Memory <= 0 {
		o.Memory = 256 << 20
	}
	r := &Reader{db: db, params: o.Params, graphs: o.Graphs}
	name := func(k worldKey) string { return fmt.Sprint(k) }
	// The caches compute independently: a request for an old graph does not delay the newest
	// one, which is read once for all callers and may take as long as an engine's.
	r.worlds = cache.New(cache.Bounds{What: "the graph of the newest epoch", Limit: engine.MaxGraphRead,
		Memory: o.Memory / 2},
		(*engine.Basis).Size, name)
	r.older = cache.New(cache.Bounds{What: "the graph of an earlier epoch", Limit: 2 * time.Minute, Asked: 4,
		Memory: o.Memory / 4}, (*engine.Basis).Size, name)
	r.walks = cache.New(cache.Bounds{What: "a walk by other roots", Limit: 2 * time.Minute, Asked: maxWalks,
		Memory:  o.Memory / 4,
		Instead: "ask without roots: the chain's own are scored already"}, (*personalWalk).size,
		func(k walkKey) string { return fmt.Sprint(k.world, k.walkOf) })
	return r, nil
}

// Account explains a score, with what it would be without some of the raters.
type Account struct {
	// Score is the stored one. It is zero when none was computed; the explanation is then by
	// the parameters and the evidence without any trusted rater. When the score was kept from
	// an earlier epoch, the explanation is by the newest epoch, whose result differs by less
	// than scoredb.Tolerance. A contribution of KindAge holds the difference, so that the points
	// add up to the stored score.
	Score repute.Score
	AsOf  repute.AsOf // the view in which it is the agent's score
	Breakdown
}

// Breakdown is the explanation of a score, with the scores that the agent would have without some raters.
type Breakdown struct {
	trust.Explanation
	// Counterfactuals are in this order: without the raters that the caller named, without each of the strongest
	// raters, and without all of these.
	Counterfactuals []Counterfactual
}

// Counterfactual is what a score would be without the ratings and answers of some.
type Counterfactual struct {
	// Without lists at most ten of raters that count as one; all of them are left out.
	Without []common.Address
	Result  trust.Result
}

// strongest is how many raters are left out by themselves.
const strongest = 3

// Explain explains an agent's stored score: the newest one for latest,
// else the final one of the last epoch up to the block. without names raters whose
// ratings to leave out in a counterfactual. repute.ErrNotFound as in query.Agent, a
// *replay.PrunedError where the inputs of the score are gone, repute.ErrUnavailable where too
// many ask for graphs of earlier epochs or one takes too long.
func (r *Reader) Explain(ctx context.Context, id repute.AgentID, at repute.At, without []common.Address) (out Account,
	err error) {
	err = steady(func() error {
		score, asOf, err := r.storedScore(ctx, id, at)
		if err == nil {
			out, err = r.account(ctx, score, asOf, at, without)
		}
		return err
	})
	return out, err
}

// ExplainScore is Explain of a score that was read before, in the view asOf. A caller that
// shows both shows one number, even if a newer score was stored in between.
func (r *Reader) ExplainScore(ctx context.Context, score repute.Score, asOf repute.AsOf, at repute.At,
	without []common.Address) (out Account, err error) {
	err = steady(func() error {
		out, err = r.account(ctx, score, asOf, at, without)
		return err
	})
	return out, err
}

// account explains a score that is stored. What age changed since the epoch the score was kept
// from is a contribution of its own.
func (r *Reader) account(ctx context.Context, score repute.Score, asOf repute.AsOf, at repute.At,
	without []common.Address) (out Account, err error) {
	c, err := r.caseOf(ctx, score, asOf, at)
	if err != nil {
		return out, err
	}
	out.Score, out.AsOf = c.score, c.asOf
	if out.Breakdown, err = r.breakdown(ctx, &c, without); err != nil {
		return out, err
	}
	if aged := c.score.Score - out.Result.Score; aged != 0 {
		out.Contributions = append(out.Contributions, trust.Contribution{Kind: trust.KindAge, Points: aged})
	}
	return out, nil
}

// steady reads again where a reorganization replaced, between two reads, what was read
// first.
func steady(read func() error) (err error) {
	for range 3 {
		if err = read(); !errors.Is(err, repute.ErrReorged) {
			return err
		}
	}
	return fmt.Errorf("explain score: %w (%w)", repute.ErrUnavailable, err)
}

// breakdown explains a score, and what it would be without some raters.
func (r *Reader) breakdown(ctx context.Context, c *judged, without []common.Address) (out Breakdown, err error) {
	s := trust.NewScorer(c.evidence.Weights, c.world.Params)
	out.Explanation = s.Explain(c.evidence)
	if err := r.addTxs(ctx, c.evidence.Agent.ChainID, c.evidence.Block, &out.Explanation); err != nil {
		return out, err
	}
	leave := func(list []common.Address, raters []common.Address) {
		gone := make(map[common.Address]bool, len(raters))
		for _, a := range raters {
			gone[a] = true
		}
		e := c.evidence
		e.Rows = slices.DeleteFunc(slices.Clone(e.Rows), func(r rating.Row) bool { return gone[r.Rater] })
		out.Counterfactuals = append(out.Counterfactuals, Counterfactual{list, s.Score(e)})
	}
	if len(without) > 0 {
		leave(without, without)
	}
	var all, listed []common.Address
	for _, raters := range strongestRaters(out.Contributions) {
		leave(trust.ListedRaters(raters), raters)
		all, listed = append(all, raters...), append(listed, trust.ListedRaters(raters)...)
	}
	if len(out.Counterfactuals) > 1 && len(all) > 1 {
		leave(listed, all)
	}
	return out, nil
}

// strongestRaters are those behind the opinions that move the score most.
func strongestRaters(list []trust.Contribution) (out [][]common.Address) {
	for _, c := range list {
		if c.Kind == trust.KindOpinion && c.Points != 0 && len(out) < strongest {
			out = append(out, c.AllRaters())
		}
	}
	return out
}

// judged is an agent's evidence with the world it is weighed in.
type judged struct {
	asOf     repute.AsOf
	score    repute.Score
	world    *engine.Basis
	evidence trust.Evidence
	manifest replay.Manifest // of the evidence, the zero one without a stored score
}

// storedScore is what ScoreOf gives, also where that is what an agent without a score has.
func (r *Reader) storedScore(ctx context.Context, id repute.AgentID, at repute.At) (score repute.Score,
	asOf repute.AsOf, err error) {
	var missing *repute.MissingError
	score, asOf, err = query.ScoreOf(ctx, r.db, id, at)
	if errors.Is(err, repute.ErrNotFound) && !errors.As(err, &missing) || errors.Is(err, repute.ErrGone) {
		err = nil // score says so
	}
	return score, asOf, err
}

// caseOf reads the inputs of a stored score. Without a stored score no rater has weight,
// because weights of a later epoch would tell what was not known then.
func (r *Reader) caseOf(ctx context.Context, score repute.Score, asOf repute.AsOf, at repute.At) (c judged, err error) {
	c.score, c.asOf = score, asOf
	id := score.Agent
	if score.Pruned {
		return c, &replay.PrunedError{What: fmt.Sprintf("the final score of agent %s as of then", id.Short())}
	}
	if c.score.Run == 0 {
		if c.world, err = r.unvouched(ctx, id.ChainID, c.score); err != nil {
			return c, err
		}
		c.evidence, err = r.evidence(ctx, id, at, c.world, c.world.Weights)
		return c, err
	}
	if at.Finality == repute.Latest && !c.score.Final || at.Finality == repute.Finalized {
		if found, err := r.renew(ctx, &c); found || err != nil {
			return c, err
		}
	}
	err = r.follow(ctx, &c)
	return c, err
}

// follow reads what the stored score follows from.
func (r *Reader) follow(ctx context.Context, c *judged) (err error) {
	id := c.score.Agent
	if c.world, err = r.world(ctx, id.ChainID, c.score.Run); err != nil {
		return err
	}
	if c.evidence, err = r.evidence(ctx, id, repute.At{Block: c.score.Block.Number}, c.world,
		c.world.Weights); err != nil {
		return err
	}
	c.evidence.Block = c.score.Block
	if err = r.addManifest(ctx, c); err == nil && c.evidence.Validations != c.world.Run.Validations {
		err = &replay.PrunedError{What: "the manifest of evidence that names the run's validation contracts"}
	}
	return err
}

// addManifest replaces the evidence's related agents and payments by those of the stored
// score's manifest; today's may differ.
func (r *Reader) addManifest(ctx context.Context, c *judged) error {
	what := fmt.Sprintf("the manifest of evidence with sha256 %s", c.score.Evidence)
	body, err := scoredb.ReadInput(ctx, r.db, c.score.Evidence)
	if errors.Is(err, repute.ErrNotFound) || err == nil && replay.HashInput(body) != c.score.Evidence {
		return &replay.PrunedError{What: what}
	}
	if err != nil {
		return err
	}
	if c.manifest, err = replay.DecodeManifest(body); err == nil {
		err = c.manifest.Apply(&c.evidence,
			func() ([]repute.RatingPayment, error) { return paydb.ReadLedger(ctx, r.db, c.score.Agent) })
	}
	var pruned *replay.PrunedError
	if err != nil && !errors.As(err, &pruned) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// evidence reads what is stored about an agent at a block.
func (r *Reader) evidence(ctx context.Context, id repute.AgentID, at repute.At, world *engine.Basis,
	w *flow.Weights) (trust.Evidence, error) {
	subject, err := trustdb.ReadEvidence(ctx, r.db, id, at, world.Validations)
	if err != nil {
		return trust.Evidence{}, err
	}
	return rows.EvidenceOf(subject, w, world.Scales), nil
}

// unvouched is a world without roots and edges, by the parameters of the run that says
// what an agent without a score has.
func (r *Reader) unvouched(ctx context.Context, chainID uint64, none repute.Score) (*engine.Basis, error) {
	p, err := r.paramsOf(ctx, none)
	if err != nil {
		return nil, err
	}
	validations, err := scoredb.AllowedValidations(ctx, r.db, chainID)
	return &engine.Basis{Run: scoredb.Run{ChainID: chainID}, Params: p, Scales: new(rating.Scales),
		Validations: validations,
		Weights:     flow.NewGraphBuilder().Build().Walk(nil, p.Walk)}, err
}

// paramsOf are the parameters that a score names; the reader's own where no engine has run.
func (r *Reader) paramsOf(ctx context.Context, s repute.Score) (*rating.Params, error) {
	if s.Scorer == "" || s.Params == r.params.Hash && s.Tags == r.params.TagsHash {
		return r.params, nil
	}
	var bodies [2][]byte
	for i, hash := range []common.Hash{s.Params, s.Tags} {
		body, err := scoredb.ReadInput(ctx, r.db, hash)
		if errors.Is(err, repute.ErrNotFound) {
			return nil, &replay.PrunedError{What: fmt.Sprintf("the parameters with sha256 %s", hash)}
		}
		if err != nil {
			return nil, err
		}
		bodies[i] = body
	}
	return rating.ParseParams(bodies[0], bodies[1])
}

// world returns the parameters and weights of a run, from the cache when they are in it. A
// *replay.PrunedError when the run is no longer stored.
func (r *Reader) world(ctx context.Context, chainID, run uint64) (*engine.Basis, error) {
	key := worldKey{chain: chainID, run: run}
	if w, ok := r.worlds.Peek(key); ok {
		return w, nil
	}
	newest, err := scoredb.ReadRun(ctx, r.db, chainID, 0)
	if err == nil && newest.Run == run {
		return r.worldFor(ctx, newest)
	}
	stored, err := scoredb.ReadRun(ctx, r.db, chainID, run)
	if errors.Is(err, repute.ErrNotFound) {
		return nil, &replay.PrunedError{What: fmt.Sprintf("run %d of chain %d", run, chainID)}
	}
	if err != nil {
		return nil, err
	}
	return r.older.Get(ctx, key, func(ctx context.Context) (*engine.Basis, error) {
		return engine.BasisOf(ctx, r.db, rows.New(r.db, stored.ChainID), stored)
	})
}

// worldFor computes the parameters and weights of a run once for all callers that wait, unless an engine of the process
// has them.
func (r *Reader) worldFor(ctx context.Context, run scoredb.Run) (*engine.Basis, error) {
	if w := r.graphs.Get(run.ChainID, run.Run); w != nil {
		same := *w
		same.Run = run // as it is stored, with its times
		return &same, nil
	}
	return r.worlds.Get(ctx, worldKey{chain: run.ChainID, run: run.Run},
		func(ctx context.Context) (*engine.Basis, error) {
			return engine.BasisOf(ctx, r.db, rows.New(r.db, run.ChainID), run)
		})
}

// addTxs names the transactions of all rows that are listed.
func (r *Reader) addTxs(ctx context.Context, chainID uint64, view repute.Block, e *trust.Explanation) error {
	var refs []*trust.RowRef
	for i := range e.Contributions {
		for j := range e.Contributions[i].Rows {
			refs = append(refs, &e.Contributions[i].Rows[j])
		}
	}
	for i := range e.Excluded {
		refs = append(refs, &e.Excluded[i].RowRef)
	}
	logs := make([]trustdb.LogAt, len(refs))
	for i, ref := range refs {
		logs[i] = trustdb.LogAt{Block: ref.Block, LogIndex: ref.LogIndex}
	}
	txs, err := trustdb.ReadTransactions(ctx, r.db, chainID, view, logs)
	for i, ref := range refs {
		ref.Tx = txs[logs[i]]
	}
	return err
}
