package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
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
	part := part{first: sweep.Position == 0, from: sweep.Position}
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
		part.skipped = append(part.skipped, kindsOf(gaps)...)
	} else if err != nil {
		return err
	}
	sweep.Pinned, sweep.Position = min(sweep.Pinned, part.at.Number), part.next
	sweep.Skipped = slices.Compact(slices.Sorted(slices.Values(append(sweep.Skipped, part.skipped...))))
	if part.next == 0 {
		v.swept = time.Now()
		v.rest, v.began = v.pauseAfter(v.swept.Sub(v.began)), time.Time{}
		if err := v.publish(ctx, l, sweep); err != nil {
			return err
		}
	}
	return verifydb.SaveSweep(ctx, v.db, v.chain.ID, l, agentsPass, sweep)
}

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

// kindsOfView returns the events whose outcome a view shows.
func kindsOfView(view string) []repute.EventKind {
	switch view {
	case "ownerOf", "count":
		return []repute.EventKind{repute.KindTransfer, repute.KindRegistered}
	case "tokenURI":
		return []repute.EventKind{repute.KindRegistered, repute.KindURIUpdated}
	case "getAgentWallet", "getMetadata":
		return []repute.EventKind{repute.KindMetadataSet}
	case "getApproved":
		return []repute.EventKind{repute.KindApproval}
	case "isApprovedForAll":
		return []repute.EventKind{repute.KindApprovalForAll}
	case "getClients", "getLastIndex":
		return []repute.EventKind{repute.KindNewFeedback}
	case "readFeedback":
		return []repute.EventKind{repute.KindFeedbackRevoked}
	case "getResponseCount":
		return []repute.EventKind{repute.KindResponseAppended}
	case "getAgentValidations":
		return []repute.EventKind{repute.KindValidationRequest}
	case "getValidationStatus":
		return []repute.EventKind{repute.KindValidationResponse}
	}
	return nil // getSummary: readFeedback is asked instead
}

// part is one portion of a sweep.
type part struct {
	first bool
	from  uint64 // token id
	only  []repute.TokenID
	// What came of it.
	at       repute.Block
	by       *node.Node // who answered
	next     uint64     // token id, 0 at the end
	compared int        // agents
	gaps     []gap
	skipped  []repute.EventKind
}

// comparePart compares a part at the newest final block, or at the newest stored one when no
// witness has the state of the final block any more.
func (v *Verifier) comparePart(ctx context.Context, at verifydb.Standing, p *part) error {
	err := v.witnesses.First(func(n *node.Node) error { return v.compareAt(ctx, n, at.Pin, p) })
	if errors.Is(err, node.ErrNoState) && at.Newest.Number > at.Pin.Number {
		err = v.witnesses.First(func(n *node.Node) error { return v.compareAt(ctx, n, at.Newest, p) })
	}
	if err != nil {
		return fmt.Errorf("compare agents from %d on: %w", p.from, err)
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
		second := part{first: p.first, from: p.from, only: p.only}
		if last = v.compareAt(ctx, n, p.at, &second); last != nil {
			continue
		}
		second.gaps = slices.DeleteFunc(second.gaps, func(h gap) bool {
			return slices.ContainsFunc(p.gaps, func(x gap) bool { return sameGap(x, h) })
		})
		gaps, err := v.confirm(ctx, at, &second)
		p.skipped = append(p.skipped, second.skipped...)
		return gaps, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	v.log.Debug("no second witness", "block", p.at.Number, "error", last)
	p.skipped = append(p.skipped, stateKinds()...)
	return nil, nil
}

// compareAt compares a part with the state that one witness has of a block.
func (v *Verifier) compareAt(ctx context.Context, n *node.Node, at repute.Block, p *part) error {
	p.at, p.by, p.gaps, p.skipped, p.next, p.compared = at, n, nil, nil, 0, 0
	var from repute.TokenID
	from.SetUint64(p.from)
	agents, err := verifydb.AgentsThen(ctx, v.db, v.chain.ID, at.Number, p.only, from, v.opts.Agents)
	if err != nil {
		return err
	}
	c := v.comparer(n, at)
	for i := range agents {
		c.agent(&agents[i])
	}
	if err := v.askAll(ctx, c); err != nil {
		return err
	}
	if p.only == nil {
		if p.first {
			if err := v.count(ctx, c); err != nil {
				return err
			}
		}
		if len(agents) == v.opts.Agents {
			p.next = agents[len(agents)-1].ID.Uint64() + 1
		} else if err := v.operators(ctx, c); err != nil {
			return err
		}
	}
	p.gaps, p.compared = c.gaps, len(agents)
	for view, err := range c.unanswered {
		v.log.Debug("not verified", "view", view, "error", err)
		p.skipped = append(p.skipped, kindsOfView(view)...)
	}
	return nil
}

func (v *Verifier) comparer(n *node.Node, at repute.Block) *comparer {
	return &comparer{chain: v.chain, views: v.views, node: n, at: at, spend: v.witnesses.Spend, unanswered: map[string]error{}}
}

// askAll asks the planned questions, and then those about single ratings.
func (v *Verifier) askAll(ctx context.Context, c *comparer) error {
	if err := c.ask(ctx); err != nil {
		return err
	}
	for _, d := range c.details {
		if err := v.askRatings(ctx, c, d); err != nil {
			return err
		}
	}
	c.details = nil
	return nil
}

// askRatings compares a client's ratings one by one.
func (v *Verifier) askRatings(ctx context.Context, c *comparer, d detail) error {
	after, most := uint64(0), comparedAtOnce
	if c.index > 0 {
		after, most = c.index-1, 1
	}
	for {
		ratings, err := verifydb.RatingsThen(ctx, v.db, v.chain.ID, c.at.Number, d.id, d.client, after, most)
		if err != nil {
			return err
		}
		for i := range ratings {
			c.rating(d, &ratings[i])
		}
		if err := c.ask(ctx); err != nil {
			return err
		}
		if len(ratings) < most || c.index > 0 {
			return nil
		}
		after = ratings[len(ratings)-1].Index
	}
}

// count compares the number of stored agents with the counter in the registry's storage.
func (v *Verifier) count(ctx context.Context, c *comparer) error {
	if err := v.witnesses.Spend(ctx, 1); err != nil {
		return err
	}
	slot, err := c.node.Storage(ctx, c.at, v.chain.Identity, contracts.AgentCountSlot())
	if err != nil && node.Unsupported(err) && !errors.Is(err, node.ErrNoState) {
		c.unanswered["count"] = err
		return nil
	}
	if err != nil {
		return err
	}
	count := slot.Big()
	if !count.IsInt64() {
		c.unanswered["count"] = &jsonrpc.AnswerError{What: fmt.Sprintf("the registry's agent count is %s", count)}
		return nil
	}
	ids, where, stored, err := verifydb.AbsentAgents(ctx, v.db, v.chain.ID, c.at.Number, count.Uint64(), maxAbsent)
	if err != nil {
		return err
	}
	if count.Uint64() > stored+plausibleAbsent {
		c.unanswered["count"] = &jsonrpc.AnswerError{What: fmt.Sprintf("the registry's agent count is %s, stored are %d", count, stored)}
		return nil
	}
	if stored > count.Uint64() {
		c.differs(newGap(repute.KindTransfer, "count", repute.BlockRange{From: v.chain.StartBlock, To: c.at.Number},
			fmt.Sprintf("%d agents are stored, the registry counts %s", stored, count)))
	}
	for i, n := range ids {
		var id repute.TokenID
		id.SetUint64(n)
		r := repute.BlockRange{From: max(where[i].From, v.chain.StartBlock), To: where[i].To}
		c.differs(agentGap(repute.KindTransfer, id, r, fmt.Sprintf("the registry counts %s agents, this one is not stored", count)))
	}
	return nil
}

const (
	// maxAbsent is how many absent agents are listed at once.
	maxAbsent = 500
	// plausibleAbsent is how many agents may be missing; a higher counter counts as an
	// answer that is wrong.
	plausibleAbsent = 1_000_000
)

// operators compares every pair that was ever stored.
func (v *Verifier) operators(ctx context.Context, c *comparer) error {
	var after *verifydb.OperatorThen
	for {
		pairs, err := verifydb.OperatorsThen(ctx, v.db, v.chain.ID, c.at.Number, after, comparedAtOnce)
		if err != nil || len(pairs) == 0 {
			return err
		}
		for _, o := range pairs {
			c.operator(o)
		}
		if err := c.ask(ctx); err != nil {
			return err
		}
		after = &pairs[len(pairs)-1]
	}
}

func (c *comparer) operator(o verifydb.OperatorThen) {
	want(c, "isApprovedForAll", c.chain.Identity, c.views.Operator(o.Owner, o.Operator), func(yes, gone bool) {
		if !gone && yes != o.Approved {
			c.differs(operatorGap(o, repute.BlockRange{From: o.Block, To: c.at.Number}, yes))
		}
	})
}

// confirm returns the gaps that a second comparison shows too, with witnesses of other hosts
// where there are some. Where these disagree the gap stays, and its kind is not verified.
func (v *Verifier) confirm(ctx context.Context, at verifydb.Standing, p *part) ([]gap, error) {
	var kept []gap
	for _, h := range p.gaps {
		votes, err := v.vote(ctx, at, h, p.by)
		if err != nil {
			return nil, fmt.Errorf("confirm what is missing: %w", err)
		}
		if !votes.still() {
			v.log.Info("a difference went away at the second look", "kind", h.Kind, "subject", h.Subject, "reason", h.Reason)
			continue
		}
		if votes.divided() {
			h.Reason = "witnesses disagree: " + h.Reason
			p.skipped = append(p.skipped, h.Kind)
		}
		kept = append(kept, h)
	}
	return kept, nil
}

// votes counts the hosts that show one gap, and those that do not.
type votes struct{ yes, no int }

func (x votes) still() bool   { return x.yes > 0 && x.yes >= x.no }
func (x votes) divided() bool { return x.yes > 0 && x.yes == x.no }
func (x votes) decided() bool { return max(x.yes, x.no) > 1 }

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
	var others votes
	var last error
	said := 0
	if finder != nil {
		said = 1
	}
	heard := map[string]bool{}
	if finder != nil {
		heard[finder.Host()] = true
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
		if others.count(still); (votes{others.yes + said, others.no}).decided() {
			return votes{others.yes + said, others.no}, nil
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
	others.yes += said
	return others, nil
}

// differsNow asks one witness at the newest final block, or at the newest stored one
// where the gap was found there or older state is gone.
func (v *Verifier) differsNow(ctx context.Context, n *node.Node, at verifydb.Standing, h gap) (bool, error) {
	if h.Blocks.To > at.Pin.Number {
		return v.differsAt(ctx, n, at.Newest, h)
	}
	still, err := v.differsAt(ctx, n, at.Pin, h)
	if errors.Is(err, node.ErrNoState) {
		still, err = v.differsAt(ctx, n, at.Newest, h)
	}
	return still, err
}

// differsAt compares the subject of a gap with one witness's state at a block, and reports
// whether the gap shows.
func (v *Verifier) differsAt(ctx context.Context, n *node.Node, at repute.Block, h gap) (bool, error) {
	c := v.comparer(n, at)
	if o, ok := operatorOf(h); ok {
		now, err := v.operatorAt(ctx, at, o)
		if err != nil {
			return false, err
		}
		c.operator(now)
		err = c.ask(ctx)
		return c.shows(h), err
	}
	if h.Agent == nil {
		err := v.count(ctx, c)
		return c.shows(h), err
	}
	agents, err := verifydb.AgentsThen(ctx, v.db, v.chain.ID, at.Number, []repute.TokenID{*h.Agent}, repute.TokenID{}, 1)
	if err != nil {
		return false, err
	}
	if len(agents) == 0 { // none is stored: is there one?
		want(c, "ownerOf", v.chain.Identity, v.views.OwnerOf(*h.Agent), func(_ common.Address, gone bool) {
			if !gone {
				c.differs(h)
			}
		})
	}
	for i := range agents {
		c.about(agents[i], h)
	}
	if err := v.askAll(ctx, c); err != nil {
		return false, err
	}
	return c.shows(h), nil
}

func (v *Verifier) operatorAt(ctx context.Context, at repute.Block, o verifydb.OperatorThen) (verifydb.OperatorThen, error) {
	before := verifydb.OperatorThen{Owner: o.Owner, Operator: common.BigToAddress(new(big.Int).Sub(o.Operator.Big(), common.Big1))}
	if o.Operator == (common.Address{}) {
		before.Operator = o.Operator
	}
	pairs, err := verifydb.OperatorsThen(ctx, v.db, v.chain.ID, at.Number, &before, 1)
	if err != nil || len(pairs) == 0 || pairs[0].Owner != o.Owner || pairs[0].Operator != o.Operator {
		return o, err
	}
	return pairs[0], nil
}

// shows reports whether the comparison found the gap.
func (c *comparer) shows(h gap) bool {
	return slices.ContainsFunc(c.gaps, func(x gap) bool { return sameGap(x, h) })
}
