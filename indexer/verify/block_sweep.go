package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/verify/witness"
	"repute/store"
	"repute/store/verifydb"
)

// blockSweep is one call of sweepBlocks.
type blockSweep struct {
	v      *Verifier
	lease  store.Lease
	at     verifydb.Standing
	proofs []verifydb.BlockProof
}

// sweepBlocks compares some final blocks with the chain. Each call begins with the next of four
// kinds of work, and does the first one that has something to do: new blocks, old blocks,
// requested blocks and unproven blocks each advance however much there is of the others.
func (v *Verifier) sweepBlocks(ctx context.Context, l store.Lease, at verifydb.Standing) error {
	if at.Pin.Hash == (common.Hash{}) {
		return ErrNothingNew
	}
	v.bloomless = v.opts.NoBloom || at.Bloomless
	proofs, err := verifydb.BlockProofs(ctx, v.db, v.chain.ID)
	if err != nil {
		return err
	}
	s := &blockSweep{v: v, lease: l, at: at, proofs: proofs}
	work := [...]func(context.Context) error{s.requested, s.newest, s.unproven, s.older}
	first := v.sweeps
	v.sweeps++
	for i := range work {
		if err := work[(first+i)%len(work)](ctx); !nothingNew(err) {
			return err
		}
	}
	return ErrNothingNew
}

// newest compares the newest blocks that were not compared yet.
func (s *blockSweep) newest(ctx context.Context) error {
	if open := s.uncompared(); len(open) > 0 {
		return s.compare(ctx, open[0])
	}
	return ErrNothingNew
}

// older compares the newest blocks that were not compared yet and are below compared ones, so
// that a chain with many new blocks does not keep the old ones waiting.
func (s *blockSweep) older(ctx context.Context) error {
	for _, r := range s.uncompared() {
		if r.blocks.To < s.at.Pin.Number {
			return s.compare(ctx, r)
		}
	}
	return ErrNothingNew
}

// mostUnproven is how many unproven blocks a chain without usable blooms may have before no
// further blocks are compared: the header of each of them is stored, about 100 bytes.
const mostUnproven = 10_000

// uncompared returns the ranges of final blocks that are to be compared, the newest first.
func (s *blockSweep) uncompared() []connectedRange {
	if s.v.bloomless && countUnproven(s.proofs) >= mostUnproven {
		return nil
	}
	all := repute.BlockRange{From: s.v.chain.StartBlock, To: s.at.Pin.Number}
	return uncompared(s.proofs, all, s.at.Pin.Hash)
}

// countUnproven returns how many blocks the proofs leave open, for the log.
func countUnproven(proofs []verifydb.BlockProof) (n uint64) {
	for _, p := range proofs {
		for _, u := range p.Unproven {
			n += u.To - u.From + 1
		}
	}
	return n
}

// connectedRange is a range of blocks with the hash of the newest one, which follows from the
// newest final block.
type connectedRange struct {
	blocks repute.BlockRange
	hash   common.Hash
}

// uncompared returns the parts of a range that no proof covers, the newest first. hash is that
// of the newest block of the range.
func uncompared(proofs []verifydb.BlockProof, all repute.BlockRange, hash common.Hash) (open []connectedRange) {
	to := all.To
	for _, p := range slices.Backward(proofs) {
		if p.Blocks.From > to {
			continue
		}
		if p.Blocks.To < to {
			open = append(open, connectedRange{repute.BlockRange{From: max(all.From, p.Blocks.To+1), To: to}, hash})
		}
		if p.Blocks.From <= all.From {
			return open
		}
		to, hash = p.Blocks.From-1, p.Parent
	}
	if all.From <= to {
		open = append(open, connectedRange{all, hash})
		open[len(open)-1].blocks.To = to
	}
	return open
}

// compare compares the newest blocks of a range, at most a window of them.
func (s *blockSweep) compare(ctx context.Context, t connectedRange) error {
	r := t.blocks
	if most := s.v.opts.Window; r.To >= most {
		r.From = max(r.From, r.To-most+1)
	}
	err := s.v.proveWindow(ctx, s.lease, s.at, r, t.hash)
	// it is stored with a hash that no endpoint has
	if errors.Is(err, witness.ErrNotConnected) && r.To == s.at.Pin.Number {
		_, err = s.v.correctHash(ctx, s.lease, r.To)
	}
	if err != nil {
		return fmt.Errorf("compare blocks %d to %d: %w", r.From, r.To, err)
	}
	return nil
}
