package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/query"
	"repute/store/rootdb"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/engine"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
	"repute/trust/replay"
	"repute/trust/rows"
)

// maxPersonalRoots is how many roots a caller may name.
const maxPersonalRoots = 100

// Own has the roots of a caller, which replace the chain's own.
type Own struct {
	Roots []repute.TrustRoot
	// Sources says that the credits by the chain's sources count in addition to the roots.
	Sources bool
}

// Personal is a score by the caller's own roots. It is not stored.
type Personal struct {
	Run    scoredb.Run // whose graph was walked
	Params *rating.Params
	Roots  common.Hash // sha256 of their canonical form: see EncodeRoots
	// Given is the number of roots that have not expired, Known the number of these whose
	// identity gave a rating that counts. The others have no influence.
	Given, Known int
	Sourced      bool // the chain's sources count in addition to the roots
	Block        repute.Block
	Result       trust.Result
}

// PersonalAccount explains a score by the caller's own roots.
type PersonalAccount struct {
	Personal
	AsOf repute.AsOf // the newest state
	Breakdown
}

// NamedRoots is a chain's set of roots of that name, for Personal. repute.ErrInvalid
// where the chain has none.
func (r *Reader) NamedRoots(ctx context.Context, chainID uint64, set string) ([]repute.TrustRoot, error) {
	hint := "addresses divided by commas, or the name of a set of roots that the chain has"
	if err := rootdb.CheckRootSet(set); err != nil {
		return nil, repute.Invalid("roots", fmt.Sprintf("%.50q is neither an address nor the name of a set", set), hint)
	}
	roots, err := rootdb.Roots(ctx, r.db, chainID, set)
	if err == nil && len(roots) == 0 {
		err = repute.Invalid("roots", fmt.Sprintf("chain %d has no set of roots named %s", chainID, set), hint)
	}
	return roots, err
}

// PersonalRoots reads addresses divided by commas, each of weight one. repute.ErrInvalid
// names a bad address, or one that is listed twice, whatever its capitals.
func PersonalRoots(list string) ([]repute.TrustRoot, error) {
	parts := strings.Split(list, ",")
	if len(parts) > maxPersonalRoots {
		return nil, repute.Invalid("roots", fmt.Sprintf("%d addresses", len(parts)),
			fmt.Sprintf("no more than %d, or a named set", maxPersonalRoots))
	}
	seen := map[common.Address]bool{}
	roots := make([]repute.TrustRoot, 0, len(parts))
	for i, part := range parts {
		a, err := repute.ParseAddress("roots", strings.TrimSpace(part))
		var input *repute.InputError
		if errors.As(err, &input) {
			return nil, repute.Invalid("roots", fmt.Sprintf("entry %d: %s", i+1, input.Reason), input.Hint)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case a == common.Address{}:
			return nil, repute.Invalid("roots", fmt.Sprintf("entry %d is the zero address", i+1),
				"an address that somebody has")
		case seen[a]:
			return nil, repute.Invalid("roots", fmt.Sprintf("entry %d, %s, stands twice", i+1, a.Hex()),
				"each address once, in whatever capitals")
		}
		seen[a] = true
		roots = append(roots, repute.TrustRoot{Address: a, Weight: repute.RootUnit})
	}
	return roots, nil
}

// Personal scores an agent by a caller's roots, with the evidence of its newest stored score and the graph of the
// chain's newest epoch. Sources count when by includes them and the epoch read any. admit is called before work that is
// expensive and not cached, so it may be called twice: before the graph is read, and before it is walked from these
// roots. Penalties of related agents apply too; the related agent's score is that by the chain's own roots. Errors are
// those of Explain and admit.
func (r *Reader) Personal(ctx context.Context, id repute.AgentID, by Own, admit func() error) (p Personal, err error) {
	c, err := r.personalCase(ctx, id, by, admit)
	if err != nil {
		return p, err
	}
	return c.personal(trust.Score(c.evidence, c.world.Params)), nil
}

// ExplainPersonal explains the score that Personal returns, as Explain explains the stored one. Errors are those of
// Personal.
func (r *Reader) ExplainPersonal(ctx context.Context, id repute.AgentID, by Own, without []common.Address,
	admit func() error) (out PersonalAccount, err error) {
	err = steady(func() error {
		c, err := r.personalCase(ctx, id, by, admit)
		if err != nil {
			return err
		}
		out.Breakdown, err = r.breakdown(ctx, &c.judged, without)
		out.Personal, out.AsOf = c.personal(out.Breakdown.Result), c.asOf
		return err
	})
	return out, err
}

// personalCase is an agent's evidence, weighed by other roots.
type personalCase struct {
	judged
	walk  *personalWalk
	roots common.Hash
	given int
}

// personal returns the answer about a case, given the result of its score.
func (c *personalCase) personal(result trust.Result) Personal {
	return Personal{Run: c.world.Run, Params: c.world.Params, Roots: c.roots, Given: c.given, Known: c.walk.known,
		Sourced: c.walk.weights.Credited() > 0, Block: c.evidence.Block, Result: result}
}

// personalCase reads the evidence of an agent as of the block of its stored score, or of the newest run where nothing
// happened since, and weighs it by the roots of a caller.
func (r *Reader) personalCase(ctx context.Context, id repute.AgentID, by Own,
	admit func() error) (c personalCase, err error) {
	if c.world, err = r.graphOf(ctx, id.ChainID, admit); err != nil {
		return c, err
	}
	alive := graph.RootsAt(by.Roots, c.world.Run.Block.Time)
	c.given, c.roots = len(alive), replay.HashInput(replay.EncodeRoots(by.Roots))
	if c.walk, err = r.walk(ctx, c.world, walkOf{c.roots, by.Sources}, alive, admit); err != nil {
		return c, err
	}
	c.score, c.asOf, err = query.ScoreOf(ctx, r.db, id, repute.At{Finality: repute.Latest})
	var missing *repute.MissingError
	if errors.As(err, &missing) || err != nil && !errors.Is(err, repute.ErrNotFound) {
		return c, err
	}
	if c.score.Run == 0 {
		c.evidence, err = r.evidence(ctx, id, repute.At{Finality: repute.Latest}, c.world, c.walk.weights)
		return c, err
	}
	if kept := c.world.Run.Block; c.score.Block.Number < kept.Number { // from an earlier epoch
		if err = r.evidenceAt(ctx, &c, kept); !errors.Is(err, repute.ErrGone) {
			return c, err
		} // else something happened since, as of which there is no score yet
	}
	err = r.evidenceAt(ctx, &c, c.score.Block)
	return c, err
}

// evidenceAt reads the evidence as of a block, with what the stored score follows from.
func (r *Reader) evidenceAt(ctx context.Context, c *personalCase, b repute.Block) (err error) {
	if c.evidence, err = r.evidence(ctx, c.score.Agent, repute.At{Block: b.Number}, c.world,
		c.walk.weights); err != nil {
		return err
	}
	c.evidence.Block = b
	return r.addManifest(ctx, &c.judged)
}

// graphOf is the world of the newest run; where no engine has run, of the newest block
// that ends an epoch and is final.
func (r *Reader) graphOf(ctx context.Context, chainID uint64, admit func() error) (*engine.Basis, error) {
	run, err := scoredb.ReadRun(ctx, r.db, chainID, 0)
	if err == nil {
		return r.worldFor(ctx, run)
	}
	if !errors.Is(err, repute.ErrNotFound) {
		return nil, err
	}
	if run, err = r.unrun(ctx, chainID); err != nil {
		return nil, err
	}
	key := worldKey{chain: chainID, block: run.Block.Number}
	if _, kept := r.worlds.Peek(key); !kept {
		if err := admit(); err != nil {
			return nil, err
		}
	}
	return r.worlds.Get(ctx, key, func(ctx context.Context) (*engine.Basis, error) {
		links, err := rootdb.Links(ctx, r.db, chainID)
		if err != nil {
			return nil, err
		}
		validations, err := scoredb.AllowedValidations(ctx, r.db, chainID)
		if err != nil {
			return nil, err
		}
		w, err := engine.WalkRun(ctx, rows.New(r.db, chainID), run, r.params, nil,
			rows.GraphOf{Links: graph.LinksOf(links), Validations: validations})
		if err != nil {
			return nil, err
		}
		return w.Credited(nil)
	})
}

// unrun is the run that an engine would begin with, without a number.
func (r *Reader) unrun(ctx context.Context, chainID uint64) (run scoredb.Run, err error) {
	b, err := trustdb.EpochBlock(ctx, r.db, chainID, r.params.Epoch.Of(chainID))
	return scoredb.Run{ChainID: chainID, Block: b, Boundary: b.Number, Params: r.params.Hash,
		Tags: r.params.TagsHash}, err
}

// personalWalk has the weights that follow from a caller's roots over a graph.
type personalWalk struct {
	weights *flow.Weights
	known   int // of the roots: see Personal
}

func (w *personalWalk) size() int64 { return w.weights.Size() }

// walk returns the weights by a caller's roots, from the cache when the same roots were used at the same block. admit
// is called before new weights are computed, and its error is returned.
func (r *Reader) walk(ctx context.Context, w *engine.Basis, of walkOf, roots []flow.Root,
	admit func() error) (*personalWalk, error) {
	key := walkKey{worldKey{w.Run.ChainID, w.Run.Run, w.Run.Block.Number}, of}
	if kept, ok := r.walks.Peek(key); ok {
		return kept, nil
	}
	if err := admit(); err != nil {
		return nil, err
	}
	return r.walks.Get(ctx, key, func(context.Context) (*personalWalk, error) {
		g := w.Weights.Graph()
		known := 0
		for _, root := range roots {
			if g.Spoke(g.Node(root.Address)) {
				known++
			}
		}
		weights := g.Personal(roots, w.Params.Walk)
		if of.sources {
			weights = weights.CreditedLike(w.Weights)
		}
		return &personalWalk{weights, known}, nil
	})
}
