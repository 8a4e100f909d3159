package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/indexer/verify/missing"
	"repute/indexer/verify/state"
	"repute/indexer/verify/witness"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// agentsPass names the comparison of agents in the store.
const agentsPass = "agents"

// sweepAgents compares the next part of the agents with the chain's state at the newest final
// block. A comparison of all agents counts for the block of its oldest part.
func (v *Verifier) sweepAgents(ctx context.Context, l store.Lease, at verifydb.Standing) error {
	sweep, err := verifydb.ReadSweep(ctx, v.db, v.chain.ID, agentsPass)
	if err != nil {
		return err
	}
	pin := at.Pin
	if pin.Hash == (common.Hash{}) || sweep.Position == 0 && (time.Since(v.swept) < v.rest || pin.Number <= sweep.Pinned) {
		return ErrNothingNew
	}
	if v.began.IsZero() {
		v.began = time.Now()
	}
	if sweep.Position == 0 {
		sweep = verifydb.Sweep{Pinned: pin.Number}
	}
	part := part{Part: state.Part{First: sweep.Position == 0, From: sweep.Position}}
	if err := v.comparePart(ctx, at, &part); err != nil {
		return err
	}
	gaps, err := v.confirm(ctx, at, &part)
	if err != nil {
		return err
	}
	more, err := v.compareTwice(ctx, at, &part)
	if err != nil {
		return err
	}
	gaps = append(gaps, more...)
	err = v.open(ctx, l, gaps)
	if errors.Is(err, chaindb.ErrGapsFull) {
		part.Skipped = append(part.Skipped, kindsOf(gaps)...)
	} else if err != nil {
		return err
	}
	sweep.Pinned, sweep.Position = min(sweep.Pinned, part.at.Number), part.Next
	sweep.Skipped = slices.Compact(slices.Sorted(slices.Values(append(sweep.Skipped, part.Skipped...))))
	if part.Next == 0 {
		v.swept = time.Now()
		v.rest, v.began = v.pauseAfter(v.swept.Sub(v.began)), time.Time{}
		if err := v.publish(ctx, l, sweep); err != nil {
			return err
		}
	}
	return verifydb.SaveSweep(ctx, v.db, v.chain.ID, l, agentsPass, sweep)
}

// kindsOf returns the kinds of event of some gaps.
func kindsOf(gaps []gap) []repute.EventKind {
	kinds := make([]repute.EventKind, len(gaps))
	for i := range gaps {
		kinds[i] = gaps[i].Kind
	}
	return kinds
}

// restFactor is how many times as long as the comparison of all agents the pause after it lasts,
// so that the agents of a large chain are not compared without end.
const restFactor = 20

// restMost is the longest pause.
const restMost = 3 * 24 * time.Hour

// pauseAfter returns the pause after a comparison of all agents, given its duration.
func (v *Verifier) pauseAfter(took time.Duration) time.Duration {
	return max(v.opts.Every, min(restFactor*took, restMost))
}

// publish stores up to which block the kinds are verified whose views were answered.
func (v *Verifier) publish(ctx context.Context, l store.Lease, s verifydb.Sweep) error {
	kinds := slices.DeleteFunc(stateKinds(), func(k repute.EventKind) bool { return slices.Contains(s.Skipped, k) })
	v.opts.Metrics.verified.WithLabelValues(v.label).Set(float64(s.Pinned))
	v.log.Info("state verified", "block", s.Pinned, "skipped", len(s.Skipped))
	return verifydb.SetVerified(ctx, v.db, v.chain.ID, l, kinds, s.Pinned)
}

// stateKinds returns the events whose outcome the views of the registries show.
func stateKinds() []repute.EventKind {
	return slices.DeleteFunc(allKinds(), func(k repute.EventKind) bool { return !k.HasState() })
}

// part is one portion of a sweep and the result of its comparison.
type part struct {
	state.Part
	state.Result
	at repute.Block
	by *node.Node // the endpoint that answered
}

// compareAt compares a part with the state that one witness has of a block.
func (v *Verifier) compareAt(ctx context.Context, n *node.Node, at repute.Block, p *part) (err error) {
	p.at, p.by, p.Part.Most = at, n, v.opts.Agents
	p.Result, err = v.states.Compare(ctx, n, at, p.Part)
	return err
}

// comparePart compares a part at the newest final block, or at the newest stored one when no
// witness has the state of the final block any more.
func (v *Verifier) comparePart(ctx context.Context, at verifydb.Standing, p *part) error {
	err := v.witnesses.First(func(n *node.Node) error { return v.compareAt(ctx, n, at.Pin, p) })
	if errors.Is(err, node.ErrNoState) && at.Newest.Number > at.Pin.Number {
		err = v.witnesses.First(func(n *node.Node) error { return v.compareAt(ctx, n, at.Newest, p) })
	}
	if err != nil {
		return fmt.Errorf("compare agents from %d on: %w", p.From, err)
	}
	return nil
}

// compareTwice has a witness of another host, where there is one, compare the part too, unless
// every block up to then is proven: a witness that repeats what is stored must not verify it
// alone. What no other host can answer is not verified.
func (v *Verifier) compareTwice(ctx context.Context, at verifydb.Standing, p *part) ([]gap, error) {
	others := v.witnesses.OthersThan(p.by)
	if len(others) == 0 {
		return nil, nil
	}
	proofs, err := verifydb.BlockProofs(ctx, v.db, v.chain.ID)
	if err != nil || len(proofs) > 0 && proofs[0].Proves(repute.BlockRange{From: v.chain.StartBlock, To: p.at.Number}) {
		return nil, err
	}
	last := witness.ErrNone
	for _, n := range others {
		second := part{Part: p.Part}
		if last = v.compareAt(ctx, n, p.at, &second); last != nil {
			continue
		}
		second.Gaps = slices.DeleteFunc(second.Gaps, func(h gap) bool {
			return missing.Contains(p.Gaps, h)
		})
		gaps, err := v.confirm(ctx, at, &second)
		p.Skipped = append(p.Skipped, second.Skipped...)
		return gaps, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	v.log.Debug("no second witness", "block", p.at.Number, "error", last)
	p.Skipped = append(p.Skipped, stateKinds()...)
	return nil, nil
}

// confirm returns the gaps that a second comparison shows too, with witnesses of other hosts
// where there are some. Where these disagree the gap stays, and its kind is not verified.
func (v *Verifier) confirm(ctx context.Context, at verifydb.Standing, p *part) ([]gap, error) {
	var kept []gap
	for _, h := range p.Gaps {
		votes, err := v.vote(ctx, at, h, p.by)
		if err != nil {
			return nil, fmt.Errorf("confirm what is missing: %w", err)
		}
		if !votes.confirmed() {
			v.log.Info("a difference went away at the second look", "kind", h.Kind, "subject", h.Subject, "reason", h.Reason)
			continue
		}
		if votes.divided() {
			h.Reason = "witnesses disagree: " + h.Reason
			p.Skipped = append(p.Skipped, h.Kind)
		}
		kept = append(kept, h)
	}
	return kept, nil
}

// votes counts the hosts that show one gap, and those that do not.
type votes struct{ yes, no int }

// confirmed reports whether the gap is kept: at least half of the hosts show it.
func (x votes) confirmed() bool { return x.yes > 0 && x.yes >= x.no }

// divided reports whether as many hosts show the gap as do not.
func (x votes) divided() bool { return x.yes > 0 && x.yes == x.no }

// decided reports whether two hosts agree, so that no further one needs to be asked.
func (x votes) decided() bool { return max(x.yes, x.no) > 1 }

// plus returns the sum of both.
func (x votes) plus(y votes) votes { return votes{x.yes + y.yes, x.no + y.no} }

// count adds the vote of one host; still reports whether it shows the gap.
func (x *votes) count(still bool) {
	if still {
		x.yes++
	} else {
		x.no++
	}
}

// vote asks one witness of each host whether a gap shows, until two give the same answer. The
// finder, if any, counts as one that shows it, and is asked again when the others do not decide.
// It is an error when none could answer.
func (v *Verifier) vote(ctx context.Context, at verifydb.Standing, h gap, finder *node.Node) (votes, error) {
	var others, finders votes
	var last error
	heard := map[string]bool{}
	if finder != nil {
		finders.yes, heard[finder.Host()] = 1, true
	}
	for _, n := range v.witnesses.Nodes() {
		if heard[n.Host()] {
			continue
		}
		still, err := v.differsNow(ctx, n, at, h)
		if err != nil {
			last = err
			continue
		}
		heard[n.Host()] = true
		others.count(still)
		if all := others.plus(finders); all.decided() {
			return all, nil
		}
	}
	if finder != nil {
		still, err := v.differsNow(ctx, finder, at, h)
		if err == nil {
			others.count(still)
			return others, nil
		}
		last = err
	}
	if others == (votes{}) {
		return others, cmp.Or(last, witness.ErrNone)
	}
	return others.plus(finders), nil
}

// differsNow asks one witness at the newest final block, or at the newest stored one
// where the gap was found there or older state is gone.
func (v *Verifier) differsNow(ctx context.Context, n *node.Node, at verifydb.Standing, h gap) (bool, error) {
	if h.Blocks.To > at.Pin.Number {
		return v.states.Shows(ctx, n, at.Newest, h)
	}
	still, err := v.states.Shows(ctx, n, at.Pin, h)
	if errors.Is(err, node.ErrNoState) {
		still, err = v.states.Shows(ctx, n, at.Newest, h)
	}
	return still, err
}
