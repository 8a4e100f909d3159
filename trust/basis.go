package trust

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
)

// PrunedError is something that a score follows from and that is not stored any more.
type PrunedError struct{ What string }

// Error reads "input pruned: what".
func (e *PrunedError) Error() string { return "input pruned: " + e.What }

// Unwrap makes every PrunedError a repute.ErrGone.
func (e *PrunedError) Unwrap() error { return repute.ErrGone }

// basis is what all scores of a run share.
type basis struct {
	run     store.TrustRun // its number is 0 where no engine has run
	params  *Params
	weights *Weights // by the chain's own roots
	// validations are the contracts whose answers count, whatever the chain lists now.
	validations []common.Address
}

// basisOf makes a run's graph and weights again out of what is stored. The error is a
// *PrunedError where that is not what it was.
func basisOf(ctx context.Context, db *store.DB, run store.TrustRun) (*basis, error) {
	var bodies inputs
	for i, in := range []struct {
		what string
		hash common.Hash
	}{{"parameters", run.Params}, {"table of tags", run.Tags}, {"roots", run.Roots}, {"links", run.Links}, {"list of validation contracts", run.Validations}} {
		if in.hash == (common.Hash{}) && i == inValidations { // the run is from before it was kept
			now, err := db.AllowedValidations(ctx, run.ChainID)
			if err != nil {
				return nil, err
			}
			bodies[i] = EncodeValidations(now)
			continue
		}
		body, err := db.TrustInput(ctx, in.hash)
		if errors.Is(err, repute.ErrNotFound) {
			return nil, &PrunedError{fmt.Sprintf("the %s with sha256 %s", in.what, in.hash)}
		}
		if err != nil {
			return nil, err
		}
		bodies[i] = body
	}
	return bodies.walk(ctx, db, run)
}

// inputs are parameters, tags, roots, links and validation contracts as they are stored.
type inputs [5][]byte

// inValidations is where inputs have the validation contracts.
const inValidations = 4

func (in inputs) walk(ctx context.Context, db *store.DB, run store.TrustRun) (*basis, error) {
	params, err := ParseParams(in[0], in[1])
	if err != nil {
		return nil, err
	}
	roots, err := DecodeRoots(in[2])
	if err != nil {
		return nil, err
	}
	links, err := DecodeLinks(in[3])
	if err != nil {
		return nil, err
	}
	validations, err := DecodeValidations(in[inValidations])
	if err != nil {
		return nil, err
	}
	return walkRun(ctx, db, run, params, roots, GraphOf{Links: LinksOf(links), Validations: validations})
}

// walkRun makes the graph of a run, whose links and validation contracts of holds.
func walkRun(ctx context.Context, db *store.DB, run store.TrustRun, params *Params, set []repute.TrustRoot, of GraphOf) (*basis, error) {
	roots := RootsAt(set, run.Block.Time)
	of.ChainID, of.Block, of.Roots = run.ChainID, run.Block, roots
	graph, err := ReadGraph(ctx, db, of, params)
	if err != nil {
		return nil, err
	}
	w := &basis{run, params, graph.Walk(roots, params), of.Validations}
	if run.Run != 0 && w.weights.Sum() != run.Weights {
		return nil, &PrunedError{fmt.Sprintf("the chain's ratings up to block %d are not those that the weights of epoch %d follow from", run.Block.Number, run.Epoch)}
	}
	return w, nil
}

// size is about how many bytes a graph and its weights take.
func (w *basis) size() int64 {
	g := w.weights.graph
	return int64(len(g.nodes))*64 + int64(len(g.aliases))*96 + int64(g.Len())*25 + int64(g.Edges())*8 + w.weights.size()
}

func (w *Weights) size() int64 { return int64(w.graph.Len())*38 + 256 }

// with is the graph with addresses that it does not know, as identities of their own:
// what a walk by the graph built with them would see.
func (g *Graph) with(addresses []common.Address) *Graph {
	out := *g
	out.extra = map[common.Address]Node{}
	for _, a := range addresses {
		if out.Node(a) != NoNode {
			continue
		}
		out.extra[a] = Node(len(out.names))
		out.names = append(out.names[:len(out.names):len(out.names)], a)
		out.start = append(out.start[:len(out.start):len(out.start)], out.start[len(out.start)-1])
	}
	return &out
}
