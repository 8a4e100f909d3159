package verify

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"

	"repute/indexer/node"
	"repute/indexer/verify/witness"
)

const (
	// receiptsAtOnce is the number of blocks whose receipts one request asks for, which
	// counts as one call. An answer of a busy chain has about a megabyte per block.
	receiptsAtOnce = 5
	// requestsAtOnce is how many such requests are under way at a time.
	requestsAtOnce = 4
	// portion is how many blocks are judged before what came out is acted on.
	portion = receiptsAtOnce * requestsAtOnce
)

// Why a block is not proven.
var (
	errRoot    = errors.New("its receipts do not have the root that its header names")
	errForeign = errors.New("its header is not the hash of the fields that this version knows, and no second endpoint shows the same logs")
	errEmpty   = errors.New("its bloom admits events, and no receipts prove that it holds none")
	errUnsure  = errors.New("no receipts prove what it holds, and no two endpoints of different hosts show the same logs")
)

// judgeConnected compares what is stored of a portion of blocks, whose headers are connected
// with the final block, with their receipts. A block that these do not prove is compared with
// the logs that two hosts show, and after that with what any witness shows.
func (v *Verifier) judgeConnected(ctx context.Context, blocks []node.Sealed,
	stored map[uint64][]types.Log) []blockResult {
	out := v.byReceipts(ctx, blocks, stored)
	open := unsettled(out)
	v.byHosts(ctx, blocks, stored, out, open)
	var work errgroup.Group
	work.SetLimit(judgedAtOnce)
	for _, i := range unsettled(out) {
		if witness.Hosts(v.witnesses.Nodes()) == 1 && out[i].err == nil && out[i].settled() {
			continue // no other host can show more
		}
		work.Go(func() error {
			h := inquiry{v: v, nodes: v.witnesses.Nodes(), number: blocks[i].Number, block: blocks[i].Block,
				stored: stored[blocks[i].Number]}
			if blocks[i].Recomputed {
				h.agreed = &blocks[i]
			}
			why := out[i].err
			j, err := h.judge(ctx)
			out[i] = blockResult{judgment: j, number: blocks[i].Number, err: err, why: why}
			return nil
		})
	}
	_ = work.Wait() // errors are in the results
	return out
}

// unsettled returns the places of the results that leave the block unproven or different.
func unsettled(results []blockResult) (places []int) {
	for i := range results {
		if r := &results[i]; r.err != nil || !r.sure() || !r.settled() {
			places = append(places, i)
		}
	}
	return places
}

// byReceipts asks for the receipts of blocks, several with one request.
func (v *Verifier) byReceipts(ctx context.Context, blocks []node.Sealed, stored map[uint64][]types.Log) []blockResult {
	out := make([]blockResult, len(blocks))
	var work errgroup.Group
	work.SetLimit(requestsAtOnce)
	for from := 0; from < len(blocks); from += receiptsAtOnce {
		part := blocks[from:min(len(blocks), from+receiptsAtOnce)]
		work.Go(func() error {
			evidence, errs, err := v.receipts(ctx, part)
			for i := range part {
				r := blockResult{number: part[i].Number, err: err}
				if err == nil {
					r.judgment, r.err = v.weigh(evidence[i], stored[r.number]), errs[i]
				}
				out[from+i] = r
			}
			return nil
		})
	}
	_ = work.Wait() // errors are in the results
	return out
}

// receipts asks one witness after the other for the receipts of some blocks.
func (v *Verifier) receipts(ctx context.Context, blocks []node.Sealed) (evidence []node.Evidence, errs []error,
	err error) {
	if witness.Hosts(v.witnesses.Nodes()) > 1 &&
		!slices.ContainsFunc(blocks, func(s node.Sealed) bool { return s.Recomputed }) {
		return nil, nil, errForeign // they would prove nothing, and the logs of two hosts do
	}
	err = v.witnesses.First(func(n *node.Node) (err error) {
		if err := v.witnesses.Spend(ctx, 1); err != nil {
			return err
		}
		evidence, errs, err = n.ReceiptsOf(ctx, blocks)
		if failed := slices.IndexFunc(errs,
			func(err error) bool { return err != nil && node.WaitingHelps(err) }); failed >= 0 {
			err = errs[failed]
		}
		return err
	})
	return evidence, errs, err
}

// byHosts asks for the logs of blocks by their hashes, and settles those of which witnesses of
// two hosts show what is stored and no other witness shows anything else. It settles no block
// that needs receipts.
func (v *Verifier) byHosts(ctx context.Context, blocks []node.Sealed, stored map[uint64][]types.Log,
	out []blockResult, open []int) {
	nodes := witness.Apart(v.witnesses.Nodes())
	if len(open) == 0 || witness.Hosts(nodes) < 2 {
		return
	}
	showing, others := make([]map[string]bool, len(open)), make([]bool, len(open))
	hashes := make([]common.Hash, len(open))
	for i, place := range open {
		hashes[i], showing[i] = blocks[place].Hash, map[string]bool{}
	}
	for _, n := range nodes[:min(len(nodes), heard)] {
		if v.witnesses.Spend(ctx, (len(open)+receiptsAtOnce-1)/receiptsAtOnce) != nil {
			return
		}
		answers, err := n.LogsOf(ctx, hashes, v.decoder.Addresses)
		for i := range answers {
			if err != nil || answers[i] == nil {
				continue
			}
			block := &blocks[open[i]]
			if j := v.weigh(node.Evidence{Sealed: *block, Logs: answers[i]}, stored[block.Number]); !j.settled() {
				others[i] = true
			}
			showing[i][n.Host()] = true
		}
	}
	for i, place := range open {
		if len(showing[i]) > 1 && !others[i] && !v.needsReceipts(&blocks[place], stored[blocks[place].Number]) {
			out[place] = blockResult{judgment: judgment{block: blocks[place], agreed: true},
				number: blocks[place].Number}
		}
	}
}

// needsReceipts reports whether only receipts can prove that a block holds no events: none are
// stored, and its bloom, which its hash authenticates, admits some. A node that has deleted old
// logs answers for them with an empty list, and so may two.
func (v *Verifier) needsReceipts(s *node.Sealed, stored []types.Log) bool {
	return len(stored) == 0 && s.Recomputed && (v.bloomless || v.admits(s.Bloom))
}

// unsure returns why a judgment proves nothing.
func (r *blockResult) unsure() error {
	switch {
	case r.err != nil:
		return r.err
	case r.bare:
		return errEmpty
	case r.why != nil:
		return r.why
	case r.judgment.why != nil:
		return r.judgment.why
	case r.block.Hash != (common.Hash{}) && !r.block.Recomputed:
		return errForeign
	case r.rooted:
		return errUnsure
	}
	return errRoot
}
