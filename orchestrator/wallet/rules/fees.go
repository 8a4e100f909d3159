package rules

import (
	"fmt"
	"math/big"
	"slices"

	"repute"
)

// Fees are the fees of a transaction, in wei per gas.
type Fees struct {
	Limit *big.Int // base fee and tip together
	Tip   *big.Int // for the builder of the block
}

// Usual returns fees that remain sufficient when the base fee doubles, within the ceilings.
func (c Ceilings) Usual(base, tip *big.Int) Fees {
	tip = Smaller(tip, c.MaxTip)
	limit := new(big.Int).Lsh(base, 1)
	return c.Capped(Fees{limit.Add(limit, tip), tip})
}

// Capped lowers fees to the ceilings per gas.
func (c Ceilings) Capped(f Fees) Fees {
	f.Limit = Smaller(f.Limit, c.MaxFeePerGas)
	return Fees{f.Limit, Smaller(Smaller(f.Tip, c.MaxTip), f.Limit)}
}

// Raised returns the lowest fees that nodes accept for a replacement: both an eighth higher, rounded up.
func (f Fees) Raised() Fees { return Fees{raised(f.Limit), raised(f.Tip)} }

// raised returns an amount plus an eighth, and one wei more at least.
func raised(v *big.Int) *big.Int {
	more := new(big.Int).Add(v, big.NewInt(7))
	more.Rsh(more, 3)
	if more.Sign() == 0 {
		more.SetInt64(1)
	}
	return more.Add(more, v)
}

// Bumped returns the fees of a replacement: both raised, or the current fees if those are higher.
func (f Fees) Bumped(now Fees) Fees {
	up := f.Raised()
	return Fees{larger(up.Limit, now.Limit), larger(up.Tip, now.Tip)}
}

// Within lowers fees so that gas costs no more than most in all.
func (f Fees) Within(gas uint64, most *big.Int) Fees {
	if gas == 0 {
		return f
	}
	f.Limit = Smaller(f.Limit, new(big.Int).Div(most, new(big.Int).SetUint64(gas)))
	f.Tip = Smaller(f.Tip, f.Limit)
	return f
}

// larger returns the larger of two amounts.
func larger(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// Smaller returns the smaller of two amounts.
func Smaller(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// Offer is what a transaction meets in the next block.
type Offer struct {
	Block   uint64   // number of the newest block, for errors
	BaseFee *big.Int // wei per gas
	Tip     *big.Int // wei per gas, as endpoints suggest it
	Gas     uint64   // limit of the transaction
}

// First returns the fees of an intent's first transaction. field is the chain's place in the configuration.
// repute.ErrLimited if no block would accept the fees that the budget or the ceilings allow.
func (c Ceilings) First(field string, o Offer, most Budget) (Fees, error) {
	if o.BaseFee.Cmp(c.MaxFeePerGas) > 0 {
		return Fees{}, fmt.Errorf("the base fee of block %d is %s wei per gas, over %s.max_fee_per_gas of %s: wait until fees fall, or raise it: %w",
			o.Block, o.BaseFee, field, c.MaxFeePerGas, repute.ErrLimited)
	}
	f := c.Usual(o.BaseFee, o.Tip).Within(o.Gas, most.Wei)
	if f.Limit.Cmp(o.BaseFee) < 0 {
		return f, fmt.Errorf("%d gas for at most %s wei, by %s, is %s wei each, and the base fee of block %d is %s: wait until fees fall, or raise it: %w",
			o.Gas, most.Wei, most.Of, f.Limit, o.Block, o.BaseFee, repute.ErrLimited)
	}
	return f, nil
}

// Budget is the largest cost of a transaction, with the name of the limit.
type Budget struct {
	Wei *big.Int
	Of  string // name of the limit, for errors
}

// Budget returns the lower of the transaction's own limit, nil for none, and the ceiling. field is the chain's place in
// the configuration.
func (c Ceilings) Budget(field string, allowed *big.Int) Budget {
	if allowed != nil && allowed.Cmp(c.MaxTransactionFee) <= 0 {
		return Budget{allowed, "the limit of the transaction"}
	}
	return Budget{c.MaxTransactionFee, field + ".max_transaction_fee"}
}

// ForGas returns the part of a budget that remains for gas next to a fee for the transaction's data, which may rise by
// so many percent. repute.ErrLimited if it leaves nothing.
func (b Budget) ForGas(dataFee *big.Int, headroom int64) (Budget, error) {
	left := new(big.Int).Sub(b.Wei, WithHeadroom(dataFee, headroom))
	if left.Sign() < 0 {
		return b, fmt.Errorf("the fee for the transaction's data is %s wei, and it may cost %s with its gas, by %s: %w",
			dataFee, b.Wei, b.Of, repute.ErrLimited)
	}
	return Budget{left, b.Of}, nil
}

// WithHeadroom returns an amount plus a percentage.
func WithHeadroom(v *big.Int, percent int64) *big.Int {
	out := new(big.Int).Mul(v, big.NewInt(100+percent))
	return out.Div(out, big.NewInt(100))
}

// Median returns the middle amount: of an even number the lower or the upper one.
func Median(of []*big.Int, upper bool) *big.Int {
	sorted := slices.SortedFunc(slices.Values(of), (*big.Int).Cmp)
	if upper {
		return sorted[len(sorted)/2]
	}
	return sorted[(len(sorted)-1)/2]
}
