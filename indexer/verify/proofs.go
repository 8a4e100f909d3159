package verify

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node"
	"repute/indexer/verify/missing"
	"repute/indexer/verify/witness"
	"repute/store"
	"repute/store/verifydb"
)

// proving is one comparison of connected blocks.
type proving struct {
	v         *Verifier
	lease     store.Lease
	at        verifydb.Standing
	headers   map[uint64]node.Sealed
	stored    map[uint64][]types.Log
	otherHash map[uint64]bool // blocks that are stored with another hash
	proof     verifydb.BlockProof
}

// proveWindow compares a window of blocks, of which the newest has the given hash, from the
// newest down, and saves the blocks that it has compared.
func (v *Verifier) proveWindow(ctx context.Context, l store.Lease, at verifydb.Standing, r repute.BlockRange,
	hash common.Hash) error {
	headers, by, err := v.witnesses.Connected(ctx, upTo(r.From, r.To), hash)
	if err != nil {
		return err
	}
	if r.To == at.Pin.Number {
		if err := v.witnesses.ConfirmNewest(ctx, headers[len(headers)-1], by); err != nil {
			return err
		}
	}
	odd, err := v.witnesses.ConfirmedTwice(ctx, headers, by)
	if err != nil {
		return err
	}
	logs, to, err := verifydb.Logs(ctx, v.db, v.chain.ID, r, 1<<30)
	if err != nil || to != r.To {
		return err
	}
	p := &proving{v: v, lease: l, at: at, headers: map[uint64]node.Sealed{}, stored: byBlock(logs),
		otherHash: map[uint64]bool{},
		proof:     verifydb.BlockProof{Blocks: repute.BlockRange{From: r.To + 1, To: r.To}, Hash: hash}}
	suspects, err := p.suspects(ctx, headers, odd)
	if err != nil {
		return err
	}
	return p.run(ctx, headers, suspects)
}

// suspects are the headers, newest first, of the blocks that their bloom does not settle.
// Where no bloom can, these are all. The times of stored blocks are corrected.
func (p *proving) suspects(ctx context.Context, headers []node.Sealed,
	confirmedTwice map[uint64]bool) (out []node.Sealed, err error) {
	var w window
	known, err := verifydb.Headers(ctx, p.v.db, p.v.chain.ID, witness.NumbersOf(headers))
	if err != nil {
		return nil, err
	}
	for _, h := range slices.Backward(headers) {
		p.headers[h.Number] = h
		admits := p.v.bloomless || p.v.admits(h.Bloom)
		w.add(&h, p.stored[h.Number], admits)
		k, isKnown := known[h.Number]
		if admits || !h.Recomputed || len(p.stored[h.Number]) > 0 || isKnown && k.Hash != h.Hash {
			out = append(out, h)
		}
		if !h.Recomputed && !confirmedTwice[h.Number] {
			p.proof.Loose = max(p.proof.Loose, h.Number)
			continue
		}
		if p.otherHash[h.Number] = isKnown && k.Hash != h.Hash; isKnown && !p.otherHash[h.Number] {
			if err := p.v.correctTime(ctx, p.lease, k, h.Block); err != nil {
				return nil, err
			}
		}
	}
	p.v.dense = p.v.bloomless || w.dense()
	return out, nil
}

// run judges the suspects in portions, and saves the blocks down to the last one settled.
func (p *proving) run(ctx context.Context, headers, suspects []node.Sealed) error {
	from := headers[0].Number
	for part := range slices.Chunk(suspects, portion) {
		results := p.v.judgeConnected(ctx, part, p.stored)
		for i, j := range results {
			err := p.settle(ctx, j)
			if err != nil && p.v.givesUp(ctx, j.number, err) {
				p.note(j.number, err)
				err = nil
			}
			if err != nil {
				for _, later := range results[i+1:] { // each block has its own count of tries
					p.v.givesUp(ctx, later.number, later.err)
				}
				return errors.Join(err, p.save(ctx, j.number+1))
			}
			delete(p.v.unanswered, j.number)
		}
		if !p.v.bloomless && len(p.v.wrongBlooms) > mostWrongBlooms {
			return p.v.withoutBlooms(ctx, p.lease)
		}
	}
	return p.save(ctx, from)
}

// settle acts on one result, and notes the block when it is not proven.
func (p *proving) settle(ctx context.Context, j blockResult) error {
	if p.otherHash[j.number] && j.err == nil && j.proven {
		if err := p.v.amend(ctx, p.lease, j.judgment); err != nil {
			return err
		}
		j.absent, j.extra = nil, nil
	}
	proven, why, err := p.v.settleBlock(ctx, p.lease, p.at, j)
	switch {
	case err != nil:
		return err
	case proven && j.number == p.proof.Loose:
		why = errForeign // the next comparison connects the blocks below with its true header
	case proven:
		return nil
	}
	p.note(j.number, why)
	return nil
}

// note adds a block to the unproven ones. Blocks MUST be noted in descending order.
func (p *proving) note(number uint64, why error) {
	if len(p.proof.Unproven) == 0 {
		p.proof.Reason = why.Error()
	}
	p.proof.Unproven = slices.Insert(p.proof.Unproven, 0, repute.BlockRange{From: number, To: number})
	switch h := p.headers[number]; {
	case h.Recomputed:
		p.proof.Headers = append(p.proof.Headers, h.Block)
	case h.Number == p.proof.Loose: // of its fields only the hash is authenticated, by the block after it
		p.proof.Headers = append(p.proof.Headers, repute.Block{Number: h.Number, Hash: h.Hash})
	}
}

// answerTries is how often the endpoints are asked about a block while they refuse for reasons
// that may pass, such as a rate or a plan, before the block counts as unproven.
const answerTries = 5

// givesUp counts a failed comparison of a block, and reports whether the block counts as
// unproven from now on, so that it does not hold up the others.
func (v *Verifier) givesUp(ctx context.Context, number uint64, err error) bool {
	if !mayPass(ctx, err) {
		return false
	}
	v.unanswered[number]++
	return v.unanswered[number] >= answerTries
}

// mayPass reports whether the endpoints failed for a reason that may pass.
func mayPass(ctx context.Context, err error) bool {
	return ofEndpoints(ctx, err) && node.WaitingHelps(err)
}

// ofEndpoints reports whether an error says something of what endpoints answered: neither of
// the index nor of the end of the work.
func ofEndpoints(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, repute.ErrFenced) && !errors.Is(err, store.ErrDatabase)
}

// save stores the proof of the blocks from one on.
func (p *proving) save(ctx context.Context, from uint64) error {
	if from > p.proof.Blocks.To {
		return nil
	}
	if p.proof.Loose < from {
		p.proof.Loose = 0
	}
	p.proof.Blocks.From, p.proof.Parent = from, p.headers[from].Parent
	return verifydb.SaveBlockProof(ctx, p.v.db, p.v.chain.ID, p.lease, p.proof)
}

// settleBlock acts on the result of a final block: missing events are stored, what stays wrong is
// published. It reports whether the block is proven, and why it is not. The error is one of the
// index, or of an endpoint that may answer later.
func (v *Verifier) settleBlock(ctx context.Context, l store.Lease, at verifydb.Standing, j blockResult) (proven bool,
	why, err error) {
	if j.err != nil {
		if !ofEndpoints(ctx, j.err) || node.WaitingHelps(j.err) || errors.Is(j.err, witness.ErrNone) {
			return false, nil, j.err
		}
		v.log.Warn("block not proven", "block", j.number, "error", j.err)
		return false, j.err, nil
	}
	if j.proven && !v.bloomless && !missing.Within(missing.Bloom(j.logs), j.block.Bloom) {
		v.wrongBlooms[j.number] = true
	}
	listed, err := v.act(ctx, l, at, j.judgment)
	switch {
	case ofEndpoints(ctx, err) && !node.WaitingHelps(err):
		v.log.Warn("block not proven", "block", j.number, "error", err)
		return false, err, nil
	case err != nil:
		return false, nil, err
	}
	if !j.settled() && !j.proven { // the repair is as good as the evidence was
		again, err := v.judge(ctx, j.number)
		j.judgment, j.err = again, err
	}
	if j.err == nil && j.sure() && listed {
		return true, nil, nil
	}
	return false, j.unsure(), nil
}

// mostWrongBlooms is how many blocks may have a bloom that lacks some of their logs before the
// blooms of the chain count for nothing: some chains have single ones.
const mostWrongBlooms = 3

// withoutBlooms has all blocks compared again, by their receipts, because the blooms of the
// chain count for nothing.
func (v *Verifier) withoutBlooms(ctx context.Context, l store.Lease) error {
	v.log.Warn("blooms lack logs of their blocks: all blocks are compared by their receipts", "blocks", len(v.wrongBlooms))
	if err := verifydb.ForgetBlockProofs(ctx, v.db, v.chain.ID, l); err != nil {
		return err
	}
	v.bloomless = true
	clear(v.wrongBlooms)
	return nil
}
