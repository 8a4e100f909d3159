package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"repute"
	"repute/indexer/node"
	"repute/store"
	"repute/store/importdb"
	"repute/store/verifydb"
)

// unproven compares the newest unproven blocks again, after a pause that grows while none of
// them is proven. Each call takes older ones than the call before, so that blocks that no
// endpoint can prove do not keep the others waiting.
func (s *blockSweep) unproven(ctx context.Context) error {
	unprovenRetry := &s.v.unprovenRetry
	numbers := newestUnproven(s.proofs, unprovenRetry.below, portion)
	if len(numbers) == 0 && unprovenRetry.below > 0 {
		unprovenRetry.below = 0
		numbers = newestUnproven(s.proofs, 0, portion)
	}
	if len(numbers) == 0 || time.Now().Before(unprovenRetry.next) {
		return ErrNothingNew
	}
	unprovenRetry.next, unprovenRetry.below = time.Now().Add(unprovenRetry.retry.Next()), numbers[len(numbers)-1]
	out, failed := s.judgeAgain(ctx, numbers)
	if len(out.proven) > 0 {
		unprovenRetry.retry.Reset()
		unprovenRetry.next = time.Time{}
	}
	return errors.Join(verifydb.SettleBlocks(ctx, s.v.db, s.v.chain.ID, s.lease, out.proven, out.unproven), failed)
}

// requested compares the blocks that are requested and due.
func (s *blockSweep) requested(ctx context.Context) error {
	asked, err := verifydb.AskedBlocks(ctx, s.v.db, s.v.chain.ID, portion)
	if err != nil {
		return err
	}
	if len(asked) == 0 {
		return ErrNothingNew
	}
	numbers, tries := make([]uint64, len(asked)), map[uint64]int{}
	for i, a := range asked {
		numbers[i], tries[a.Block] = a.Block, a.Tries
	}
	out, failed := s.judgeAgain(ctx, numbers)
	var later []uint64
	for _, w := range out.waiting {
		if tries[w.Block]+1 < answerTries {
			later = append(later, w.Block)
		} else {
			out.unproven = append(out.unproven, w)
		}
	}
	err = verifydb.SettleBlocks(ctx, s.v.db, s.v.chain.ID, s.lease, out.proven, out.unproven)
	if err != nil || failed != nil || len(later) == 0 {
		return errors.Join(err, failed)
	}
	return verifydb.PostponeBlocks(ctx, s.v.db, s.v.chain.ID, s.lease, later, s.v.opts.RetryMin, s.v.opts.RetryMax)
}

// outcome is the result of comparing single blocks again.
type outcome struct {
	proven   []uint64
	unproven []verifydb.UnprovenBlock
	// waiting are the blocks about which the endpoints refused to answer for a reason that may
	// pass.
	waiting []verifydb.UnprovenBlock
}

// judgeAgain compares single blocks. A block that the endpoints refuse to answer for does not delay
// the others; the rate of calls is lowered if that is the reason. Results that are returned with an
// error count: they were settled before it.
func (s *blockSweep) judgeAgain(ctx context.Context, numbers []uint64) (out outcome, err error) {
	var refused error
	defer func() {
		if refused != nil {
			s.v.witnesses.Adapt(refused)
		}
	}()
	for _, j := range s.v.judgeSome(ctx, numbers) {
		proven, why, err := s.settle(ctx, j)
		switch {
		case mayPass(ctx, err):
			refused = err
			s.v.log.Warn("block not compared", "block", j.number, "error", err)
			out.waiting = append(out.waiting, verifydb.UnprovenBlock{Block: j.number, Reason: err.Error()})
		case err != nil:
			return out, err
		case proven:
			out.proven = append(out.proven, j.number)
		default:
			out.unproven = append(out.unproven, verifydb.UnprovenBlock{Block: j.number, Reason: why.Error()})
		}
	}
	return out, nil
}

// settle acts on the result of a block that was compared before.
func (s *blockSweep) settle(ctx context.Context, j blockResult) (proven bool, why, err error) {
	proven, why, err = s.v.settleBlock(ctx, s.lease, s.at, j)
	if err != nil || !proven {
		return false, why, err
	}
	if j.proven {
		if err := s.v.correctTimeOf(ctx, s.lease, j.judgment); err != nil {
			return false, nil, err
		}
	}
	if !slices.ContainsFunc(s.proofs, func(p verifydb.BlockProof) bool { return p.Loose == j.number }) {
		return true, nil, nil
	}
	connectedHeaders, err := s.v.reconnect(ctx, s.lease, j.judgment)
	return connectedHeaders, errForeign, err
}

// newestUnproven returns the newest unproven blocks below a block, descending. Below 0 there are
// all of them.
func newestUnproven(proofs []verifydb.BlockProof, below uint64, most int) (out []uint64) {
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

// reconnect connects the blocks below a block, whose header was not authenticated, with its true
// header, once that is authenticated. It reports whether it is.
func (v *Verifier) reconnect(ctx context.Context, l store.Lease, j judgment) (bool, error) {
	header := j.block
	if !j.proven {
		shown, by, err := v.witnesses.Headers(ctx, []uint64{j.block.Number})
		if err != nil {
			return false, err
		}
		twice, err := v.witnesses.ConfirmedTwice(ctx, shown, by)
		if err != nil || shown[0].Hash != j.block.Hash || !shown[0].Recomputed && !twice[j.block.Number] {
			return false, err
		}
		header = shown[0]
	}
	return true, verifydb.TieBlockProofs(ctx, v.db, v.chain.ID, l, header.Block)
}

// correctTimeOf corrects the stored time of a proven block.
func (v *Verifier) correctTimeOf(ctx context.Context, l store.Lease, j judgment) error {
	known, err := verifydb.Headers(ctx, v.db, v.chain.ID, []uint64{j.block.Number})
	if err != nil {
		return err
	}
	k, isKnown := known[j.block.Number]
	if !isKnown || k.Hash != j.block.Hash {
		return nil
	}
	return v.correctTime(ctx, l, k, j.block.Block)
}

// correctTime replaces the time of a stored block by that of its authenticated header, and has
// the agents concerned rebuilt. An unknown time stays unknown.
func (v *Verifier) correctTime(ctx context.Context, l store.Lease, stored, block repute.Block) error {
	if stored.Time.IsZero() || stored.Time.Equal(block.Time) {
		return nil
	}
	if err := node.CheckTime(block); err != nil {
		return err
	}
	if err := importdb.Amend(ctx, v.db, v.chain.ID, l, importdb.Amendment{Block: block}); err != nil {
		return fmt.Errorf("amend the time of block %d: %w", block.Number, err)
	}
	v.log.Warn("the time of a block was wrong", "block", block.Number, "stored", stored.Time, "time", block.Time)
	return nil
}
