package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node"
	"repute/store"
)

// sweepBlocks compares final blocks with the chain: those that somebody asks for, those
// that could not be proven when their next try has come, and then the newest ones that
// were not compared yet. New blocks therefore come before old ones.
func (v *Verifier) sweepBlocks(ctx context.Context, l store.Lease, at store.Standing) error {
	if at.Pin.Hash == (common.Hash{}) {
		return ErrNothingNew
	}
	v.bloomless = v.opts.NoBloom || at.Bloomless
	if err := v.sweepAsked(ctx, l, at); !errors.Is(err, ErrNothingNew) {
		return err
	}
	proofs, err := v.db.BlockProofs(ctx, v.chain.ID)
	if err != nil {
		return err
	}
	if err := v.proveAgain(ctx, l, at, proofs); !errors.Is(err, ErrNothingNew) {
		return err
	}
	r, hash := nextWindow(proofs, repute.BlockRange{From: v.chain.StartBlock, To: at.Pin.Number}, at.Pin.Hash, v.opts.Window)
	if r.From > r.To {
		return ErrNothingNew
	}
	err = v.proveWindow(ctx, l, at, r, hash)
	if errors.Is(err, errUntied) && r.To == at.Pin.Number { // it is stored under a hash that nobody has
		_, err = v.rename(ctx, l, r.To)
	}
	if err != nil {
		return fmt.Errorf("compare blocks %d to %d: %w", r.From, r.To, err)
	}
	return nil
}

// nextWindow are the newest blocks of a range that were not compared, at most so many, and
// the hash of the newest of them: that of the range's end, or the parent of a block that
// was compared.
func nextWindow(proofs []store.BlockProof, all repute.BlockRange, hash common.Hash, most uint64) (repute.BlockRange, common.Hash) {
	r := all
	for _, p := range slices.Backward(proofs) {
		if p.Blocks.To < r.To {
			r.From = max(r.From, p.Blocks.To+1)
			break
		}
		if p.Blocks.From <= all.From {
			return repute.BlockRange{From: 1}, hash
		}
		if p.Blocks.From <= r.To {
			r.To, hash = p.Blocks.From-1, p.Parent
		}
	}
	if r.To >= most {
		r.From = max(r.From, r.To-most+1)
	}
	return r, hash
}

// proving is one comparison of connected blocks.
type proving struct {
	v       *Verifier
	lease   store.Lease
	at      store.Standing
	headers map[uint64]node.Sealed
	stored  map[uint64][]types.Log
	renamed map[uint64]bool // blocks that are stored under another hash
	proof   store.BlockProof
}

// proveWindow compares a window of blocks, of which the newest has the given hash, from
// there down, and saves how far it came.
func (v *Verifier) proveWindow(ctx context.Context, l store.Lease, at store.Standing, r repute.BlockRange, hash common.Hash) error {
	headers, by, err := v.tied(ctx, r, hash)
	if err != nil {
		return err
	}
	if r.To == at.Pin.Number {
		if err := v.named(ctx, headers[len(headers)-1], by); err != nil {
			return err
		}
	}
	odd, err := v.vouched(ctx, headers, by)
	if err != nil {
		return err
	}
	logs, to, err := v.db.Logs(ctx, v.chain.ID, r, 1<<30)
	if err != nil || to != r.To {
		return err
	}
	p := &proving{v: v, lease: l, at: at, headers: map[uint64]node.Sealed{}, stored: byBlock(logs), renamed: map[uint64]bool{},
		proof: store.BlockProof{Blocks: repute.BlockRange{From: r.To + 1, To: r.To}, Hash: hash}}
	suspects, err := p.suspects(ctx, headers, odd)
	if err != nil {
		return err
	}
	return p.run(ctx, headers, suspects)
}

// suspects are the headers, newest first, of the blocks that their bloom does not settle.
// Where no bloom can, these are all. Blocks that are stored with another time are put right.
func (p *proving) suspects(ctx context.Context, headers []node.Sealed, vouched map[uint64]bool) (out []node.Sealed, err error) {
	var w window
	var numbers []uint64
	for i := range headers {
		numbers = append(numbers, headers[i].Number)
	}
	known, err := p.v.db.Headers(ctx, p.v.chain.ID, numbers)
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
		if !h.Recomputed && !vouched[h.Number] {
			p.proof.Loose = max(p.proof.Loose, h.Number)
			continue
		}
		if p.renamed[h.Number] = isKnown && k.Hash != h.Hash; isKnown && !p.renamed[h.Number] {
			if err := p.v.retime(ctx, p.lease, k, h.Block); err != nil {
				return nil, err
			}
		}
	}
	p.v.mute = p.v.bloomless || w.mute()
	return out, nil
}

// run judges the suspects, portion by portion, and saves down to where it came.
func (p *proving) run(ctx context.Context, headers, suspects []node.Sealed) error {
	from := headers[0].Number
	for part := range slices.Chunk(suspects, portion) {
		for _, j := range p.v.judgeTied(ctx, part, p.stored) {
			if err := p.settle(ctx, j); err != nil {
				return errors.Join(err, p.save(ctx, j.number+1))
			}
		}
		if p.v.bloomlies() {
			return p.v.db.ForgetBlockProofs(ctx, p.v.chain.ID, p.lease)
		}
	}
	return p.save(ctx, from)
}

// settle acts on one ruling, and notes the block where it is not proven.
func (p *proving) settle(ctx context.Context, j ruling) error {
	if p.renamed[j.number] && j.err == nil && j.proven {
		if err := p.v.amend(ctx, p.lease, j.judgement); err != nil {
			return err
		}
		j.absent, j.extra = nil, nil
	}
	proven, why, err := p.v.settleBlock(ctx, p.lease, p.at, j)
	switch {
	case err != nil:
		return err
	case proven && j.number == p.proof.Loose:
		why = errForeign // the next look at it ties the blocks below to its true header
	case proven:
		return nil
	}
	if len(p.proof.Unproven) == 0 {
		p.proof.Reason = why.Error()
	}
	p.proof.Unproven = slices.Insert(p.proof.Unproven, 0, repute.BlockRange{From: j.number, To: j.number})
	switch h := p.headers[j.number]; {
	case h.Recomputed:
		p.proof.Headers = append(p.proof.Headers, h.Block)
	case h.Number == p.proof.Loose: // of its fields only the hash is authenticated, by the block after it
		p.proof.Headers = append(p.proof.Headers, repute.Block{Number: h.Number, Hash: h.Hash})
	}
	return nil
}

// save keeps what was compared from a block on.
func (p *proving) save(ctx context.Context, from uint64) error {
	if from > p.proof.Blocks.To {
		return nil
	}
	if p.proof.Loose < from {
		p.proof.Loose = 0
	}
	p.proof.Blocks.From, p.proof.Parent = from, p.headers[from].Parent
	return p.v.db.SaveBlockProof(ctx, p.v.chain.ID, p.lease, p.proof)
}

// settleBlock acts on a ruling about a final block: what is missing is repaired, what
// stays wrong is published. It reports whether the block is proven, and why it is not.
// The error is one of the index, or of an endpoint that can answer later.
func (v *Verifier) settleBlock(ctx context.Context, l store.Lease, at store.Standing, j ruling) (proven bool, why, err error) {
	if j.err != nil {
		if ctx.Err() != nil || node.WaitingHelps(j.err) {
			return false, nil, j.err
		}
		v.log.Warn("block not proven", "block", j.number, "error", j.err)
		return false, j.err, nil
	}
	if j.proven && !within(bloomOf(j.logs), j.block.Bloom) {
		v.unnamed[j.number] = true
	}
	listed, err := v.act(ctx, l, at, j.judgement)
	if err != nil {
		return false, nil, err
	}
	if !j.settled() && !j.proven { // the repair is as good as the evidence was
		again, err := v.judge(ctx, j.number)
		j.judgement, j.err = again, err
	}
	if j.err == nil && j.sure() && listed {
		return true, nil, nil
	}
	return false, j.unsure(), nil
}

// mostUnnamed is how many blocks may have a bloom that lacks logs of theirs before the
// blooms of the chain count as telling nothing: some chains have single ones.
const mostUnnamed = 3

func (v *Verifier) bloomlies() bool {
	if v.bloomless || len(v.unnamed) <= mostUnnamed {
		return false
	}
	v.log.Warn("blooms lack logs of their blocks: all blocks are compared by their receipts", "blocks", len(v.unnamed))
	v.bloomless = true
	return true
}

// proveAgain compares the newest unproven blocks once more, from time to time and with
// longer pauses while nothing comes of it, and each time some that are older than those
// of the time before: blocks that nobody can prove must not keep others from it.
func (v *Verifier) proveAgain(ctx context.Context, l store.Lease, at store.Standing, proofs []store.BlockProof) error {
	numbers := newest(proofs, v.doubt.below, portion)
	if len(numbers) == 0 && v.doubt.below > 0 {
		v.doubt.below = 0
		numbers = newest(proofs, 0, portion)
	}
	if len(numbers) == 0 || time.Now().Before(v.doubt.next) {
		return ErrNothingNew
	}
	v.doubt.next = time.Now().Add(v.doubt.retry.Next())
	proven, err := v.settleAgain(ctx, l, at, numbers, proofs)
	if err != nil {
		return err
	}
	v.doubt.below = numbers[len(numbers)-1]
	if proven > 0 {
		v.doubt.retry.Reset()
		v.doubt.next = time.Time{}
	}
	return nil
}

// newest are the newest unproven blocks below one, descending; 0 is above all.
func newest(proofs []store.BlockProof, below uint64, most int) (out []uint64) {
	for _, p := range slices.Backward(proofs) {
		for _, u := range slices.Backward(p.Unproven) {
			for n := u.To; n >= u.From && len(out) < most; n-- {
				if below == 0 || n < below {
					out = append(out, n)
				}
			}
		}
	}
	return out
}

// settleAgain judges single blocks, and says how many are proven now.
func (v *Verifier) settleAgain(ctx context.Context, l store.Lease, at store.Standing, numbers []uint64, proofs []store.BlockProof) (int, error) {
	var proven []uint64
	for _, j := range v.judgeSome(ctx, numbers) {
		ok, _, err := v.settleBlock(ctx, l, at, j)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		if slices.ContainsFunc(proofs, func(p store.BlockProof) bool { return p.Loose == j.number }) {
			if ok, err = v.tieAgain(ctx, l, j.judgement); err != nil {
				return 0, err
			}
		}
		if j.proven {
			if err := v.retimeTo(ctx, l, j.judgement); err != nil {
				return 0, err
			}
		}
		if ok {
			proven = append(proven, j.number)
		}
	}
	return len(proven), v.db.SettleBlocks(ctx, v.chain.ID, l, numbers, proven)
}

// tieAgain connects the blocks below a loose one with its true header, once the header is
// authenticated. It reports whether it is.
func (v *Verifier) tieAgain(ctx context.Context, l store.Lease, j judgement) (bool, error) {
	header := j.block
	if !j.proven {
		shown, by, err := v.sealed(ctx, []uint64{j.block.Number})
		if err != nil {
			return false, err
		}
		twice, err := v.vouched(ctx, shown, by)
		if err != nil || shown[0].Hash != j.block.Hash || !shown[0].Recomputed && !twice[j.block.Number] {
			return false, err
		}
		header = shown[0]
	}
	return true, v.db.TieBlockProofs(ctx, v.chain.ID, l, header.Block)
}

// sweepAsked compares the blocks that somebody asks for. ErrNothingNew when nobody does.
func (v *Verifier) sweepAsked(ctx context.Context, l store.Lease, at store.Standing) error {
	asked, err := v.db.AskedBlocks(ctx, v.chain.ID, portion)
	if err != nil {
		return err
	}
	if len(asked) == 0 {
		return ErrNothingNew
	}
	_, err = v.settleAgain(ctx, l, at, asked, nil)
	return err
}

// retimeTo puts the stored time of a proven block right.
func (v *Verifier) retimeTo(ctx context.Context, l store.Lease, j judgement) error {
	known, err := v.db.Headers(ctx, v.chain.ID, []uint64{j.block.Number})
	if err != nil {
		return err
	}
	k, isKnown := known[j.block.Number]
	if !isKnown || k.Hash != j.block.Hash {
		return nil
	}
	return v.retime(ctx, l, k, j.block.Block)
}

// retime puts the time of a stored block right, which its authenticated header names. The
// agents concerned are rebuilt. An unknown time is no other one.
func (v *Verifier) retime(ctx context.Context, l store.Lease, stored, block repute.Block) error {
	if stored.Time.IsZero() || stored.Time.Equal(block.Time) {
		return nil
	}
	if err := node.CheckTime(block); err != nil {
		return err
	}
	if err := v.db.Amend(ctx, v.chain.ID, l, store.Amendment{Block: block}); err != nil {
		return fmt.Errorf("amend the time of block %d: %w", block.Number, err)
	}
	v.log.Warn("the time of a block was wrong", "block", block.Number, "stored", stored.Time, "time", block.Time)
	return nil
}
