package state

import (
	"context"
	"errors"
	"fmt"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/indexer/verify/missing"
	"repute/store/verifydb"
)

// count compares the number of stored agents with the counter in the registry's storage.
func (c *comparison) count(ctx context.Context) error {
	if err := c.spend(ctx, 1); err != nil {
		return err
	}
	slot, err := c.node.Storage(ctx, c.at, c.chain.Identity, contracts.AgentCountSlot())
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
	ids, where, stored, err := verifydb.AbsentAgents(ctx, c.db, c.chain.ID, c.at.Number, count.Uint64(), maxAbsent)
	if err != nil {
		return err
	}
	if count.Uint64() > stored+plausibleAbsent {
		c.unanswered["count"] = &jsonrpc.AnswerError{What: fmt.Sprintf("the registry's agent count is %s, stored are %d",
			count, stored)}
		return nil
	}
	if stored > count.Uint64() {
		c.differs(missing.New(repute.KindTransfer, "count",
			repute.BlockRange{From: c.chain.StartBlock, To: c.at.Number},
			fmt.Sprintf("%d agents are stored, the registry counts %s", stored, count)))
	}
	for i, n := range ids {
		var id repute.TokenID
		id.SetUint64(n)
		r := repute.BlockRange{From: max(where[i].From, c.chain.StartBlock), To: where[i].To}
		c.differs(missing.OfAgent(repute.KindTransfer, id, r,
			fmt.Sprintf("the registry counts %s agents, this one is not stored", count)))
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
func (c *comparison) operators(ctx context.Context) error {
	var after *verifydb.OperatorThen
	for {
		pairs, err := verifydb.OperatorsThen(ctx, c.db, c.chain.ID, c.at.Number, after, comparedAtOnce)
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

// operator compares the approval of an operator, which belongs to an owner and not to an agent.
func (c *comparison) operator(o verifydb.OperatorThen) {
	want(c, "isApprovedForAll", c.chain.Identity, c.views.Operator(o.Owner, o.Operator), func(yes, gone bool) {
		if !gone && yes != o.Approved {
			c.differs(missing.OfOperator(o, repute.BlockRange{From: o.Block, To: c.at.Number}, yes))
		}
	})
}
