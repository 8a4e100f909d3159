package wallet

import (
	"context"
	"math/big"

	"repute/orchestrator/wallet/rules"
)

// feesNow returns the fees of a transaction that is signed now: from the base fee on which
// endpoints agree, and the lower median of their tips.
func (c *chain) feesNow(ctx context.Context) (rules.Fees, error) {
	tips, at, err := agree(ctx, c, nil, func(ctx context.Context, e *endpoint, _ *head) (*big.Int,
		error) {
		return e.tip(ctx)
	}, func(_, _ **big.Int) string { return "" })
	if err != nil {
		return rules.Fees{}, err
	}
	return c.Usual(at.base(), rules.Median(tips, false)), nil
}

// first returns the fees of an intent's first transaction, which a block would accept.
func (c *chain) first(a *appraisal, most rules.Budget) (rules.Fees, error) {
	return c.First(c.field, rules.Offer{Block: uint64(a.at.Number), BaseFee: a.at.base(), Tip: a.tip, Gas: a.gas}, most)
}
