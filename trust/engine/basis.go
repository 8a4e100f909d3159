package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/scoredb"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
	"repute/trust/replay"
	"repute/trust/rows"
	"repute/trust/source"
)

// Basis has the data that all scores of a run share. A new run replaces it.
type Basis struct {
	Run     scoredb.Run // its number is 0 when no engine has run on the chain
	Params  *rating.Params
	Weights *flow.Weights  // from the chain's own roots and sources
	Scales  *rating.Scales // of its raters
	covers  repute.Coverage
	known   *graph.KnownAgents // see graph.Reader.Coverage; nil for none
	// refused are the rules of reviewed writers that were left out: see trust.Params.WithRoots.
	refused []error
	// validations are the validation contracts of the run, which may differ from the chain's present allow-list.
	Validations []common.Address
	built       *built
}

// BasisOf rebuilds a run's graph and weights from its stored inputs. The error is a *replay.PrunedError when an input
// is no longer stored, or when the weights differ from those of the run.
func BasisOf(ctx context.Context, db *store.DB, from *rows.Store, run scoredb.Run) (*Basis, error) {
	bodies, err := readInputs(ctx, db, run)
	if err != nil {
		return nil, err
	}
	credits, err := bodies.credits(run)
	if err != nil {
		return nil, err
	}
	w, err := bodies.walk(ctx, from, run, nil)
	if err != nil {
		return nil, err
	}
	return w.Credited(credits)
}

// readInputs reads the stored inputs whose hashes a run names. The error is a *replay.PrunedError when one is not
// stored.
func readInputs(ctx context.Context, db *store.DB, run scoredb.Run) (in inputs, err error) {
	type input struct {
		what string
		hash common.Hash
		into *[]byte
	}
	list := []input{{"parameters", run.Params, &in.params}, {"table of tags", run.Tags, &in.tags},
		{"roots", run.Roots, &in.roots}, {"links", run.Links, &in.links}}
	if run.Validations == (common.Hash{}) { // the run does not name its list
		now, err := scoredb.AllowedValidations(ctx, db, run.ChainID)
		if err != nil {
			return in, err
		}
		in.validations = replay.EncodeValidations(now)
	}
	for _, i := range []input{{"list of validation contracts", run.Validations, &in.validations},
		{"policy of sources", run.Sources, &in.sources}, {"credentials", run.Credentials, &in.credentials},
		{"scales of feedback files", run.FileScales, &in.scales}} {
		if i.hash != (common.Hash{}) { // else the run read no source, or no file stated a scale
			list = append(list, i)
		}
	}
	for _, i := range list {
		*i.into, err = scoredb.ReadInput(ctx, db, i.hash)
		if errors.Is(err, repute.ErrNotFound) {
			return in, &replay.PrunedError{What: fmt.Sprintf("the %s with sha256 %s", i.what, i.hash)}
		}
		if err != nil {
			return in, err
		}
	}
	return in, nil
}

// inputs are the encoded inputs of a run besides events. sources, credentials and scales, which feedback files state,
// are empty when the run has none.
type inputs struct {
	params, tags, roots, links, validations, sources, credentials, scales []byte
}

// credits decodes policy and credentials of a run and returns the credits of its raters, nil when it read no source.
func (in inputs) credits(run scoredb.Run) (*graph.Credits, error) {
	if len(in.sources) == 0 {
		return nil, nil
	}
	policy, err := source.Parse(in.sources)
	if err != nil {
		return nil, err
	}
	held, err := source.Decode(in.credentials)
	if err != nil {
		return nil, err
	}
	return creditsOf(policy, held, run.Block.Time), nil
}

// walk decodes the stored inputs of a run and walks its graph by roots again. The result can tell what these payments
// say of raters: see spent.
func (in inputs) walk(ctx context.Context, from *rows.Store, run scoredb.Run, paid []paidBy) (*Walked, error) {
	params, err := rating.ParseParams(in.params, in.tags)
	if err != nil {
		return nil, err
	}
	roots, err := replay.DecodeRoots(in.roots)
	if err != nil {
		return nil, err
	}
	links, err := replay.DecodeLinks(in.links)
	if err != nil {
		return nil, err
	}
	validations, err := replay.DecodeValidations(in.validations)
	if err != nil {
		return nil, err
	}
	scales, err := replay.DecodeFileScales(in.scales)
	if err != nil {
		return nil, err
	}
	var paidAgents []repute.TokenID
	for _, by := range paid {
		for i := range by.ratings {
			paidAgents = append(paidAgents, by.ratings[i].TokenID)
		}
	}
	of := rows.GraphOf{Links: graph.LinksOf(links), Validations: validations, Scales: scales,
		Owners: paidAgents}
	return WalkRun(ctx, from, run, params, roots, of)
}

// Walked is a run's graph with the weights by roots alone.
type Walked struct {
	run         scoredb.Run
	params      *rating.Params
	weights     *flow.Weights
	reader      *graph.Reader
	writers     []repute.TrustRoot // reviewed ones
	refused     []error            // rules of reviewed writers that were left out
	validations []common.Address
}

// WalkRun builds the graph of a run and computes its weights. The error is a *replay.PrunedError when the weights of a
// stored run come out differently.
func WalkRun(ctx context.Context, from *rows.Store, run scoredb.Run, params *rating.Params, set []repute.TrustRoot,
	of rows.GraphOf) (*Walked, error) {
	roots, writers := graph.RootsAt(set, run.Block.Time), rating.WritersAt(set, run.Block.Time)
	params, refused := params.WithRoots(writers)
	of.Block, of.Roots, of.Anew = run.Block, roots, run.Repaired > 0
	graph, reader, err := from.Graph(ctx, of, params)
	if err != nil {
		return nil, err
	}
	return &Walked{run, params, graph.Walk(roots, params.Walk), reader, writers, refused,
		of.Validations}, nil
}

// Credited returns the basis with what sources give raters; credits are nil for nothing. It fails where the weights are
// not those of the stored run.
func (w *Walked) Credited(credits *graph.Credits) (*Basis, error) {
	run, weights := w.run, w.weights
	if credits = credits.WithReviewedWriters(w.writers); credits != nil {
		weights = w.reader.Credited(weights, credits)
	}
	if run.Run != 0 && weights.Sum() != run.Weights {
		return nil, &replay.PrunedError{What: fmt.Sprintf(
			"the chain's ratings up to block %d are not those that the weights of epoch %d follow from",
			run.Block.Number, run.Epoch)}
	}
	covers, known := w.reader.Coverage(weights)
	return &Basis{run, w.params, weights, w.reader.Scales(), covers, known, w.refused, w.validations,
		&built{}}, nil
}

// Size returns about how many bytes of memory a basis takes.
func (w *Basis) Size() int64 {
	return w.Weights.Graph().Size() + w.Weights.Size() + w.Scales.Size() + w.known.Size()
}
