package wallet

import (
	"context"
	"fmt"
	"math/big"

	"repute"
)

// fees are the fees of a transaction, in wei per gas.
type fees struct{ limit, tip *big.Int }

// usual returns fees that remain sufficient when the base fee doubles, within the chain's ceilings.
func (c *chain) usual(base, tip *big.Int) fees {
	tip = smaller(tip, c.MaxTip)
	limit := new(big.Int).Lsh(base, 1)
	return c.capped(fees{limit.Add(limit, tip), tip})
}

// capped lowers fees to the chain's ceilings per gas.
func (c *chain) capped(f fees) fees {
	f.limit = smaller(f.limit, c.MaxFeePerGas)
	return fees{f.limit, smaller(smaller(f.tip, c.MaxTip), f.limit)}
}

// feesNow returns the fees of a transaction that is signed now: from the base fee on which
// endpoints agree, and the lower median of their tips.
func (c *chain) feesNow(ctx context.Context) (fees, error) {
	tips, at, err := agree(ctx, c, nil, func(ctx context.Context, e *endpoint, _ *head) (*big.Int,
		error) {
		return e.tip(ctx)
	}, func(_, _ **big.Int) string { return "" })
	if err != nil {
		return fees{}, err
	}
	return c.usual(at.base(), median(tips, false)), nil
}

// raised returns v plus an eighth, rounded up: the smallest increase that nodes accept for a
// replacement.
func raised(v *big.Int) *big.Int {
	more := new(big.Int).Add(v, big.NewInt(7))
	more.Rsh(more, 3)
	if more.Sign() == 0 {
		more.SetInt64(1)
	}
	return more.Add(more, v)
}

// bumped returns the fees of a replacement: both raised, or the current fees if those are higher.
func (f fees) bumped(now fees) fees {
	return fees{larger(raised(f.limit), now.limit), larger(raised(f.tip), now.tip)}
}

// larger returns the larger of two amounts.
func larger(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// smaller returns the smaller of two amounts.
func smaller(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// within lowers fees so that gas costs no more than most in all.
func (f fees) within(gas uint64, most *big.Int) fees {
	if gas == 0 {
		return f
	}
	f.limit = smaller(f.limit, new(big.Int).Div(most, new(big.Int).SetUint64(gas)))
	f.tip = smaller(f.tip, f.limit)
	return f
}

// first returns the fees of an intent's first transaction. repute.ErrLimited if no block would
// accept the fees that the limit or the chain's ceilings allow.
func (c *chain) first(a *appraisal, most budget) (fees, error) {
	base := a.at.base()
	if base.Cmp(c.MaxFeePerGas) > 0 {
		return fees{}, fmt.Errorf("the base fee of block %d is %s wei per gas, over %s.max_fee_per_gas of %s: wait until fees fall, or raise it: %w",
			a.at.Number, base, c.field, c.MaxFeePerGas, repute.ErrLimited)
	}
	f := c.usual(base, a.tip).within(a.gas, most.wei)
	if f.limit.Cmp(base) < 0 {
		return f, fmt.Errorf("%d gas for at most %s wei, by %s, is %s wei each, and the base fee of block %d is %s: wait until fees fall, or raise it: %w",
			a.gas, most.wei, most.of, f.limit, a.at.Number, base, repute.ErrLimited)
	}
	return f, nil
}

// withHeadroom returns v plus a percentage.
func withHeadroom(v *big.Int, percent int64) *big.Int {
	out := new(big.Int).Mul(v, big.NewInt(100+percent))
	return out.Div(out, big.NewInt(100))
}

// budget is the largest cost of a transaction, with the name of the limit.
type budget struct {
	wei *big.Int
	of  string // name of the limit, for errors
}

// budget returns the lower of the transaction's own limit, nil for none, and the chain's ceiling.
func (c *chain) budget(allowed *big.Int) budget {
	if allowed != nil && allowed.Cmp(c.MaxTransactionFee) <= 0 {
		return budget{allowed, "the limit of the transaction"}
	}
	return budget{c.MaxTransactionFee, c.field + ".max_transaction_fee"}
}
